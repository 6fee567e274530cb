#pragma once

#include <filesystem>
#include <memory>

#include "io/files/byte_source.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The safetensors file of these bytes, wherever they stand; `name` is how messages call it. Reads
/// and checks the header, nothing of the data. Throws Error(file).
std::shared_ptr<const TensorFile> read_safetensors(std::shared_ptr<const ByteSource> bytes,
                                                   const std::filesystem::path& name);

/// The same of a file.
std::shared_ptr<const TensorFile> open_safetensors(const std::filesystem::path& path);

}  // namespace attnscope

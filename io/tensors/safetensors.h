#pragma once

#include <filesystem>
#include <memory>

#include "io/files/byte_source.h"
#include "io/files/strict_json.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The safetensors file of these bytes, wherever they stand; `name` is how messages call it. Reads
/// and checks the header, within `limits`, nothing of the data. Throws Error(file), Error(resource)
/// where the limits' memory does not suffice.
std::shared_ptr<const TensorFile> read_safetensors(std::shared_ptr<const ByteSource> bytes,
                                                   const std::filesystem::path& name,
                                                   const JsonLimits& limits = {});

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/tensor/tensor_source.h"
#include "io/files/byte_source.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The array of a .npy file, wherever its bytes stand; `name` is how messages call it. Reads and
/// checks the header, nothing of the data. Throws Error(file).
std::shared_ptr<const TensorSource> read_npy(std::shared_ptr<const ByteSource> file,
                                             const std::string& name);

/// The one string that an array holds, "None" of an array of that object; nothing of others. Throws
/// as read_npy.
std::optional<std::string> npy_text(const ByteSource& file, const std::string& name);

/// A .npy file as a file of one tensor, named "". Throws Error(file).
std::shared_ptr<const TensorFile> open_npy(const std::filesystem::path& path);

/// Opens a .npy file from its bytes, which are open already, as a file called `name`.
std::shared_ptr<const TensorFile> open_npy(std::shared_ptr<const ByteSource> bytes,
                                           const std::filesystem::path& name);

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <memory>

#include "io/files/read_progress.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// Opens a tensor file by its content (safetensors or an index of several, .npy, .npz, torch.save's
/// .pt, HDF5), not by its name, as one of `control.files`. Its tensors keep `control` for what they
/// read for long. Throws Error(file) for anything else and for what is malformed.
std::shared_ptr<const TensorFile> open_tensor_file(const std::filesystem::path& path,
                                                   const ReadControl& control = {});

}  // namespace attnscope

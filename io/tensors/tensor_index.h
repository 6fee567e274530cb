#pragma once

#include <filesystem>
#include <memory>

#include "io/files/input_file.h"
#include "io/files/read_progress.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// Several safetensors files as one, by the JSON that model hubs lay beside them
/// (NAME.safetensors.index.json), whose weight_map says in which of them each tensor stands. They
/// lie in its folder or below it, and are opened as files of `control`. What their metadata say is
/// said together. A file that cannot be read is an error when one of its tensors is asked for.
/// Throws Error(file) where the JSON is no such index, Error(resource) where it takes too much
/// memory.
std::shared_ptr<const TensorFile> open_tensor_index(const InputFile& file,
                                                    const ReadControl& control);

}  // namespace attnscope

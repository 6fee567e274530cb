#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor_source.h"
#include "io/files/read_progress.h"

namespace attnscope {

/// "FILE" or "FILE:KEY" → FILE.
std::string reference_file(const std::string& reference);
/// "FILE" or "FILE:KEY" → the tensor; without a key the file's only tensor, or the one named like
/// one of `usual_names`. Throws Error(usage) where that leaves several, Error(file) as
/// open_tensor_file.
std::shared_ptr<const TensorSource> open_tensor_reference(
    const std::string& reference, const std::vector<std::string>& usual_names,
    const ReadControl& control);

}  // namespace attnscope

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/capture/name_pattern.h"
#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The calls of a file of several, told by the names of its tensors: blocks.3.attn.q, layer3/q,
/// q_layer3, q.3. With a pattern by that alone; without {q|k} it fits what stands before them
/// (blocks.{layer}.attn). Else by the pattern that the names themselves make of their numbers,
/// the one with the most calls; no calls where there is none. Throws Error(usage) where the pattern
/// is none, Error(file) where two tensors have one place.
NamedFiles find_named_tensors(const std::shared_ptr<const TensorFile>& file,
                              const std::optional<std::string>& pattern);

}  // namespace attnscope

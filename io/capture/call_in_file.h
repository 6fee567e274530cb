#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/tensors/tensor_file.h"

namespace attnscope {

/// The text before and after the names of a call's tensors in the keys of a file of several
/// calls: "layer_3." and "" of layer_3.q and layer_3.mask.
struct KeyFrame {
  std::string before, after;
  friend auto operator<=>(const KeyFrame&, const KeyFrame&) = default;
};

/// The calls of a file, each as a file of its own whose tensors have the names between its frame,
/// with its values; what belongs to no call, but is a value, a mask, cu_seqlens or what else shapes
/// maps of the file as a whole, belongs to each. They share `file`.
struct CallsInFile {
  std::vector<std::shared_ptr<const TensorFile>> calls;  ///< one a frame
  std::vector<std::string> left_out;                     ///< tensors of no call
};
CallsInFile calls_in_file(const std::shared_ptr<const TensorFile>& file,
                          const std::vector<KeyFrame>& frames);

}  // namespace attnscope

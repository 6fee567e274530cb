#pragma once

#include <cstdint>
#include <string>

namespace attnscope {

/// A sparse mask over the matrix.
struct MaskLook {
  bool shown = false;     ///< its pane
  std::string text = {};  ///< a pattern, FILE.npy or FILE.json (absolute); empty: no mask
  int64_t block = 128;    ///< tokens of a block of FILE.npy
  friend bool operator==(const MaskLook&, const MaskLook&) = default;
};

}  // namespace attnscope

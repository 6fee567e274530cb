#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/mask/edited_mask.h"

namespace attnscope {

/// The effect that dragging over the matrix has on the mask's blocks.
enum class MaskBrush : uint8_t { off, keep, drop };

/// Rectangles of a mask that can be edited.
inline constexpr size_t kMostMaskEdits = 1024;

/// A sparse mask over the matrix.
struct MaskLook {
  bool shown = false;     ///< its pane
  std::string text = {};  ///< a pattern, FILE.npy or FILE.json (absolute); empty: no mask
  int64_t block = 128;    ///< tokens of a block of FILE.npy; 128: of one that does not say
  std::vector<MaskEdit> edits = {};  ///< kept or dropped by hand, the latest last
  bool lost = false;                 ///< what is dropped is coloured by the weight lost there
  MaskBrush brush = MaskBrush::off;
  friend bool operator==(const MaskLook&, const MaskLook&) = default;
};

}  // namespace attnscope

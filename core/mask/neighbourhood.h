#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/mask/mask.h"

namespace attnscope {

/// NATTEN's neighbourhood attention on a grid (Hassani et al. 2025, arXiv:2504.16922, and its
/// reference kernel): which keys a cell sees, axis by axis (t, y, x). With n cells along an axis,
/// window w, stride s and dilation d, the cells i of one residue i mod d are an axis of their own:
/// place p = ⌊i/d⌋ of m = those cells. A query at p sees w places from
/// clamp(min(⌊p/s⌋·s + ⌊s/2⌋, m − 1) − ⌊w/2⌋, 0, m − w) on; along a causal axis those from
/// max(min(⌊p/s⌋·s + s − 1, m − 1) − w + 1, 0) to p.
struct Neighbourhood {
  std::array<int64_t, 3> window{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1};
  std::array<int64_t, 3> dilation{1, 1, 1};
  std::array<bool, 3> causal{};

  /// Takes `value` for "window", "stride" or "dilation" ("3x5x5") or "causal" (the axes' letters,
  /// "t" … "tyx"). Returns what was expected; empty where the value is it.
  std::string set(std::string_view name, std::string_view value);
  /// "3x5x5", "3x5x5,stride=1x2x2,dilation=1x2x2,causal=t": what differs from 1 and none.
  std::string text() const;
};

/// Of such a text; nothing where it is none.
std::optional<Neighbourhood> parse_neighbourhood(std::string_view text);

/// The neighbourhoods of the cells of a T×H×W grid, row-major from token `first` on; all other
/// tokens attend to all, and are attended to by all. Described as "natten:…". Throws Error(usage)
/// where a stride exceeds its window, or the window with its dilation the axis (w·d > n), which
/// NATTEN refuses too.
Mask neighbourhood_mask(const Neighbourhood& form, std::array<int64_t, 3> grid, int64_t first);

}  // namespace attnscope

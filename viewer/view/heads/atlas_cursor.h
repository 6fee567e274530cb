#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "viewer/view/heads/atlas_layout.h"
#include "viewer/view/heads/head_atlas.h"

namespace attnscope {

/// The heads of an atlas that are shown, in the order in which they stand.
std::vector<AtlasHead> shown_heads(const AtlasCells& cells);

enum class CursorMove : uint8_t { left, right, up, down, first, last };

/// The head beside `from` as the cells stand, of those that are shown: left and right go on in the
/// row before or after, up and down take the nearest of the next row that has any. `from` itself
/// where there is none further; the first head where `from` is not shown.
std::optional<HeadId> moved_cursor(const AtlasCells& cells, const AtlasLayout& layout,
                                   const HeadId& from, CursorMove move);

/// The heads between two, both included, in the order shown; those of one that is not shown: the
/// other alone.
std::vector<AtlasHead> heads_between(const AtlasCells& cells, const HeadId& a, const HeadId& b);

}  // namespace attnscope

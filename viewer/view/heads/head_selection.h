#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/problem/head_set.h"
#include "viewer/view/heads/head_atlas.h"

namespace attnscope {

// Heads that are selected together are a list as parse_head_list() reads it, "3.1,12.7";
// empty: none.

/// The changes of a selection.
enum class SelectHow : uint8_t {
  replace,  ///< these heads and no others
  add,      ///< these as well
  toggle    ///< these no more, where all of them are selected; else these as well
};
/// The list after a change. Patterns of other heads, as of another step, keep their words.
std::string changed_selection(const std::string& list, std::span<const AtlasHead> heads,
                              SelectHow how);

/// How a command chooses the heads of a list.
struct PickedHeads {
  std::string pick;    ///< for `--pick`
  bool steps = false;  ///< it says of which step each head is
};
/// Of a list that is looked at in `step`: where some of its heads are of a step, all are.
PickedHeads picked_heads(const std::string& list, int64_t step);

/// The heads of a list by all that is known of each, each once: of those that stand in the atlas of
/// `from`, or in that of their own step, every fact that was recorded, of others what the list
/// says.
std::vector<HeadPattern> listed_heads(const std::string& list, std::span<const MapSource> calls,
                                      const HeadId& from);

}  // namespace attnscope

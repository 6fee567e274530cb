#include "viewer/view/heads/head_selection.h"

#include <algorithm>

#include "viewer/view/heads/head_list.h"

namespace attnscope {
namespace {

/// What a list that was checked before is read for.
constexpr std::string_view kChecked = "selected heads";

void append(std::string& list, const std::string& words) {
  list += (list.empty() ? "" : ",") + words;
}

}  // namespace

std::string changed_selection(const std::string& list, std::span<const AtlasHead> heads,
                              SelectHow how) {
  const std::vector<HeadPattern> patterns = parse_head_list(list, kChecked);
  const auto is_selected = [&](const AtlasHead& head) {
    return std::any_of(patterns.begin(), patterns.end(),
                       [&](const HeadPattern& each) { return each.matches(head.name); });
  };
  const bool removes =
      how == SelectHow::toggle && std::all_of(heads.begin(), heads.end(), is_selected);
  std::string changed;
  for (const HeadPattern& pattern : patterns) {
    if (how == SelectHow::replace) break;
    const bool named = std::any_of(heads.begin(), heads.end(), [&](const AtlasHead& head) {
      return pattern.matches(head.name);
    });
    if (!removes || !named) append(changed, pattern.text());
  }
  for (const AtlasHead& head : heads) {
    if (removes || head.pick.empty()) continue;
    if (how == SelectHow::replace || !is_selected(head)) append(changed, head.pick);
  }
  return changed;
}

PickedHeads picked_heads(const std::string& list, int64_t step) {
  std::vector<HeadPattern> patterns = parse_head_list(list, kChecked);
  PickedHeads heads;
  heads.steps = std::any_of(patterns.begin(), patterns.end(),
                            [](const HeadPattern& each) { return each.step.has_value(); });
  for (HeadPattern& pattern : patterns) {
    if (heads.steps && !pattern.step) pattern.step = step;
    append(heads.pick, pattern.text());
  }
  return heads;
}

std::vector<HeadPattern> listed_heads(const std::string& list,
                                      std::span<const AtlasLine> atlas_lines) {
  std::vector<HeadPattern> listed;
  for (const HeadPattern& pattern : parse_head_list(list, kChecked)) {
    const size_t before = listed.size();
    for (const AtlasLine& line : atlas_lines) {
      for (const AtlasHead& head : line.heads) {
        if (pattern.matches(head.name)) listed.push_back(HeadPattern::of(head.name));
      }
    }
    if (listed.size() == before) listed.push_back(pattern);
  }
  return listed;
}

}  // namespace attnscope

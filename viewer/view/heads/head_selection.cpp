#include "viewer/view/heads/head_selection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

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
  std::set<std::string> seen;
  for (HeadPattern& pattern : patterns) {
    if (heads.steps && !pattern.step) pattern.step = step;
    if (seen.insert(pattern.facts()).second) append(heads.pick, pattern.text());
  }
  return heads;
}

namespace {

/// A head of `step` in whose atlas heads stand as in that of `from`, or `from` where there is none.
HeadId of_step(std::span<const MapSource> calls, const HeadId& from, std::optional<int64_t> step) {
  const MapSource& own = calls[static_cast<size_t>(from.call)];
  if (!step || *step == own.step) return from;
  for (size_t c = 0; c < calls.size(); ++c) {
    const MapSource& call = calls[c];
    if (call.step != *step || call.kind != own.kind || call.place.slot != own.place.slot ||
        call.place.chunk != own.place.chunk) {
      continue;
    }
    for (size_t item = 0; item < call.batch.size(); ++item) {
      const HeadId there{static_cast<int64_t>(c), static_cast<int64_t>(item), 0};
      if (call.branch(there.batch) == own.branch(from.batch)) return there;
    }
  }
  return from;
}

}  // namespace

std::vector<HeadPattern> listed_heads(const std::string& list, std::span<const MapSource> calls,
                                      const HeadId& from) {
  std::vector<HeadPattern> listed;
  std::set<std::string> seen;
  std::map<std::optional<int64_t>, std::vector<AtlasLine>> steps;
  const auto add = [&](const HeadPattern& pattern) {
    if (seen.insert(pattern.facts()).second) listed.push_back(pattern);
  };
  for (const HeadPattern& pattern : parse_head_list(list, kChecked)) {
    std::vector<AtlasLine>& lines = steps[pattern.step];
    if (lines.empty()) lines = atlas_lines(calls, of_step(calls, from, pattern.step));
    bool found = false;
    for (const AtlasLine& line : lines) {
      for (const AtlasHead& head : line.heads) {
        if (!pattern.matches(head.name)) continue;
        found = true;
        add(HeadPattern::of(head.name));
      }
    }
    if (!found) add(pattern);
  }
  return listed;
}

}  // namespace attnscope

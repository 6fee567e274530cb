#include "cli/stored_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/error.h"

namespace attnscope {
namespace {

template <typename Value>
std::vector<int64_t> chosen(const StoredMaps& maps, const Selection& selection, Value value) {
  std::set<int64_t> recorded;
  for (const StoredHead& head : maps.heads()) recorded.insert(value(head));
  return selection.resolve(std::vector<int64_t>(recorded.begin(), recorded.end()));
}

/// Checks that every name that was asked for exists.
template <typename Value>
void check_names(const StoredMaps& maps, const std::vector<std::string>& names, const char* option,
                 Value value) {
  std::set<std::string> recorded;
  for (const StoredHead& head : maps.heads()) recorded.insert(value(head));
  for (const std::string& name : names) {
    if (recorded.count(name) != 0) continue;
    std::string list;
    for (const std::string& other : recorded) list += (list.empty() ? "" : ", ") + one_line(other);
    throw usage_error(fmt::format("{} {}: the export has {}", option, one_line(name), list));
  }
}

bool contains(const std::vector<int64_t>& values, int64_t value) {
  return std::binary_search(values.begin(), values.end(), value);
}

bool is_named(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void check_export_options(const CaptureOptions& c, const RunOptions& run) {
  const std::pair<const char*, bool> facts[] = {
      {"--q", !c.tensors.q.empty()},        {"--k", !c.tensors.k.empty()},
      {"--v", !c.tensors.v.empty()},        {"--layout", !c.layout.empty()},
      {"--grid", !c.grid.empty()},          {"--text", !c.text.empty()},
      {"--scale", !c.scale.empty()},        {"--mask", !c.mask.empty()},
      {"--preset", !c.preset.empty()},      {"--score", c.score != "softmax"},
      {"--backend", run.backend != "auto"}, {"--threads", run.threads > 0}};
  for (const auto& [option, given] : facts) {
    if (!given) continue;
    throw usage_error(fmt::format(
        "{}: {} is an export, whose maps are computed already (the option belongs to captures)",
        option, one_line(c.capture)));
  }
}

std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options) {
  const CallSelection s = parse_selection(options);
  const auto steps = chosen(maps, s.steps, [](const StoredHead& h) { return h.facts->step; });
  const auto layers = chosen(maps, s.layers, [](const StoredHead& h) { return h.facts->layer; });
  const auto heads = chosen(maps, s.heads, [](const StoredHead& h) { return h.head; });
  const auto batch = chosen(maps, s.batch, [](const StoredHead& h) { return h.batch; });
  const auto branch = [](const StoredHead& h) { return h.facts->branch; };
  const auto kind = [](const StoredHead& h) { return h.facts->kind; };
  check_names(maps, s.branches, "--branch", branch);
  check_names(maps, s.kinds, "--kind", kind);
  std::vector<StoredHead> selected;
  for (const StoredHead& head : maps.heads()) {
    if (contains(steps, head.facts->step) && contains(layers, head.facts->layer) &&
        contains(heads, head.head) && contains(batch, head.batch) &&
        is_named(s.branches, branch(head)) && is_named(s.kinds, kind(head))) {
      selected.push_back(head);
    }
  }
  if (!selected.empty()) return selected;
  std::string groups;
  for (const StoredGroup& group : maps.stored().groups) {
    groups += (groups.empty() ? "" : ", ") + one_line(group.name);
  }
  throw usage_error("nothing of the export is selected (it has " + groups + ")");
}

std::string stored_label(const StoredHead& h) {
  return fmt::format("step {} layer {} {} {} batch {} head {}", h.facts->step, h.facts->layer,
                     one_line(h.facts->branch), one_line(h.facts->kind), h.batch, h.head);
}

}  // namespace attnscope

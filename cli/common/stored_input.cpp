#include "cli/common/stored_input.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/name_patterns.h"

namespace attnscope {
namespace {

using Heads = std::vector<HeadName>;

template <typename Value>
std::vector<int64_t> chosen(const Heads& heads, const Selection& selection, Value value) {
  std::set<int64_t> recorded;
  for (const HeadName& head : heads) recorded.insert(value(head));
  return selection.resolve(std::vector<int64_t>(recorded.begin(), recorded.end()));
}

/// As chosen(), of a number that some calls lack: those have `none` there, which cannot be asked
/// for, and which is chosen with all others where the selection is of all.
template <typename Value>
std::vector<int64_t> chosen_or(int64_t none, const Heads& heads, const Selection& selection,
                               Value value) {
  Heads with;
  for (const HeadName& head : heads) {
    if (value(head) != none) with.push_back(head);
  }
  auto numbers =
      with.empty() && selection.is_all() ? std::vector<int64_t>() : chosen(with, selection, value);
  if (selection.is_all()) numbers.insert(numbers.begin(), none);
  return numbers;
}

void check_places(const Heads& heads, const CallSelection& selection) {
  std::set<std::string> blocks, slots;
  for (const HeadName& head : heads) {
    blocks.insert(head.place.block);
    slots.insert(head.place.slot);
  }
  check_patterns(selection.blocks, blocks, "--blocks", "the export");
  check_patterns(selection.slots, slots, "--slots", "the export");
}

/// Checks that every name that was asked for exists.
template <typename Value>
void check_names(const Heads& heads, const std::vector<std::string>& names, const char* option,
                 Value value) {
  std::set<std::string> recorded;
  for (const HeadName& head : heads) recorded.insert(value(head));
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

std::string capture_option_given(const CaptureOptions& c, const RunOptions& run) {
  const std::pair<const char*, bool> facts[] = {{"--q", !c.tensors.q.empty()},
                                                {"--k", !c.tensors.k.empty()},
                                                {"--v", !c.tensors.v.empty()},
                                                {"--score", c.score != "softmax"},
                                                {"--as", !c.told.empty()},
                                                {"--links", c.links != "refuse"},
                                                {"--backend", run.backend != "auto"},
                                                {"--vram", !run.vram.empty()},
                                                {"--tf32", run.tf32},
                                                {"--profile", run.profile},
                                                {"--threads", run.threads > 0}};
  for (const TextFact& fact : kTextFacts) {
    if (c.texts.*fact.value) return fact.option;
  }
  for (const auto& [option, given] : facts) {
    if (given) return option;
  }
  return "";
}

void check_export_options(const CaptureOptions& c, const RunOptions& run) {
  const std::string option = capture_option_given(c, run);
  if (option.empty()) return;
  throw usage_error(fmt::format(
      "{}: {} is an export, whose maps are computed already (the option belongs to captures)",
      option, one_line(c.capture)));
}

std::vector<size_t> select_stored(const std::vector<HeadName>& heads,
                                  const SelectionOptions& options) {
  const CallSelection s = parse_selection(options);
  using Name = const HeadName&;
  const auto steps = chosen(heads, s.steps, [](Name h) { return h.step; });
  const auto layers = chosen_or(kNoLayer, heads, s.layers, [](Name h) { return h.layer; });
  const auto chunks = chosen_or(kNoChunk, heads, s.chunks, [](Name h) { return h.place.chunk; });
  const auto numbers = chosen(heads, s.heads, [](Name h) { return h.head; });
  const auto batch = chosen(heads, s.batch, [](Name h) { return h.batch; });
  check_names(heads, s.branches, "--branch", [](Name h) { return h.branch; });
  check_names(heads, s.kinds, "--kind", [](Name h) { return h.kind; });
  check_places(heads, s);
  std::vector<size_t> selected;
  std::string calls, last;
  for (size_t i = 0; i < heads.size(); ++i) {
    const HeadName& h = heads[i];
    if (contains(steps, h.step) && contains(layers, h.layer) && contains(numbers, h.head) &&
        contains(batch, h.batch) && is_named(s.branches, h.branch) && is_named(s.kinds, h.kind) &&
        matches_any(s.blocks, h.place.block) && matches_any(s.slots, h.place.slot) &&
        contains(chunks, h.place.chunk)) {
      selected.push_back(i);
    }
    const std::string call = one_line(call_words(h.step, h.layer, h.branch, h.kind, h.place));
    if (call != last) calls += (calls.empty() ? "" : ", ") + call;
    last = call;
  }
  if (!selected.empty()) return selected;
  throw usage_error("nothing of the export is selected (it has " + calls + ")");
}

HeadName stored_name(const StoredFacts& facts, int64_t batch, int64_t head) {
  return {facts.step, facts.layer, facts.branch, facts.kind, batch, head, facts.place};
}

std::vector<StoredHead> select_stored(const StoredMaps& maps, const SelectionOptions& options) {
  std::vector<HeadName> names;
  for (const StoredHead& h : maps.heads()) {
    names.push_back(stored_name(*h.facts, h.batch, h.head));
  }
  std::vector<StoredHead> selected;
  for (const size_t i : select_stored(names, options)) selected.push_back(maps.heads()[i]);
  return selected;
}

std::string stored_label(const StoredHead& h) {
  return head_label(stored_name(*h.facts, h.batch, h.head));
}

}  // namespace attnscope

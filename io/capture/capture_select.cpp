#include "io/capture/capture.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/name_patterns.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Checks names against those that exist.
void check_names(const std::vector<std::string>& wanted, const std::set<std::string>& existing,
                 const char* option) {
  for (const std::string& name : wanted) {
    if (existing.count(name) != 0) continue;
    const std::vector<std::string> candidates(existing.begin(), existing.end());
    const std::string nearest = nearest_word(name, candidates);
    throw usage_error(std::string(option) + " " + name + ": not in this capture" +
                      (nearest.empty() ? "" : ", did you mean " + nearest + "?") + " (it has " +
                      join(existing) + ")");
  }
}

bool contains(const std::vector<int64_t>& sorted, int64_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

bool names_contain(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<SelectedCall> Capture::select(const CallSelection& selection) const {
  std::set<int64_t> steps, layers, chunks;
  std::set<std::string> branches, kinds, blocks, slots;
  int64_t heads = 0, batch = 0;
  for (const CallEntry& call : calls_) {
    steps.insert(call.id.step);
    if (call.id.layer != kNoLayer) layers.insert(call.id.layer);
    if (call.id.place.has_chunk()) chunks.insert(call.id.place.chunk);
    blocks.insert(call.id.place.block);
    slots.insert(call.id.place.slot);
    branches.insert(call.id.branches.begin(), call.id.branches.end());
    kinds.insert(std::string(kind_name(call.id.kind)));
    heads = std::max(heads, call.problem->num_heads());
    batch = std::max(batch, call.problem->batch());
  }
  check_names(selection.branches, branches, "--branch");
  check_names(selection.kinds, kinds, "--kind");
  check_patterns(selection.blocks, blocks, "--blocks", "this capture");
  check_patterns(selection.slots, slots, "--slots", "this capture");
  const auto resolve = [](const Selection& s, const std::set<int64_t>& recorded) {
    return s.resolve(std::vector<int64_t>(recorded.begin(), recorded.end()));
  };
  const auto chosen_steps = resolve(selection.steps, steps);
  // Not every call has a layer or a chunk: to select all of them also takes the calls without one.
  const auto resolve_or = [&](int64_t none, const Selection& s, const std::set<int64_t>& recorded) {
    if (!s.is_all()) return resolve(s, recorded);
    std::vector<int64_t> all{none};
    all.insert(all.end(), recorded.begin(), recorded.end());
    return all;
  };
  const auto chosen_layers = resolve_or(kNoLayer, selection.layers, layers);
  const auto chosen_chunks = resolve_or(kNoChunk, selection.chunks, chunks);
  const auto chosen_heads = selection.heads.resolve_count(heads);
  const auto chosen_batch = selection.batch.resolve_count(batch);

  std::vector<SelectedCall> selected;
  for (const CallEntry& call : calls_) {
    if (!contains(chosen_steps, call.id.step) || !contains(chosen_layers, call.id.layer) ||
        !contains(chosen_chunks, call.id.place.chunk) ||
        !names_contain(selection.kinds, std::string(kind_name(call.id.kind))) ||
        !matches_any(selection.blocks, call.id.place.block) ||
        !matches_any(selection.slots, call.id.place.slot)) {
      continue;
    }
    SelectedCall chosen{&call, {}, {}};
    for (int64_t item : chosen_batch) {
      if (item < call.problem->batch() &&
          names_contain(selection.branches, branch_of(call.id, item))) {
        chosen.batch.push_back(item);
      }
    }
    for (int64_t head : chosen_heads) {
      if (head < call.problem->num_heads()) chosen.heads.push_back(head);
    }
    if (!chosen.batch.empty() && !chosen.heads.empty()) selected.push_back(std::move(chosen));
  }
  if (selected.empty()) {
    throw usage_error("the selection leaves no call; " + path_.string() + " has steps " +
                      format_index_list(std::vector<int64_t>(steps.begin(), steps.end())) +
                      ", layers " +
                      format_index_list(std::vector<int64_t>(layers.begin(), layers.end())) +
                      ", branches " + join(branches) + ", kinds " + join(kinds) +
                      (slots.size() > 1 ? ", slots " + join(slots) : "") +
                      (chunks.empty() ? ""
                                      : ", chunks " + format_index_list(std::vector<int64_t>(
                                                          chunks.begin(), chunks.end()))) +
                      " (not every combination)");
  }
  return selected;
}

}  // namespace attnscope

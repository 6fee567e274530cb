#include "core/problem/head_choice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_patterns.h"

namespace attnscope {
namespace {

std::string list_of(const std::set<int64_t>& numbers) {
  return format_index_list(std::vector<int64_t>(numbers.begin(), numbers.end()));
}

std::string list_of(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + one_line(name);
  return text;
}

}  // namespace

HeadChoice::HeadChoice(const CallSelection& selection, std::string where)
    : selection_(selection), where_(std::move(where)) {
  for (const auto& set : selection_.sets) found_.emplace_back(set->size(), false);
}

bool HeadChoice::Numbers::has(int64_t number) const {
  return std::binary_search(chosen.begin(), chosen.end(), number);
}

void HeadChoice::add(const HeadName& first, int64_t count) {
  steps_.there.insert(first.step);
  if (first.layer != kNoLayer) layers_.there.insert(first.layer);
  if (first.place.has_chunk()) chunks_.there.insert(first.place.chunk);
  batch_.there.insert(first.batch);
  branches_.there.insert(first.branch);
  kinds_.there.insert(first.kind);
  blocks_.there.insert(first.place.block);
  slots_.there.insert(first.place.slot);
  HeadName name = first;
  for (; name.head < first.head + count; ++name.head) {
    heads_.there.insert(heads_.there.end(), name.head);
    for (size_t i = 0; i < found_.size(); ++i) selection_.sets[i]->mark(name, found_[i]);
  }
}

void HeadChoice::resolve_numbers(const Selection& selection, Numbers& numbers) {
  const std::vector<int64_t> there(numbers.there.begin(), numbers.there.end());
  // Where no head has such a number, all of them are those without.
  if (!there.empty() || !selection.is_all()) numbers.chosen = selection.resolve(there);
  for (std::string& line : selection.missing(there)) missing_.push_back(std::move(line));
}

void HeadChoice::resolve_names(const std::vector<std::string>& patterns, const char* option,
                               Names& names) {
  std::vector<std::string> lacks;
  for (const std::string& pattern : patterns) {
    const std::string problem = pattern_problem(pattern, names.there, option, where_);
    if (!problem.empty()) lacks.push_back(problem);
  }
  if (!patterns.empty() && lacks.size() == patterns.size()) throw usage_error(lacks.front());
  missing_.insert(missing_.end(), lacks.begin(), lacks.end());
  for (const std::string& name : names.there) {
    if (matches_any(patterns, name)) names.chosen.insert(name);
  }
}

void HeadChoice::resolve() {
  resolve_names(selection_.branches, "--branch", branches_);
  resolve_names(selection_.kinds, "--kind", kinds_);
  resolve_names(selection_.blocks, "--blocks", blocks_);
  resolve_names(selection_.slots, "--slots", slots_);
  resolve_numbers(selection_.steps, steps_);
  resolve_numbers(selection_.layers, layers_);
  resolve_numbers(selection_.chunks, chunks_);
  resolve_numbers(selection_.heads, heads_);
  resolve_numbers(selection_.batch, batch_);
  for (size_t i = 0; i < found_.size(); ++i) {
    const std::string line = selection_.sets[i]->missing(found_[i], where_);
    if (!line.empty()) missing_.push_back(line);
  }
}

bool HeadChoice::takes_call(const HeadName& name) const {
  const bool layer = name.layer == kNoLayer ? selection_.layers.is_all() : layers_.has(name.layer);
  const bool chunk =
      name.place.has_chunk() ? chunks_.has(name.place.chunk) : selection_.chunks.is_all();
  return layer && chunk && steps_.has(name.step) && batch_.has(name.batch) &&
         branches_.chosen.count(name.branch) != 0 && kinds_.chosen.count(name.kind) != 0 &&
         blocks_.chosen.count(name.place.block) != 0 && slots_.chosen.count(name.place.slot) != 0;
}

bool HeadChoice::takes(const HeadName& name) const {
  return heads_.has(name.head) && takes_call(name) &&
         std::all_of(selection_.sets.begin(), selection_.sets.end(),
                     [&](const auto& set) { return set->contains(name); }) &&
         (!selection_.condition || selection_.condition(name));
}

Error HeadChoice::nothing_left() const {
  // A set of which nothing is there says more than what there is.
  for (size_t i = 0; i < found_.size(); ++i) {
    if (std::count(found_[i].begin(), found_[i].end(), true) == 0) {
      return usage_error(selection_.sets[i]->missing(found_[i], where_));
    }
  }
  if (selection_.condition) {
    return usage_error(one_line(selection_.condition_text) +
                       ": holds for no head that the other options leave of " + where_);
  }
  return usage_error("the selection leaves no head: " + where_ + " has steps " +
                     list_of(steps_.there) + ", layers " + list_of(layers_.there) + ", branches " +
                     list_of(branches_.there) + ", kinds " + list_of(kinds_.there) +
                     (slots_.there.size() > 1 ? ", slots " + list_of(slots_.there) : "") +
                     (chunks_.there.empty() ? "" : ", chunks " + list_of(chunks_.there)) +
                     " (not every combination)");
}

}  // namespace attnscope

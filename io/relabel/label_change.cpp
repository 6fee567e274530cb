#include "io/relabel/label_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/base/selection.h"

namespace attnscope {
namespace {

/// By how rules of forwards and of steps are told apart among those that found something.
const char* const kPerStep = "--forwards-per-step";

std::string list_text(const std::set<int64_t>& numbers) {
  if (numbers.empty()) return "none";
  return format_index_list(std::vector<int64_t>(numbers.begin(), numbers.end()));
}

std::string names_text(const std::set<std::string>& names) {
  return names.empty() ? "none" : one_line(fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

LabelChange::LabelChange(const RelabelRules& rules) : rules_(rules) {}

void LabelChange::tell_step(CallLabels& labels) {
  const int64_t forward = labels.forward.forward;
  if (labels.step) {
    steps_.insert(*labels.step);
  } else if (labels.forward.is_stated()) {
    forwards_.insert(forward);
  }
  if (!labels.step && labels.forward.is_stated() && rules_.forwards_per_step) {
    labels.step = forward / *rules_.forwards_per_step;
    labels.forward.of_step = forward % *rules_.forwards_per_step;
    used_.insert(kPerStep);
    return;
  }
  for (const NumberRule& rule : rules_.steps) {
    if (rule.of_forwards == labels.step.has_value()) continue;
    if (!labels.step && !labels.forward.is_stated()) continue;
    const int64_t number = labels.step.value_or(forward);
    if (!rule.covers(number)) continue;
    used_.insert("s" + rule.text);
    labels.step = rule.target(number);
    if (rule.of_forwards) told_[*labels.step].insert(forward);
    return;
  }
}

int64_t LabelChange::place_in_step(int64_t step, int64_t forward) const {
  const std::set<int64_t>& forwards = told_.at(step);
  return std::distance(forwards.begin(), forwards.find(forward));
}

void LabelChange::tell_others(CallLabels& labels, const std::string& block) {
  CallForward& forward = labels.forward;
  if (labels.step && forward.is_stated() && forward.of_step < 0) {
    const auto told = told_.find(*labels.step);
    if (told != told_.end() && told->second.contains(forward.forward)) {
      forward.of_step = place_in_step(*labels.step, forward.forward);
    }
  }
  tell_branches(labels);
  tell_layer(labels, block);
}

void LabelChange::tell_branches(CallLabels& labels) {
  if (labels.branches.empty() && labels.forward.is_stated()) {
    const std::string name = labels.forward.branch();
    branches_.insert(name);
    const auto rule = rules_.branches.find(name);
    if (rule == rules_.branches.end()) return;
    used_.insert("b" + name);
    labels.branches = {rule->second};
    return;
  }
  for (std::string& name : labels.branches) {
    branches_.insert(name);
    const auto rule = rules_.branches.find(name);
    if (rule == rules_.branches.end()) continue;
    used_.insert("b" + name);
    name = rule->second;
  }
}

void LabelChange::tell_layer(CallLabels& labels, const std::string& block) {
  if (labels.layer) {
    layers_.insert(*labels.layer);
  } else if (!block.empty()) {
    blocks_.insert(block);
  }
  for (const NumberRule& rule : rules_.layers) {
    const bool meant = rule.block.empty() ? labels.layer && rule.covers(*labels.layer)
                                          : !labels.layer && rule.block == block;
    if (!meant) continue;
    used_.insert("l" + rule.text);
    labels.layer = labels.layer ? rule.target(*labels.layer) : rule.to;
    return;
  }
}

void LabelChange::require_found() const {
  for (const auto& [from, to] : rules_.branches) {
    if (used_.contains("b" + from)) continue;
    const std::vector<std::string> names(branches_.begin(), branches_.end());
    const std::string nearest = nearest_word(from, names);
    throw usage_error(fmt::format(
        "--branches {}={}: there is no such branch{} (there are {})", one_line(from), one_line(to),
        nearest.empty() ? "" : ", did you mean " + nearest + "?", names_text(branches_)));
  }
  for (const NumberRule& rule : rules_.steps) {
    if (used_.contains("s" + rule.text)) continue;
    throw usage_error(
        fmt::format("--steps {}: there is no such {} (steps {}; forwards without a step {})",
                    one_line(rule.text), rule.of_forwards ? "forward without a step" : "step",
                    list_text(steps_), list_text(forwards_)));
  }
  for (const NumberRule& rule : rules_.layers) {
    if (used_.contains("l" + rule.text)) continue;
    throw usage_error(
        fmt::format("--layers {}: there is no such {} (layers {}; blocks without a "
                    "layer {})",
                    one_line(rule.text), rule.block.empty() ? "layer" : "block without a layer",
                    list_text(layers_), names_text(blocks_)));
  }
  if (rules_.forwards_per_step && !used_.contains(kPerStep)) {
    throw usage_error("--forwards-per-step: there is no forward without a step");
  }
}

}  // namespace attnscope

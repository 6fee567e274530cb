#include "io/lab/plan_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/base/choice_list.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// Steps x layers x heads.
constexpr int64_t kMostCells = int64_t{1} << 24;

/// How much a pattern keeps, apart from what else it is.
auto kept_much(const MaskPattern& p) { return std::tie(p.keep, p.sim, p.cdf, p.tau, p.window); }

bool same_but_much(const MaskPattern& a, const MaskPattern& b) {
  const auto facts = [](const MaskPattern& p) {
    return std::tie(p.kind, p.text_rule, p.tile, p.block, p.blocks, p.p, p.exact_variance, p.rest,
                    p.gate, p.stride, p.cells, p.lambda, p.order);
  };
  return facts(a) == facts(b) && (a.keep > 0) == (b.keep > 0);
}

/// A word of today's patterns; nothing where the edit is a file, a tree or something newer.
std::optional<MaskPattern> pattern_of(const std::string& edit) {
  try {
    return parse_mask_pattern(edit, "edit");
  } catch (const Error&) {
    return std::nullopt;
  }
}

int64_t largest_of(const std::vector<const PlanScope*>& scopes,
                   std::optional<std::vector<int64_t>> PlanScope::*list) {
  int64_t largest = -1;
  for (const PlanScope* scope : scopes) {
    if (scope->*list) largest = std::max(largest, (scope->*list)->back());
  }
  return largest;
}

}  // namespace

TableEdit wider_edit(const TableEdit& a, const TableEdit& b) {
  if (!a || !b || !same_but_much(*a, *b)) return std::nullopt;
  MaskPattern wide = *a;
  wide.keep = std::max(a->keep, b->keep);
  wide.sim = std::max(a->sim, b->sim);
  wide.cdf = std::max(a->cdf, b->cdf);
  wide.tau = std::min(a->tau, b->tau);
  for (size_t axis = 0; axis < wide.window.size(); ++axis) {
    wide.window[axis] = std::max(a->window[axis], b->window[axis]);
  }
  if (kept_much(wide) == kept_much(*a)) return a;
  if (kept_much(wide) == kept_much(*b)) return b;
  wide.text = a->text + " or " + b->text;
  return wide;
}

PlanTable::PlanTable(const EditPlan& plan, const ConfigFacts& facts, bool needs_counts,
                     const NoWord& no_word)
    : edits_(1) {
  const std::vector<const PlanScope*> scopes = main_scopes(plan, facts.slot);
  const bool by_step = std::any_of(scopes.begin(), scopes.end(),
                                   [](const PlanScope* s) { return s->steps.has_value(); });
  if (facts.steps == 0 && (needs_counts || by_step)) {
    throw usage_error("the number of steps of a run is needed, and a plan does not have it");
  }
  steps_ = by_step || needs_counts ? facts.steps : 1;
  layers_ = count(facts.layers, largest_of(scopes, &PlanScope::layers), needs_counts, "layers");
  heads_ = count(facts.heads, largest_of(scopes, &PlanScope::heads), needs_counts, "heads");
  counts_layers_ = facts.layers > 0 || largest_of(scopes, &PlanScope::layers) >= 0;
  if (layers_ > kMostCells || heads_ > kMostCells / layers_ ||
      steps_ > kMostCells / (layers_ * heads_)) {
    throw usage_error(fmt::format("{} steps, {} layers and {} heads are more than any model has",
                                  steps_, layers_, heads_));
  }
  std::vector<size_t> numbers;
  std::vector<std::string> reasons;
  for (const PlanScope* scope : scopes) {
    TableEdit edit;
    std::string reason;
    if (scope->edit != kDenseEdit) {
      edit = pattern_of(scope->edit);
      reason = edit ? no_word(*edit) : "no configuration has a word for it";
      if (!reason.empty()) reason = fmt::format("{} is left dense: {}", scope->edit, reason);
    }
    reasons.push_back(reason);
    numbers.push_back(edit && reason.empty() ? edits_.size() : 0);
    if (numbers.back() > 0) edits_.push_back(std::move(edit));
  }
  table_.assign(static_cast<size_t>(steps_ * layers_ * heads_), 0);
  for (int64_t layer = 0; layer < layers_; ++layer) {
    std::vector<size_t> of_layer;
    for (size_t i = 0; i < scopes.size(); ++i) {
      const auto& layers = scopes[i]->layers;
      if (!layers || std::find(layers->begin(), layers->end(), layer) != layers->end()) {
        of_layer.push_back(i);
      }
    }
    for (int64_t cell = 0; cell < steps_ * heads_; ++cell) {
      HeadName name;
      name.step = cell / heads_;
      name.layer = layer;
      name.head = cell % heads_;
      for (const size_t i : of_layer) {
        name.kind = scopes[i]->kind;
        name.place.block = scopes[i]->block;
        name.place.slot = scopes[i]->slot;
        if (!scopes[i]->holds(name)) continue;
        if (!reasons[i].empty()) lose(reasons[i]);
        table_[static_cast<size_t>((name.step * layers_ + layer) * heads_ + name.head)] =
            numbers[i];
        break;
      }
    }
  }
}

std::vector<const PlanScope*> PlanTable::main_scopes(const EditPlan& plan,
                                                     const std::string& slot) {
  std::vector<const PlanScope*> scopes;
  std::set<std::string> slots, others;
  for (const PlanScope& scope : plan.scopes) {
    const bool outside = !scope.layers && !scope.block.empty();
    if (scope.kind == "cross" || outside || (!slot.empty() && scope.slot != slot)) {
      if (scope.edit != kDenseEdit) others.insert(scope.describe());
      continue;
    }
    scopes.push_back(&scope);
    slots.insert(scope.kind + " attention" + (scope.slot.empty() ? "" : " in " + scope.slot));
    kind_ = scope.kind;
  }
  if (slots.size() > 1) {
    throw usage_error("the plan has edits of " + choice_list(slots) +
                      ", and a configuration is of one: tell the slot");
  }
  if (scopes.empty()) {
    throw usage_error("the plan has no scope of the self attention of layers" +
                      (slot.empty() ? "" : " in slot " + one_line(slot)));
  }
  for (const std::string& other : others) lose(other + ": is not told, it stays as it is");
  return scopes;
}

int64_t PlanTable::count(int64_t told, int64_t largest, bool needed, const char* what) {
  if (largest >= kMostCells) {
    throw usage_error(
        fmt::format("the plan counts {} to {}, which is more than any model has", what, largest));
  }
  if (told > 0 && largest < told) return told;
  if (told > 0) {
    throw usage_error(fmt::format("the plan counts {} to {}, and the model is told to have {}",
                                  what, largest, told));
  }
  if (largest >= 0) {
    lose(fmt::format("{} {}: as many as the plan counts; of others nothing is told", largest + 1,
                     what));
    return largest + 1;
  }
  if (!needed) return 1;
  throw usage_error(fmt::format("the number of {} is needed, and the plan does not have it", what));
}

const TableEdit& PlanTable::at(int64_t step, int64_t layer, int64_t head) const {
  return edits_[table_[static_cast<size_t>((step * layers_ + layer) * heads_ + head)]];
}

TableEdit PlanTable::widest(const TablePart& part, const std::string& of) {
  std::set<size_t> numbers;
  const auto range = [](int64_t chosen, int64_t all) {
    return chosen < 0 ? std::pair(int64_t{0}, all) : std::pair(chosen, chosen + 1);
  };
  const auto [first_step, end_step] = range(part.step, steps_);
  const auto [first_layer, end_layer] = range(part.layer, layers_);
  const auto [first_head, end_head] = range(part.head, heads_);
  for (int64_t step = first_step; step < end_step; ++step) {
    for (int64_t layer = first_layer; layer < end_layer; ++layer) {
      for (int64_t head = first_head; head < end_head; ++head) {
        numbers.insert(table_[static_cast<size_t>((step * layers_ + layer) * heads_ + head)]);
      }
    }
  }
  TableEdit wide = edits_[*numbers.begin()];
  std::set<std::string> names;
  for (const size_t number : numbers) {
    wide = wider_edit(wide, edits_[number]);
    names.insert(edits_[number] ? edits_[number]->text : kDenseEdit);
  }
  if (names.size() > 1) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    lose(fmt::format("{}: {} become {}", of, list, wide ? wide->text : kDenseEdit));
  }
  return wide;
}

std::vector<std::string> PlanTable::losses() const {
  std::vector<std::string> lines;
  for (const auto& [line, times] : lost_) {
    lines.push_back(times > 1 ? fmt::format("{} ({} times)", line, times) : line);
  }
  return lines;
}

}  // namespace attnscope

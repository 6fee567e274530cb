#include "io/lab/edit_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

/// A head in a forward of a capture, or, without layer and head, the forward.
using MeasuredUnit = std::pair<std::string, HeadName>;

MeasuredUnit forward_of(const MeasuredUnit& unit) {
  HeadName name = unit.second;
  name.layer = name.head = 0;
  name.kind = name.place.block = name.place.slot = "";
  return {unit.first, name};
}

std::string unit_words(const MeasuredUnit& unit) {
  return (unit.first.empty() ? "" : one_line(unit.first) + ": ") + head_words(unit.second);
}

/// Whose rows are looked at together. What stands outside the main stack comes first, because a
/// scope of the whole stack holds it, too.
struct ChoiceKey {
  bool whole_stack = false;
  std::optional<int64_t> layer = {};
  std::string block, kind, slot;
  std::optional<int64_t> head = {}, step = {};

  static ChoiceKey of(const HeadName& name, EditScope per) {
    ChoiceKey key;
    key.kind = name.kind;
    key.slot = name.place.slot;
    const bool in_stack = name.layer != kNoLayer;
    key.whole_stack = per == EditScope::model && in_stack;
    if (key.whole_stack) return key;
    key.block = name.place.block;
    if (in_stack && !name.place.unrecorded.layer) key.layer = name.layer;
    if (per == EditScope::head || per == EditScope::step) key.head = name.head;
    if (per == EditScope::step) key.step = name.step;
    return key;
  }
  friend auto operator<=>(const ChoiceKey&, const ChoiceKey&) = default;
};

/// The rows of a scope, by edit in the order of EditPlan::among.
struct ChoiceRows {
  std::set<MeasuredUnit> units;
  std::map<size_t, std::map<MeasuredUnit, const EditNumbers*>> edits;
};

/// Sums over rows of one edit.
struct ChoiceTally {
  double tiles = 0, value = 0;
  std::optional<double> worst = {};
  int64_t rows = 0;
  std::set<MeasuredUnit> forwards;

  void add(const MeasuredUnit& unit, double share, double number, const EditTarget& target) {
    tiles += share;
    value += number;
    worst = worst ? target.worse(*worst, number) : number;
    ++rows;
    forwards.insert(forward_of(unit));
  }
  void join(const ChoiceTally& other, const EditTarget& target) {
    tiles += other.tiles;
    value += other.value;
    rows += other.rows;
    if (other.worst) worst = worst ? target.worse(*worst, *other.worst) : *other.worst;
    forwards.insert(other.forwards.begin(), other.forwards.end());
  }
  double mean() const { return value / static_cast<double>(rows); }
  double mean_tiles() const { return tiles / static_cast<double>(rows); }
  TargetNumbers numbers() const {
    return {mean(), worst.value_or(0), static_cast<int64_t>(forwards.size())};
  }
};

struct ChosenEdit {
  std::string edit;
  ChoiceTally looked, held;
};

bool leaves_all(const std::string& edit) { return edit == kDenseEdit || edit == "none"; }

/// Holds for one call of choose_edits().
class EditChooser {
 public:
  EditChooser(std::span<const EditNumbers> rows, const EditTarget& target, EditScope per,
              int64_t hold_out)
      : target_(target), per_(per), hold_out_(hold_out) {
    plan_.target = target.text;
    plan_.hold_out = hold_out;
    for (const EditNumbers& row : rows) take(row);
  }

  EditPlan choose() {
    for (const auto& [key, rows] : rows_) {
      ChosenEdit chosen = cheapest(rows, held_out(rows));
      const EditNumbers& any = *rows.edits.begin()->second.begin()->second;
      PlanScope scope;
      scope.kind = key.kind;
      scope.block = key.block;
      scope.slot = key.slot;
      scope.edit = chosen.edit;
      scope.queries = any.queries;
      scope.keys = any.keys;
      if (key.layer) scope.layers = {*key.layer};
      if (key.head) scope.heads = {*key.head};
      if (key.step) scope.steps = {{*key.step, *key.step}};
      if (!extends_steps(scope, chosen)) choices_.emplace_back(std::move(scope), std::move(chosen));
    }
    join_heads();
    for (auto& [scope, chosen] : choices_) {
      scope.tiles = chosen.looked.mean_tiles();
      scope.promised = chosen.looked.numbers();
      if (chosen.held.rows > 0) scope.found = chosen.held.numbers();
      plan_.scopes.push_back(std::move(scope));
    }
    return std::move(plan_);
  }

 private:
  void take(const EditNumbers& row) {
    const MeasuredUnit unit{row.capture, row.head};
    if (per_ == EditScope::step && row.head.place.unrecorded.step) {
      throw usage_error(unit_words(unit) + ": nobody recorded its step: choose per head");
    }
    if (!leaves_all(row.edit)) value_of(row);
    if (!(row.tiles >= 0) || !(row.tiles <= 1)) {
      throw usage_error(fmt::format("{}: {} visits a share of {} of the blocks: expected 0 to 1",
                                    unit_words(unit), row.edit, row.tiles));
    }
    const std::string edit = leaves_all(row.edit) ? kDenseEdit : row.edit;
    size_t number = 0;
    while (number < plan_.among.size() && plan_.among[number] != edit) ++number;
    if (number == plan_.among.size()) plan_.among.push_back(edit);
    ChoiceRows& rows = rows_[ChoiceKey::of(row.head, per_)];
    if (!rows.edits.empty()) check_size(row, *rows.edits.begin()->second.begin()->second);
    rows.units.insert(unit);
    if (!rows.edits[number].emplace(unit, &row).second) {
      throw usage_error(fmt::format("{}: is measured twice under {}: name the captures of rows",
                                    unit_words(unit), edit));
    }
  }

  static void check_size(const EditNumbers& row, const EditNumbers& other) {
    if (row.queries == other.queries && row.keys == other.keys) return;
    throw usage_error(fmt::format(
        "{} has {} queries and {} keys, and {}, which would share its edit, {} and {}: choose from "
        "captures of one size, or per layer",
        unit_words({row.capture, row.head}), row.queries, row.keys,
        unit_words({other.capture, other.head}), other.queries, other.keys));
  }

  double value_of(const EditNumbers& row) const {
    const std::optional<double>& number = target_.is_error() ? row.output_error
                                          : target_.measure == EditMeasure::recall ? row.recall
                                                                                   : row.recall_p05;
    if (number && std::isfinite(*number)) return *number;
    throw usage_error(fmt::format(
        "{}: choosing by {} needs it of every row, and {} has none here{}",
        unit_words({row.capture, row.head}), target_.name(), row.edit,
        target_.is_error() ? " (a call without V has no output): choose by recall" : ""));
  }

  /// The forwards that are not looked at.
  std::set<MeasuredUnit> held_out(const ChoiceRows& rows) const {
    std::set<MeasuredUnit> all;
    for (const MeasuredUnit& unit : rows.units) all.insert(forward_of(unit));
    const auto count = static_cast<int64_t>(all.size());
    if (hold_out_ > 0 && hold_out_ >= count) {
      throw usage_error(fmt::format(
          "hold out {}: {} was measured in {} forward{} (a step of a branch and batch item), of "
          "which one has to be left to choose by: hold out {} at most",
          hold_out_, unit_words(*rows.units.begin()), count, count > 1 ? "s" : "", count - 1));
    }
    std::set<MeasuredUnit> held;
    const std::vector<MeasuredUnit> forwards(all.begin(), all.end());
    for (int64_t i = 0; i < hold_out_; ++i) {
      held.insert(forwards[static_cast<size_t>((2 * i + 1) * count / (2 * hold_out_))]);
    }
    return held;
  }

  ChosenEdit cheapest(const ChoiceRows& rows, const std::set<MeasuredUnit>& held) const {
    const auto add = [&](ChosenEdit& edit, const MeasuredUnit& unit, double tiles, double number) {
      ChoiceTally& tally = held.contains(forward_of(unit)) ? edit.held : edit.looked;
      tally.add(unit, tiles, number, target_);
    };
    ChosenEdit best{kDenseEdit, {}, {}};
    const auto dense = std::find_if(rows.edits.begin(), rows.edits.end(), [&](const auto& edit) {
      return leaves_all(plan_.among[edit.first]);
    });
    for (const MeasuredUnit& unit : rows.units) {
      const bool measured = dense != rows.edits.end() && dense->second.contains(unit);
      add(best, unit, measured ? dense->second.at(unit)->tiles : 1, target_.exact());
    }
    for (const auto& [number, measured] : rows.edits) {
      ChosenEdit edit{plan_.among[number], {}, {}};
      if (leaves_all(edit.edit)) continue;
      for (const MeasuredUnit& unit : rows.units) {
        const auto row = measured.find(unit);
        if (row == measured.end()) {
          throw usage_error(fmt::format("{}: is not measured under {}, as others of its scope are",
                                        unit_words(unit), edit.edit));
        }
        add(edit, unit, row->second->tiles, value_of(*row->second));
      }
      const double mean = edit.looked.mean(), tiles = edit.looked.mean_tiles();
      if (!target_.keeps(mean, *edit.looked.worst) || tiles > best.looked.mean_tiles()) continue;
      if (tiles < best.looked.mean_tiles() || target_.is_better(mean, best.looked.mean())) {
        best = std::move(edit);
      }
    }
    return best;
  }

  /// True where the scope is the next step of the last one and has its edit: it is joined then.
  bool extends_steps(const PlanScope& scope, const ChosenEdit& chosen) {
    if (!scope.steps || choices_.empty()) return false;
    auto& [before, tally] = choices_.back();
    PlanScope next = scope;
    next.steps = before.steps;
    if (next != before) return false;
    before.steps->back() = scope.steps->back();
    join(tally, chosen);
    return true;
  }

  /// Heads of one layer (and of the same steps) with one edit become one scope.
  void join_heads() {
    std::vector<std::pair<PlanScope, ChosenEdit>> joined;
    size_t layer_begin = 0;
    for (auto& choice : choices_) {
      PlanScope& scope = choice.first;
      ChosenEdit& chosen = choice.second;
      if (!joined.empty() && !shares_layer(joined.back().first, scope)) layer_begin = joined.size();
      const auto same = std::find_if(joined.begin() + static_cast<int64_t>(layer_begin),
                                     joined.end(), [&](const auto& other) {
                                       return scope.heads && other.first.edit == scope.edit &&
                                              other.first.steps == scope.steps;
                                     });
      if (same == joined.end()) {
        joined.emplace_back(std::move(scope), std::move(chosen));
      } else {
        same->first.heads->push_back(scope.heads->front());
        join(same->second, chosen);
      }
    }
    choices_ = std::move(joined);
  }

  static bool shares_layer(const PlanScope& a, const PlanScope& b) {
    const auto facts = [](const PlanScope& s) {
      return std::tie(s.layers, s.kind, s.block, s.slot, s.queries, s.keys);
    };
    return facts(a) == facts(b);
  }

  void join(ChosenEdit& into, const ChosenEdit& from) const {
    into.looked.join(from.looked, target_);
    into.held.join(from.held, target_);
  }

  const EditTarget& target_;
  const EditScope per_;
  const int64_t hold_out_;
  EditPlan plan_;
  std::map<ChoiceKey, ChoiceRows> rows_;
  std::vector<std::pair<PlanScope, ChosenEdit>> choices_;
};

}  // namespace

EditScope parse_edit_scope(std::string_view text, std::string_view option) {
  const std::vector<std::string> names{"head", "layer", "model", "step"};
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw unknown_name(option, std::string(text), names);
  return static_cast<EditScope>(found - names.begin());
}

EditPlan choose_edits(std::span<const EditNumbers> rows, const EditTarget& target, EditScope per,
                      int64_t hold_out) {
  if (rows.empty()) throw usage_error("no edit of any head was measured: nothing to choose from");
  if (hold_out < 0) throw usage_error(fmt::format("hold out {}: expected at least 0", hold_out));
  return EditChooser(rows, target, per, hold_out).choose();
}

}  // namespace attnscope

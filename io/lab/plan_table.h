#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/patterns/mask_pattern.h"
#include "io/lab/config_facts.h"
#include "io/lab/edit_plan.h"

namespace attnscope {

/// An edit; nothing: dense.
using TableEdit = std::optional<MaskPattern>;

/// Says why a format cannot have an edit ("STA has windows of tiles alone"); empty: it can.
using NoWord = std::function<std::string(const MaskPattern&)>;

/// Which part of the table: all of what is negative.
struct TablePart {
  int64_t step = -1, layer = -1, head = -1;
};

/// A plan for each step, layer and head of the model, as far as a format has words for it; keeps
/// the lines about what is lost. Not thread-safe.
class PlanTable {
 public:
  /// `needs_counts`: the format writes each step, layer and head. Throws Error(usage).
  PlanTable(const EditPlan& plan, const ConfigFacts& facts, bool needs_counts,
            const NoWord& no_word);

  int64_t steps() const { return steps_; }
  int64_t layers() const { return layers_; }
  int64_t heads() const { return heads_; }
  /// False where the plan is of all layers alike and nobody told how many there are: the table has
  /// one.
  bool counts_layers() const { return counts_layers_; }
  /// "self" or "joint"; "self" where the plan has neither.
  const std::string& kind() const { return kind_; }

  const TableEdit& at(int64_t step, int64_t layer, int64_t head) const;
  /// The least edit that keeps what all edits of a part keep; where they differ a line says so,
  /// which begins with `of`: "heads of one layer".
  TableEdit widest(const TablePart& part, const std::string& of);
  /// Adds a line; one that was added before is counted.
  void lose(const std::string& line) { ++lost_[line]; }
  std::vector<std::string> losses() const;

 private:
  std::vector<const PlanScope*> main_scopes(const EditPlan& plan, const std::string& slot);
  int64_t count(int64_t told, int64_t largest, bool needed, const char* what);

  int64_t steps_ = 1, layers_ = 1, heads_ = 1;
  bool counts_layers_ = true;
  std::string kind_ = "self";
  std::vector<TableEdit> edits_;  ///< the first is dense
  std::vector<size_t> table_;     ///< [steps, layers, heads], numbers of edits
  std::map<std::string, int64_t> lost_;
};

/// The least edit that keeps what both keep: of one kind that differ in how much they keep.
TableEdit wider_edit(const TableEdit& a, const TableEdit& b);

}  // namespace attnscope

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem/head_name.h"

namespace attnscope {

/// A head and its class's name.
struct NamedClass {
  HeadName head;
  std::string head_class;
};

/// Where a head's class is another than at the step before it that was measured.
struct ClassChange {
  HeadName head;  ///< with the step where it has changed
  int64_t before_step = 0;
  std::string before, after;
};

/// The classes of heads over the steps and branches of a model's run.
struct ClassTable {
  using Cell = std::optional<NamedClass>;  ///< none: not measured

  /// Each step of each branch that a head was measured at, by branch and step: one such head.
  std::vector<HeadName> columns;
  /// [row, column], a row a head of the model, by layer, place, kind, batch item (by its number
  /// within the branch) and head.
  std::vector<std::vector<Cell>> rows;

  /// True where a head stands in several columns.
  bool compares() const;
};

/// A head of a row: all that names it but step and branch holds for the whole row. The row must
/// have been made by class_table().
const HeadName& head_of_row(const std::vector<ClassTable::Cell>& row);
/// True where the row's classes are not all the same.
bool is_changing(const std::vector<ClassTable::Cell>& row);

/// The names must differ.
ClassTable class_table(std::vector<NamedClass> heads);
/// Row by row, by branch and step: between branches, and between forwards of which nobody recorded
/// the step, there are none.
std::vector<ClassChange> class_changes(const ClassTable& table);

}  // namespace attnscope

#include "cli/common/class_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/text_table.h"
#include "core/base/error.h"

namespace attnscope {
namespace {

/// "step 10", with the branch where there are several: "cond 10".
std::vector<std::string> column_titles(const ClassTable& table) {
  const auto& columns = table.columns;
  const bool branches = columns.front().branch != columns.back().branch;
  std::vector<std::string> titles;
  for (const HeadName& column : columns) {
    const CallForward& forward = column.place.forward;
    const bool unrecorded = column.place.unrecorded.step;
    const std::string step = unrecorded && forward.is_stated()
                                 ? fmt::format("f{}", forward.forward)
                                 : (unrecorded ? "-" : std::to_string(column.step));
    titles.push_back((branches ? one_line(column.branch) : "step") + " " + step);
  }
  return titles;
}

}  // namespace

void print_class_table(const ClassTable& classes, bool changing) {
  if (!classes.compares()) return;
  std::set<HeadName> later;
  for (const ClassChange& change : class_changes(classes)) later.insert(change.head);
  const auto has_changed = [&](const std::vector<ClassTable::Cell>& row) {
    return std::any_of(row.begin(), row.end(), [&](const ClassTable::Cell& cell) {
      return cell && later.count(cell->head) != 0;
    });
  };
  std::vector<HeadName> names;
  for (const auto& row : classes.rows) {
    if (!changing || has_changed(row)) names.push_back(head_of_row(row));
  }
  const HeadCells heads(names, false);
  TextTable table;
  heads.add_to(table);
  table.add_column("");
  for (const std::string& title : column_titles(classes)) {
    table.add_column(title, TextTable::Side::left, 9);
  }
  for (const auto& row : classes.rows) {
    if (changing && !has_changed(row)) continue;
    std::vector<std::string> cells = heads.cells(head_of_row(row));
    cells.emplace_back(is_changing(row) ? "*" : "");
    for (const ClassTable::Cell& cell : row) {
      cells.push_back(cell ? one_line(cell->head_class) : "-");
    }
    table.add_line(std::move(cells));
  }
  if (!names.empty()) fmt::print("{}", table.text());
  const auto changed = std::count_if(classes.rows.begin(), classes.rows.end(), has_changed);
  const auto others =
      std::count_if(classes.rows.begin(), classes.rows.end(), is_changing) - changed;
  fmt::print("{} of {} heads changed class{}\n", changed, classes.rows.size(),
             others == 0 ? "" : fmt::format(", {} differ between branches or forwards", others));
}

}  // namespace attnscope

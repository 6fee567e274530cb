#include "core/heads/class_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace attnscope {
namespace {

/// Branch, step, and the forward where nobody recorded the step.
auto column_key(const HeadName& head) {
  const ModelPlace& place = head.place;
  return std::tuple(head.branch, head.step, place.unrecorded.step ? place.forward.forward : -1);
}

/// The batch items of each column's branch.
using ColumnItems = std::map<decltype(column_key(HeadName())), std::set<int64_t>>;

/// A call may hold both branches, others one each, so that items go by their number within the
/// branch. A column that lacks some of the items of its branch's fullest column counts as that
/// does.
ColumnItems column_items(const std::vector<NamedClass>& heads) {
  ColumnItems columns;
  for (const NamedClass& each : heads) {
    columns[column_key(each.head)].insert(each.head.batch);
  }
  std::map<std::string, std::set<int64_t>> fullest;
  for (const auto& [key, items] : columns) {
    std::set<int64_t>& most = fullest[std::get<0>(key)];
    if (items.size() > most.size()) most = items;
  }
  for (auto& [key, items] : columns) {
    const std::set<int64_t>& most = fullest[std::get<0>(key)];
    if (std::includes(most.begin(), most.end(), items.begin(), items.end())) items = most;
  }
  return columns;
}

/// What does not change from column to column; of the batch item its number within the branch.
auto row_key(const HeadName& head, const ColumnItems& items) {
  const std::set<int64_t>& own = items.at(column_key(head));
  const auto item = std::distance(own.begin(), own.find(head.batch));
  ModelPlace place = head.place;
  place.forward.forward = place.forward.of_step = -1;
  return std::tuple(head.layer, std::move(place), head.kind, item, head.head);
}

}  // namespace

const HeadName& head_of_row(const std::vector<ClassTable::Cell>& row) {
  return std::find_if(row.begin(), row.end(), [](const auto& cell) { return cell.has_value(); })
      ->value()
      .head;
}

bool is_changing(const std::vector<ClassTable::Cell>& row) {
  const std::string* first = nullptr;
  for (const ClassTable::Cell& cell : row) {
    if (!cell) continue;
    if (first != nullptr && cell->head_class != *first) return true;
    first = &cell->head_class;
  }
  return false;
}

bool ClassTable::compares() const {
  return std::any_of(rows.begin(), rows.end(), [](const std::vector<Cell>& row) {
    return std::count_if(row.begin(), row.end(),
                         [](const Cell& cell) { return cell.has_value(); }) > 1;
  });
}

ClassTable class_table(std::vector<NamedClass> heads) {
  ClassTable table;
  const ColumnItems items = column_items(heads);
  std::map<ColumnItems::key_type, size_t> columns;
  for (const auto& [key, own] : items) columns.emplace(key, columns.size());
  const size_t count = columns.size();
  table.columns.resize(count);
  std::map<decltype(row_key(heads.front().head, items)), std::vector<ClassTable::Cell>> rows;
  for (NamedClass& each : heads) {
    const size_t column = columns.at(column_key(each.head));
    table.columns[column] = each.head;
    std::vector<ClassTable::Cell>& row = rows[row_key(each.head, items)];
    row.resize(count);
    row[column] = std::move(each);
  }
  for (auto& [key, row] : rows) table.rows.push_back(std::move(row));
  return table;
}

std::vector<ClassChange> class_changes(const ClassTable& table) {
  std::vector<ClassChange> changes;
  for (const std::vector<ClassTable::Cell>& row : table.rows) {
    const NamedClass* before = nullptr;
    for (const ClassTable::Cell& cell : row) {
      if (!cell) continue;
      if (before != nullptr && before->head.branch == cell->head.branch &&
          before->head.step != cell->head.step && before->head_class != cell->head_class) {
        changes.push_back({cell->head, before->head.step, before->head_class, cell->head_class});
      }
      before = &*cell;
    }
  }
  return changes;
}

}  // namespace attnscope

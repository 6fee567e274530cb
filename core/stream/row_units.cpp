#include "core/stream/row_units.h"

#include <algorithm>
#include <cassert>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

/// The task's rows at positions [begin, end).
HeadTask rows_of(const HeadTask& task, int64_t begin, int64_t end) {
  HeadTask unit = task;
  const auto first = static_cast<size_t>(begin);
  const auto count = static_cast<size_t>(end - begin);
  if (task.row_list.empty()) {
    unit.rows = {task.rows.begin + begin, task.rows.begin + end};
  } else {
    unit.row_list = task.row_list.subspan(first, count);
  }
  if (!task.known_norms.empty()) unit.known_norms = task.known_norms.subspan(first, count);
  return unit;
}

}  // namespace

RowUnits cut_into_units(std::span<const HeadTask> tasks, int64_t chunk_rows, int64_t least) {
  RowUnits units;
  const int64_t pieces = ceil_div(std::max<int64_t>(least, 1), std::ssize(tasks));
  int64_t number = 0;
  for (const HeadTask& task : tasks) {
    const int64_t rows = task.num_rows();
    const int64_t step = ceil_div(ceil_div(rows, chunk_rows), pieces) * chunk_rows;
    for (int64_t begin = 0; begin < rows; begin += step) {
      units.tasks.push_back(rows_of(task, begin, std::min(begin + step, rows)));
      units.places.push_back({number, begin});
    }
    ++number;
  }
  return units;
}

void UnitSink::begin([[maybe_unused]] std::span<const HeadTask> units, int workers) {
  assert(units.data() == units_.tasks.data() && units.size() == units_.tasks.size());
  sink_.begin(tasks_, workers);
}

void UnitSink::consume(const Tile& tile) {
  const RowUnits::Place& place = units_.places[static_cast<size_t>(tile.task_index)];
  Tile whole = tile;
  whole.task = &tasks_[static_cast<size_t>(place.task)];
  whole.task_index = place.task;
  whole.rows = {tile.rows.begin + place.first_row, tile.rows.end + place.first_row};
  sink_.consume(whole);
}

}  // namespace attnscope

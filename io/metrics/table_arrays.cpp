#include "io/metrics/table_arrays.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "io/files/file_text.h"
#include "io/files/strict_json.h"
#include "io/metrics/metric_file.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

namespace fs = std::filesystem;

HeadRecord record_of(HeadName name, HeadArray which, std::vector<int64_t> shape,
                     std::vector<double> values) {
  HeadRecord record;
  record.name = std::move(name);
  record.arrays.push_back({which, std::move(shape), std::move(values)});
  return record;
}

/// Adds the values of an array of any depth, null as NaN.
void add_values(const Json& json, std::vector<double>& values) {
  for (const Json& value : json) {
    if (value.is_array()) {
      add_values(value, values);
    } else {
      values.push_back(value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                       : value.get<double>());
    }
  }
}

std::vector<HeadRecord> read_json_arrays(const fs::path& path, HeadArray which, int64_t memory) {
  const std::string file = path.string(), array(info_of(which).name);
  const Json json = parse_strict_json(read_file_text(path), file, "",
                                      {.values = int64_t{1} << 28, .memory = memory});
  std::vector<HeadRecord> records;
  size_t place = 0;
  try {
    for (const Json& head : json.at("heads")) {
      const auto values = head.find(array);
      if (values != head.end()) {
        std::vector<int64_t> shape;
        for (const Json* axis = &*values; axis->is_array(); axis = &axis->at(0)) {
          shape.push_back(static_cast<int64_t>(axis->size()));
        }
        std::vector<double> numbers;
        add_values(*values, numbers);
        records.push_back(
            record_of(parse_name_json(head), which, std::move(shape), std::move(numbers)));
      }
      ++place;
    }
  } catch (const Json::exception&) {
    throw file_error(file, fmt::format("heads[{}]", place), "is no head as attnscope stats writes");
  }
  return records;
}

std::vector<HeadRecord> read_hdf5_arrays(const fs::path& path, HeadArray which) {
  const RunTable table = read_stats_file(path, MetricPart::everything);
  std::vector<HeadRecord> records;
  if (!table.runs.empty()) return records;
  for (const MetricGroup& group : table.groups) {
    const MetricVariable* const variable = group.find(info_of(which).name);
    const auto* const values =
        variable == nullptr ? nullptr : std::get_if<std::vector<double>>(&variable->values);
    if (values == nullptr) continue;
    HeadName name = group_key(group);
    auto at = values->begin();
    for (const int64_t item : group.batch) {
      for (const int64_t head : group.heads) {
        name.batch = item;
        name.head = head;
        const auto end = at + variable->cell();
        records.push_back(record_of(name, which, variable->shape, {at, end}));
        at = end;
      }
    }
  }
  return records;
}

}  // namespace

std::vector<HeadRecord> read_table_arrays(const fs::path& path, HeadArray which,
                                          MemoryBudget& budget, MemoryReservation& held) {
  const std::string extension = path.extension().string();
  if (extension == ".csv") return {};
  constexpr int64_t kOfBytes = 3, kOfJson = 64, kLeast = 64 << 10;
  std::error_code failed;
  const auto size = static_cast<int64_t>(fs::file_size(path, failed));
  if (failed) throw file_error(path.string(), "", "cannot be read: " + failed.message());
  held = budget.reserve(kLeast + size * (extension == ".json" ? kOfJson : kOfBytes),
                        "the table " + one_line(path.filename().string()));
  if (extension == ".json") return read_json_arrays(path, which, held.bytes());
  return read_hdf5_arrays(path, which);
}

}  // namespace attnscope

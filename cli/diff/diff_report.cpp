#include "cli/diff/diff_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "io/files/file_ending.h"
#include "io/files/json_text.h"
#include "io/files/json_types.h"
#include "io/files/staged_file.h"
#include "io/results/csv_line.h"
#include "io/results/head_columns.h"
#include "io/results/table_hdf5.h"
#include "io/segments/head_name_json.h"

namespace attnscope {
namespace {

OrderedJson finite_number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? OrderedJson(*value) : OrderedJson();
}

OrderedJson pair_json(const DiffRow& row) {
  const HeadDifference& d = row.found;
  const bool rows = d.divergence_max.has_value(), lse = d.lse_max_abs.has_value();
  OrderedJson json = heads_of_pair_json(row.a, row.b);
  json.update(OrderedJson{{"rows", d.rows},
                          {"rows_of", d.rows_of},
                          {"masked_rows", d.masked_rows},
                          {"mean_abs", d.mean_abs},
                          {"max_abs", d.max_abs},
                          {"max_query", d.max_row},
                          {"max_key", d.max_key},
                          {"total_variation", finite_number(d.total_variation)},
                          {"js_mean", finite_number(d.divergence_mean)},
                          {"js_max", finite_number(d.divergence_max)},
                          {"js_query", rows ? OrderedJson(d.divergence_row) : OrderedJson()},
                          {"lse_mean", finite_number(d.lse_mean)},
                          {"lse_max_abs", finite_number(d.lse_max_abs)},
                          {"lse_query", lse ? OrderedJson(d.lse_row) : OrderedJson()},
                          {"cosine", finite_number(d.cosine_mean)},
                          {"entropy_change", finite_number(d.entropy_change)}});
  if (row.of_exports) {
    const auto stored = [](const std::string& dtype) {
      return dtype.empty() ? OrderedJson() : OrderedJson(dtype);
    };
    json["entries"] = d.entries;
    json["entries_of"] = d.entries_of;
    json["stored_a"] = stored(row.dtype_a);
    json["stored_b"] = stored(row.dtype_b);
  }
  const ComparedSegments& s = row.segments;
  if (!s.queries.empty()) {
    json["query_segment"] = s.queries;
    json["key_segment"] = s.keys;
    json["mass_a"] = s.renormalised ? OrderedJson(s.mass_a) : OrderedJson();
    json["mass_b"] = s.renormalised ? OrderedJson(s.mass_b) : OrderedJson();
  }
  OrderedJson& top = json["top"] = OrderedJson::array();
  for (const RankedRow& each : d.top) {
    top.push_back({{"query", each.row}, {"js", each.divergence}});
  }
  return json;
}

/// A pair as the fields of one line: those of its heads with a_ and b_ before them; lists are left
/// out, and the name of A's head, which those with a_ tell.
std::vector<std::pair<std::string, OrderedJson>> flat(const OrderedJson& pair) {
  const bool is_pair = pair.contains("a");
  std::vector<std::pair<std::string, OrderedJson>> fields;
  for (const auto& [name, value] : pair.items()) {
    if (value.is_array() || (is_pair && names_head(name))) continue;
    if (!value.is_object()) {
      fields.emplace_back(name, value);
      continue;
    }
    for (const auto& [part, own] : value.items()) fields.emplace_back(name + "_" + part, own);
  }
  return fields;
}

/// The names that any line has, in the order of the longest; no block and no slot where no line
/// states one.
std::vector<std::string> column_names(const OrderedJson& pairs) {
  std::vector<std::string> names;
  std::set<std::string> stated;
  for (const OrderedJson& pair : pairs) {
    const auto fields = flat(pair);
    for (const auto& [name, value] : fields) {
      if (!value.is_null()) stated.insert(name);
    }
    if (fields.size() <= names.size()) continue;
    names.clear();
    for (const auto& [name, value] : fields) names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    return (name.ends_with("block") || name.ends_with("slot")) && !stated.contains(name);
  });
  return names;
}

OrderedJson value_at(const std::vector<std::pair<std::string, OrderedJson>>& fields,
                     const std::string& name) {
  for (const auto& [own, value] : fields) {
    if (own == name) return value;
  }
  return {};
}

std::string csv_of(const OrderedJson& list, const std::vector<std::string>& names) {
  std::string text = csv_line(names);
  for (const OrderedJson& item : list) {
    const auto fields = flat(item);
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(csv_value(value_at(fields, name)));
    text += csv_line(cells);
  }
  return text;
}

/// A fact that nobody recorded of this pair's or line's head: "a_step", "layer" …; not a layer
/// outside the main stack, which has a block.
bool is_unrecorded(const std::string& name,
                   const std::vector<std::pair<std::string, OrderedJson>>& fields,
                   const OrderedJson& value) {
  const size_t begin = name.starts_with("a_") || name.starts_with("b_") ? 2 : 0;
  const std::string fact = name.substr(begin);
  if (!value.is_null() || value_at(fields, name.substr(0, begin) + "kind").is_null()) return false;
  if (fact == "layer") return value_at(fields, name.substr(0, begin) + "block").is_null();
  return fact == "step" || fact == "branch";
}

std::vector<TableColumn> columns_of(const OrderedJson& pairs,
                                    const std::vector<std::string>& names) {
  std::vector<TableColumn> columns;
  for (const std::string& name : names) {
    TableColumn column{name, {}, {}};
    std::vector<OrderedJson> values;
    for (const OrderedJson& pair : pairs) {
      const auto fields = flat(pair);
      values.push_back(value_at(fields, name));
      if (!is_unrecorded(name, fields, values.back())) continue;
      column.lacks_records = true;
      values.back() = name.ends_with("branch") ? OrderedJson("") : OrderedJson(kNotRecorded);
    }
    const bool words = std::any_of(values.begin(), values.end(),
                                   [](const OrderedJson& value) { return value.is_string(); });
    for (const OrderedJson& value : values) {
      if (words) {
        // Only some pairs may have them.
        column.words.push_back(value.is_string() ? value.get<std::string>() : "");
      } else {
        column.numbers.push_back(value.is_number() ? value.get<double>()
                                                   : std::numeric_limits<double>::quiet_NaN());
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string extension_of_diff(const std::filesystem::path& path) {
  return path.extension().string();
}

}  // namespace

OrderedJson heads_of_pair_json(const HeadName& a, const HeadName& b) {
  OrderedJson json = name_json(a);
  json["a"] = name_json(a);
  json["b"] = name_json(b);
  return json;
}

OrderedJson diff_json(const std::string& a, const std::string& b,
                      const std::vector<DiffRow>& rows) {
  OrderedJson json{{"format", "attnscope-diff/1"}, {"a", a}, {"b", b}};
  OrderedJson& pairs = json["pairs"] = OrderedJson::array();
  for (const DiffRow& row : rows) pairs.push_back(pair_json(row));
  return json;
}

std::vector<TableColumn> pair_columns(const OrderedJson& pairs) {
  return columns_of(pairs, column_names(pairs));
}

void check_diff_name(const std::string& path) { require_ending(path, {".json", ".csv", ".h5"}); }

std::string diff_csv(const OrderedJson& json, const DiffList& list) {
  const OrderedJson& items = json[list.name];
  return csv_of(items, items.empty() ? list.columns : column_names(items));
}

void write_diff(const OrderedJson& json, const std::filesystem::path& path, bool force,
                const DiffList& list) {
  StagedFile file(path, force);
  const std::string extension = extension_of_diff(path);
  if (extension == ".h5") {
    const OrderedJson& items = json[list.name];
    const std::vector<std::string> names = items.empty() ? list.columns : column_names(items);
    std::vector<std::pair<std::string, std::string>> texts;
    for (const char* name : {"format", "a", "b"}) {
      if (json.contains(name)) texts.emplace_back(name, json[name].get<std::string>());
    }
    write_table_hdf5(texts, list.dimension, columns_of(items, names), file.part_path());
  } else {
    const std::string text = extension == ".csv" ? diff_csv(json, list) : json_text(json, 1) + "\n";
    file.append(std::as_bytes(std::span(text)));
  }
  file.commit();
}

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <string>

#include "io/files/json_types.h"
#include "io/metrics/compare_tables.h"

namespace attnscope {

/// The comparison of the runs in one table, or of two tables.
struct TableReport {
  std::string a, b;  ///< files' names
  TableComparison found;
  std::string sort = {};  ///< the metric that heads stand by, which has a column in any case
};

/// Puts the heads in the order of --sort: by a metric, of two sides by its difference. Throws
/// Error(usage) where the tables have no such metric.
void sort_tables(const std::string& sort, TableReport& report);

/// {"format": "attnscope-diff-metrics/1", "a", "heads", "class_changes"}, or {…, "a", "b",
/// "paired", "pairs"} (docs/compare.md); what is undefined is null.
OrderedJson tables_json(const TableReport& report);
/// For people on standard output; `classes`: the changes of class alone.
void print_tables(const TableReport& report, bool classes);
/// As write_tables() writes it to a .csv.
std::string tables_csv(const TableReport& report, bool classes);
/// The JSON; or a line a head or pair, `classes`: a line a change of class (.csv, .h5). Throws
/// Error(file).
void write_tables(const TableReport& report, bool classes, const std::filesystem::path& path,
                  bool force);

}  // namespace attnscope

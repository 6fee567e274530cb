#pragma once

#include <filesystem>

#include "io/metrics/run_table.h"

namespace attnscope {

struct HelperQuestion;

/// Writes a table as an export of the product `stats` whose variables have the runs in front
/// (docs/export-format.md, "Several runs"). Creates `path`, which must not exist; throws
/// Error(file).
void write_metric_file(const RunTable& table, const std::filesystem::path& path);

/// True of such an export. Throws Error(file) for an HDF5 file that cannot be read.
bool is_metric_file(const std::filesystem::path& path);

/// Parts of a table that are read.
enum class MetricPart : uint8_t {
  runs,     ///< options and runs; no groups
  shapes,   ///< the groups as well, their variables without values
  numbers,  ///< values of those that have a number a head, or one a head and mask; not of arrays
  everything
};
/// Reads one. The HDF5 library reads its structure in the helper process; the file is held against
/// its checksum before. Throws Error(file) where it is damaged, not complete, or none.
RunTable read_metric_file(const std::filesystem::path& path, MetricPart part);
/// Reads any export of the product `stats`; one of a capture's own heads has no runs, and of its
/// calls names and models alone. Throws as read_metric_file(), and Error(usage) for an export of
/// another product.
RunTable read_stats_file(const std::filesystem::path& path, MetricPart part);

/// Question that the helper process answers (io/helper).
extern const HelperQuestion kMetricsQuestion;

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/export/format/export_manifest.h"
#include "io/export/read/stored_facts.h"

namespace attnscope {

struct HelperQuestion;

/// One group of an export of stats.
struct StoredStatsGroup {
  StoredFacts facts;  ///< without sequences
  std::vector<int64_t> batch, heads;
  int64_t runs = 0;  ///< whose means the numbers are; 0: those of one capture
  /// The floating-point numbers of heads by their names, [batch, head]; NaN where undefined.
  std::map<std::string, std::vector<double>> numbers;
  std::vector<std::string> classes;  ///< [batch, head] of one capture; empty where there are none
};

/// The numbers of an export of stats. The HDF5 library reads them in the helper process; the file
/// is held against its checksum before.
struct StoredStats {
  ExportManifest stored;
  std::vector<StoredStatsGroup> groups;
};

/// Throws Error(file) where the file is damaged, Error(usage) where it is an export of another
/// product.
StoredStats read_stored_stats(const std::filesystem::path& path);

/// What it asks (io/helper).
extern const HelperQuestion kStatsQuestion;

}  // namespace attnscope

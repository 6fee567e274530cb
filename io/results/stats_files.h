#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/export/format/export_spec.h"

namespace attnscope {

/// What a head's record holds beside its numbers; see docs/metrics.md.
struct StatsArray {
  std::string name;               ///< key in the record and name of the dataset
  std::vector<std::string> axes;  ///< after batch and head
  std::string long_name;
};
/// The arrays that can be asked for.
const std::vector<StatsArray>& stats_arrays();

/// Records of heads, one JSON object each: step, layer, branch, kind, batch, head, the metrics by
/// name (null where undefined, NAME_stderr where sampled), sinks, class, class_scores, and the
/// arrays that were asked for.
using StatsRecords = std::vector<nlohmann::ordered_json>;

/// {"format": "attnscope-stats/1", …about, "heads": records}. All three create `path`, which must
/// not exist, and throw Error(file).
void write_stats_json(const nlohmann::ordered_json& about, const StatsRecords& records,
                      const std::filesystem::path& path);
/// A line a head, the scalars of the records.
void write_stats_csv(const StatsRecords& records, const std::filesystem::path& path);
/// The export format: (batch, head) variables in a group a call and branch; NaN where undefined.
/// The records must be those of the spec's heads.
void write_stats_hdf5(const ExportSpec& spec, const StatsRecords& records,
                      const std::filesystem::path& path);

}  // namespace attnscope

#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/hdf5/hdf5_writer.h"
#include "io/metrics/run_table.h"

namespace attnscope {

/// Writes the variables of one call as datasets over [run,] batch, head and their own axes, each
/// with its `long_name` and the names of its `axes`; netCDF's dimension scales tell the places of
/// an axis. Not thread-safe.
class MetricGroupWriter {
 public:
  /// `runs`: null where the numbers are a capture's own, and the datasets have no dimension `run`.
  /// All are borrowed. Creates the group `name` in `parent`.
  MetricGroupWriter(const Hdf5Writer& writer, hid_t parent, const std::string& name,
                    const MetricGroup& group, const std::vector<MetricRun>* runs);

  hid_t id() const { return top_.id(); }
  /// Throws Error(file).
  void write();

 private:
  Hdf5Dataset write_scale(hid_t parent, const std::string& name, const std::vector<int64_t>& values,
                          std::string_view long_name) const;
  std::vector<int64_t> places(const std::string& axis, int64_t extent, int64_t block) const;
  void make_axis(hid_t parent, const MetricVariable& variable, size_t i, const std::string& level,
                 int64_t block);
  void write_variable(const MetricVariable& variable);
  void attach(const Hdf5Dataset& dataset, const std::vector<std::string>& axes,
              const std::string& level);

  const Hdf5Writer& writer_;
  const MetricGroup& group_;
  const std::vector<MetricRun>* const runs_;
  const Hdf5Group top_;
  std::map<std::string, Hdf5Group> levels_;    ///< "level_64/"
  std::map<std::string, Hdf5Dataset> scales_;  ///< by "level_64/query_block" or "run"
};

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/reduce/reduction_stream.h"
#include "io/export/write/hdf5_export.h"

namespace attnscope {

/// Writes the product `pooled` as rows of blocks come: the largest and the mean weight of each
/// block, for `pyramid` on all levels. The file is built under another name and becomes OUT when it
/// is complete; what an interrupted run of it leaves is worth nothing and removed. Thread-safe as
/// ReductionSink says.
class PooledExport : public ReductionSink {
 public:
  /// Throws what ExportFile's constructor and take_up_interrupted() throw, and Error(resource) when
  /// the disk has too little space. The spec must be of the product `pooled`.
  PooledExport(ExportSpec spec, std::filesystem::path out, const ExportWriteOptions& options);
  ~PooledExport() override;

  /// One a selected head, in the file's order. Valid while this lives.
  const std::vector<ReductionJob>& jobs() const;
  static std::vector<ReductionJob> jobs_of(const ExportSpec& spec);
  /// Bytes of the datasets.
  static int64_t payload_bytes(const ExportSpec& spec);
  /// Bytes that coarser levels hold while rows are missing, when `rows` rows are under way.
  static int64_t memory_bytes(const ExportSpec& spec, int64_t rows);

  void block_row(int64_t job, int64_t row, std::span<const float> max,
                 std::span<const double> sum) override;
  void head(int64_t job, const HeadTotals& totals) override;
  /// Completes the file and gives it its name.
  void end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope

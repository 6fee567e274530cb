#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/reduce/reduction_stream.h"
#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// Writes the product `pooled` as rows of blocks come: the largest and the mean weight of each
/// block, for `pyramid` on all levels. The file is built under another name and becomes OUT when it
/// is complete; what an interrupted run of it leaves is worth nothing and removed. Thread-safe as
/// ReductionSink says.
class PooledExport : public ReductionSink {
 public:
  /// Throws what OutputFile's constructor and take_up_interrupted() throw, and Error(resource) when
  /// the disk has too little space. The plan must be of the product `pooled`.
  PooledExport(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options);
  ~PooledExport() override;

  /// One a selected head, in the file's order. Valid while this lives.
  const std::vector<ReductionJob>& jobs() const;
  static std::vector<ReductionJob> jobs_of(const ExportPlan& plan);
  /// Bytes of the datasets.
  static int64_t payload_bytes(const ExportPlan& plan);
  /// Bytes that coarser levels hold while rows are missing, when `rows` rows are under way.
  static int64_t memory_bytes(const ExportPlan& plan, int64_t rows);

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

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
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
  /// pooled_jobs() of the plan. Valid while this lives.
  virtual const std::vector<ReductionJob>& jobs() const = 0;
  /// Numbers that are known already: a row of blocks of a level of a group's head, which counts
  /// batch items and heads. Thread-safe. Throws Error(file).
  virtual void write_row(size_t group, int64_t head, int64_t level, int64_t row,
                         std::span<const float> max, std::span<const float> mean) = 0;
  /// Completes the file and gives it its name. Throws Error(file).
  virtual void end() = 0;
  /// What people should know once it is complete.
  virtual const std::vector<std::string>& notes() const = 0;
};

/// Throws what OutputFile's constructor and take_up_interrupted() throw, and Error(resource) when
/// the disk has too little space. The plan must be of the product `pooled`, as below.
std::unique_ptr<PooledExport> make_pooled_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options);

/// One a selected head, in the file's order. Borrows the plan's lists.
std::vector<ReductionJob> pooled_jobs(const ExportPlan& plan);
/// Bytes of the datasets.
int64_t pooled_payload_bytes(const ExportPlan& plan);
/// Bytes that coarser levels hold while rows are missing, when `rows` rows are under way.
int64_t pooled_memory_bytes(const ExportPlan& plan, int64_t rows);

}  // namespace attnscope

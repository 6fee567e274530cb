#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/reduce/reduction_stream.h"
#include "io/export/format/export_plan.h"
#include "io/export/format/sums_log.h"
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
  /// Where several processes do the jobs, of the first one, before the first row: what the others
  /// need to join it.
  virtual std::string invite() = 0;
  /// After the last row of a process that joined: how many pieces it leaves to the first one.
  virtual int64_t hand_in() = 0;
  /// Of the first process, when all have handed in: puts what the others left into the file. Throws
  /// Error(file) where some of it is missing.
  virtual void gather(const PromisedSums& left) = 0;
  /// Completes the file and gives it its name. Throws Error(file).
  virtual void end() = 0;
  /// Of the first process: what the file system cannot do, for people to know.
  virtual const std::vector<std::string>& warnings() const = 0;
  /// Notes for the user once the export is complete: of other files in OUT.d.
  virtual const std::vector<std::string>& notes() const = 0;
};

/// Throws what OutputFile's constructor and take_up_interrupted() throw, and Error(resource) when
/// the disk has too little space. The plan must be of the product `pooled`, as below.
std::unique_ptr<PooledExport> make_pooled_export(ExportPlan plan, std::filesystem::path out,
                                                 const ExportWriteOptions& options);

/// That of another process than the first, the `rank`-th from 1 on: what it computes waits beside
/// OUT (io/export/format/sums_log.h), for the first to put in. Throws Error(file) where what the
/// first one wrote is not to be seen from here.
std::unique_ptr<PooledExport> join_pooled_export(ExportPlan plan, const std::filesystem::path& out,
                                                 const ExportWriteOptions& options,
                                                 const std::string& invitation, int rank);

/// One a selected head, in the file's order. Borrows the plan's lists.
std::vector<ReductionJob> pooled_jobs(const ExportPlan& plan);
/// Bytes of the datasets.
int64_t pooled_payload_bytes(const ExportPlan& plan);
/// Bytes that coarser levels hold while rows are missing, when `rows` rows are under way.
int64_t pooled_memory_bytes(const ExportPlan& plan, int64_t rows);

}  // namespace attnscope

#pragma once

#include <filesystem>
#include <memory>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// A TileSink that writes compressed and reduced exports: a shard file a group in OUT.d/, and a
/// master OUT that links them. Workers compress or reduce their tiles; the library takes them one
/// at a time in the order of the stream, so that the same export gives the same bytes. While it
/// runs, shards stand in OUT.d.part/, each under its final name once it is complete and synced, and
/// OUT.journal tells which are; end() renames the folder, then the master. `resume` goes on with
/// the first shard that is not complete. A tile, for progress, is a chunk (or a panel of rows), as
/// elsewhere.
class ShardedExport : public ExportSink {
 public:
  /// Throws what Hdf5Export's constructor throws; OUT.d counts like OUT.
  ShardedExport(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options);
  ~ShardedExport() override;

  const ExportResume& resume() const override;
  const std::vector<std::string>& warnings() const override;
  std::span<const HeadTask> tasks() const override;
  bool has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const override;
  void suspend() override;
  std::filesystem::path partial_path() const override;
  int64_t tiles_done() const override;
  int64_t tiles_total() const override;
  int64_t bytes_written() const override;

  TileRequest request() const override;
  void begin(std::span<const HeadTask> tasks, int workers) override;
  /// Waits until all tiles before this one were taken.
  void consume(const Tile& tile) override;
  void end() override;
  void abort() noexcept override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope

#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/export/format/export_plan.h"
#include "io/export/write/export_sink.h"

namespace attnscope {

/// A TileSink that writes the export format. Built as OUT.part: groups, attributes and
/// preallocated datasets are created by the library and the file is closed; tiles then go to their
/// known addresses with pwrite from the workers that computed them, outside the library's lock.
/// OUT.journal tells which are there: a commit every 64 MiB or 5 s syncs the data, then the
/// journal. end() marks the file complete, renames it to OUT and removes the journal. When it is
/// destroyed before that, what has been consumed is committed, OUT.part and OUT.journal stay for
/// `resume` (unless there was nothing yet), and OUT is as it was.
class Hdf5Export : public ExportSink {
 public:
  /// Throws Error(file) when OUT exists and neither `force` nor `resume` is set, when it or
  /// OUT.part has another content than asked for, or the folder is missing or cannot be written;
  /// Error(resource) when the disk has too little space.
  Hdf5Export(ExportPlan plan, std::filesystem::path out, const ExportWriteOptions& options);
  ~Hdf5Export() override;

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
  void consume(const Tile& tile) override;
  void end() override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace attnscope

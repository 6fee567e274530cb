#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/stream/tile_sink.h"
#include "io/capture/capture.h"
#include "io/export/format/export_journal.h"

namespace attnscope {

/// What an export holds.
enum class ExportProduct : uint8_t {
  weights,
  logits,
  lse,
  rows,
  topk,
  threshold,
  pooled,
  output,
  stats
};
std::string_view export_product_name(ExportProduct product);

/// Everything that decides the content of an export file.
struct ExportSpec {
  ExportProduct product = ExportProduct::weights;
  Encoding encoding = Encoding::f16_scaled;
  std::vector<SelectedCall> calls;
  /// Rows and keys, resolved a call: one entry for each of `calls`.
  std::vector<IndexRange> rows;
  std::vector<std::vector<int64_t>> row_lists;  ///< not empty for `rows`
  std::vector<IndexRange> keys;

  std::string capture_name;
  std::string capture_hash;
  std::string options_json;  ///< the content-deciding options
  std::string backend;
  bool gzip = false;     ///< entries compressed, one shard file a group (weights, logits, rows)
  int64_t topk = 0;      ///< keys a row, for `topk`
  double threshold = 0;  ///< weights from here on, for `threshold`
  int64_t block = 0;     ///< side of the blocks, for `pooled`
  bool pyramid = false;  ///< all levels above it as well
};

/// Whether the export is a folder of shard files, one a group, with a master that links them.
bool is_sharded(const ExportSpec& spec);

/// How the file is written; decides nothing about its content.
struct ExportWriteOptions {
  /// Replace an existing file (only once the new one is complete); without `resume`, give up what
  /// an interrupted run left.
  bool force = false;
  bool sync = true;  ///< commits and the finished file are made durable
  /// Go on with what an interrupted run left, or start afresh; what another run left is an error.
  bool resume = false;
  bool verify_all = false;   ///< resuming, check all that is there, not the last GiB alone
  JournalCommits commits{};  ///< when what was written is committed
  /// Files that are read: the export must not replace one of them.
  std::vector<std::filesystem::path> inputs{};
};

/// Sizes known before anything is written.
struct ExportSize {
  int64_t payload_bytes = 0;  ///< of the datasets that grow with the map
  int64_t file_bytes = 0;     ///< estimate of the whole file
  bool at_most = false;       ///< how much it will be depends on the values
};
ExportSize estimate_export(const ExportSpec& spec);

/// The stream that fills the export: one task a selected head, in the file's order, and how its
/// tiles are wanted. The tasks borrow from `spec`.
std::vector<HeadTask> export_tasks(const ExportSpec& spec);
TileRequest export_request(const ExportSpec& spec);

/// Throws what Hdf5Export's constructor would for a target that cannot be written; creates nothing.
void check_export_target(const std::filesystem::path& out, const ExportWriteOptions& options);

/// What a resumed export found.
struct ExportResume {
  bool complete = false;      ///< OUT is there, with the same content: nothing is to be done
  bool resumed = false;       ///< OUT.part is gone on with
  int64_t tiles_kept = 0;     ///< complete and, as far as checked, sound
  int64_t tiles_dropped = 0;  ///< that the file does not hold as the journal says
  int64_t bytes_checked = 0;
};

/// A TileSink that writes an export, whatever its form.
class ExportSink : public TileSink {
 public:
  virtual const ExportResume& resume() const = 0;
  /// What the file system cannot do, for people to know.
  virtual const std::vector<std::string>& warnings() const = 0;
  /// The stream to run: one task a selected head, in the file's order. Valid while this lives.
  virtual std::span<const HeadTask> tasks() const = 0;
  /// Whether all of a tile of tasks()[task_index] is in the file already. Thread-safe.
  virtual bool has_tile(int64_t task_index, IndexRange rows, IndexRange cols) const = 0;
  /// Commits everything that can be, so that it can be resumed. Throws Error(file).
  virtual void suspend() = 0;
  /// Where what is complete stands until the end.
  virtual std::filesystem::path partial_path() const = 0;
  /// Tiles complete by now, and in all, as `info` counts them.
  virtual int64_t tiles_done() const = 0;
  virtual int64_t tiles_total() const = 0;
  virtual int64_t bytes_written() const = 0;
};

/// An Hdf5Export, or a ShardedExport where the spec asks for one.
std::unique_ptr<ExportSink> make_export(ExportSpec spec, std::filesystem::path out,
                                        const ExportWriteOptions& options);

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
  Hdf5Export(ExportSpec spec, std::filesystem::path out, const ExportWriteOptions& options);
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

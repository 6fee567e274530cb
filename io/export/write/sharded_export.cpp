#include "io/export/write/sharded_export.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/export_marks.h"
#include "io/export/write/export_resumption.h"
#include "io/export/write/prepared_tile.h"
#include "io/export/write/replaced_shards.h"
#include "io/export/write/shard_file.h"
#include "io/export/write/shard_master.h"
#include "io/files/checksum.h"
#include "io/files/leftovers.h"
#include "io/files/output_file.h"
#include "io/files/rank_files.h"
#include "io/files/shard_folder.h"
#include "io/hdf5/hdf5_handle.h"

namespace attnscope {
namespace {

using std::filesystem::path;

/// A shard's checksum, as its record has it.
uint64_t sum_of(const JournalRecord& record) {
  return static_cast<uint64_t>(static_cast<uint32_t>(record.first_chunk)) << 32 |
         record.data_checksum;
}

constexpr std::chrono::milliseconds kShardLook{50};

class ShardedExport final : public SharedExport {
 public:
  ShardedExport(ExportPlan plan, path out, const ExportWriteOptions& options);
  ShardedExport(ExportPlan plan, path out, const ExportWriteOptions& options,
                const ExportInvitation& invitation, int rank);
  ~ShardedExport() override;

  const ExportResume& resume() const override { return resume_; }
  const std::vector<std::string>& warnings() const override { return file_.warnings(); }
  const std::vector<std::string>& notes() const override { return notes_; }
  std::span<const HeadTask> tasks() const override { return plan_.tasks; }
  bool has_tile(int64_t task_index, IndexRange, IndexRange) const override {
    return before_[task_places_[static_cast<size_t>(task_index)].first];
  }
  void suspend() override;
  path partial_path() const override { return new_folder_; }
  int64_t tiles_done() const override { return tiles_done_; }
  int64_t tiles_kept() const override;
  int64_t tiles_total() const override { return first_tile_.back(); }
  int64_t bytes_written() const override { return bytes_; }

  TileRequest request() const override { return plan_.request(); }
  void begin(std::span<const HeadTask> tasks, int workers) override;
  void consume(const Tile& tile) override;
  void end() override;
  void abort() noexcept override;

  std::optional<std::vector<IndexRange>> whole_runs() const override;
  void take_run(IndexRange tasks) override;
  ExportInvitation invite() override;
  int64_t hand_in() override;
  void finish(const PromisedSums& left, int64_t tiles) override;

 private:
  void place_tasks();
  void start(const ExportWriteOptions& options);
  bool add_left_by_ranks(JournalContent& old, const ExportManifest& wanted) const;
  JournalRecord record_of(size_t group) const;
  void adopt(const JournalRecord& record, std::chrono::milliseconds patience);
  void take_up(const JournalContent& old, bool verify_all);
  void create_new_folder() const;
  void write_in_turn(const PreparedTile& tile, size_t group, int64_t first, int64_t count);
  void finish_group(size_t group);
  void skip_complete();
  int64_t unit(size_t task, const Tile& tile) const;
  path temporary_path(size_t group) const {
    return new_folder_ / (plan_.layout.groups[group].name + ".tmp");
  }

  const ExportPlan plan_;
  std::vector<std::pair<size_t, int64_t>> task_places_;  ///< group, head within it
  std::vector<int64_t> first_tile_;                      ///< of each task, and one past the last
  bool sync_;
  std::string header_;
  OutputFile file_;
  const path &folder_, &new_folder_;  ///< OUT.d, OUT.d.part
  ExportResume resume_;
  std::vector<std::string> notes_;
  std::vector<Shard> shards_;
  std::vector<bool> before_;  ///< groups that earlier runs completed; fixed once tiles come
  bool shared_ = false;       ///< other processes write shards as well
  bool joined_ = false;       ///< … and this is one of them
  std::optional<ExportJournal> journal_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> tiles_done_{0};

  std::mutex mutex_;  ///< of what follows
  std::condition_variable turn_;
  int64_t next_ = 0;           ///< the tile whose turn it is; −1: nobody's
  std::deque<int64_t> taken_;  ///< shared: first tiles of the runs of this process, from next_'s on
  bool stopped_ = false;
  std::unique_ptr<ShardFile> open_;  ///< the shard that is being written
};

ShardedExport::ShardedExport(ExportPlan plan, path out, const ExportWriteOptions& options)
    : plan_(std::move(plan)),
      sync_(options.sync),
      header_(make_export_header(make_manifest(plan_.spec, plan_.layout, {}))),
      file_(std::move(out), options.for_shards()),
      folder_(file_.shards_path()),
      new_folder_(file_.part_shards_path()),
      shards_(plan_.layout.groups.size()) {
  place_tasks();
  start(options);
}

ShardedExport::ShardedExport(ExportPlan plan, path out, const ExportWriteOptions& options,
                             const ExportInvitation& invitation, int rank)
    : plan_(std::move(plan)),
      sync_(options.sync),
      header_(make_export_header(make_manifest(plan_.spec, plan_.layout, {}))),
      file_(std::move(out), options.for_file(0), OutputFile::Beside{}),
      folder_(file_.shards_path()),
      new_folder_(file_.part_shards_path()),
      shards_(plan_.layout.groups.size()),
      before_(invitation.done.begin(), invitation.done.end()),
      shared_(true),
      joined_(true),
      next_(-1) {
  place_tasks();
  resume_.complete = invitation.complete;
  resume_.resumed = invitation.resumed;
  if (resume_.complete) return;
  await_folder(file_.out(), invitation.token);
  const path journal = rank_journal_path(file_.out(), rank);
  journal_.emplace(journal, ExportJournal::create(journal, header_, sync_), sync_, [] {});
}

void ShardedExport::place_tasks() {
  first_tile_.push_back(0);
  for (size_t g = 0; g < plan_.layout.groups.size(); ++g) {
    const ChunkGrid& grid = plan_.layout.groups[g].grid;
    shards_[g].name = plan_.layout.groups[g].name;
    for (int64_t head = 0; head < grid.heads; ++head) {
      task_places_.push_back({g, head});
      first_tile_.push_back(first_tile_.back() + grid.row_chunks() * grid.col_chunks());
    }
  }
}

ShardedExport::~ShardedExport() {
  if (open_) {
    const Hdf5Session session;
    open_.reset();
  }
  // This process does not know which shards the others have completed.
  if (shared_) return;
  // Nothing is worth keeping where no shard was completed, by this run or an earlier one.
  const bool any = std::any_of(shards_.begin(), shards_.end(),
                               [](const Shard& shard) { return shard.bytes > 0; });
  if (any || resume_.complete) return;
  try {
    remove_shards(new_folder_);
  } catch (const std::exception&) {
    // It stays, and the next run says so.
  }
}

void ShardedExport::start(const ExportWriteOptions& options) {
  const ExportManifest wanted = make_manifest(plan_.spec, plan_.layout, {});
  resume_.complete = is_complete_already(file_, wanted, options);
  if (resume_.complete) {
    // A run that was killed between its end and this left them. Where another run is interrupted,
    // they may be its own.
    if (!entry_exists(new_folder_) && !entry_exists(file_.part_path()))
      ReplacedShards().remove(file_);
    return;
  }
  auto old = take_up_same_export(file_, RunForm::shards, wanted);
  if (!old && !options.force && entry_exists(folder_) && !entry_exists(file_.out())) {
    throw file_error(folder_.string(), "", "already exists (--force replaces it)");
  }
  JournalEnd end;
  if (old) {
    if (entry_exists(new_folder_)) require_shards_alone(new_folder_);
    const bool ranks = !rank_files_beside(file_.out()).empty();
    const bool restarted = add_left_by_ranks(*old, wanted);
    take_up(*old, options.verify_all || restarted);
    end = old->end;
    if (ranks) {
      std::vector<JournalRecord> kept;
      for (size_t g = 0; g < shards_.size(); ++g) {
        if (shards_[g].bytes > 0) kept.push_back(record_of(g));
      }
      end = ExportJournal::create(file_.journal_path(), old->header, sync_, kept);
      file_.remove_rank_files();
    }
  } else {
    // A folder of shards has a journal whenever the run is killed, so that the next one knows
    // whose it is: the folder goes before the journal and comes after it.
    end = ExportJournal::create(file_.journal_path(), header_, sync_);
  }
  create_new_folder();
  journal_.emplace(file_.journal_path(), end, sync_, [] {});
  for (const Shard& shard : shards_) before_.push_back(shard.bytes > 0);
  skip_complete();
}

/// A run that goes on with one which ended while its shards were moved finds the folder, or makes
/// it again.
void ShardedExport::create_new_folder() const {
  std::error_code error;
  std::filesystem::create_directory(new_folder_, error);
  if (error) throw errno_error(new_folder_, "cannot be created", error.value());
  if (sync_) sync_folder_of(new_folder_);
}

/// A shard that is complete stands in OUT.d.part or, where the run ended while it moved them, in
/// OUT.d.
void ShardedExport::take_up(const JournalContent& old, bool verify_all) {
  resume_.resumed = true;
  const bool all = verify_all || machine_restarted_since(old.header);
  for (size_t i = old.records.size(); i-- > 0;) {
    const JournalRecord& record = old.records[i];
    if (record.task < 0 || static_cast<size_t>(record.task) >= shards_.size()) continue;
    Shard& shard = shards_[static_cast<size_t>(record.task)];
    // The record of a run before the one that wrote it anew.
    if (shard.bytes > 0) continue;
    const ChunkGrid& grid = plan_.layout.groups[static_cast<size_t>(record.task)].grid;
    const int64_t tiles = grid.heads * grid.row_chunks() * grid.col_chunks();
    const uint64_t sum = sum_of(record);
    const std::string name = shard_file_name(shard.name, sum);
    const path file_path = (entry_exists(new_folder_ / name) ? new_folder_ : folder_) / name;
    std::error_code error;
    const auto size = std::filesystem::file_size(file_path, error);
    bool good = !error && static_cast<int64_t>(size) == record.row_begin;
    if (good && (all || resume_.bytes_checked < kRecheckBytes)) {
      good = file_checksum(file_path, {}) == sum;
      resume_.bytes_checked += record.row_begin;
    }
    if (!good) {
      resume_.tiles_dropped += tiles;
      continue;
    }
    shard.file = name;
    shard.bytes = record.row_begin;
    shard.checksum = sum;
    resume_.tiles_kept += tiles;
  }
  tiles_done_ = resume_.tiles_kept;
}

/// Moves the turn past groups that earlier runs completed.
void ShardedExport::skip_complete() {
  for (size_t t = 0; t < plan_.tasks.size(); ++t) {
    if (next_ == first_tile_[t] && before_[task_places_[t].first]) next_ = first_tile_[t + 1];
  }
}

int64_t ShardedExport::unit(size_t task, const Tile& tile) const {
  const ChunkGrid& grid = plan_.layout.groups[task_places_[task].first].grid;
  return first_tile_[task] + tile.rows.begin / plan_.layout.request.chunk_rows * grid.col_chunks() +
         tile.cols.begin / plan_.layout.request.chunk_cols;
}

void ShardedExport::write_in_turn(const PreparedTile& tile, size_t group, int64_t first,
                                  int64_t count) {
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return stopped_ || next_ == first; });
  // A tile that is not taken must not be counted.
  if (stopped_) throw Error(ErrorCode::interrupted, "interrupted");
  const Hdf5Session session;
  if (!open_) {
    const path temporary = temporary_path(group);
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    open_ = std::make_unique<ShardFile>(plan_.spec, plan_.layout, plan_.layout.groups[group],
                                        temporary);
  }
  bytes_ += open_->write(tile);
  next_ += count;
  tiles_done_ += count;
  const auto last_task = static_cast<size_t>(
      std::upper_bound(first_tile_.begin(), first_tile_.end(), next_ - 1) - first_tile_.begin());
  const bool group_ends =
      next_ == first_tile_[last_task] &&
      (last_task == plan_.tasks.size() || task_places_[last_task].first != group);
  if (group_ends) finish_group(group);
  if (!shared_) {
    skip_complete();
  } else if (group_ends) {
    taken_.pop_front();
    next_ = taken_.empty() ? -1 : taken_.front();
  }
  turn_.notify_all();
}

/// Closes a shard, makes it durable, gives it its name and tells the journal.
void ShardedExport::finish_group(size_t group) {
  const path temporary = temporary_path(group);
  open_->close();
  open_.reset();
  if (sync_) PosixFile(temporary, PosixFile::Mode::existing).sync();
  Shard& shard = shards_[group];
  int64_t size = 0;
  shard.checksum = file_checksum(temporary, {}, &size);
  shard.file = shard_file_name(shard.name, shard.checksum);
  rename_file(temporary, new_folder_ / shard.file, true);
  if (sync_) sync_folder_of(temporary);
  shard.bytes = size;
  // A resume must not believe a shard that was computed from other bytes than the hash is of.
  file_.require_source_reads_unchanged();
  file_.keep_partial();
  journal_->add(record_of(group), 0);
  journal_->flush();
}

JournalRecord ShardedExport::record_of(size_t group) const {
  const Shard& shard = shards_[group];
  return {static_cast<int64_t>(group),
          shard.bytes,
          1,
          static_cast<int32_t>(static_cast<uint32_t>(shard.checksum >> 32)),
          0,
          0,
          static_cast<uint32_t>(shard.checksum)};
}

void ShardedExport::begin([[maybe_unused]] std::span<const HeadTask> tasks, int) {
  assert(tasks.data() == plan_.tasks.data() && tasks.size() == plan_.tasks.size());
  assert(journal_ && "the export is complete");
}

void ShardedExport::consume(const Tile& tile) {
  const auto task = static_cast<size_t>(tile.task_index);
  const auto [group, head] = task_places_.at(task);
  const PreparedTile prepared =
      prepare_tile(plan_.spec, plan_.layout, plan_.layout.groups[group], head, tile);
  write_in_turn(prepared, group, unit(task, tile), static_cast<int64_t>(tile.chunks.size()));
}

void ShardedExport::abort() noexcept {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  turn_.notify_all();
}

void ShardedExport::suspend() {
  if (journal_) journal_->flush();
  tiles_done_ = tiles_kept();
}

/// The shard that is being written would be lost.
int64_t ShardedExport::tiles_kept() const {
  int64_t tiles = 0;
  for (size_t g = 0; g < shards_.size(); ++g) {
    const ChunkGrid& grid = plan_.layout.groups[g].grid;
    if (shards_[g].bytes > 0) tiles += grid.heads * grid.row_chunks() * grid.col_chunks();
  }
  return tiles;
}

void ShardedExport::end() {
  require_all_tiles(file_, next_, tiles_total());
  journal_.reset();
  const std::string note = commit_shards(file_, plan_.spec, plan_.layout, shards_, sync_);
  if (!note.empty()) notes_.push_back(note);
}

/// Adds what other processes of an interrupted run completed; whether the machine of one of them
/// was started anew since.
bool ShardedExport::add_left_by_ranks(JournalContent& old, const ExportManifest& wanted) const {
  bool restarted = false;
  for (const int rank : ranks_beside(file_.out())) {
    const path journal_path = rank_journal_path(file_.out(), rank);
    const auto journal = read_journal(journal_path);
    if (!journal) continue;  // it ended before it had one
    const std::string text = header_difference(journal->header, wanted, journal_path.string());
    if (!text.empty()) {
      throw file_error(journal_path.string(), "",
                       "belongs to another export: " + text + " (--force alone gives it up)");
    }
    restarted = restarted || machine_restarted_since(journal->header);
    old.records.insert(old.records.end(), journal->records.begin(), journal->records.end());
  }
  return restarted;
}

std::optional<std::vector<IndexRange>> ShardedExport::whole_runs() const {
  std::vector<IndexRange> runs;
  int64_t first = 0;
  for (size_t g = 0; g < plan_.layout.groups.size(); ++g) {
    const int64_t end = first + plan_.layout.groups[g].grid.heads;
    if (!before_[g]) runs.push_back({first, end});
    first = end;
  }
  return runs;
}

void ShardedExport::take_run(IndexRange tasks) {
  const std::lock_guard lock(mutex_);
  const int64_t tile = first_tile_[static_cast<size_t>(tasks.begin)];
  taken_.push_back(tile);
  if (next_ < 0) next_ = tile;
  turn_.notify_all();
}

ExportInvitation ShardedExport::invite() {
  ExportInvitation result;
  result.complete = resume_.complete;
  if (result.complete) return result;
  shared_ = true;
  next_ = -1;
  file_.keep_partial();
  result.resumed = resume_.resumed;
  result.done.assign(before_.begin(), before_.end());
  result.token = show_folder(file_.out());
  return result;
}

int64_t ShardedExport::hand_in() {
  file_.require_sources_unchanged();
  suspend();
  journal_.reset();
  if (!joined_) return 0;
  return std::count_if(shards_.begin(), shards_.end(),
                       [](const Shard& shard) { return shard.bytes > 0; });
}

/// Takes a shard that another process completed; its file may be seen from this host only after a
/// while.
void ShardedExport::adopt(const JournalRecord& record, std::chrono::milliseconds patience) {
  if (record.task < 0 || static_cast<size_t>(record.task) >= shards_.size()) {
    throw file_error(file_.out().string(), "", "a process has a shard that the export does not");
  }
  Shard& shard = shards_[static_cast<size_t>(record.task)];
  shard.bytes = record.row_begin;
  shard.checksum = sum_of(record);
  shard.file = shard_file_name(shard.name, shard.checksum);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    std::error_code error;
    const auto size = std::filesystem::file_size(new_folder_ / shard.file, error);
    if (!error && static_cast<int64_t>(size) == shard.bytes) return;
    if (std::chrono::steady_clock::now() - begin > patience) break;
    std::this_thread::sleep_for(kShardLook);
  }
  throw file_error((new_folder_ / shard.file).string(), "",
                   "is not what the process that wrote it says");
}

void ShardedExport::finish(const PromisedSums& left, int64_t tiles) {
  for (int rank = 1; rank < static_cast<int>(left.pieces.size()); ++rank) {
    const path list = rank_journal_path(file_.out(), rank);
    const auto expected = static_cast<size_t>(left.pieces[static_cast<size_t>(rank)]);
    const auto begin = std::chrono::steady_clock::now();
    std::optional<JournalContent> journal;
    while (!(journal = read_journal(list)) || journal->records.size() != expected) {
      if (std::chrono::steady_clock::now() - begin > left.patience) {
        throw file_error(list.string(), "", "has not all shards that its process wrote");
      }
      std::this_thread::sleep_for(kShardLook);
    }
    for (const JournalRecord& record : journal->records) adopt(record, left.patience);
  }
  require_all_tiles(file_, tiles, tiles_total());
  const std::string note = commit_shards(file_, plan_.spec, plan_.layout, shards_, sync_);
  if (!note.empty()) notes_.push_back(note);
  file_.remove_rank_files();
}

}  // namespace

std::unique_ptr<SharedExport> make_shared_shards(ExportPlan plan, path out,
                                                 const ExportWriteOptions& options) {
  return std::make_unique<ShardedExport>(std::move(plan), std::move(out), options);
}

std::unique_ptr<SharedExport> join_shared_shards(ExportPlan plan, path out,
                                                 const ExportWriteOptions& options,
                                                 const ExportInvitation& invitation, int rank) {
  return std::make_unique<ShardedExport>(std::move(plan), std::move(out), options, invitation,
                                         rank);
}

std::unique_ptr<ExportSink> make_sharded_export(ExportPlan plan, path out,
                                                const ExportWriteOptions& options) {
  return std::make_unique<ShardedExport>(std::move(plan), std::move(out), options);
}

}  // namespace attnscope

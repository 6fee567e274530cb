#include "io/export/write/sharded_export.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "io/export/format/export_header.h"
#include "io/export/format/export_journal.h"
#include "io/export/format/export_manifest.h"
#include "io/export/format/export_marks.h"
#include "io/export/format/interrupted_run.h"
#include "io/export/write/shard_file.h"
#include "io/export/write/shard_master.h"
#include "io/files/checksum.h"
#include "io/files/output_file.h"
#include "io/files/shard_folder.h"
#include "io/hdf5/hdf5_handle.h"

namespace attnscope {
namespace {

using std::filesystem::path;

path with_suffix(const path& file, const char* suffix) {
  path result = file;
  return result += suffix;
}

bool is_there(const path& file) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(file, error));
}

}  // namespace

struct ShardedExport::Impl {
  Impl(ExportPlan the_plan, path the_out, const ExportWriteOptions& options);

  void start(const ExportWriteOptions& options);
  bool take_folder_back(const JournalContent& old) const;
  void take_up(const JournalContent& old, bool verify_all);
  void write_in_turn(const PreparedTile& tile, size_t group, int64_t first, int64_t count);
  void finish_group(size_t group);
  void skip_complete();
  void swap_folders() const;
  int64_t unit(size_t task, const Tile& tile) const;
  path shard_path(size_t group) const {
    return new_folder / (plan.layout.groups[group].name + ".h5");
  }

  const ExportPlan plan;
  std::vector<std::pair<size_t, int64_t>> task_places;  ///< group, head within it
  std::vector<int64_t> first_tile;                      ///< of each task, and one past the last
  bool sync;
  std::string header;
  OutputFile file;
  const path &folder, &new_folder;  ///< OUT.d, OUT.d.part
  ExportResume resume;
  std::vector<Shard> shards;
  std::vector<bool> before;  ///< groups that earlier runs completed; fixed once tiles come
  std::optional<ExportJournal> journal;
  std::atomic<int64_t> bytes{0};
  std::atomic<int64_t> tiles_done{0};

  std::mutex mutex;  ///< of what follows
  std::condition_variable turn;
  int64_t next = 0;  ///< the tile whose turn it is
  bool stopped = false;
  std::unique_ptr<ShardFile> open;  ///< the shard that is being written
};

ShardedExport::Impl::Impl(ExportPlan the_plan, path the_out, const ExportWriteOptions& options)
    : plan(std::move(the_plan)),
      sync(options.sync),
      header(make_export_header(make_manifest(plan.spec, plan.layout, {}))),
      file(std::move(the_out), options.for_file(0)),
      folder(file.shards_path()),
      new_folder(file.part_shards_path()),
      shards(plan.layout.groups.size()) {
  first_tile.push_back(0);
  for (size_t g = 0; g < plan.layout.groups.size(); ++g) {
    const ChunkGrid& grid = plan.layout.groups[g].grid;
    shards[g].name = plan.layout.groups[g].name;
    for (int64_t head = 0; head < grid.heads; ++head) {
      task_places.push_back({g, head});
      first_tile.push_back(first_tile.back() + grid.row_chunks() * grid.col_chunks());
    }
  }
  start(options);
}

void ShardedExport::Impl::start(const ExportWriteOptions& options) {
  const ExportManifest wanted = make_manifest(plan.spec, plan.layout, {});
  if (options.resume && !options.force && is_there(file.out())) {
    const ExportManifest there = read_manifest(file.out());
    const std::string difference = content_difference(there, wanted);
    if (!difference.empty()) {
      throw file_error(file.out().string(), "", "is another export: " + difference);
    }
    resume.complete = true;
    return;
  }
  auto old = take_up_interrupted(file, RunForm::shards, [&](const std::string& there) {
    return header_difference(there, wanted, file.journal_path().string());
  });
  const bool goes_on = old && take_folder_back(*old);
  if (!options.force && is_there(folder) && !is_there(file.out())) {
    throw file_error(folder.string(), "", "already exists (--force replaces it)");
  }
  if (old && !goes_on) {
    // The shards themselves are gone.
    file.remove_partial();
    old.reset();
  }
  JournalEnd end;
  if (old) {
    take_up(*old, options.verify_all);
    end = old->end;
  } else {
    // A folder of shards has a journal whenever the run is killed, so that the next one knows
    // whose it is: the folder goes before the journal and comes after it.
    end = ExportJournal::create(file.journal_path(), header, sync);
    std::error_code error;
    std::filesystem::create_directory(new_folder, error);
    if (error) throw errno_error(new_folder, "cannot be created", error.value());
    if (sync) sync_folder_of(new_folder);
  }
  journal.emplace(file.journal_path(), end, sync, [] {});
  for (const Shard& shard : shards) before.push_back(shard.bytes > 0);
  skip_complete();
}

/// Where a run ended between the new names of its folder and of its master, the folder is given its
/// old name: the shards in OUT.d are known to be this journal's by their sizes. Whether there is a
/// folder to go on with.
bool ShardedExport::Impl::take_folder_back(const JournalContent& old) const {
  if (is_there(new_folder)) return true;
  if (old.records.size() < shards.size()) return false;
  for (const JournalRecord& record : old.records) {
    if (record.task < 0 || static_cast<size_t>(record.task) >= shards.size()) return false;
    std::error_code error;
    const path shard = folder / shard_path(static_cast<size_t>(record.task)).filename();
    if (static_cast<int64_t>(std::filesystem::file_size(shard, error)) != record.row_begin) {
      return false;
    }
  }
  rename_file(folder, new_folder, true);
  // That of the older export which this one is to replace.
  const path replaced = with_suffix(folder, ".old");
  if (is_there(replaced)) rename_file(replaced, folder, true);
  return true;
}

void ShardedExport::Impl::take_up(const JournalContent& old, bool verify_all) {
  resume.resumed = true;
  const bool all = verify_all || machine_restarted_since(old.header);
  constexpr int64_t kRecheckBytes = int64_t{1} << 30;
  for (size_t i = old.records.size(); i-- > 0;) {
    const JournalRecord& record = old.records[i];
    if (record.task < 0 || static_cast<size_t>(record.task) >= shards.size()) continue;
    Shard& shard = shards[static_cast<size_t>(record.task)];
    const path file_path = shard_path(static_cast<size_t>(record.task));
    std::error_code error;
    const auto size = std::filesystem::file_size(file_path, error);
    const ChunkGrid& grid = plan.layout.groups[static_cast<size_t>(record.task)].grid;
    const int64_t tiles = grid.heads * grid.row_chunks() * grid.col_chunks();
    const uint64_t sum = static_cast<uint64_t>(static_cast<uint32_t>(record.first_chunk)) << 32 |
                         record.data_checksum;
    bool good = !error && static_cast<int64_t>(size) == record.row_begin && shard.bytes == 0;
    if (good && (all || resume.bytes_checked < kRecheckBytes)) {
      good = file_checksum(file_path, {}) == sum;
      resume.bytes_checked += record.row_begin;
    }
    if (!good) {
      resume.tiles_dropped += tiles;
      continue;
    }
    shard.bytes = record.row_begin;
    shard.checksum = sum;
    resume.tiles_kept += tiles;
  }
  tiles_done = resume.tiles_kept;
}

/// Moves the turn past groups that earlier runs completed.
void ShardedExport::Impl::skip_complete() {
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    if (next == first_tile[t] && before[task_places[t].first]) next = first_tile[t + 1];
  }
}

int64_t ShardedExport::Impl::unit(size_t task, const Tile& tile) const {
  const ChunkGrid& grid = plan.layout.groups[task_places[task].first].grid;
  return first_tile[task] + tile.rows.begin / plan.layout.request.chunk_rows * grid.col_chunks() +
         tile.cols.begin / plan.layout.request.chunk_cols;
}

void ShardedExport::Impl::write_in_turn(const PreparedTile& tile, size_t group, int64_t first,
                                        int64_t count) {
  std::unique_lock lock(mutex);
  turn.wait(lock, [&] { return stopped || next == first; });
  if (stopped) return;
  const Hdf5Session session;
  if (!open) {
    const path temporary = with_suffix(shard_path(group), ".tmp");
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    open =
        std::make_unique<ShardFile>(plan.spec, plan.layout, plan.layout.groups[group], temporary);
  }
  bytes += open->write(tile);
  next += count;
  tiles_done += count;
  const auto last_task = static_cast<size_t>(
      std::upper_bound(first_tile.begin(), first_tile.end(), next - 1) - first_tile.begin());
  const bool group_ends = next == first_tile[last_task] &&
                          (last_task == plan.tasks.size() || task_places[last_task].first != group);
  if (group_ends) finish_group(group);
  skip_complete();
  turn.notify_all();
}

/// Closes a shard, makes it durable, gives it its name and tells the journal.
void ShardedExport::Impl::finish_group(size_t group) {
  const path temporary = with_suffix(shard_path(group), ".tmp");
  open->close();
  open.reset();
  if (sync) PosixFile(temporary, PosixFile::Mode::existing).sync();
  rename_file(temporary, shard_path(group), true);
  if (sync) sync_folder_of(temporary);
  Shard& shard = shards[group];
  int64_t size = 0;
  shard.checksum = file_checksum(shard_path(group), {}, &size);
  shard.bytes = size;
  file.keep_partial();
  journal->add({static_cast<int64_t>(group), size, 1,
                static_cast<int32_t>(static_cast<uint32_t>(shard.checksum >> 32)), 0, 0,
                static_cast<uint32_t>(shard.checksum)},
               0);
  journal->flush();
}

/// OUT.d.part becomes OUT.d; an older OUT.d goes.
void ShardedExport::Impl::swap_folders() const {
  const path old = with_suffix(folder, ".old");
  remove_shards(old);
  if (is_there(folder)) rename_file(folder, old, true);
  rename_file(new_folder, folder, true);
  remove_shards(old);
}

ShardedExport::ShardedExport(ExportPlan plan, path out, const ExportWriteOptions& options)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(out), options)) {}

ShardedExport::~ShardedExport() {
  if (impl_->open) {
    const Hdf5Session session;
    impl_->open.reset();
  }
  // Nothing is worth keeping where no shard was completed, by this run or an earlier one.
  const bool any = std::any_of(impl_->shards.begin(), impl_->shards.end(),
                               [](const Shard& shard) { return shard.bytes > 0; });
  if (any || impl_->resume.complete) return;
  try {
    remove_shards(impl_->new_folder);
  } catch (const std::exception&) {
    // It stays, and the next run says so.
  }
}

const ExportResume& ShardedExport::resume() const { return impl_->resume; }
const std::vector<std::string>& ShardedExport::warnings() const { return impl_->file.warnings(); }
std::span<const HeadTask> ShardedExport::tasks() const { return impl_->plan.tasks; }
TileRequest ShardedExport::request() const { return impl_->plan.layout.request; }
int64_t ShardedExport::tiles_done() const { return impl_->tiles_done; }
int64_t ShardedExport::tiles_total() const { return impl_->first_tile.back(); }
int64_t ShardedExport::bytes_written() const { return impl_->bytes; }

bool ShardedExport::has_tile(int64_t task_index, IndexRange, IndexRange) const {
  return impl_->before[impl_->task_places[static_cast<size_t>(task_index)].first];
}

void ShardedExport::begin(std::span<const HeadTask> tasks, int) {
  if (tasks.data() != impl_->plan.tasks.data() || !impl_->journal) {
    throw std::logic_error("ShardedExport: the stream must be that of tasks()");
  }
}

void ShardedExport::consume(const Tile& tile) {
  const auto task = static_cast<size_t>(tile.task_index);
  const auto [group, head] = impl_->task_places.at(task);
  const PreparedTile prepared = prepare_tile(impl_->plan.spec, impl_->plan.layout,
                                             impl_->plan.layout.groups[group], head, tile);
  impl_->write_in_turn(prepared, group, impl_->unit(task, tile),
                       static_cast<int64_t>(tile.chunks.size()));
}

void ShardedExport::abort() noexcept {
  const std::lock_guard lock(impl_->mutex);
  impl_->stopped = true;
  impl_->turn.notify_all();
}

void ShardedExport::suspend() {
  if (impl_->journal) impl_->journal->flush();
  // The shard that was being written is lost.
  int64_t tiles = 0;
  for (size_t g = 0; g < impl_->shards.size(); ++g) {
    const ChunkGrid& grid = impl_->plan.layout.groups[g].grid;
    if (impl_->shards[g].bytes > 0) tiles += grid.heads * grid.row_chunks() * grid.col_chunks();
  }
  impl_->tiles_done = tiles;
}

path ShardedExport::partial_path() const { return impl_->new_folder; }

void ShardedExport::end() {
  if (impl_->next != impl_->first_tile.back()) {
    throw std::logic_error("ShardedExport: every tile must be consumed once");
  }
  // An earlier run may have come as far as this.
  impl_->file.remove_part();
  const ExportManifest stored = write_shard_master(
      impl_->plan.spec, impl_->shards, impl_->folder.filename(), impl_->file.new_part_path());
  impl_->file.open_new_part(stored.file_bytes);
  seal_export(stored, impl_->file.data());
  impl_->file.publish_part();
  impl_->journal.reset();
  impl_->swap_folders();
  if (impl_->sync) sync_folder_of(impl_->folder);
  impl_->file.commit();
}

}  // namespace attnscope

#include "viewer/tiles/stored_tile_source.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <variant>

#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/products/row_mean.h"
#include "viewer/tiles/pyramid_tiles.h"
#include "viewer/tiles/thread_priority.h"
#include "viewer/tiles/tile_store.h"

namespace attnscope {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
/// Bytes of a texel in a TexelRow that counts.
constexpr int64_t kTexelBytes = sizeof(float) + sizeof(double) + sizeof(int64_t);

std::vector<TexelRow> counting_rows(int64_t rows, int64_t texels) {
  return {static_cast<size_t>(rows), TexelRow(texels, Quantity::logits)};
}

IndexRange entries_of(int64_t first_texel, int64_t texels, int level, int64_t extent) {
  return {first_texel << level, std::min(extent, (first_texel + texels) << level)};
}

/// Texels without an entry in the file get NaN; of logits, those that are masked keep −inf.
void mark_missing(MapTile& tile, const MapGeometry& geometry, const TexelReader& reader) {
  const TileId& id = tile.id;
  for (int64_t r = 0; r < tile.rows; ++r) {
    for (int64_t c = 0; c < tile.cols; ++c) {
      const auto at = static_cast<size_t>(r * tile.cols + c);
      if (tile.max[at] != kMasked) continue;
      const bool masked =
          id.quantity == Quantity::logits &&
          reader.holds(id.head, entries_of(id.row * kTileSide + r, 1, id.level, geometry.rows),
                       entries_of(id.col * kTileSide + c, 1, id.level, geometry.cols));
      if (!masked) tile.max[at] = tile.mean[at] = kMissing;
    }
  }
}

TilePtr marked(const TilePtr& tile, const MapGeometry& geometry, const TexelReader& reader) {
  if (std::find(tile->max.begin(), tile->max.end(), kMasked) == tile->max.end()) return tile;
  auto copy = std::make_shared<MapTile>(*tile);
  mark_missing(*copy, geometry, reader);
  return copy;
}

TilePtr read_tile(const TileId& id, const MapGeometry& geometry, const TexelReader& reader) {
  std::shared_ptr<MapTile> tile = make_tile(id, geometry);
  std::vector<TexelRow> texels = counting_rows(tile->rows, tile->cols);
  reader.add(id.head, entries_of(id.row * kTileSide, tile->rows, id.level, geometry.rows),
             entries_of(id.col * kTileSide, tile->cols, id.level, geometry.cols),
             int64_t{1} << id.level, texels);
  for (int64_t r = 0; r < tile->rows; ++r) {
    store_texels(*tile, geometry, r, 1, texels[static_cast<size_t>(r)], 0);
  }
  mark_missing(*tile, geometry, reader);
  return tile;
}

/// The mean of the tokens' lines; masked logits are left out of it, and what one of them lacks is
/// missing.
LinePtr read_line(const LineRequest& request, const TexelReader& reader) {
  auto line = std::make_shared<MapLine>();
  line->request = request;
  RowSums sums;
  for (const int64_t token : request.tokens) {
    const std::vector<float> values = reader.line(request.head, request.reverse, token);
    if (token == request.tokens.front()) {
      sums = RowSums(static_cast<int64_t>(values.size()), request.quantity);
    }
    sums.add(values);
  }
  line->values = sums.mean(static_cast<int64_t>(request.tokens.size()));
  return line;
}

/// What is kept of one head but its finer tiles.
struct StoredHeadTiles {
  MapGeometry geometry;
  std::shared_ptr<PyramidTiles> pass;  ///< begun and not complete
  MemoryReservation memory;            ///< of the pyramid
  std::map<TileId, TilePtr> exact;
  int64_t next_row = 0, rows_done = 0;
  double seconds = 0;  ///< spent on rows_done
  int running = 0;     ///< pieces of the pass
  bool complete = false, wanted = false;
  uint64_t used = 0;
};

using Key = std::variant<LineRequest, TileId, HeadId, ProbeRequest>;

}  // namespace

class StoredTileSource::Impl {
 public:
  Impl(std::shared_ptr<const TexelReader> reader, const Settings& settings,
       std::function<void()> wake)
      : reader_(std::move(reader)), wake_(std::move(wake)), budget_(settings.memory) {
    for (int i = 0; i < settings.threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    threads_.clear();  // joins
  }

  const MapSource& call(const HeadId& id) const;
  MapGeometry geometry(const HeadId& id) const {
    return MapGeometry::of(call(id).queries.tokens(), call(id).keys.tokens());
  }
  void want(WantedTiles wishes);
  TilePtr find(const TileId& id);
  LinePtr find(const LineRequest& request) {
    const std::lock_guard lock(mutex_);
    return store_.find(request);
  }
  std::optional<ProbedEntry> find(const ProbeRequest& request) {
    const std::lock_guard lock(mutex_);
    return store_.find(request);
  }
  bool exact(const HeadId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = heads_.find(id);
    return found != heads_.end() && found->second.complete;
  }
  TileSourceStatus status() const;

 private:
  /// Reads without the lock; what it returns takes the result in, under the lock.
  using Completion = std::function<void()>;
  struct Task {
    Key key;
    std::function<Completion()> read;
    std::vector<MemoryReservation> memory;  ///< of the result first, then of buffers
  };

  void check(const WantedTiles& wishes) const;
  void work();
  void fail(const Key& key, const std::string& problem);
  std::optional<Task> choose();
  std::optional<Task> probe_task(const ProbeRequest& request);
  std::optional<Task> line_task(const LineRequest& request);
  std::optional<Task> tile_task(const TileId& id);
  std::optional<Task> pass_task(const HeadId& id);
  void finish_panel(const HeadId& id, const std::shared_ptr<PyramidTiles>& pass,
                    const std::vector<TilePtr>& completed, int64_t rows, double seconds);
  MemoryReservation reserve(int64_t bytes, std::string_view purpose);
  bool make_room();
  bool is_idle(const Key& key) const { return !running_.contains(key) && !failed_.contains(key); }
  StoredHeadTiles& head(const HeadId& id);
  std::set<HeadId> wanted_passes() const;
  int64_t panel_rows(const HeadId& id, const MapGeometry& geometry) const;

  const std::shared_ptr<const TexelReader> reader_;
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  MemoryBudget budget_;
  TileStore store_;
  std::map<HeadId, StoredHeadTiles> heads_;
  WantedTiles wishes_;
  std::set<TileId> pinned_;
  std::set<Key> running_;  ///< lines and tiles
  std::set<Key> failed_;
  int pieces_ = 0;  ///< under way
  std::string problem_;
  std::vector<std::jthread> threads_;
};

const MapSource& StoredTileSource::Impl::call(const HeadId& id) const {
  const std::vector<MapSource>& calls = reader_->calls();
  const bool known = id.call >= 0 && id.call < static_cast<int64_t>(calls.size());
  const MapSource* found = known ? &calls[static_cast<size_t>(id.call)] : nullptr;
  if (found == nullptr || id.batch < 0 || id.batch >= static_cast<int64_t>(found->batch.size()) ||
      id.head < 0 || id.head >= static_cast<int64_t>(found->heads.size())) {
    throw usage_error("the export has no map of call " + std::to_string(id.call) + ", batch item " +
                      std::to_string(id.batch) + ", head " + std::to_string(id.head));
  }
  return *found;
}

StoredHeadTiles& StoredTileSource::Impl::head(const HeadId& id) {
  StoredHeadTiles& data = heads_[id];
  if (data.geometry.rows == 0) data.geometry = geometry(id);
  return data;
}

void StoredTileSource::Impl::check(const WantedTiles& wishes) const {
  check_wishes(wishes, [this](const HeadId& id) { return geometry(id); });
  const auto check_quantity = [this](const HeadId& id, Quantity quantity) {
    const bool there = quantity == Quantity::logits ? call(id).logits : call(id).weights;
    if (!there) throw usage_error("the export does not hold these numbers");
  };
  for (const TileId& tile : wishes.tiles) check_quantity(tile.head, tile.quantity);
  for (const auto& line : {wishes.line, wishes.other_line}) {
    if (!line) continue;
    check_quantity(line->head, line->quantity);
    if (call(line->head).block > 1) throw usage_error("the export holds blocks, no single rows");
  }
}

void StoredTileSource::Impl::want(WantedTiles wishes) {
  check(wishes);
  const std::lock_guard lock(mutex_);
  wishes_ = std::move(wishes);
  pinned_ = std::set<TileId>(wishes_.tiles.begin(), wishes_.tiles.end());
  for (auto& [id, data] : heads_) data.wanted = false;
  std::set<Key> wanted;
  const auto mark = [&](const HeadId& id) {
    StoredHeadTiles& data = head(id);
    data.wanted = true;
    data.used = store_.tick();
    wanted.insert(id);
  };
  for (const auto& line : {wishes_.line, wishes_.other_line}) {
    if (line) wanted.insert(*line);
  }
  wanted.insert(wishes_.probes.begin(), wishes_.probes.end());
  for (const TileId& tile : wishes_.tiles) {
    mark(tile.head);
    wanted.insert(tile);
  }
  for (const HeadId& id : wishes_.exact) mark(id);
  std::erase_if(failed_, [&](const Key& key) { return !wanted.contains(key); });
  if (failed_.empty()) problem_.clear();
  changed_.notify_all();
}

TilePtr StoredTileSource::Impl::find(const TileId& id) {
  const std::lock_guard lock(mutex_);
  const auto data = heads_.find(id.head);
  if (data != heads_.end()) {
    const auto found = data->second.exact.find(id);
    if (found != data->second.exact.end()) {
      data->second.used = store_.tick();
      return found->second;
    }
  }
  return store_.find(id);
}

void StoredTileSource::Impl::work() {
  lower_thread_priority();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::optional<Task> task = choose();
    if (!task) {
      changed_.wait(lock);
      continue;
    }
    ++pieces_;
    lock.unlock();
    Completion take_in;
    std::string problem;
    try {
      take_in = task->read();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock.lock();
    --pieces_;
    running_.erase(task->key);
    if (const auto* id = std::get_if<HeadId>(&task->key)) --head(*id).running;
    if (take_in) {
      take_in();
    } else {
      fail(task->key, problem);
    }
    task.reset();
    changed_.notify_all();
    lock.unlock();
    wake_();
    lock.lock();
  }
}

/// A pass begins anew when it is wanted again; pieces of it that still run find it gone.
void StoredTileSource::Impl::fail(const Key& key, const std::string& problem) {
  failed_.insert(key);
  problem_ = problem;
  const auto* id = std::get_if<HeadId>(&key);
  if (id == nullptr) return;
  StoredHeadTiles& data = head(*id);
  data.pass = nullptr;
  data.exact.clear();
  data.memory = {};
  data.next_row = data.rows_done = 0;
  data.seconds = 0;
}

std::set<HeadId> StoredTileSource::Impl::wanted_passes() const {
  std::set<HeadId> wanted(wishes_.exact.begin(), wishes_.exact.end());
  for (const TileId& tile : wishes_.tiles) {
    if (tile.level >= heads_.at(tile.head).geometry.base_level) wanted.insert(tile.head);
  }
  std::erase_if(wanted, [&](const HeadId& id) {
    const StoredHeadTiles& data = heads_.at(id);
    return data.complete || failed_.contains(id);
  });
  return wanted;
}

std::optional<StoredTileSource::Impl::Task> StoredTileSource::Impl::choose() {
  const auto attempt = [&](const Key& key, const auto& make) -> std::optional<Task> {
    try {
      return make();
    } catch (const Error& error) {
      // What is under way may leave room when it is done.
      if (error.code() == ErrorCode::resource && pieces_ > 0) return std::nullopt;
      fail(key, error.what());
      return std::nullopt;
    }
  };
  for (const ProbeRequest& probe : wishes_.probes) {
    if (!is_idle(probe) || store_.find(probe)) continue;
    if (auto task = attempt(probe, [&] { return probe_task(probe); })) return task;
  }
  for (const auto& line : {wishes_.line, wishes_.other_line}) {
    if (!line || !is_idle(*line) || store_.find(*line)) continue;
    if (auto task = attempt(*line, [&] { return line_task(*line); })) return task;
  }
  for (const TileId& id : wishes_.tiles) {
    if (id.level >= heads_.at(id.head).geometry.base_level || !is_idle(id) || store_.find(id)) {
      continue;
    }
    if (auto task = attempt(id, [&] { return tile_task(id); })) return task;
  }
  for (const HeadId& id : wanted_passes()) {
    if (auto task = attempt(id, [&] { return pass_task(id); })) return task;
  }
  return std::nullopt;
}

std::optional<StoredTileSource::Impl::Task> StoredTileSource::Impl::probe_task(
    const ProbeRequest& request) {
  Task task{request, {}, {}};
  task.memory.push_back(reserve(reader_->buffer_bytes(request.head), "an entry's chunk"));
  task.read = [this, request]() -> Completion {
    const ProbedEntry entry = reader_->probe(request.head, request.query, request.key);
    return [this, request, entry] { store_.put(request, entry); };
  };
  running_.insert(request);
  return task;
}

std::optional<StoredTileSource::Impl::Task> StoredTileSource::Impl::line_task(
    const LineRequest& request) {
  const MapSource& shown = call(request.head);
  const int64_t entries = request.reverse ? shown.queries.tokens() : shown.keys.tokens();
  auto memory = std::make_shared<MemoryReservation>(reserve(entries * 4, "a line of the map"));
  Task task{request, {}, {}};
  // Its sums and counts, and one row of entries.
  task.memory.push_back(
      reserve(entries * 16 + reader_->buffer_bytes(request.head), "the sums of a line"));
  task.read = [this, request, memory]() -> Completion {
    LinePtr line = read_line(request, *reader_);
    return [this, line, memory] { store_.put(line, std::move(*memory)); };
  };
  running_.insert(request);
  return task;
}

std::optional<StoredTileSource::Impl::Task> StoredTileSource::Impl::tile_task(const TileId& id) {
  const MapGeometry sizes = head(id.head).geometry;
  auto memory =
      std::make_shared<MemoryReservation>(reserve(tile_bytes(id, sizes), "a tile of the map"));
  Task task{id, {}, {}};
  task.memory.push_back(reserve(
      kTileSide * kTileSide * kTexelBytes + reader_->buffer_bytes(id.head), "the sums of a tile"));
  task.read = [this, id, sizes, memory]() -> Completion {
    TilePtr tile = read_tile(id, sizes, *reader_);
    return [this, tile, memory] { store_.put(tile, std::move(*memory)); };
  };
  running_.insert(id);
  return task;
}

/// Whole rows of texels, and whole panels of the file.
int64_t StoredTileSource::Impl::panel_rows(const HeadId& id, const MapGeometry& sizes) const {
  const int64_t side = int64_t{1} << sizes.base_level;
  return (reader_->panel_rows(id) + side - 1) / side * side;
}

std::optional<StoredTileSource::Impl::Task> StoredTileSource::Impl::pass_task(const HeadId& id) {
  StoredHeadTiles& data = head(id);
  const MapGeometry sizes = data.geometry;
  if (data.next_row >= sizes.rows) return std::nullopt;
  const Quantity quantity = call(id).weights ? Quantity::weights : Quantity::logits;
  if (!data.pass) {
    data.memory = reserve(PyramidTiles::bytes(sizes), "the overview of a map");
    data.pass = std::make_shared<PyramidTiles>(id, quantity, sizes);
  }
  const int64_t side = int64_t{1} << sizes.base_level;
  const IndexRange rows{data.next_row, std::min(sizes.rows, data.next_row + panel_rows(id, sizes))};
  const int64_t texel_rows = (rows.size() + side - 1) / side;
  const int64_t texel_cols = sizes.texel_cols(sizes.base_level);
  Task task{id, {}, {}};
  task.memory.push_back(reserve(texel_rows * texel_cols * kTexelBytes + reader_->buffer_bytes(id),
                                "the rows of an overview"));
  data.next_row = rows.end;
  ++data.running;
  task.read = [this, id, rows, side, sizes, texel_rows, texel_cols,
               pass = data.pass]() -> Completion {
    const auto start = std::chrono::steady_clock::now();
    std::vector<TexelRow> texels = counting_rows(texel_rows, texel_cols);
    reader_->add(id, rows, {0, sizes.cols}, side, texels);
    std::vector<TilePtr> completed;
    for (int64_t r = 0; r < texel_rows; ++r) {
      for (const TilePtr& tile :
           pass->add(rows.begin / side + r, std::move(texels[static_cast<size_t>(r)]))) {
        completed.push_back(marked(tile, sizes, *reader_));
      }
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return [this, id, pass, completed, rows, seconds = spent.count()] {
      finish_panel(id, pass, completed, rows.size(), seconds);
    };
  };
  return task;
}

void StoredTileSource::Impl::finish_panel(const HeadId& id,
                                          const std::shared_ptr<PyramidTiles>& pass,
                                          const std::vector<TilePtr>& completed, int64_t rows,
                                          double seconds) {
  StoredHeadTiles& data = head(id);
  if (data.pass != pass) return;
  for (const TilePtr& tile : completed) data.exact[tile->id] = tile;
  data.rows_done += rows;
  data.seconds += seconds;
  if (data.rows_done < data.geometry.rows) return;
  data.complete = true;
  data.pass = nullptr;
}

bool StoredTileSource::Impl::make_room() {
  const TileStore::Pinned pinned = [&](const TileId& id) { return pinned_.contains(id); };
  const uint64_t oldest = store_.oldest(pinned);
  StoredHeadTiles* unused = nullptr;
  for (auto& [id, data] : heads_) {
    if (data.wanted || data.running > 0 || data.memory.bytes() == 0) continue;
    if (unused == nullptr || data.used < unused->used) unused = &data;
  }
  if (unused != nullptr && unused->used < oldest) {
    const MapGeometry sizes = unused->geometry;
    *unused = {};
    unused->geometry = sizes;
    return true;
  }
  if (oldest == std::numeric_limits<uint64_t>::max()) return false;
  store_.drop_oldest(pinned);
  return true;
}

MemoryReservation StoredTileSource::Impl::reserve(int64_t bytes, std::string_view purpose) {
  while (bytes <= budget_.limit() && budget_.available() < bytes && make_room()) {
  }
  return budget_.reserve(bytes, purpose);
}

TileSourceStatus StoredTileSource::Impl::status() const {
  const std::lock_guard lock(mutex_);
  TileSourceStatus status;
  for (const ProbeRequest& probe : wishes_.probes) {
    if (!failed_.contains(probe) && !store_.holds(probe)) ++status.queue;
  }
  for (const auto& line : {wishes_.line, wishes_.other_line}) {
    if (line && !failed_.contains(*line) && !store_.holds(*line)) ++status.queue;
  }
  for (const TileId& id : wishes_.tiles) {
    const bool fine = id.level < heads_.at(id.head).geometry.base_level;
    if (fine && !failed_.contains(id) && !store_.holds(id)) ++status.queue;
  }
  for (const HeadId& id : wanted_passes()) {
    const StoredHeadTiles& data = heads_.at(id);
    const int64_t panel = panel_rows(id, data.geometry);
    status.queue += (data.geometry.rows - data.rows_done + panel - 1) / panel;
  }
  status.busy = status.queue > 0;
  status.host_bytes = store_.bytes();
  for (const auto& [id, data] : heads_) status.host_bytes += data.memory.bytes();
  status.problem = problem_;
  if (wishes_.exact.empty()) return status;
  const StoredHeadTiles& data = heads_.at(wishes_.exact.front());
  const auto rows = static_cast<double>(data.geometry.rows);
  const auto done = data.complete ? rows : static_cast<double>(data.rows_done);
  status.exact_progress = done / rows;
  if (data.complete) status.exact_seconds_left = 0;
  if (!data.complete && done > 0) {
    status.exact_seconds_left =
        (rows - done) * data.seconds / done / static_cast<double>(threads_.size());
  }
  return status;
}

StoredTileSource::StoredTileSource(std::shared_ptr<const TexelReader> reader,
                                   const Settings& settings, std::function<void()> wake)
    : impl_(std::make_unique<Impl>(std::move(reader), settings, std::move(wake))) {}

StoredTileSource::~StoredTileSource() = default;

MapGeometry StoredTileSource::geometry(const HeadId& head) const { return impl_->geometry(head); }

void StoredTileSource::want(WantedTiles wishes) { impl_->want(std::move(wishes)); }

std::shared_ptr<const MapTile> StoredTileSource::find(const TileId& id) const {
  return impl_->find(id);
}

std::shared_ptr<const MapLine> StoredTileSource::find_line(const LineRequest& request) const {
  return impl_->find(request);
}

bool StoredTileSource::exact(const HeadId& head) const { return impl_->exact(head); }

std::optional<ProbedEntry> StoredTileSource::find_probe(const ProbeRequest& request) const {
  return impl_->find(request);
}

TileSourceStatus StoredTileSource::status() const { return impl_->status(); }

}  // namespace attnscope

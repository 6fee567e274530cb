#include "viewer/tiles/jobs/fine_tile_job.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/base/checked_math.h"
#include "viewer/tiles/jobs/masked_entries.h"

namespace attnscope {
namespace {

/// Entries of a slab at most, 4 MiB.
constexpr int64_t kTileSlabEntries = int64_t{1} << 20;
/// Multiplications of a slab, times two, where a device pools it: it is kept busy by many rows.
constexpr double kDeviceFlops = 64 * kPieceFlops;

class FineTileJob : public MapJob {
 public:
  FineTileJob(const TileId& id, const HeadCache& head)
      : MapJob(id.head), id_(id), geometry_(head.geometry), side_(int64_t{1} << id.level) {
    const IndexRange texels{id.row * kTileSide,
                            std::min((id.row + 1) * kTileSide, geometry_.texel_rows(id.level))};
    rows_ = {texels.begin * side_, std::min(texels.end * side_, geometry_.rows)};
    cols_ = {id.col * kTileSide * side_,
             std::min((id.col + 1) * kTileSide * side_, geometry_.cols)};
    divided_ = needs_norms(head.problem->score(), id.quantity);
    const bool known = !divided_ || head.norms.known(rows_);
    keys_ = cols_.size() + (known ? 0 : geometry_.cols);
    cut(std::min(piece_rows(*head.problem, keys_),
                 std::max<int64_t>(1, kTileSlabEntries / cols_.size())));
  }

  bool done(const HeadCache&) const override { return done_ == slabs_; }
  int64_t pieces_left(const HeadCache&) const override { return slabs_ - done_; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    if (next_ == slabs_) return std::nullopt;
    if (next_ == 0) {
      if (head.bound && WorkerScratch::pooler_of(*head.bound, id_.level) != nullptr) {
        cut(piece_rows(*head.problem, keys_, kDeviceFlops));
      }
      memory_ = tools.reserve(tile_bytes(id_, geometry_), "a tile of the map");
      tile_ = make_tile(id_, geometry_);
      if (divided_) head.norms.prepare(geometry_.rows, tools.reserve);
    }
    const int64_t first = rows_.begin + next_ * slab_rows_;
    const IndexRange slab{first, std::min(rows_.end, first + slab_rows_)};
    ++next_;
    std::vector<RowNorm> norms(divided_ ? static_cast<size_t>(slab.size()) : 0);
    const bool known = divided_ && head.norms.known(slab);
    if (known) std::copy_n(head.norms.norms().begin() + slab.begin, slab.size(), norms.begin());
    return [this, slab, known, norms](WorkerScratch* scratch) mutable -> Completion {
      fill(*scratch, slab, norms, known);
      mark_masked(scratch->problem(), slab);
      return [this, slab, known, norms](HeadCache& of, TileStore& store) {
        if (!known) of.norms.set(slab.begin, norms);
        if (++done_ < slabs_) return false;
        // A device's copy without what the host has made is none.
        if (on_host_) tile_->device = nullptr;
        store.put(std::move(tile_), std::move(memory_));
        return true;
      };
    };
  }

 private:
  /// Slabs of about so many rows, each of whole texels.
  void cut(int64_t rows) {
    slab_rows_ = std::max<int64_t>(1, rows / side_) * side_;
    slabs_ = ceil_div(rows_.size(), slab_rows_);
  }

  /// Has the backend pool the slab to texels; false where it did not.
  bool fill_pooled(WorkerScratch& scratch, IndexRange slab, std::span<RowNorm> norms, bool& known) {
    const TexelPooler* const pooler = scratch.pooler(id_.level);
    if (pooler == nullptr) return false;
    std::call_once(made_, [&] { tile_->device = pooler->make_texels(tile_->rows, tile_->cols); });
    const int64_t row = slab.begin / side_ - id_.row * kTileSide;
    const auto at = static_cast<size_t>(row * tile_->cols);
    return scratch.pool(
        slab, norms, known, {id_.quantity, id_.level, cols_},
        {tile_->max.data() + at, tile_->mean.data() + at, tile_->cols, tile_->device.get(), row});
  }

  void fill(WorkerScratch& scratch, IndexRange slab, std::vector<RowNorm>& norms, bool known) {
    if (fill_pooled(scratch, slab, norms, known)) return;
    on_host_ = true;
    const int64_t step =
        scratch.rows_per_call(slab.size(), cols_.size(), false, known || !divided_);
    TexelRow texels;
    for (int64_t first = slab.begin; first < slab.end; first += step) {
      const IndexRange rows{first, std::min(slab.end, first + step)};
      const std::span<RowNorm> of_rows =
          norms.empty() ? std::span<RowNorm>()
                        : std::span(norms).subspan(static_cast<size_t>(first - slab.begin),
                                                   static_cast<size_t>(rows.size()));
      const float* entries =
          scratch.entries(scratch.read(rows), of_rows, known, cols_, id_.quantity);
      for (int64_t row = rows.begin; row < rows.end; ++row, entries += cols_.size()) {
        if (row % side_ == 0) texels = TexelRow(tile_->cols, id_.quantity);
        texels.add(entries, cols_.size(), side_);
        if ((row + 1) % side_ != 0 && row + 1 != rows_.end) continue;
        store_texels(*tile_, geometry_, row / side_ - id_.row * kTileSide, row % side_ + 1, texels,
                     0);
      }
    }
  }

  /// A device's copy knows nothing of it.
  void mark_masked(const AttentionProblem& problem, IndexRange slab) {
    const int64_t first = id_.row * kTileSide;
    const IndexRange texels{slab.begin / side_ - first, ceil_div(slab.end, side_) - first};
    if (MaskedEntries(problem, id_.head).mark(*tile_, geometry_, texels)) on_host_ = true;
  }

  const TileId id_;
  const MapGeometry geometry_;
  const int64_t side_;
  IndexRange rows_, cols_;  ///< of entries
  bool divided_ = false;
  int64_t keys_ = 0;  ///< that a row of the tile meets
  int64_t slab_rows_ = 1, slabs_ = 0, next_ = 0, done_ = 0;
  std::once_flag made_;               ///< the tile's texels on the device
  std::atomic<bool> on_host_{false};  ///< some of the tile was made or marked there
  MemoryReservation memory_;
  std::shared_ptr<MapTile> tile_;
};

}  // namespace

std::shared_ptr<MapJob> make_fine_tile_job(const TileId& id, const HeadCache& head) {
  return std::make_shared<FineTileJob>(id, head);
}

}  // namespace attnscope

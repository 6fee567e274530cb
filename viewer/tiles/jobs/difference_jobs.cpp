#include "viewer/tiles/jobs/difference_jobs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/checked_math.h"
#include "core/mask/masked_bias.h"
#include "core/problem/sampled_rows.h"
#include "core/products/differences/map_difference.h"
#include "viewer/tiles/jobs/overview_job.h"
#include "viewer/tiles/jobs/pair_rows.h"
#include "viewer/tiles/jobs/pass_job.h"

namespace attnscope {
namespace {

/// Of rows that are no distributions.
constexpr double kNoDivergence = std::numeric_limits<double>::quiet_NaN();

/// Rows of both maps that a piece takes, where they are computed.
int64_t pair_piece_rows(const HeadCache& head, int64_t keys, double flops = kPieceFlops) {
  return std::max<int64_t>(1, piece_rows(*head.problem, keys, flops) / 2);
}

/// Rows that both files have together in their chunks.
int64_t pair_chunk_rows(const TexelReader& reader, const HeadId& a, const HeadId& b) {
  return std::max(reader.panel_rows(a), reader.panel_rows(b));
}

std::vector<int64_t> rows_in(IndexRange range) {
  std::vector<int64_t> rows(static_cast<size_t>(range.size()));
  std::iota(rows.begin(), rows.end(), range.begin);
  return rows;
}

/// Puts the differences of a row in place of A's entries: −inf where there is none, also for want
/// of an entry in a file.
void take_row_difference(Difference how, std::span<float> a, std::span<const float> b) {
  take_difference(how, a, b, a);
  std::replace_if(
      a.begin(), a.end(), [](float each) { return std::isnan(each); }, kMasked);
}

/// Tells texels without a difference apart: masked in both maps, or not in one of the files.
/// Without the service's lock.
class UndefinedTexels {
 public:
  UndefinedTexels(const HeadCache& a, const HeadCache& b, Quantity quantity)
      : reader_(a.reader),
        a_(a.id),
        b_(b.id),
        masked_a_(quantity == Quantity::weights ? masked_of(a) : std::nullopt),
        masked_b_(quantity == Quantity::weights ? masked_of(b) : std::nullopt) {}

  /// True where there may be texels to mark.
  bool any() const { return reader_ || (masked_a_ && masked_a_->any() && masked_b_->any()); }
  /// Marks the tile's texels in these rows: −inf or NaN. True where there are such.
  bool mark(MapTile& tile, const MapGeometry& geometry, IndexRange texel_rows) const {
    if (!reader_) return mark_masked_in_both(tile, geometry, texel_rows, masked_a_, masked_b_);
    bool marked = false;
    for (int64_t r = texel_rows.begin; r < texel_rows.end; ++r) {
      const IndexRange rows = entries_of(tile.id.row, r, tile.id.level, geometry.rows);
      for (int64_t c = 0; c < tile.cols; ++c) {
        const auto at = static_cast<size_t>(r * tile.cols + c);
        if (tile.max[at] != kMasked) continue;
        const IndexRange cols = entries_of(tile.id.col, c, tile.id.level, geometry.cols);
        if (reader_->holds(a_, rows, cols) && reader_->holds(b_, rows, cols)) continue;
        tile.max[at] = tile.mean[at] = std::numeric_limits<float>::quiet_NaN();
        marked = true;
      }
    }
    return marked;
  }

 private:
  static IndexRange entries_of(int64_t tile, int64_t texel, int level, int64_t extent) {
    const int64_t place = tile * kTileSide + texel;
    return {place << level, std::min(extent, (place + 1) << level)};
  }

  std::shared_ptr<const TexelReader> reader_;  ///< null: the maps are computed
  HeadId a_, b_;
  std::optional<MaskedEntries> masked_a_, masked_b_;  ///< of weights that are computed
};

/// A slab is whole rows of texels.
class DifferenceTileJob : public MapJob {
 public:
  DifferenceTileJob(const TileId& id, const HeadCache& head)
      : MapJob(id.head), id_(id), geometry_(head.geometry), side_(int64_t{1} << id.level) {
    rows_ = {id.row * kTileSide * side_,
             std::min((id.row + 1) * kTileSide * side_, geometry_.rows)};
    cols_ = {id.col * kTileSide * side_,
             std::min((id.col + 1) * kTileSide * side_, geometry_.cols)};
    slab_rows_ = round_up(wanted_rows(head), side_);
    slabs_ = ceil_div(rows_.size(), slab_rows_);
  }

  std::optional<HeadId> other_head() const override { return id_.against->other; }
  bool done(const HeadCache&) const override { return done_ == slabs_; }
  int64_t pieces_left(const HeadCache&) const override { return slabs_ - done_; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    if (next_ == slabs_) return std::nullopt;
    HeadCache& other = tools.head(id_.against->other);
    if (next_ == 0) {
      memory_ = tools.reserve(tile_bytes(id_, geometry_), "a tile of the map");
      tile_ = make_tile(id_, geometry_);
    }
    const int64_t first = rows_.begin + next_ * slab_rows_;
    const IndexRange slab{first, std::min(rows_.end, first + slab_rows_)};
    PairRows pair(head, other, id_.quantity, rows_in(slab), cols_, tools);
    ++next_;
    return [this, slab, pair, undefined = UndefinedTexels(head, other, id_.quantity),
            find = tools.head](WorkerScratch* scratch) mutable -> Completion {
      fill(scratch, pair, slab);
      const int64_t top = id_.row * kTileSide;
      if (undefined.any()) {
        mark_rows(slab.begin / side_ - top, ceil_div(slab.end, side_) - top, undefined);
      }
      return [this, pair, find](HeadCache& of, TileStore& store) {
        pair.keep_norms(of, find(id_.against->other));
        if (++done_ < slabs_) return false;
        store.put(std::move(tile_), std::move(memory_));
        return true;
      };
    };
  }

 private:
  int64_t wanted_rows(const HeadCache& head) const {
    if (head.reader) return pair_chunk_rows(*head.reader, id_.head, id_.against->other);
    const bool divided = needs_norms(head.problem->score(), id_.quantity);
    const bool known = !divided || head.norms.known(rows_);
    const int64_t rows = pair_piece_rows(head, cols_.size() + (known ? 0 : geometry_.cols));
    return std::max<int64_t>(1, rows / side_) * side_;
  }

  void fill(WorkerScratch* scratch, PairRows& pair, IndexRange slab) {
    TexelRow texels;
    pair.each(scratch, [&](int64_t row, std::span<float> a, std::span<const float> b) {
      take_row_difference(id_.against->how, a, b);
      if (row % side_ == 0) texels = TexelRow::of_differences(tile_->cols);
      texels.add(a.data(), cols_.size(), side_);
      if ((row + 1) % side_ != 0 && row + 1 != slab.end) return;
      store_texels(*tile_, geometry_, row / side_ - id_.row * kTileSide, row % side_ + 1, texels,
                   0);
    });
  }

  /// Others write other rows of the tile meanwhile, so these are marked in a copy.
  void mark_rows(int64_t first, int64_t end, const UndefinedTexels& undefined) {
    MapTile part;
    part.id = id_;
    part.rows = tile_->rows;
    part.cols = tile_->cols;
    part.max.assign(tile_->max.size(), 1);
    part.mean = part.max;
    const auto begin = static_cast<std::ptrdiff_t>(first * tile_->cols);
    const auto last = static_cast<std::ptrdiff_t>(end * tile_->cols);
    std::copy(tile_->max.begin() + begin, tile_->max.begin() + last, part.max.begin() + begin);
    std::copy(tile_->mean.begin() + begin, tile_->mean.begin() + last, part.mean.begin() + begin);
    if (!undefined.mark(part, geometry_, {first, end})) return;
    std::copy(part.max.begin() + begin, part.max.begin() + last, tile_->max.begin() + begin);
    std::copy(part.mean.begin() + begin, part.mean.begin() + last, tile_->mean.begin() + begin);
  }

  const TileId id_;
  const MapGeometry geometry_;
  const int64_t side_;
  IndexRange rows_, cols_;  ///< of entries
  int64_t slab_rows_ = 1, slabs_ = 0, next_ = 0, done_ = 0;
  MemoryReservation memory_;
  std::shared_ptr<MapTile> tile_;
};

class DifferenceOverviewJob : public SampledRowsJob {
 public:
  DifferenceOverviewJob(const DifferenceId& id, bool first_stage)
      : SampledRowsJob(id.head, {id.quantity, id.against}, first_stage) {}
  std::optional<HeadId> other_head() const override { return numbers().against->other; }

 private:
  AddRows add(HeadCache& head, const std::vector<int64_t>& rows, const JobTools& tools) override {
    const Against against = *numbers().against;
    PairRows pair(head, tools.head(against.other), numbers().quantity, rows,
                  {0, head.geometry.cols}, tools);
    return [pair, against, geometry = head.geometry, find = tools.head](
               WorkerScratch& scratch, SampledOverview& overview) mutable {
      pair.each(&scratch, [&](int64_t row, std::span<float> a, std::span<const float> b) {
        take_difference(against.how, a, b, a);
        TexelRow texels = TexelRow::of_differences(geometry.texel_cols(geometry.base_level));
        texels.add(a.data(), geometry.cols, int64_t{1} << geometry.base_level);
        overview.add(row, texels);
      });
      return [pair, against, find](HeadCache& of) { pair.keep_norms(of, find(against.other)); };
    };
  }
};

class DifferencePassJob : public PassJob {
 public:
  explicit DifferencePassJob(const DifferenceId& id)
      : PassJob(id.head, {id.quantity, id.against}) {}
  std::optional<HeadId> other_head() const override { return numbers().against->other; }

 private:
  int64_t panel_rows(const HeadCache& head) const override {
    constexpr int64_t kMostRows = 96;
    constexpr double kPairFlops = 6e9;
    const int64_t wanted =
        head.reader ? pair_chunk_rows(*head.reader, head.id, numbers().against->other)
                    : std::min(kMostRows, pair_piece_rows(head, head.geometry.cols, kPairFlops));
    return round_up(wanted, int64_t{1} << head.geometry.base_level);
  }

  Panel panel(HeadCache& head, IndexRange rows, const JobTools& tools) override {
    const Against against = *numbers().against;
    HeadCache& other = tools.head(against.other);
    PairRows rows_of_both(head, other, quantity(), rows_in(rows), {0, head.geometry.cols}, tools);
    return [pair = std::move(rows_of_both), against, sizes = head.geometry,
            undefined = UndefinedTexels(head, other, quantity())](
               WorkerScratch* scratch, PyramidTiles& tiles, PanelResult& result) mutable {
      const int64_t side = int64_t{1} << sizes.base_level;
      TexelRow texels;
      pair.each(scratch, [&](int64_t row, std::span<float> a, std::span<const float> b) {
        take_row_difference(against.how, a, b);
        if (row % side == 0) {
          texels = TexelRow::of_differences(sizes.texel_cols(sizes.base_level));
        }
        texels.add(a.data(), sizes.cols, side);
        if ((row + 1) % side != 0 && row + 1 != sizes.rows) return;
        for (const TilePtr& tile : tiles.add(row / side, texels)) {
          auto marked = std::make_shared<MapTile>(*tile);
          const bool any = undefined.mark(*marked, sizes, {0, tile->rows});
          result.completed.push_back(any ? TilePtr(marked) : tile);
        }
      });
      result.norms = pair.norms_of_a();
      result.other_norms = pair.norms_of_b();
    };
  }
};

/// Rows of the two maps, compared. A piece is some of them.
class DivergenceJob : public MapJob {
 public:
  DivergenceJob(const HeadsCompared& heads, bool all) : MapJob(heads.a), heads_(heads), all_(all) {}

  std::optional<HeadId> other_head() const override { return heads_.b; }

  bool done(const HeadCache& head) const override {
    const DivergenceProgress* const progress = find(head);
    if (progress == nullptr) return false;
    const int64_t wanted = all_ ? head.geometry.rows : sample_size(head);
    return progress->computed >= wanted;
  }
  int64_t pieces_left(const HeadCache& head) const override {
    const DivergenceProgress* const progress = find(head);
    const int64_t wanted = all_ ? head.geometry.rows : sample_size(head);
    const int64_t left = wanted - (progress == nullptr ? 0 : progress->computed);
    return left <= 0 ? 0 : ceil_div(left, batch_rows(head));
  }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    std::shared_ptr<DivergenceProgress>& progress = head.divergences[heads_.b];
    if (!progress) {
      // Nothing of it is there where there is no room.
      auto begun = std::make_shared<DivergenceProgress>();
      const int64_t rows = head.geometry.rows;
      begun->reservation = tools.reserve(rows * 18, "the divergence of rows");
      begun->rows.assign(static_cast<size_t>(rows), std::numeric_limits<double>::quiet_NaN());
      begun->is_taken.assign(static_cast<size_t>(rows), 0);
      progress = std::move(begun);
    }
    DivergenceProgress after = {};
    const std::vector<int64_t> rows = next_rows(*progress, head, after);
    if (rows.empty()) return std::nullopt;
    HeadCache& other = tools.head(heads_.b);
    PairRows pair(head, other, Quantity::weights, rows, {0, head.geometry.cols}, tools);
    const bool distributions = has_distributions(head) && has_distributions(other);
    for (const int64_t row : rows) progress->is_taken[static_cast<size_t>(row)] = 1;
    progress->next = after.next;
    progress->next_row = after.next_row;
    return [this, pair, rows, distributions, shared = progress,
            find = tools.head](WorkerScratch* scratch) mutable -> Completion {
      std::vector<double> divergences;
      pair.each(scratch, [&](int64_t, std::span<float> a, std::span<const float> b) {
        divergences.push_back(distributions ? row_divergence(a, b) : kNoDivergence);
      });
      return [this, pair, rows, divergences, shared, find](HeadCache& of, TileStore&) {
        pair.keep_norms(of, find(heads_.b));
        for (size_t i = 0; i < rows.size(); ++i) {
          shared->rows[static_cast<size_t>(rows[i])] = divergences[i];
        }
        shared->computed += static_cast<int64_t>(rows.size());
        return publish(*shared, of.reader != nullptr);
      };
    };
  }

  void abandon(HeadCache& head) override { head.divergences.erase(heads_.b); }

 private:
  const DivergenceProgress* find(const HeadCache& head) const {
    const auto found = head.divergences.find(heads_.b);
    return found == head.divergences.end() ? nullptr : found->second.get();
  }
  static bool has_distributions(const HeadCache& head) {
    if (!head.reader) return head.problem->rows_add_up();
    const MapSource& call = head.reader->calls()[static_cast<size_t>(head.id.call)];
    return is_normalised(call.score) && !call.sinks;
  }
  static int64_t sample_size(const HeadCache& head) {
    return std::min(kDivergenceSample, head.geometry.rows);
  }
  int64_t batch_rows(const HeadCache& head) const {
    if (head.reader) return pair_chunk_rows(*head.reader, heads_.a, heads_.b);
    return std::min<int64_t>(48, pair_piece_rows(head, head.geometry.cols));
  }

  /// That nobody has taken yet; `after`: where the next search begins.
  std::vector<int64_t> next_rows(const DivergenceProgress& progress, const HeadCache& head,
                                 DivergenceProgress& after) const {
    std::vector<int64_t> rows;
    const auto batch = static_cast<size_t>(batch_rows(head));
    const auto take = [&](int64_t row) {
      if (progress.is_taken[static_cast<size_t>(row)] == 0) rows.push_back(row);
    };
    after.next = progress.next;
    after.next_row = progress.next_row;
    if (!all_) {
      const std::vector<int64_t> sample = sampled_rows(head.geometry.rows, kDivergenceSample);
      while (after.next < sample.size() && rows.size() < batch) take(sample[after.next++]);
      return rows;
    }
    while (after.next_row < head.geometry.rows && rows.size() < batch) take(after.next_row++);
    return rows;
  }

  /// A new copy for the window, not with every piece, `whole`: when all is there; whether there is
  /// one.
  bool publish(DivergenceProgress& progress, bool whole) const {
    const auto all = static_cast<int64_t>(progress.rows.size());
    const int64_t before = progress.published == nullptr ? 0 : progress.published->computed;
    const int64_t step =
        whole ? all : std::max<int64_t>(std::min(kDivergenceSample, all), all / 16);
    if (progress.computed < all && progress.computed < before + step) return false;
    auto published = std::make_shared<RowDivergence>();
    published->heads = heads_;
    published->rows = progress.rows;
    published->computed = progress.computed;
    published->exact = progress.computed == all;
    progress.published = std::move(published);
    return true;
  }

  const HeadsCompared heads_;
  const bool all_;
};

}  // namespace

std::shared_ptr<MapJob> make_difference_tile_job(const TileId& id, const HeadCache& head) {
  return std::make_shared<DifferenceTileJob>(id, head);
}

std::shared_ptr<MapJob> make_difference_overview_job(const DifferenceId& id, bool first_stage) {
  return std::make_shared<DifferenceOverviewJob>(id, first_stage);
}

std::shared_ptr<MapJob> make_difference_pass_job(const DifferenceId& id) {
  return std::make_shared<DifferencePassJob>(id);
}

std::shared_ptr<MapJob> make_divergence_job(const HeadsCompared& heads, bool all) {
  return std::make_shared<DivergenceJob>(heads, all);
}

}  // namespace attnscope

#include "viewer/tiles/export_differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/products/differences/map_difference.h"
#include "viewer/tiles/jobs/pass_job.h"
#include "viewer/tiles/texels/pyramid_tiles.h"

namespace attnscope {
namespace {

using PairReader = std::shared_ptr<const TexelReader>;
/// Memory of a piece, given back when the piece is gone; a piece can be copied.
using PairMemory = std::shared_ptr<MemoryReservation>;

/// Bytes of a texel of differences.
constexpr int64_t kDifferenceBytes = sizeof(float) + sizeof(double) + sizeof(int64_t);

/// What reading rows × cols of both maps takes, and `texels` made of them.
PairMemory hold_pair(const JobTools& tools, const TexelReader& reader, const HeadId& a,
                     const HeadId& b, int64_t entries, int64_t texels) {
  const int64_t bytes = entries * 2 * static_cast<int64_t>(sizeof(float)) +
                        texels * kDifferenceBytes + reader.buffer_bytes(a) + reader.buffer_bytes(b);
  return std::make_shared<MemoryReservation>(tools.reserve(bytes, "the entries of two maps"));
}

/// Rows that both files have together in their chunks, in whole rows of texels.
int64_t pair_panel_rows(const TexelReader& reader, const HeadId& a, const HeadId& b, int64_t side) {
  return round_up(std::max(reader.panel_rows(a), reader.panel_rows(b)), side);
}

/// Adds the differences of rows × cols to texels of side × side, which begin there.
void add_differences(const TexelReader& reader, const HeadId& a, const Against& against,
                     IndexRange rows, IndexRange cols, int64_t side, std::span<TexelRow> texels) {
  std::vector<float> of_a(static_cast<size_t>(rows.size() * cols.size()));
  std::vector<float> of_b(of_a.size());
  reader.entries(a, rows, cols, of_a);
  reader.entries(against.other, rows, cols, of_b);
  take_difference(against.how, of_a, of_b, of_a);
  for (float& each : of_a) {
    if (std::isnan(each)) each = kMasked;
  }
  for (int64_t r = 0; r < rows.size(); ++r) {
    texels[static_cast<size_t>(r / side)].add(of_a.data() + r * cols.size(), cols.size(), side);
  }
}

std::vector<TexelRow> difference_rows(int64_t rows, int64_t texels) {
  return {static_cast<size_t>(rows), TexelRow::of_differences(texels)};
}

/// Texels of which one of the files has nothing are missing, not masked.
void mark_lacking(MapTile& tile, const MapGeometry& geometry, const TexelReader& reader) {
  const auto entries = [&](int64_t texel, int64_t extent) {
    return IndexRange{texel << tile.id.level, std::min(extent, (texel + 1) << tile.id.level)};
  };
  for (int64_t r = 0; r < tile.rows; ++r) {
    const IndexRange rows = entries(tile.id.row * kTileSide + r, geometry.rows);
    for (int64_t c = 0; c < tile.cols; ++c) {
      const auto at = static_cast<size_t>(r * tile.cols + c);
      if (tile.max[at] != kMasked) continue;
      const IndexRange cols = entries(tile.id.col * kTileSide + c, geometry.cols);
      if (reader.holds(tile.id.head, rows, cols) &&
          reader.holds(tile.id.against->other, rows, cols)) {
        continue;
      }
      tile.max[at] = tile.mean[at] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

class ReadDifferenceTile : public OnePieceJob {
 public:
  ReadDifferenceTile(const TileId& id, PairReader reader)
      : OnePieceJob(id.head), id_(id), reader_(std::move(reader)) {}
  bool needs_bound() const override { return false; }

 private:
  WorkItem piece(HeadCache& head, const JobTools& tools) override {
    const MapGeometry sizes = head.geometry;
    const int64_t side = int64_t{1} << id_.level;
    const IndexRange cols{id_.col * kTileSide * side,
                          std::min((id_.col + 1) * kTileSide * side, sizes.cols)};
    const int64_t step = pair_panel_rows(*reader_, id_.head, id_.against->other, side);
    const auto memory = std::make_shared<MemoryReservation>(
        tools.reserve(tile_bytes(id_, sizes), "a tile of the map"));
    const PairMemory buffers = hold_pair(tools, *reader_, id_.head, id_.against->other,
                                         step * cols.size(), (step / side) * kTileSide);
    return [id = id_, sizes, side, cols, step, reader = reader_, memory,
            buffers](WorkerScratch*) -> Completion {
      const std::shared_ptr<MapTile> tile = make_tile(id, sizes);
      const int64_t begin = id.row * kTileSide * side;
      const int64_t end = std::min(begin + kTileSide * side, sizes.rows);
      for (int64_t first = begin; first < end; first += step) {
        const IndexRange rows{first, std::min(end, first + step)};
        std::vector<TexelRow> texels = difference_rows(ceil_div(rows.size(), side), tile->cols);
        add_differences(*reader, id.head, *id.against, rows, cols, side, texels);
        for (size_t r = 0; r < texels.size(); ++r) {
          store_texels(*tile, sizes, (first - begin) / side + static_cast<int64_t>(r), 1, texels[r],
                       0);
        }
      }
      mark_lacking(*tile, sizes, *reader);
      return [tile, memory](HeadCache&, TileStore& store) {
        store.put(tile, std::move(*memory));
        return true;
      };
    };
  }

  const TileId id_;
  const PairReader reader_;
};

class ReadDifferencePass : public PassJob {
 public:
  ReadDifferencePass(const DifferenceId& id, PairReader reader)
      : PassJob(id.head, {id.quantity, id.against}), reader_(std::move(reader)) {}
  bool needs_bound() const override { return false; }

 private:
  int64_t panel_rows(const HeadCache& head) const override {
    return pair_panel_rows(*reader_, head.id, numbers().against->other,
                           int64_t{1} << head.geometry.base_level);
  }

  Panel panel(HeadCache& head, IndexRange rows, const JobTools& tools) override {
    const MapGeometry sizes = head.geometry;
    const Against against = *numbers().against;
    const int64_t side = int64_t{1} << sizes.base_level;
    const int64_t texel_rows = ceil_div(rows.size(), side);
    const int64_t texel_cols = sizes.texel_cols(sizes.base_level);
    const PairMemory buffers = hold_pair(tools, *reader_, head.id, against.other,
                                         rows.size() * sizes.cols, texel_rows * texel_cols);
    return [id = head.id, against, rows, side, sizes, texel_rows, texel_cols, reader = reader_,
            buffers](WorkerScratch*, PyramidTiles& tiles, PanelResult& result) {
      std::vector<TexelRow> texels = difference_rows(texel_rows, texel_cols);
      add_differences(*reader, id, against, rows, {0, sizes.cols}, side, texels);
      for (int64_t r = 0; r < texel_rows; ++r) {
        for (const TilePtr& tile :
             tiles.add(rows.begin / side + r, texels[static_cast<size_t>(r)])) {
          auto marked = std::make_shared<MapTile>(*tile);
          mark_lacking(*marked, sizes, *reader);
          result.completed.push_back(std::move(marked));
        }
      }
    };
  }

  const PairReader reader_;
};

/// Panel by panel; what is done is shown when all of it is.
class ReadDivergence : public MapJob {
 public:
  ReadDivergence(const HeadsCompared& heads, bool distributions, PairReader reader)
      : MapJob(heads.a),
        heads_(heads),
        distributions_(distributions),
        reader_(std::move(reader)),
        step_(pair_panel_rows(*reader_, heads.a, heads.b, 1)) {}
  bool needs_bound() const override { return false; }

  bool done(const HeadCache& head) const override {
    const auto found = head.divergences.find(heads_.b);
    return found != head.divergences.end() && found->second->published != nullptr;
  }
  int64_t pieces_left(const HeadCache& head) const override {
    const auto found = head.divergences.find(heads_.b);
    const int64_t computed = found == head.divergences.end() ? 0 : found->second->computed;
    return ceil_div(head.geometry.rows - computed, step_);
  }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    std::shared_ptr<DivergenceProgress>& progress = head.divergences[heads_.b];
    const int64_t all = head.geometry.rows, keys = head.geometry.cols;
    if (!progress) {
      auto begun = std::make_shared<DivergenceProgress>();
      begun->reservation = tools.reserve(all * 16, "the divergence of rows");
      begun->rows.assign(static_cast<size_t>(all), std::numeric_limits<double>::quiet_NaN());
      progress = std::move(begun);
    }
    if (progress->next_row == all) return std::nullopt;
    const IndexRange rows{progress->next_row, std::min(all, progress->next_row + step_)};
    const PairMemory buffers =
        hold_pair(tools, *reader_, heads_.a, heads_.b, rows.size() * keys, 0);
    progress->next_row = rows.end;
    return [this, rows, keys, buffers, shared = progress](WorkerScratch*) -> Completion {
      const std::vector<double> found = compare(rows, keys);
      return [this, rows, found, shared](HeadCache&, TileStore&) {
        std::copy(found.begin(), found.end(), shared->rows.begin() + rows.begin);
        shared->computed += rows.size();
        if (shared->computed < static_cast<int64_t>(shared->rows.size())) return false;
        auto published = std::make_shared<RowDivergence>();
        published->heads = heads_;
        published->rows = shared->rows;
        published->computed = shared->computed;
        published->exact = true;
        shared->published = std::move(published);
        return true;
      };
    };
  }

  void abandon(HeadCache& head) override { head.divergences.erase(heads_.b); }

 private:
  std::vector<double> compare(IndexRange rows, int64_t keys) const {
    std::vector<float> a(static_cast<size_t>(rows.size() * keys)), b(a.size());
    reader_->entries(heads_.a, rows, {0, keys}, a);
    reader_->entries(heads_.b, rows, {0, keys}, b);
    std::vector<double> found;
    for (int64_t r = 0; r < rows.size(); ++r) {
      const auto at = static_cast<size_t>(r * keys), size = static_cast<size_t>(keys);
      found.push_back(distributions_ ? row_divergence(std::span(a).subspan(at, size),
                                                      std::span(b).subspan(at, size))
                                     : std::numeric_limits<double>::quiet_NaN());
    }
    return found;
  }

  const HeadsCompared heads_;
  const bool distributions_;
  const PairReader reader_;
  const int64_t step_;
};

}  // namespace

std::shared_ptr<MapJob> read_difference_tile_job(const TileId& id, PairReader reader) {
  return std::make_shared<ReadDifferenceTile>(id, std::move(reader));
}

std::shared_ptr<MapJob> read_difference_pass_job(const DifferenceId& id, PairReader reader) {
  return std::make_shared<ReadDifferencePass>(id, std::move(reader));
}

std::shared_ptr<MapJob> read_divergence_job(const HeadsCompared& heads, bool distributions,
                                            PairReader reader) {
  return std::make_shared<ReadDivergence>(heads, distributions, std::move(reader));
}

}  // namespace attnscope

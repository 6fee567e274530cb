#include "viewer/tiles/export_maps.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/products/row_mean.h"
#include "viewer/tiles/jobs/pass_job.h"
#include "viewer/tiles/texels/pyramid_tiles.h"

namespace attnscope {
namespace {

using Reader = std::shared_ptr<const TexelReader>;

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

/// The mean of the tokens' lines, or their sum; masked logits are left out of it, and what one of
/// them lacks is missing.
LinePtr read_line(const LineRequest& request, const MapGeometry& sizes, const TexelReader& reader) {
  auto line = std::make_shared<MapLine>();
  line->request = request;
  const IndexRange all{0, request.reverse ? sizes.rows : sizes.cols};
  RowSums sums(all.size(), request.quantity);
  std::vector<float> values(static_cast<size_t>(all.size()));
  for (const int64_t token : request.tokens) {
    const IndexRange one{token, token + 1};
    reader.entries(request.head, request.reverse ? all : one, request.reverse ? one : all, values);
    sums.add(values);
  }
  line->values = sums.mean(request.sum ? 1 : static_cast<int64_t>(request.tokens.size()));
  return line;
}

/// Memory of a piece, given back when the piece is gone; a piece can be copied.
using Held = std::shared_ptr<MemoryReservation>;

Held hold(const JobTools& tools, int64_t bytes, std::string_view purpose) {
  return std::make_shared<MemoryReservation>(tools.reserve(bytes, purpose));
}

class ReadProbe : public OnePieceJob {
 public:
  explicit ReadProbe(const ProbeRequest& request) : OnePieceJob(request.head), request_(request) {}

 private:
  WorkItem piece(HeadCache& head, const JobTools& tools) override {
    const Held buffers = hold(tools, head.reader->buffer_bytes(head.id), "an entry's chunk");
    return [request = request_, reader = head.reader, buffers](WorkerScratch*) -> Completion {
      const ProbedEntry entry = reader->probe(request.head, request.query, request.key);
      return [request, entry](HeadCache&, TileStore& store) {
        store.put(request, entry);
        return true;
      };
    };
  }

  const ProbeRequest request_;
};

class ReadLine : public OnePieceJob {
 public:
  explicit ReadLine(const LineRequest& request) : OnePieceJob(request.head), request_(request) {}

 private:
  WorkItem piece(HeadCache& head, const JobTools& tools) override {
    const int64_t entries = request_.reverse ? head.geometry.rows : head.geometry.cols;
    const Held memory = hold(tools, entries * 4, "a line of the map");
    // Its sums and counts, and one row of entries.
    const Held buffers =
        hold(tools, entries * 16 + head.reader->buffer_bytes(head.id), "the sums of a line");
    return [request = request_, sizes = head.geometry, reader = head.reader, memory,
            buffers](WorkerScratch*) -> Completion {
      const LinePtr line = read_line(request, sizes, *reader);
      return [line, memory](HeadCache&, TileStore& store) {
        store.put(line, std::move(*memory));
        return true;
      };
    };
  }

  const LineRequest request_;
};

class ReadTile : public OnePieceJob {
 public:
  explicit ReadTile(const TileId& id) : OnePieceJob(id.head), id_(id) {}

 private:
  WorkItem piece(HeadCache& head, const JobTools& tools) override {
    const Held memory = hold(tools, tile_bytes(id_, head.geometry), "a tile of the map");
    const Held buffers =
        hold(tools, kTileSide * kTileSide * kTexelBytes + head.reader->buffer_bytes(head.id),
             "the sums of a tile");
    return [id = id_, sizes = head.geometry, reader = head.reader, memory,
            buffers](WorkerScratch*) -> Completion {
      const TilePtr tile = read_tile(id, sizes, *reader);
      return [tile, memory](HeadCache&, TileStore& store) {
        store.put(tile, std::move(*memory));
        return true;
      };
    };
  }

  const TileId id_;
};

class ReadPass : public PassJob {
 public:
  ReadPass(const HeadId& id, Quantity quantity) : PassJob(id, MapNumbers{quantity}) {}

 private:
  /// Whole panels of the file.
  int64_t panel_rows(const HeadCache& head) const override {
    return round_up(head.reader->panel_rows(head.id), int64_t{1} << head.geometry.base_level);
  }

  Panel panel(HeadCache& head, IndexRange rows, const JobTools& tools) override {
    const MapGeometry sizes = head.geometry;
    const int64_t side = int64_t{1} << sizes.base_level;
    const int64_t texel_rows = ceil_div(rows.size(), side);
    const int64_t texel_cols = sizes.texel_cols(sizes.base_level);
    const Held buffers =
        hold(tools, texel_rows * texel_cols * kTexelBytes + head.reader->buffer_bytes(head.id),
             "the rows of an overview");
    return [id = head.id, rows, side, sizes, texel_rows, texel_cols, reader = head.reader, buffers](
               WorkerScratch*, PyramidTiles& tiles, PanelResult& result) {
      std::vector<TexelRow> texels = counting_rows(texel_rows, texel_cols);
      reader->add(id, rows, {0, sizes.cols}, side, texels);
      for (int64_t r = 0; r < texel_rows; ++r) {
        for (const TilePtr& tile :
             tiles.add(rows.begin / side + r, texels[static_cast<size_t>(r)])) {
          result.completed.push_back(marked(tile, sizes, *reader));
        }
      }
    };
  }
};

class ExportMaps : public MapWork {
 public:
  explicit ExportMaps(Reader reader) : reader_(std::move(reader)) {}

  MapGeometry geometry(const HeadId& id) const override {
    const MapSource& shown = source(id);
    return MapGeometry::of(shown.queries.tokens(), shown.keys.tokens());
  }
  bool has(const HeadId& id, Quantity quantity) const override {
    return quantity == Quantity::logits ? source(id).logits : source(id).weights;
  }
  void check(const Ask& ask) const override {
    const auto check_quantity = [this](const HeadId& id, Quantity quantity) {
      if (!has(id, quantity)) throw usage_error("the export does not hold these numbers");
    };
    const auto check_pair = [&](const HeadId& a, const HeadId& b, Quantity quantity) {
      check_quantity(a, quantity);
      check_quantity(b, quantity);
      if (source(a).block > 1 || source(b).block > 1) {
        throw usage_error("blocks of an export are not subtracted");
      }
    };
    if (const auto* tile = std::get_if<TileId>(&ask)) {
      check_quantity(tile->head, tile->quantity);
      if (tile->against) check_pair(tile->head, tile->against->other, tile->quantity);
    } else if (const auto* heads = std::get_if<HeadsCompared>(&ask)) {
      check_pair(heads->a, heads->b, Quantity::weights);
    } else if (const auto* line = std::get_if<LineRequest>(&ask)) {
      check_quantity(line->head, line->quantity);
      if (source(line->head).block > 1) {
        throw usage_error("the export holds blocks, no single rows");
      }
    }
  }

  std::shared_ptr<MapJob> probe_job(const ProbeRequest& request) const override {
    return std::make_shared<ReadProbe>(request);
  }
  std::shared_ptr<MapJob> line_job(const LineRequest& request, const HeadCache&) const override {
    return std::make_shared<ReadLine>(request);
  }
  std::shared_ptr<MapJob> tile_job(const TileId& id, const HeadCache&) const override {
    return std::make_shared<ReadTile>(id);
  }
  std::shared_ptr<MapJob> pass_job(const HeadId& id, Quantity quantity) const override {
    return std::make_shared<ReadPass>(id, quantity);
  }
  std::shared_ptr<const TexelReader> reader() const override { return reader_; }

 private:
  const MapSource& source(const HeadId& id) const {
    const std::vector<MapSource>& calls = reader_->calls();
    const bool known = id.call >= 0 && id.call < static_cast<int64_t>(calls.size());
    const MapSource* const found = known ? &calls[static_cast<size_t>(id.call)] : nullptr;
    if (found == nullptr || id.batch < 0 || id.batch >= static_cast<int64_t>(found->batch.size()) ||
        id.head < 0 || id.head >= static_cast<int64_t>(found->heads.size())) {
      throw usage_error("the export has no map of " + head_text(id));
    }
    return *found;
  }

  const Reader reader_;
};

}  // namespace

std::unique_ptr<MapWork> export_maps(std::shared_ptr<const TexelReader> reader) {
  return std::make_unique<ExportMaps>(std::move(reader));
}

}  // namespace attnscope

#include "viewer/remote/answer_checks.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/base/checked_math.h"
#include "core/problem/key_segments.h"
#include "core/reduce/head_fields.h"

namespace attnscope {
namespace {

int64_t count(const auto& list) { return std::ssize(list); }

void require(bool right) {
  if (!right) fail_wire("an answer of another size than what was asked for");
}

bool is_or_empty(const auto& list, int64_t size) { return list.empty() || count(list) == size; }

MapGeometry geometry_of(const MapSource& call) {
  return MapGeometry::of(call.queries.tokens(), call.keys.tokens());
}

struct Check {
  const MapSource& call;

  void operator()(const ProbeRequest& asked, const ProbedEntry& e) const {
    require(e.query == asked.query && e.key == asked.key && e.block > 0);
  }
  void operator()(const LineRequest& asked, const MapLine& line) const {
    const int64_t size = asked.reverse ? call.queries.tokens() : call.keys.tokens();
    require(count(line.values) == size && is_or_empty(line.masked, size));
  }
  void operator()(const TileId& id, const MapTile& tile) const {
    const MapGeometry geometry = geometry_of(call);
    require(id.level >= 0 && id.level <= geometry.top_level && id.row >= 0 && id.col >= 0 &&
            id.row < geometry.tile_rows(id.level) && id.col < geometry.tile_cols(id.level));
    const auto side = [](int64_t texels, int64_t place) {
      return std::min(kTileSide, texels - place * kTileSide);
    };
    require(tile.rows == side(geometry.texel_rows(id.level), id.row) &&
            tile.cols == side(geometry.texel_cols(id.level), id.col) && tile.rows_per_texel >= 0 &&
            count(tile.max) == tile.rows * tile.cols && count(tile.mean) == count(tile.max));
  }
  void operator()(const MaskRequest&, const HeadMask& mask) const {
    if (!mask.problem.empty()) return;
    const int64_t rows = call.queries.tokens(), cols = call.keys.tokens();
    require(mask.block == mask_block(rows, cols) &&
            mask.query_blocks == ceil_div(rows, mask.block) &&
            mask.key_blocks == ceil_div(cols, mask.block));
    const int64_t blocks = mask.query_blocks * mask.key_blocks;
    require(count(mask.kept) == blocks && is_or_empty(mask.mass, blocks));
  }
  void operator()(const HeadsCompared&, const RowDivergence& divergence) const {
    require(count(divergence.rows) == call.queries.tokens());
  }
  void operator()(const MassRequest& asked, const KeyMasses& masses) const {
    const IndexRange keys = asked.keys;
    require(keys.begin >= 0 && keys.begin < keys.end && keys.end <= call.keys.tokens() &&
            count(masses.masses) == keys.size());
  }
  void operator()(const FrameRequest& asked, const VideoFrame& frame) const {
    if (!frame.problem.empty()) return;
    require(frame.image.width == asked.width && frame.image.height == asked.height &&
            frame.width > 0 && frame.height > 0 &&
            count(frame.image.pixels) == int64_t{asked.width} * asked.height);
  }
  void operator()(const SketchRequest&, const HeadSketch& sketch) const {
    require(sketch.cells == SketchCells::of(call.queries.tokens(), call.keys.tokens()));
    require(count(sketch.max) == sketch.cells.count() && count(sketch.mean) == count(sketch.max) &&
            sketch.numbers.size() == head_fields().size());
  }
  void operator()(const TracksRequest&, const HeadTracks& tracks) const {
    const int64_t rows = call.queries.tokens(), cols = call.keys.tokens();
    for (const auto* list : {&tracks.entropy, &tracks.lse, &tracks.text_mass}) {
      require(is_or_empty(*list, rows));
    }
    require(is_or_empty(tracks.column_mass, cols));
    require(tracks.query_groups == count_groups(call.queries) &&
            tracks.key_groups == count_groups(call.keys) &&
            count(tracks.group_mass) == tracks.query_groups * tracks.key_groups);
    const TokenGrid& grid = call.keys;
    const bool offsets = grid.has_grid() && grid == call.queries;
    const auto by_offset = [&](const std::vector<double>& list, int64_t places) {
      require(list.empty() || (offsets && count(list) == 2 * places - 1));
    };
    require(tracks.by_dt.empty() == tracks.by_dy.empty() &&
            tracks.by_dt.empty() == tracks.by_dx.empty());
    by_offset(tracks.by_dt, grid.frames());
    by_offset(tracks.by_dy, grid.height());
    by_offset(tracks.by_dx, grid.width());
  }
  void operator()(const auto&, const auto&) const { require(false); }
};

int64_t bytes_of(const auto&... lists) {
  return (0 + ... + static_cast<int64_t>(lists.size() * sizeof(lists.front())));
}

struct Bytes {
  int64_t operator()(const ProbedEntry&) const { return 0; }
  int64_t operator()(const MapLine& line) const { return bytes_of(line.values, line.masked); }
  int64_t operator()(const MapTile& tile) const { return bytes_of(tile.max, tile.mean); }
  int64_t operator()(const HeadMask& mask) const { return bytes_of(mask.kept, mask.mass); }
  int64_t operator()(const RowDivergence& rows) const { return bytes_of(rows.rows); }
  int64_t operator()(const KeyMasses& masses) const { return bytes_of(masses.masses); }
  int64_t operator()(const VideoFrame& frame) const { return bytes_of(frame.image.pixels); }
  int64_t operator()(const HeadSketch& s) const { return bytes_of(s.max, s.mean, s.numbers); }
  int64_t operator()(const HeadTracks& t) const {
    return bytes_of(t.entropy, t.lse, t.text_mass, t.column_mass, t.group_mass);
  }
};

}  // namespace

void check_answer(const RemoteItem& item, const MapSource& call) {
  std::visit([&](const auto& asked, const auto& answer) { Check{call}(asked, *answer); }, item.ask,
             item.answer);
}

int64_t call_of_ask(const Ask& ask) {
  std::optional<int64_t> call;
  std::visit(
      [&](const auto& asked) {
        for_each_head(asked, [&](const HeadId& id) { call = call.value_or(id.call); });
      },
      ask);
  return call.value_or(0);
}

int64_t answer_bytes(const Answer& answer) {
  return std::visit([](const auto& value) { return Bytes{}(*value); }, answer);
}

}  // namespace attnscope

#include "viewer/app/viewer_app.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "io/files/staged_file.h"
#include "io/pictures/joined_parts.h"
#include "io/pictures/matrix_picture.h"
#include "viewer/app/picture_file.h"
#include "viewer/panels/scene.h"
#include "viewer/session/session_paths.h"
#include "viewer/view/comparison.h"
#include "viewer/view/value_range.h"
#include "viewer/view/wanted_tiles.h"

// The map that is seen as a page of its own, drawn of the tiles that the window has.

namespace attnscope {
namespace {

/// The texels of one level that a view shows some of.
struct ShownTexels {
  int64_t side = 1;  ///< entries along a texel
  IndexRange rows, cols;
};

ShownTexels shown_texels(const MapRect& rect, const MapGeometry& geometry, int level) {
  const auto side = int64_t{1} << level;
  const auto part = [&](double from, double to, int64_t texels) {
    const auto end = static_cast<double>(texels), size = static_cast<double>(side);
    return IndexRange{static_cast<int64_t>(std::clamp(std::floor(from / size), 0.0, end)),
                      static_cast<int64_t>(std::clamp(std::ceil(to / size), 0.0, end))};
  };
  return {side, part(rect.q0, rect.q1, geometry.texel_rows(level)),
          part(rect.k0, rect.k1, geometry.texel_cols(level))};
}

/// Sets the map's cells that a tile has, times `factor`; what nobody knows is missing. Masked
/// entries have no place on a scale: NaN.
void take_tile(const MapTile& tile, const ShownTexels& shown, double factor,
               MatrixContent& content) {
  const auto number = [&](float value) {
    if (std::isinf(value)) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(factor * double{value});
  };
  const int64_t row0 = tile.id.row * kTileSide, col0 = tile.id.col * kTileSide;
  const int64_t row_end = std::min(shown.rows.end, row0 + tile.rows);
  const int64_t col_end = std::min(shown.cols.end, col0 + tile.cols);
  for (int64_t r = std::max(shown.rows.begin, row0); r < row_end; ++r) {
    for (int64_t c = std::max(shown.cols.begin, col0); c < col_end; ++c) {
      const auto from = static_cast<size_t>((r - row0) * tile.cols + (c - col0));
      const auto to =
          static_cast<size_t>((r - shown.rows.begin) * shown.cols.size() + c - shown.cols.begin);
      content.map.max[to] = number(tile.max[from]);
      content.map.mean[to] = number(tile.mean[from]);
      content.missing[to] = std::isnan(tile.max[from]) ? 1 : 0;
    }
  }
}

/// Cells whose keys a cache had dropped are missing too; says how many there are.
void take_evicted(const MapSource& call, MatrixContent& content) {
  const std::vector<uint8_t> evicted =
      evicted_cells(call.evicted, content.rows, content.cols, content.map.block_rows);
  int64_t count = 0;
  for (size_t i = 0; i < evicted.size(); ++i) {
    count += evicted[i];
    content.missing[i] |= evicted[i];
  }
  if (count == 0) return;
  content.text.lines.push_back(
      fmt::format("hatched: {} of {} cells were evicted from the cache", count, evicted.size()));
}

/// "max of 16×16 entries", "single differences".
std::string cell_words(const ViewState& state, int64_t side) {
  const auto against = state.against();
  const std::string of = against ? "differences" : "entries";
  if (side == 1) return "single " + of;
  const bool by_size = against && state.pool == Pool::max && is_signed(against->how);
  return fmt::format("{0} of {1}×{1} {2}",
                     by_size ? "largest in size" : std::string(pool_name(state.pool)), side, of);
}

ColourChoice choice_of(const ColourScale& scale) {
  const ValueRange ends = scale.is_of_nothing() ? ValueRange{} : scale.range();
  return {scale.map(), scale.kind(), {false, ends.low, ends.high, false}};
}

/// The map that becomes a page: of which head, in which colours, in how many pixels.
struct SeenMap {
  const Document& document;
  const ViewState& state;
  ColourScale scale;
  PaneSize pane;
  std::string heads;
};

void describe_figure(const SeenMap& seen, const MapSource& call, MatrixContent& content) {
  const auto& [document, state, scale, pane, heads] = seen;
  const bool stored = state.order.is_stored();
  const auto against = state.against();
  content.query_tokens = stored ? call.queries : TokenGrid::unknown(call.queries.tokens());
  content.key_tokens = stored ? call.keys : TokenGrid::unknown(call.keys.tokens());
  content.pool = state.pool;
  content.colours = choice_of(scale);
  content.value_name =
      against ? difference_sign(against->how) : unit_name(state.product, call.score);
  content.domain = joined_parts({softmax_text(call), call.precision, call.about});
  content.text.title = one_line(document.name_of(state.head));
  const bool whole =
      content.rows.size() == call.queries.tokens() && content.cols.size() == call.keys.tokens();
  content.text.lines = {joined_parts(
      {heads,
       whole ? ""
             : fmt::format("queries {} to {}, keys {} to {}", content.rows.begin,
                           content.rows.end - 1, content.cols.begin, content.cols.end - 1),
       stored ? "" : order_text(state.order) + ": numbers count places"})};
  if (std::any_of(content.missing.begin(), content.missing.end(),
                  [](uint8_t m) { return m != 0; })) {
    content.text.lines.emplace_back("hatched: not in the export");
  }
  if (call.evicted.empty()) return;
  if (!stored) {
    throw usage_error(
        "figure: evicted keys have cells in the stored order alone (first order stored)");
  }
  take_evicted(call, content);
}

MatrixContent figure_content(const SeenMap& seen, const std::filesystem::path& file) {
  const auto& [document, state, scale, pane, heads] = seen;
  const MapSource& call = document.call_of(state.head);
  const MapGeometry geometry = document.tiles->geometry(state.head);
  const int level = view_level(state.rect, geometry, pane);
  const ShownTexels shown = shown_texels(state.rect, geometry, level);
  MatrixContent content;
  content.map.block_rows = content.map.block_cols = shown.side;
  content.map.rows = shown.rows.size();
  content.map.cols = shown.cols.size();
  content.rows = {shown.rows.begin * shown.side,
                  std::min(shown.rows.end * shown.side, geometry.rows)};
  content.cols = {shown.cols.begin * shown.side,
                  std::min(shown.cols.end * shown.side, geometry.cols)};
  content.map.first_row = content.rows.begin;
  content.map.first_col = content.cols.begin;
  const auto cells = static_cast<size_t>(content.map.rows * content.map.cols);
  content.map.max.resize(cells);
  content.map.mean.resize(cells);
  content.missing.resize(cells);
  const double factor = shown_factor(state, call.keys.tokens());
  for (const TileId& id : seen_tiles(state, geometry, level)) {
    const auto tile = find(*document.tiles, id);
    if (!tile || !tile->exact) {
      throw usage_error("figure: some of the map is not computed yet (wait exact)");
    }
    take_tile(*tile, shown, factor, content);
  }
  describe_figure(seen, call, content);
  content.cell_text = cell_words(state, std::max(shown.side, call.block));
  content.look = page_style(file, state.theme == ViewTheme::light);
  return content;
}

}  // namespace

void ViewerApp::save_figure(const std::filesystem::path& file) {
  const std::string what = "figure " + one_line(file.string()) + ": ";
  if (!is_page_name(file)) throw usage_error(what + "the name must end in .pdf, .svg or .png");
  if (!document_ || !frame_) throw usage_error(what + "no capture is open");
  const ViewState& state = frame_->shown();
  if (!is_map_seen()) throw usage_error(what + "another pane is seen alone (first pane all)");
  if (frame_->other_shown()) {
    throw usage_error(what + "two maps are seen side by side (first b split off)");
  }
  document_->require_unchanged();
  OutputFile::check_target(file, {.force = settings_.force, .inputs = guarded()});
  const MatrixContent content = figure_content(
      {*document_, state, colours()->scale, panels_.matrix().pane_size(), shown_heads(state)},
      file);
  write_picture(MatrixPicture(content).draw(), content.look, content.text.title, file,
                settings_.force);
  tell("page saved: " + told_path(file));
}

}  // namespace attnscope

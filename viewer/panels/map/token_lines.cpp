#include "viewer/panels/map/token_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace attnscope {
namespace {

/// Rows that are this high are marked at both sides.
constexpr float kReadable = 12;
constexpr float kChipPad = 4;

/// Neighbouring places as one, ascending.
std::vector<IndexRange> runs_of(const PlacedSide& side, std::span<const int64_t> tokens) {
  std::vector<int64_t> places;
  places.reserve(tokens.size());
  for (const int64_t token : tokens) places.push_back(side.place(token));
  std::sort(places.begin(), places.end());
  std::vector<IndexRange> runs;
  for (const int64_t place : places) {
    if (!runs.empty() && place <= runs.back().end) {
      runs.back().end = place + 1;
    } else {
      runs.push_back({place, place + 1});
    }
  }
  return runs;
}

struct PixelRun {
  float low, high;
};

/// The pixels of a run that are seen; nothing where none is.
std::optional<PixelRun> seen_span(const ViewTransform& view, IndexRange run, bool keys) {
  const auto begin = static_cast<double>(run.begin), end = static_cast<double>(run.end);
  const PixelRun span =
      keys ? PixelRun{view.x(begin), view.x(end)} : PixelRun{view.y(begin), view.y(end)};
  const float low = keys ? view.area.x0 : view.area.y0, high = keys ? view.area.x1 : view.area.y1;
  if (span.high <= low || span.low >= high) return std::nullopt;
  return span;
}

const PlacedSide& side_of(const Scene& scene, bool keys) {
  return keys ? *scene.placed.keys : *scene.placed.rows;
}

std::string picked_name(const Scene& scene) {
  const bool keys = scene.state.reverse;
  const TokenNames& side = keys ? scene.keys : scene.queries;
  const std::vector<int64_t>& tokens = scene.state.query->tokens;
  const char* const letter = keys ? "k" : "q";
  if (tokens.size() > 1) return fmt::format("{} mean of {}", letter, tokens.size());
  const auto at = side.grid->coord(tokens.front());
  if (at) return fmt::format("{} {},{},{}", letter, at->t, at->y, at->x);
  return fmt::format("{} {}", letter, token_text(side, tokens.front()));
}

}  // namespace

void mark_tokens(const Ui& ui, const Scene& scene, const ViewTransform& view,
                 std::span<const int64_t> tokens, bool keys, MarkStroke stroke) {
  std::vector<float> at;
  for (const IndexRange& run : runs_of(side_of(scene, keys), tokens)) {
    const std::optional<PixelRun> seen = seen_span(view, run, keys);
    if (!seen) continue;
    if (seen->high - seen->low < ui.px(kReadable)) {
      at.push_back((seen->low + seen->high) / 2);
    } else {
      at.insert(at.end(), {seen->low, seen->high});
    }
  }
  if (keys) {
    mark_columns(ui, view.area, at, ui.theme.key_mark, stroke);
  } else {
    mark_rows(ui, view.area, at, ui.theme.query_mark, stroke);
  }
}

void draw_picked(const Ui& ui, const Scene& scene, const ViewTransform& view) {
  if (!scene.state.query) return;
  mark_tokens(ui, scene, view, scene.state.query->tokens, scene.state.reverse, MarkStroke::solid);
}

std::optional<PickedChip> picked_chip(const Ui& ui, const Scene& scene, const ViewTransform& view,
                                      const RulerAreas& rulers) {
  if (!scene.state.query) return std::nullopt;
  const bool keys = scene.state.reverse;
  std::optional<PixelRun> seen;
  int64_t place = 0;
  for (const IndexRange& run : runs_of(side_of(scene, keys), scene.state.query->tokens)) {
    seen = seen_span(view, run, keys);
    place = run.begin;
    if (seen) break;
  }
  if (!seen) return std::nullopt;
  const ScreenRect& ruler = keys ? rulers.top : rulers.left;
  ImFont* const font = ui.fonts.secondary;
  const std::string name = picked_name(scene);
  const float high = font->FontSize + ui.px(4);
  // A long name goes over the map's left edge.
  const float width = std::min(std::ceil(text_size(font, name).x) + 2 * ui.px(kChipPad),
                               keys ? ruler.width() : view.area.x1 - ruler.x0);
  const float middle = (seen->low + seen->high) / 2;
  const float x = keys ? std::clamp(middle - width / 2, ruler.x0, ruler.x1 - width)
                       : std::max(ruler.x0, ruler.x1 - width);
  const float y =
      keys ? ruler.y1 - high
           : std::clamp(middle - high / 2, ruler.y0, std::max(ruler.y0, ruler.y1 - high));
  return PickedChip{name, {x, y, x + width, y + high}, keys, place};
}

void draw_chip(const Ui& ui, const PickedChip& chip) {
  const ScreenRect& r = chip.rect;
  ImGui::GetWindowDrawList()->AddRectFilled(
      {r.x0, r.y0}, {r.x1, r.y1}, chip.keys ? ui.theme.key_mark : ui.theme.query_mark, ui.px(3));
  const float pad = ui.px(kChipPad);
  put_fitting(ui, ui.fonts.secondary, r.x0 + pad, r.y0 + ui.px(2), r.width() - 2 * pad,
              ui.theme.mark_edge, chip.name);
}

}  // namespace attnscope

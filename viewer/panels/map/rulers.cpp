#include "viewer/panels/map/rulers.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "viewer/panels/widgets.h"

namespace attnscope {
namespace {

/// A ruler has two bands along the map: frames beyond, finer places next to the map.
struct Bands {
  float coarse0, coarse1, fine0, fine1;
};

Bands bands_of(const ScreenRect& rect, bool vertical) {
  const float low = vertical ? rect.x0 : rect.y0;
  const float high = vertical ? rect.x1 : rect.y1;
  const float middle = std::round((low + high) / 2);
  return {low, middle, middle, high};
}

void band_rect(ImDrawList& draw, const RulerAxis& axis, float from, float to, float a, float b,
               ImU32 colour) {
  if (axis.vertical) {
    draw.AddRectFilled({a, from}, {b, to}, colour);
  } else {
    draw.AddRectFilled({from, a}, {to, b}, colour);
  }
}

float height_of(const ImFont& font, const std::string& text) {
  return font.FontSize * static_cast<float>(1 + std::count(text.begin(), text.end(), '\n'));
}

/// Where a name begins along the ruler: in the middle of its stretch, or as near to that as the
/// label over the ruler leaves room; nothing where it leaves none, and then tells the place itself.
std::optional<float> name_begin(const RulerAxis& axis, float from, float to, float length,
                                const ScreenRect& across) {
  const float begin = (from + to - length) / 2;
  if (!axis.taken) return begin;
  const ScreenRect& t = *axis.taken;
  const float low = axis.vertical ? t.y0 : t.x0, high = axis.vertical ? t.y1 : t.x1;
  const bool beside = axis.vertical ? across.x1 <= t.x0 || across.x0 >= t.x1
                                    : across.y1 <= t.y0 || across.y0 >= t.y1;
  if (beside || begin + length <= low || begin >= high) return begin;
  const float before = low - length, after = high;
  const bool fits_before = before >= from, fits_after = after + length <= to;
  if (!fits_before && !fits_after) return std::nullopt;
  const bool is_nearer = begin - before <= after - begin;
  return fits_before && (is_nearer || !fits_after) ? before : after;
}

/// Text, perhaps of several lines, in the middle of a stretch of a band.
void band_text(const Ui& ui, const RulerAxis& axis, float from, float to, float a, float b,
               ImU32 colour, const std::string& text) {
  ImFont* const font = ui.fonts.secondary;
  const float across = (a + b) / 2;
  const float wide = text_size(font, text).x, high = height_of(*font, text);
  if (axis.vertical) {
    const ScreenRect rect{across - wide / 2, from, across + wide / 2, to};
    const auto y = name_begin(axis, from, to, high, rect);
    if (y) put_text(ui, font, across, *y, colour, text, Align::centre);
  } else {
    const ScreenRect rect{from, across - high / 2, to, across + high / 2};
    const auto x = name_begin(axis, from, to, wide, rect);
    if (x) put_text(ui, font, *x + wide / 2, rect.y0, colour, text, Align::centre);
  }
}

/// How many pixels along the ruler a label of this text takes.
float room_for(const Ui& ui, const RulerAxis& axis, const std::string& text) {
  return axis.vertical ? height_of(*ui.fonts.secondary, text) + ui.px(2)
                       : text_size(ui.fonts.secondary, text).x + ui.px(8);
}

/// 1, 2, 5, 10 … so that labels every so many steps of `pixels` have `room`.
int64_t stride_for(double pixels, double room) {
  for (int64_t decade = 1; decade < int64_t{1} << 40; decade *= 10) {
    for (int64_t factor : {1, 2, 5}) {
      if (static_cast<double>(decade * factor) * pixels >= room) return decade * factor;
    }
  }
  return int64_t{1} << 40;
}

/// Labels of blocks of `size` tokens from `begin` on, of which `count` there are, as far as they
/// are seen.
void label_blocks(const Ui& ui, const RulerAxis& axis, float a, float b, int64_t begin,
                  int64_t size, int64_t count, const std::function<std::string(int64_t)>& name) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const double pixels = axis.pixels_per_token() * static_cast<double>(size);
  const int64_t stride = stride_for(pixels, room_for(ui, axis, name(count - 1)));
  const auto place = [&](double token) {
    return static_cast<int64_t>(
        std::floor((token - static_cast<double>(begin)) / static_cast<double>(size)));
  };
  const int64_t first = std::clamp<int64_t>(place(axis.first), 0, count);
  const int64_t last = std::clamp<int64_t>(place(axis.last) + 1, 0, count);
  for (int64_t i = first / stride * stride; i < last; i += stride) {
    const double token = static_cast<double>(begin + i * size);
    const float from = std::max(axis.at(token), axis.low);
    const float to = std::min(axis.at(token + static_cast<double>(size)), axis.high);
    if (axis.at(token) > axis.low) {
      band_rect(draw, axis, std::round(axis.at(token)), std::round(axis.at(token)) + ui.px(1), a, b,
                ui.theme.border);
    }
    // Labels that stand for several blocks stand at their first one's line.
    const std::string text = name(i);
    const float room = room_for(ui, axis, text);
    if (stride == 1) {
      if (to - from >= room) band_text(ui, axis, from, to, a, b, ui.theme.secondary, text);
    } else if (axis.at(token) >= axis.low && from + room <= axis.high) {
      band_text(ui, axis, from, from + room, a, b, ui.theme.secondary, text);
    }
  }
}

/// A grid along a side: its axes from the slowest to the fastest.
struct NestedGrid {
  int64_t begin = 0;
  std::array<int64_t, 3> count{};
  std::string name;  ///< of the axes, a letter each
};

void draw_grid(const Ui& ui, const RulerAxis& axis, const Bands& bands, const NestedGrid& grid) {
  const int64_t outer = grid.count[0], middle = grid.count[1], inner = grid.count[2];
  const auto named = [&](size_t i, int64_t number) {
    return fmt::format("{}{}", grid.name[i], number);
  };
  const auto middle_name = [&](int64_t i) { return named(1, i % middle); };
  const double token = axis.pixels_per_token();
  const bool cells = token >= static_cast<double>(room_for(ui, axis, named(2, 0) + "0"));
  if (cells) {
    // A row may fill all that is seen: it is named beside its frame.
    label_blocks(ui, axis, bands.coarse0, bands.coarse1, grid.begin, inner, outer * middle,
                 [&](int64_t i) {
                   return named(0, i / middle) + (axis.vertical ? "\n" : " ") + middle_name(i);
                 });
    label_blocks(ui, axis, bands.fine0, bands.fine1, grid.begin, 1, outer * middle * inner,
                 [&](int64_t i) { return named(2, i % inner); });
    return;
  }
  label_blocks(ui, axis, bands.coarse0, bands.coarse1, grid.begin, middle * inner, outer,
               [&](int64_t i) { return named(0, i); });
  if (token * static_cast<double>(inner) >=
      static_cast<double>(room_for(ui, axis, named(1, 0) + "0"))) {
    label_blocks(ui, axis, bands.fine0, bands.fine1, grid.begin, inner, outer * middle,
                 middle_name);
  }
}

/// Of places whose neighbours are no neighbours in the grid: each by its own token.
void draw_places(const Ui& ui, const RulerAxis& axis, const Bands& bands, IndexRange places) {
  label_blocks(
      ui, axis, bands.coarse0, bands.fine1, places.begin, 1, places.size(), [&](int64_t i) {
        const int64_t token = axis.side.token(places.begin + i);
        const auto at = axis.tokens.grid->any_coord(token);
        if (!at) return std::to_string(token);
        return fmt::format("t{}{}y{} x{}", at->t, axis.vertical ? '\n' : ' ', at->y, at->x);
      });
}

void draw_video(const Ui& ui, const RulerAxis& axis, const Bands& bands) {
  const TokenGrid& grid = *axis.tokens.grid;
  const IndexRange video = grid.video_range();
  const TokenOrder& order = axis.side.order;
  if (!grid.has_grid() && axis.side.is_stored()) {
    label_blocks(ui, axis, bands.fine0, bands.fine1, video.begin, 1, video.size(),
                 [&](int64_t i) { return std::to_string(video.begin + i); });
  } else if (axis.side.is_stored()) {
    draw_grid(ui, axis, bands, {video.begin, {grid.frames(), grid.height(), grid.width()}, "tyx"});
  } else if (order.kind == TokenOrder::Kind::axes) {
    for (const OrderedGrid& part : ordered_grids(grid)) {
      NestedGrid nested{part.tokens.begin, {}, ""};
      for (size_t i = 0; i < 3; ++i) {
        const auto a = static_cast<size_t>(order.axes[i]);
        nested.count[i] = part.grid[a];
        nested.name += "tyx"[a];
      }
      // Only the main grid's frames and rows have names on the ruler; others are named as wholes.
      if (part.tokens.begin == video.begin) draw_grid(ui, axis, bands, nested);
    }
  } else {
    draw_places(ui, axis, bands, video);
  }
}

/// The text, or a named part of a token map.
void draw_named_band(const Ui& ui, const RulerAxis& axis, const Bands& bands, IndexRange text,
                     const std::string& name) {
  if (text.empty()) return;
  const float from = std::max(axis.at(static_cast<double>(text.begin)), axis.low);
  const float to = std::min(axis.at(static_cast<double>(text.end)), axis.high);
  if (to <= from) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  band_rect(draw, axis, from, to, bands.coarse0, bands.fine1, ui.theme.hovered);
  const bool numbered = axis.pixels_per_token() >= static_cast<double>(room_for(ui, axis, "000"));
  float end = bands.coarse1;
  // Long names beside the rows may take the other band too, or are cut.
  ImFont* const font = ui.fonts.secondary;
  if (axis.vertical && text_size(font, name).x > end - bands.coarse0 - ui.px(4)) {
    if (!numbered) end = bands.fine1;
  }
  if (to - from >= room_for(ui, axis, name)) {
    if (axis.vertical) {
      const ScreenRect across{bands.coarse0, from, end, to};
      const auto y = name_begin(axis, from, to, font->FontSize, across);
      if (y) {
        put_fitting(ui, font, (bands.coarse0 + end) / 2, *y, end - bands.coarse0 - ui.px(6),
                    ui.theme.text, name, Align::centre);
      }
    } else {
      band_text(ui, axis, from, to, bands.coarse0, end, ui.theme.text, name);
    }
  }
  if (numbered) {
    label_blocks(ui, axis, bands.fine0, bands.fine1, text.begin, 1, text.size(),
                 [](int64_t i) { return std::to_string(i); });
  }
}

void draw_mark(const Ui& ui, const RulerAxis& axis, const Bands& bands, int64_t token,
               ImU32 colour) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float from = std::clamp(axis.at(static_cast<double>(token)), axis.low, axis.high);
  const float to = std::clamp(axis.at(static_cast<double>(token + 1)), axis.low, axis.high);
  band_rect(draw, axis, from, std::max(to, from + ui.px(2)), bands.fine1 - ui.px(4), bands.fine1,
            colour);
}

}  // namespace

RulerAxis key_axis(const Scene& scene, const ViewTransform& v) {
  return {scene.keys, *scene.placed.keys, v.area.x0, v.area.x1,
          v.rect.k0,  v.rect.k1,          false,     scene.state.equal_axes};
}

RulerAxis query_axis(const Scene& scene, const ViewTransform& v) {
  return {scene.queries, *scene.placed.rows, v.area.y0, v.area.y1,
          v.rect.q0,     v.rect.q1,          true,      scene.state.equal_axes};
}

void draw_ruler(const Ui& ui, const ScreenRect& rect, const RulerAxis& axis,
                std::optional<int64_t> mark, ImU32 mark_colour) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.PushClipRect({rect.x0, rect.y0}, {rect.x1, rect.y1}, true);
  const Bands bands = bands_of(rect, axis.vertical);
  if (!axis.side.keeps_parts) {
    draw_places(ui, axis, bands, {0, axis.tokens.grid->tokens()});
    if (mark) draw_mark(ui, axis, bands, axis.side.place(*mark), mark_colour);
    draw.PopClipRect();
    return;
  }
  draw_named_band(ui, axis, bands, axis.tokens.grid->text_range(), "text");
  for (const TokenSegment& segment : axis.tokens.grid->other_segments()) {
    draw_named_band(ui, axis, bands, segment.tokens, segment.name);
  }
  if (!axis.tokens.grid->video_range().empty()) draw_video(ui, axis, bands);
  if (mark) draw_mark(ui, axis, bands, axis.side.place(*mark), mark_colour);
  draw.PopClipRect();
}

void draw_frame_lines(const Ui& ui, const ScreenRect& map, const RulerAxis& axis) {
  const TokenGrid& grid = *axis.tokens.grid;
  const IndexRange video = grid.video_range();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto line = [&](int64_t token) {
    const float at = std::round(axis.at(static_cast<double>(token)));
    if (at <= axis.low || at >= axis.high) return;
    const float thick = ui.px(1);
    if (axis.vertical) {
      draw.AddRectFilled({map.x0, at}, {map.x1, at + thick}, ui.theme.grid);
      draw.AddRectFilled({map.x0, at + thick}, {map.x1, at + 2 * thick}, ui.theme.grid_shadow);
    } else {
      draw.AddRectFilled({at, map.y0}, {at + thick, map.y1}, ui.theme.grid);
      draw.AddRectFilled({at + thick, map.y0}, {at + 2 * thick, map.y1}, ui.theme.grid_shadow);
    }
  };
  if (!axis.side.keeps_parts) return;
  for (const TokenSegment& segment : grid.other_segments()) {
    line(segment.tokens.begin);
    line(segment.tokens.end);
  }
  if (!grid.text_range().empty() && !video.empty()) {
    line(grid.text_range().begin);
    line(grid.text_range().end);
  }
  if (!axis.side.is_stored()) {
    const std::vector<int64_t>& blocks = axis.side.blocks;
    if (blocks.size() < 2) return;
    const double mean = static_cast<double>(blocks.back() - blocks.front()) /
                        static_cast<double>(blocks.size() - 1);
    if (axis.pixels_per_token() * mean < static_cast<double>(ui.px(16))) return;
    for (const int64_t place : blocks) line(place);
    return;
  }
  if (!grid.has_grid()) return;
  const int64_t frame = grid.height() * grid.width();
  // Lines that are closer than this would hide what they divide.
  if (axis.pixels_per_token() * static_cast<double>(frame) < static_cast<double>(ui.px(16))) return;
  for (int64_t t = 1; t < grid.frames(); ++t) line(video.begin + t * frame);
}

}  // namespace attnscope

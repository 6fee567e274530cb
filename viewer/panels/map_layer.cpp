#include "viewer/panels/map_layer.h"

#include <imgui.h>

#include <algorithm>

#include "viewer/textures/tile_textures.h"
#include "viewer/view/wanted_tiles.h"

namespace attnscope {

gl::MapColours painter_colours(const ViewState& state, const ColourScale& scale, double factor,
                               const Theme& theme) {
  gl::MapColours colours;
  const std::optional<Against> against = state.against();
  colours.texels_are_log2 = state.product != ViewProduct::logits && !against;
  colours.use_mean = state.pool == Pool::mean;
  colours.by_size = against && is_signed(against->how);
  if (against) {
    factor /=
        static_cast<double>(difference_texel_factor(product_quantity(state.product), against->how));
  }
  colours.scale = shader_scale(scale, factor);
  const auto parts = [](ImU32 colour) -> gl::MapColours::Colour {
    const ImVec4 of = to_vec4(colour);
    return {of.x, of.y, of.z};
  };
  colours.nothing = parts(theme.nothing);
  colours.hatch = parts(theme.hatch);
  colours.masked = parts(theme.masked);
  colours.masked_dot = parts(theme.masked_dot);
  return colours;
}

void MapLayer::add_tiles(const gl::TexturePool& pool, const gl::MapColours& colours, Colormap map,
                         const ScreenRect& clip) {
  pool_ = &pool;
  grid_ = nullptr;
  colours_ = colours;
  map_ = map;
  add(clip);
}

void MapLayer::add_grid(const gl::GridTexture& grid, const gl::MapColours& colours, Colormap map,
                        const ScreenRect& clip) {
  pool_ = nullptr;
  grid_ = &grid;
  colours_ = colours;
  map_ = map;
  add(clip);
}

void MapLayer::add(const ScreenRect& clip) {
  if (quads.empty()) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.PushClipRect({clip.x0, clip.y0}, {clip.x1, clip.y1}, true);
  draw.AddCallback(&MapLayer::paint, this);
  draw.AddCallback(ImDrawCallback_ResetRenderState, nullptr);
  draw.PopClipRect();
}

void MapLayer::paint(const ImDrawList*, const ImDrawCmd* command) {
  MapLayer& layer = *static_cast<MapLayer*>(command->UserCallbackData);
  // ImGui's units are pixels or, on some systems, larger than those.
  const ImVec2 display = ImGui::GetIO().DisplaySize;
  const ImVec2 unit = ImGui::GetIO().DisplayFramebufferScale;
  const ImVec4& clip = command->ClipRect;
  const int width = static_cast<int>(display.x * unit.x);
  const int height = static_cast<int>(display.y * unit.y);
  const auto within = [](float at, int most) {
    return std::clamp(static_cast<int>(at), 0, std::max(0, most));
  };
  const gl::PaintArea area{width,
                           height,
                           within(clip.x * unit.x, width),
                           within(clip.y * unit.y, height),
                           within(clip.z * unit.x, width),
                           within(clip.w * unit.y, height)};
  if (area.clip_x1 <= area.clip_x0 || area.clip_y1 <= area.clip_y0) return;
  std::vector<gl::MapQuad> quads = layer.quads;
  for (gl::MapQuad& q : quads) {
    q.x0 *= unit.x;
    q.x1 *= unit.x;
    q.y0 *= unit.y;
    q.y1 *= unit.y;
  }
  layer.paint(area, std::move(quads));
}

void MapLayer::paint(const gl::PaintArea& area, std::vector<gl::MapQuad> in_pixels) {
  Drawn now{pool_ != nullptr ? static_cast<const void*>(pool_) : grid_,
            pool_ != nullptr ? pool_->uploads() : grid_->uploads(),
            std::move(in_pixels),
            colours_,
            map_,
            area};
  if (now == drawn_) {
    painter_->draw_kept(kept_, now.quads, area);
    return;
  }
  painter_->set_colormap(map_);
  if (pool_ != nullptr) {
    painter_->draw_tiles(*pool_, now.quads, colours_, area);
  } else {
    painter_->draw_grid(*grid_, now.quads, colours_, area);
  }
  // Three frames follow an event: the second and the third would find the same colours again.
  kept_.take(area.clip_x0, area.height - area.clip_y1, area.clip_x1 - area.clip_x0,
             area.clip_y1 - area.clip_y0);
  drawn_ = std::move(now);
}

}  // namespace attnscope

#include "viewer/gl/map_painter.h"

#include <algorithm>
#include <cmath>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {
namespace {

GLuint new_buffer() {
  GLuint name = 0;
  glGenBuffers(1, &name);
  return name;
}

constexpr int kFloatsPerVertex = 9;

/// True where a pixel of it can have more than one texel under it. The limit is a little below the
/// shader's (half a texel), whatever a driver rounds.
bool has_many_texels(const MapQuad& q) {
  constexpr float kMostOfOne = 0.49f;
  return std::abs(q.u1 - q.u0) > kMostOfOne * std::abs(q.x1 - q.x0) ||
         std::abs(q.v1 - q.v0) > kMostOfOne * std::abs(q.y1 - q.y0);
}

MapVariant variant_of(const MapColours& c, bool grid, bool many) {
  // Of grids, which have one number each, the mean is that.
  return {grid, c.scale.kind, c.texels_are_log2, c.use_mean && !grid, c.by_size, many};
}

}  // namespace

MapPainter::MapPainter()
    : vertices_(new_vertex_array()), buffer_(new_buffer()), table_(new_texture()) {
  glBindVertexArray(vertices_.get());
  glBindBuffer(GL_ARRAY_BUFFER, buffer_.get());
  constexpr GLsizei kStride = kFloatsPerVertex * sizeof(float);
  glEnableVertexAttribArray(0);
  glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, kStride, nullptr);
  glEnableVertexAttribArray(1);
  glVertexAttribPointer(1, 3, GL_FLOAT, GL_FALSE, kStride,
                        reinterpret_cast<const void*>(2 * sizeof(float)));
  glEnableVertexAttribArray(2);
  glVertexAttribPointer(2, 4, GL_FLOAT, GL_FALSE, kStride,
                        reinterpret_cast<const void*>(5 * sizeof(float)));
  glBindVertexArray(0);
  set_colormap(Colormap::viridis);
}

void MapPainter::set_colormap(Colormap map) {
  if (have_table_ && map == colormap_) return;
  // Four bytes a colour, which is what drivers keep them in.
  std::vector<uint8_t> colours;
  for (int i = 0; i < kMapColours; ++i) {
    const Rgb colour = colormap_at(map, static_cast<double>(i) / (kMapColours - 1));
    colours.insert(colours.end(), {colour.r, colour.g, colour.b, 255});
  }
  glBindTexture(GL_TEXTURE_2D, table_.get());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, kMapColours, 1, 0, GL_RGBA, GL_UNSIGNED_BYTE,
               colours.data());
  check("colour table");
  colormap_ = map;
  have_table_ = true;
}

const ShaderProgram& MapPainter::program_of(const MapVariant& variant) {
  const auto made = programs_.find(variant);
  if (made != programs_.end()) return made->second;
  return programs_
      .try_emplace(variant, variant.grid ? "grid" : "tiles", map_vertex_shader(),
                   map_fragment_shader(variant))
      .first->second;
}

void MapPainter::prepare(const MapVariant& variant, const MapColours& c, const PaintArea& area) {
  const ShaderProgram& program = program_of(variant);
  program.use();
  glUniform1i(program.uniform(variant.grid ? "grid" : "tiles"), 0);
  set_area(program, area);
  glUniform1f(program.uniform("factor"), c.scale.factor);
  glUniform1f(program.uniform("low"), c.scale.low);
  glUniform1f(program.uniform("high"), c.scale.high);
  glUniform1f(program.uniform("linear"), c.scale.linear);
  const auto set = [&program](const char* name, const MapColours::Colour& colour) {
    glUniform3f(program.uniform(name), colour[0], colour[1], colour[2]);
  };
  set("nothing", c.nothing);
  set("hatch", c.hatch);
  set("masked", c.masked);
  set("masked_dot", c.masked_dot);
  glUniform1i(program.uniform("table"), 1);
  glActiveTexture(GL_TEXTURE1);
  glBindTexture(GL_TEXTURE_2D, table_.get());
  glActiveTexture(GL_TEXTURE0);
}

/// With the program in use.
void MapPainter::set_area(const ShaderProgram& program, const PaintArea& area) {
  glUniform2f(program.uniform("area"), static_cast<float>(area.width),
              static_cast<float>(area.height));
  glDisable(GL_BLEND);
  glDisable(GL_CULL_FACE);
  glDisable(GL_DEPTH_TEST);
  glEnable(GL_SCISSOR_TEST);
  glViewport(0, 0, area.width, area.height);
  glScissor(area.clip_x0, area.height - area.clip_y1, std::max(0, area.clip_x1 - area.clip_x0),
            std::max(0, area.clip_y1 - area.clip_y0));
}

void MapPainter::draw(std::span<const MapQuad> quads) {
  scratch_.clear();
  for (const MapQuad& q : quads) {
    const float layer = static_cast<float>(q.slot.layer);
    const auto corner = [&](float x, float y, float u, float v) {
      scratch_.insert(scratch_.end(), {x, y, u, v, layer, q.u0, q.v0, q.u1, q.v1});
    };
    corner(q.x0, q.y0, q.u0, q.v0);
    corner(q.x1, q.y0, q.u1, q.v0);
    corner(q.x0, q.y1, q.u0, q.v1);
    corner(q.x0, q.y1, q.u0, q.v1);
    corner(q.x1, q.y0, q.u1, q.v0);
    corner(q.x1, q.y1, q.u1, q.v1);
  }
  glBindVertexArray(vertices_.get());
  glBindBuffer(GL_ARRAY_BUFFER, buffer_.get());
  glBufferData(GL_ARRAY_BUFFER, static_cast<GLsizeiptr>(scratch_.size() * sizeof(float)),
               scratch_.data(), GL_STREAM_DRAW);
  glDrawArrays(GL_TRIANGLES, 0, static_cast<GLsizei>(scratch_.size() / kFloatsPerVertex));
}

void MapPainter::draw_tiles(const TexturePool& pool, std::span<const MapQuad> quads,
                            const MapColours& colours, const PaintArea& area) {
  std::optional<MapVariant> now;
  // Quads are painted in order (a finer tile over its stand-in), so only neighbours of the same
  // page share a draw call.
  for (size_t first = 0; first < quads.size();) {
    size_t last = first;
    const bool many = has_many_texels(quads[first]);
    while (last < quads.size() && quads[last].slot.page == quads[first].slot.page &&
           has_many_texels(quads[last]) == many) {
      ++last;
    }
    const MapVariant variant = variant_of(colours, false, many);
    if (now != variant) prepare(variant, colours, area);
    now = variant;
    pool.bind(quads[first].slot.page);
    draw(quads.subspan(first, last - first));
    first = last;
  }
  check("drawing tiles");
}

void MapPainter::draw_grid(const GridTexture& grid, std::span<const MapQuad> quads,
                           const MapColours& colours, const PaintArea& area) {
  const bool many = std::any_of(quads.begin(), quads.end(), has_many_texels);
  prepare(variant_of(colours, true, many), colours, area);
  grid.bind();
  draw(quads);
  check("drawing a line");
}

void MapPainter::draw_kept(const KeptDrawing& kept, std::span<const MapQuad> quads,
                           const PaintArea& area) {
  if (!kept_program_) kept_program_.emplace("kept", map_vertex_shader(), kept_fragment_shader());
  const ShaderProgram& program = *kept_program_;
  program.use();
  glUniform1i(program.uniform("kept"), 0);
  glUniform2i(program.uniform("origin"), kept.x(), kept.y());
  set_area(program, area);
  glActiveTexture(GL_TEXTURE0);
  kept.bind();
  draw(quads);
  check("drawing what was kept");
}

}  // namespace attnscope::gl

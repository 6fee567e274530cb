#include "viewer/gl/map_painter.h"

#include <algorithm>
#include <string>

#include "viewer/gl/gl_name.h"

namespace attnscope::gl {
namespace {

const char* const kVertexShader = R"(#version 330 core
layout(location = 0) in vec2 place;
layout(location = 1) in vec3 texel;
layout(location = 2) in vec4 texels;
uniform vec2 area;
out vec3 at;
flat out vec2 low_texel;
flat out vec2 high_texel;
void main() {
  at = texel;
  low_texel = texels.xy;
  high_texel = texels.zw;
  gl_Position = vec4(place.x / area.x * 2.0 - 1.0, 1.0 - place.y / area.y * 2.0, 0.0, 1.0);
}
)";

// Both programs share what a number means. A number that the scale cannot show (weight 0 on a log
// scale) has a colour of its own, −inf means masked and is dotted, +inf means that there is none
// and is hatched; values beyond the range take the range's ends.
const char* const kColours = R"(
uniform sampler2D table;
uniform bool texels_are_log2;
uniform int scale;
uniform float factor;
uniform float low;
uniform float high;
uniform float linear;
uniform vec3 nothing;
uniform vec3 hatch;
uniform vec3 masked;
uniform vec3 masked_dot;
out vec4 colour;

// The number of an entry that an export does not hold.
bool is_missing(float number) { return isinf(number) && number > 0.0; }

bool is_masked(float number) { return isinf(number) && number < 0.0; }

void paint_masked() {
  vec2 place = mod(floor(gl_FragCoord.xy), 6.0);
  bool dot_here = place.x == 3.0 && place.y == 3.0;
  colour = vec4(dot_here ? masked_dot : masked, 1.0);
}

void paint_missing() {
  bool stripe = mod(gl_FragCoord.x + gl_FragCoord.y, 8.0) < 2.0;
  colour = vec4(stripe ? hatch : nothing, 1.0);
}

void paint(float number) {
  if (is_missing(number)) {
    paint_missing();
    return;
  }
  if (is_masked(number)) {
    paint_masked();
    return;
  }
  bool absent = isnan(number);
  float bent;
  if (scale == kLog2 && texels_are_log2) {
    absent = absent || number <= kZero;
    bent = number + log2(factor);
  } else {
    float v = texels_are_log2 ? exp2(number) * factor : number * factor;
    if (scale == kLog2) {
      absent = absent || v <= 0.0;
      bent = absent ? 0.0 : log2(v);
    } else if (scale == kLinear) {
      bent = v;
    } else if (scale == kSqrt) {
      absent = absent || v < 0.0;
      bent = sqrt(max(v, 0.0));
    } else {
      bent = sign(v) * log2(1.0 + abs(v) / linear);
    }
  }
  if (absent) {
    colour = vec4(nothing, 1.0);
    return;
  }
  float place = clamp((bent - low) / (high - low), 0.0, 1.0);
  colour = vec4(texture(table, vec2((place * 255.0 + 0.5) / 256.0, 0.5)).rgb, 1.0);
}
)";

// Where texels are smaller than pixels, a pixel shows all of those under it: their largest, so that
// no peak falls between pixels, or their mean, in which masked weights count as 0 and masked logits
// do not.
const char* const kTileShader = R"(
uniform sampler2DArray tiles;
uniform bool use_mean;
uniform bool by_size;
in vec3 at;
flat in vec2 low_texel;
flat in vec2 high_texel;
void main() {
  vec2 width = clamp(vec2(abs(dFdx(at.x)), abs(dFdy(at.y))), 0.0, 8.0);
  ivec2 first = ivec2(floor(max(at.xy - 0.5 * width, low_texel)));
  ivec2 last = ivec2(ceil(min(at.xy + 0.5 * width, high_texel))) - 1;
  if (width.x <= 0.5) first.x = last.x = int(at.x);
  if (width.y <= 0.5) first.y = last.y = int(at.y);
  first = clamp(first, ivec2(0), ivec2(255));
  last = clamp(last, first, ivec2(255));
  int layer = int(at.z + 0.5);
  float peak = texelFetch(tiles, ivec3(first, layer), 0).r;
  float sum = 0.0;
  float there = 0.0;
  float left_out = 0.0;
  for (int y = first.y; y <= last.y; ++y) {
    for (int x = first.x; x <= last.x; ++x) {
      vec2 pair = texelFetch(tiles, ivec3(x, y, layer), 0).rg;
      if (is_missing(pair.r)) continue;
      if (is_masked(pair.r)) {
        left_out += 1.0;
        continue;
      }
      bool larger = by_size ? abs(pair.r) > abs(peak) : pair.r > peak;
      peak = there == 0.0 || larger ? pair.r : peak;
      sum += texels_are_log2 ? exp2(pair.g) : pair.g;
      there += 1.0;
    }
  }
  if (there + left_out == 0.0) {
    paint_missing();
  } else if (there == 0.0) {
    paint_masked();
  } else if (!use_mean) {
    paint(peak);
  } else if (texels_are_log2) {
    float mean = sum / (there + left_out);
    paint(mean > 0.0 ? log2(mean) : kZero);
  } else {
    paint(sum / there);
  }
}
)";

const char* const kGridShader = R"(
uniform sampler2D grid;
uniform bool by_size;
in vec3 at;
flat in vec2 low_texel;
flat in vec2 high_texel;
void main() {
  vec2 width = clamp(vec2(abs(dFdx(at.x)), abs(dFdy(at.y))), 0.0, 8.0);
  ivec2 first = ivec2(floor(max(at.xy - 0.5 * width, low_texel)));
  ivec2 last = ivec2(ceil(min(at.xy + 0.5 * width, high_texel))) - 1;
  if (width.x <= 0.5) first.x = last.x = int(at.x);
  if (width.y <= 0.5) first.y = last.y = int(at.y);
  last = max(first, last);
  float number = texelFetch(grid, first, 0).r;
  for (int y = first.y; y <= last.y; ++y) {
    for (int x = first.x; x <= last.x; ++x) {
      float other = texelFetch(grid, ivec2(x, y), 0).r;
      if (is_missing(other)) continue;
      bool larger = by_size && !is_masked(other) && !is_masked(number)
                        ? abs(other) > abs(number) : other > number;
      number = is_missing(number) || larger ? other : number;
    }
  }
  paint(number);
}
)";

/// The version, and the numbers of the scales.
std::string fragment_head() {
  std::string head = "#version 330 core\n";
  const auto define = [&](const char* name, ScaleKind scale) {
    head +=
        "const int " + std::string(name) + " = " + std::to_string(static_cast<int>(scale)) + ";\n";
  };
  define("kLog2", ScaleKind::log2);
  define("kLinear", ScaleKind::linear);
  define("kSqrt", ScaleKind::sqrt);
  head += "const float kZero = " + std::to_string(kZeroTexel) + ";\n";
  return head;
}

GLuint new_buffer() {
  GLuint name = 0;
  glGenBuffers(1, &name);
  return name;
}

GLuint new_vertex_array() {
  GLuint name = 0;
  glGenVertexArrays(1, &name);
  return name;
}

constexpr int kFloatsPerVertex = 9;

}  // namespace

MapPainter::MapPainter()
    : tiles_("tiles", kVertexShader, fragment_head() + kColours + kTileShader),
      grid_("grid", kVertexShader, fragment_head() + kColours + kGridShader),
      vertices_(new_vertex_array()),
      buffer_(new_buffer()),
      table_(new_texture()) {
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
  std::array<Rgb, 256> colours{};
  for (size_t i = 0; i < colours.size(); ++i) {
    colours[i] = colormap_at(map, static_cast<double>(i) / 255.0);
  }
  glBindTexture(GL_TEXTURE_2D, table_.get());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, 256, 1, 0, GL_RGB, GL_UNSIGNED_BYTE, colours.data());
  check("colour table");
  colormap_ = map;
  have_table_ = true;
}

void MapPainter::prepare(const ShaderProgram& program, const MapColours& c, const PaintArea& area) {
  program.use();
  glUniform2f(program.uniform("area"), static_cast<float>(area.width),
              static_cast<float>(area.height));
  glUniform1i(program.uniform("texels_are_log2"), c.texels_are_log2 ? 1 : 0);
  glUniform1i(program.uniform("use_mean"), c.use_mean ? 1 : 0);
  glUniform1i(program.uniform("by_size"), c.by_size ? 1 : 0);
  glUniform1i(program.uniform("scale"), static_cast<int>(c.scale.kind));
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
  prepare(tiles_, colours, area);
  glUniform1i(tiles_.uniform("tiles"), 0);
  // Quads are painted in order (a finer tile over its stand-in), so only neighbours of the same
  // page share a draw call.
  for (size_t first = 0; first < quads.size();) {
    size_t last = first;
    while (last < quads.size() && quads[last].slot.page == quads[first].slot.page) ++last;
    pool.bind(quads[first].slot.page);
    draw(quads.subspan(first, last - first));
    first = last;
  }
  check("drawing tiles");
}

void MapPainter::draw_grid(const GridTexture& grid, std::span<const MapQuad> quads,
                           const MapColours& colours, const PaintArea& area) {
  prepare(grid_, colours, area);
  glUniform1i(grid_.uniform("grid"), 0);
  grid.bind();
  draw(quads);
  check("drawing a line");
}

}  // namespace attnscope::gl

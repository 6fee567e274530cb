#include "viewer/gl/volume_painter.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace attnscope::gl {
namespace {

const char* const kVertexShader = R"(
void main() {
  vec2 corner = vec2(float((gl_VertexID << 1) & 2), float(gl_VertexID & 2));
  gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}
)";

// A ray goes from the side where it enters a cell to the one where it leaves it, so it takes as
// many steps as it meets cells; or over a whole block whose largest number changes nothing. Numbers
// are bytes: the place on the colours, as fine as the colour table.
const char* const kFragmentShader = R"(
uniform usampler3D cells;
uniform usampler3D blocks;
uniform sampler2D table;
uniform vec3 size;
uniform vec3 start;
uniform vec3 across;
uniform vec3 down;
uniform vec3 way;
uniform float rows;
uniform uint least;
uniform uint peak;
uniform bool emission;
uniform int slice_axis;
uniform float slice_at;
uniform bool has_picture;
uniform sampler2D picture;
out vec4 colour;

const float kNudge = 1e-3;
const uint kFirst = 4u;
const uint kMasked = 1u;
const uint kMissing = 2u;
const uint kEvicted = 3u;

vec3 colour_of(uint number) { return texelFetch(table, ivec2(int(number), 0), 0).rgb; }

// As the film has them: masked cells are dotted, missing and evicted ones hatched.
vec3 plane_colour(uint number) {
  if (number == kMasked) {
    vec2 place = mod(floor(gl_FragCoord.xy), 6.0);
    return texelFetch(table, ivec2(place == vec2(3.0) ? 256 : 1, 0), 0).rgb;
  }
  bool hatched = number == kMissing || number == kEvicted;
  if (hatched && mod(gl_FragCoord.x + gl_FragCoord.y, 8.0) >= 2.0) {
    return colour_of(number == kEvicted ? kMasked : 0u);
  }
  return colour_of(number);
}

void main() {
  vec3 from = start + across * gl_FragCoord.x + down * (rows - gl_FragCoord.y);
  vec3 inverse = 1.0 / way;
  vec3 a = -from * inverse;
  vec3 b = (size - from) * inverse;
  vec3 low = min(a, b);
  vec3 high = max(a, b);
  float s = max(max(low.x, low.y), max(low.z, 0.0));
  float end = min(min(high.x, high.y), high.z);
  colour = vec4(0.0);
  if (s >= end) return;
  ivec3 last = ivec3(size) - 1;
  if (slice_axis >= 0) {
    float cut = (slice_at + 0.5 - from[slice_axis]) * inverse[slice_axis];
    if (cut >= end) return;
    if (cut >= s) {
      ivec3 cell = clamp(ivec3(floor(from + way * cut)), ivec3(0), last);
      cell[slice_axis] = int(slice_at);
      uint number = texelFetch(cells, cell, 0).r;
      colour = vec4(plane_colour(number), 1.0);
      // A picture of the video is none of a token that was not there.
      if (has_picture && number != kEvicted) {
        vec3 place = from + way * cut;
        colour.rgb = textureLod(picture, place.xy / size.xy, 0.0).rgb;
      }
      return;
    }
  }
  ivec3 side = ivec3(greaterThan(way, vec3(0.0)));
  uint best = least - 1u;
  vec3 sum = vec3(0.0);
  float through = 1.0;
  int most = last.x + last.y + last.z + 8;
  for (int i = 0; i < most && s < end; ++i) {
    ivec3 cell = clamp(ivec3(floor(from + way * (s + kNudge))), ivec3(0), last);
    ivec3 block = cell >> kShift;
    bool over = texelFetch(blocks, block, 0).r <= best;
    uint number = over ? 0u : texelFetch(cells, cell, 0).r;
    ivec3 next = over ? (block + side) << kShift : cell + side;
    vec3 to = (vec3(next) - from) * inverse;
    float leaves = max(min(min(to.x, to.y), to.z), s + kNudge);
    if (number > best) {
      if (!emission) {
        best = number;
        if (best >= peak) break;
      } else {
        float unit = float(number - kFirst) / 251.0;
        float part = through * (1.0 - exp2(-kDensity * unit * unit * (leaves - s)));
        sum += part * colour_of(number);
        through -= part;
        if (through < 0.02) break;
      }
    }
    s = leaves;
  }
  if (!emission) {
    if (best >= least) colour = vec4(colour_of(best), 1.0);
  } else if (through < 1.0) {
    colour = vec4(sum / (1.0 - through), 1.0 - through);
  }
}
)";

constexpr int kBlockShift = 2;
static_assert(1 << kBlockShift == kVolumeBlock);
/// Halvings of what passes a cell of the largest number.
constexpr float kDensity = 1.5f;

/// Numbers, and the dots of masked cells.
constexpr int kTableColours = 257;

std::string fragment_shader() {
  return std::string(kShaderHead) + "const int kShift = " + std::to_string(kBlockShift) +
         ";\nconst float kDensity = " + std::to_string(kDensity) + ";\n" + kFragmentShader;
}

void set_nearest(GLenum kind) {
  glTexParameteri(kind, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(kind, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
  glTexParameteri(kind, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  glTexParameteri(kind, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
  glTexParameteri(kind, GL_TEXTURE_WRAP_R, GL_CLAMP_TO_EDGE);
}

std::array<int, 3> blocks_of(const std::array<int, 3>& size) {
  std::array<int, 3> blocks{};
  for (size_t i = 0; i < 3; ++i) blocks[i] = (size[i] + kVolumeBlock - 1) / kVolumeBlock;
  return blocks;
}

float triple(const VolumeView::Vector& a, const VolumeView::Vector& b,
             const VolumeView::Vector& c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
         a[2] * (b[0] * c[1] - b[1] * c[0]);
}

struct PixelRect {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< from the top left, half-open
};

/// The pixels whose rays may meet the volume.
PixelRect pixels_of(const VolumeView& view, const std::array<int, 3>& size, int width, int height) {
  // corner = start + x across + y down + s way, by Cramer's rule.
  const float whole = triple(view.across, view.down, view.way);
  if (!(std::abs(whole) > 0)) return {0, 0, width, height};
  float x0 = 1e9f, y0 = 1e9f, x1 = -1e9f, y1 = -1e9f;
  for (int corner = 0; corner < 8; ++corner) {
    VolumeView::Vector to{};
    for (size_t i = 0; i < 3; ++i) {
      const float place = (corner >> i & 1) != 0 ? static_cast<float>(size[2 - i]) : 0.0f;
      to[i] = place - view.start[i];
    }
    const float x = triple(to, view.down, view.way) / whole;
    const float y = triple(view.across, to, view.way) / whole;
    x0 = std::min(x0, x);
    y0 = std::min(y0, y);
    x1 = std::max(x1, x);
    y1 = std::max(y1, y);
  }
  const auto within = [](float at, int most) {
    return static_cast<int>(std::clamp(at, 0.0f, static_cast<float>(most)));
  };
  return {within(std::floor(x0), width), within(std::floor(y0), height),
          within(std::ceil(x1), width), within(std::ceil(y1), height)};
}

void fill(const TextureName& texture, const std::array<int, 3>& size,
          std::span<const uint8_t> numbers) {
  glBindTexture(GL_TEXTURE_3D, texture.get());
  set_nearest(GL_TEXTURE_3D);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage3D(GL_TEXTURE_3D, 0, GL_R8UI, size[2], size[1], size[0], 0, GL_RED_INTEGER,
               GL_UNSIGNED_BYTE, numbers.data());
}

}  // namespace

std::vector<uint8_t> block_maxima(const std::array<int, 3>& size,
                                  std::span<const uint8_t> numbers) {
  const std::array<int, 3> blocks = blocks_of(size);
  std::vector<uint8_t> maxima(static_cast<size_t>(blocks[0]) * static_cast<size_t>(blocks[1]) *
                              static_cast<size_t>(blocks[2]));
  size_t at = 0;
  for (int z = 0; z < size[0]; ++z) {
    for (int y = 0; y < size[1]; ++y) {
      const size_t line = (static_cast<size_t>(z / kVolumeBlock) * static_cast<size_t>(blocks[1]) +
                           static_cast<size_t>(y / kVolumeBlock)) *
                          static_cast<size_t>(blocks[2]);
      for (int x = 0; x < size[2]; ++x) {
        uint8_t& largest = maxima[line + static_cast<size_t>(x / kVolumeBlock)];
        largest = std::max(largest, numbers[at++]);
      }
    }
  }
  return maxima;
}

int largest_volume_side() {
  GLint side = 0;
  glGetIntegerv(GL_MAX_3D_TEXTURE_SIZE, &side);
  return side;
}

VolumePainter::VolumePainter()
    : program_("volume", std::string(kShaderHead) + kVertexShader, fragment_shader()),
      nothing_(new_vertex_array()),
      cells_(new_texture()),
      blocks_(new_texture()),
      table_(new_texture()) {}

void VolumePainter::upload(const std::array<int, 3>& size, std::span<const uint8_t> numbers) {
  fill(cells_, size, numbers);
  fill(blocks_, blocks_of(size), block_maxima(size, numbers));
  check("volume upload");
  size_ = size;
  peak_ = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

void VolumePainter::take_colours(const VolumeColours& colours) {
  if (colours_ == colours) return;
  std::vector<Rgb> table(kTableColours);
  const auto solid = [](const VolumeColours::Colour& c) {
    const auto part = [](float v) { return static_cast<uint8_t>(std::lround(v * 255)); };
    return Rgb{part(c[0]), part(c[1]), part(c[2])};
  };
  table[0] = solid(colours.nothing);
  table[1] = solid(colours.masked);
  table[2] = table[3] = solid(colours.hatch);
  table[256] = solid(colours.masked_dot);
  for (int i = VolumeColours::kFirstNumber; i < 256; ++i) {
    const double unit = static_cast<double>(i - VolumeColours::kFirstNumber) / 251;
    table[static_cast<size_t>(i)] = colormap_at(colours.map, unit);
  }
  glBindTexture(GL_TEXTURE_2D, table_.get());
  set_nearest(GL_TEXTURE_2D);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, kTableColours, 1, 0, GL_RGB, GL_UNSIGNED_BYTE,
               table.data());
  check("colours of a volume");
  colours_ = colours;
}

void VolumePainter::draw(int width, int height, const VolumeView& view,
                         const VolumeColours& colours, GLuint picture) {
  take_colours(colours);
  if (!target_ || target_->width() != width || target_->height() != height) {
    target_.emplace(width, height);
  }
  target_->bind();
  glViewport(0, 0, width, height);
  glDisable(GL_SCISSOR_TEST);
  glClearColor(0, 0, 0, 0);
  glClear(GL_COLOR_BUFFER_BIT);
  const PixelRect part = pixels_of(view, size_, width, height);
  glEnable(GL_SCISSOR_TEST);
  glScissor(part.x0, height - part.y1, part.x1 - part.x0, part.y1 - part.y0);
  glDisable(GL_BLEND);
  glDisable(GL_CULL_FACE);
  glDisable(GL_DEPTH_TEST);
  program_.use();
  const auto set = [&](const char* name, const VolumeView::Vector& v) {
    glUniform3f(program_.uniform(name), v[0], v[1], v[2]);
  };
  set("size",
      {static_cast<float>(size_[2]), static_cast<float>(size_[1]), static_cast<float>(size_[0])});
  set("start", view.start);
  set("across", view.across);
  set("down", view.down);
  set("way", view.way);
  glUniform1f(program_.uniform("rows"), static_cast<float>(height));
  glUniform1ui(program_.uniform("least"), view.least);
  glUniform1ui(program_.uniform("peak"), static_cast<GLuint>(peak_));
  glUniform1i(program_.uniform("emission"), view.emission ? 1 : 0);
  glUniform1i(program_.uniform("slice_axis"), view.slice_axis);
  glUniform1f(program_.uniform("slice_at"), static_cast<float>(view.slice_at));
  const auto bind = [&](int unit, GLenum kind, GLuint texture, const char* name) {
    glActiveTexture(static_cast<GLenum>(GL_TEXTURE0 + unit));
    glBindTexture(kind, texture);
    glUniform1i(program_.uniform(name), unit);
  };
  // A sampler needs a texture of its kind, be it unused.
  glUniform1i(program_.uniform("has_picture"), picture != 0 && view.slice_axis == 2 ? 1 : 0);
  bind(3, GL_TEXTURE_2D, picture != 0 ? picture : table_.get(), "picture");
  bind(2, GL_TEXTURE_2D, table_.get(), "table");
  bind(1, GL_TEXTURE_3D, blocks_.get(), "blocks");
  bind(0, GL_TEXTURE_3D, cells_.get(), "cells");
  glBindVertexArray(nothing_.get());
  glDrawArrays(GL_TRIANGLES, 0, 3);
  glDisable(GL_SCISSOR_TEST);
  glBindVertexArray(0);
  Framebuffer::unbind();
  check("drawing a volume");
}

int64_t VolumePainter::bytes() const {
  const auto count = [](const std::array<int, 3>& size) {
    return static_cast<int64_t>(size[0]) * size[1] * size[2];
  };
  return count(size_) + count(blocks_of(size_)) + int64_t{4} * width() * height();
}

}  // namespace attnscope::gl

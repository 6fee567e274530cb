#include "viewer/gl/map_shaders.h"

#include "viewer/gl/gl_api.h"

namespace attnscope::gl {
namespace {

const char* const kMapVertexShader = R"(
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

// Both kinds of programs share what a number means. What does not differ between the pixels of a
// draw is a constant of the program: a software renderer computes every branch that it cannot rule
// out. A number that the scale cannot show (weight 0 on a log scale) has a colour of its own, −inf
// means masked and is dotted, +inf means that there is none and is hatched; values beyond the range
// take the range's ends.
const char* const kColours = R"(
uniform sampler2D table;
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
  if (kScale == kLog2 && kLogTexels) {
    absent = absent || number <= kZero;
    bent = number + log2(factor);
  } else {
    float v = kLogTexels ? exp2(number) * factor : number * factor;
    if (kScale == kLog2) {
      absent = absent || v <= 0.0;
      bent = absent ? 0.0 : log2(v);
    } else if (kScale == kLinear) {
      bent = v;
    } else if (kScale == kSqrt) {
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
  colour = vec4(texelFetch(table, ivec2(int(place * kLastColour + 0.5), 0), 0).rgb, 1.0);
}
)";

// Where texels are smaller than pixels (kMany: they may be), a pixel shows all of those under it:
// their largest, so that no peak falls between pixels, or their mean, in which masked weights count
// as 0 and masked logits do not.
const char* const kTexels = R"(
in vec3 at;
flat in vec2 low_texel;
flat in vec2 high_texel;
void find_texels(out ivec2 first, out ivec2 last) {
  vec2 width = clamp(vec2(abs(dFdx(at.x)), abs(dFdy(at.y))), 0.0, 8.0);
  first = ivec2(floor(max(at.xy - 0.5 * width, low_texel)));
  last = ivec2(ceil(min(at.xy + 0.5 * width, high_texel))) - 1;
  if (width.x <= 0.5) first.x = last.x = int(at.x);
  if (width.y <= 0.5) first.y = last.y = int(at.y);
}
)";

const char* const kTileShader = R"(
uniform sampler2DArray tiles;
void paint_one(vec2 pair) {
  if (is_missing(pair.r)) {
    paint_missing();
  } else if (is_masked(pair.r)) {
    paint_masked();
  } else {
    paint(kMean ? pair.g : pair.r);
  }
}
void paint_many(int layer) {
  ivec2 first, last;
  find_texels(first, last);
  first = clamp(first, ivec2(0), ivec2(255));
  last = clamp(last, first, ivec2(255));
  float peak = 0.0;
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
      if (kMean) {
        sum += kLogTexels ? exp2(pair.g) : pair.g;
      } else {
        bool larger = kBySize ? abs(pair.r) > abs(peak) : pair.r > peak;
        peak = there == 0.0 || larger ? pair.r : peak;
      }
      there += 1.0;
    }
  }
  if (there + left_out == 0.0) {
    paint_missing();
  } else if (there == 0.0) {
    paint_masked();
  } else if (!kMean) {
    paint(peak);
  } else if (kLogTexels) {
    float mean = sum / (there + left_out);
    paint(mean > 0.0 ? log2(mean) : kZero);
  } else {
    paint(sum / there);
  }
}
void main() {
  int layer = int(at.z + 0.5);
  if (kMany) {
    paint_many(layer);
  } else {
    ivec2 texel = clamp(ivec2(at.xy), ivec2(0), ivec2(255));
    paint_one(texelFetch(tiles, ivec3(texel, layer), 0).rg);
  }
}
)";

const char* const kGridShader = R"(
uniform sampler2D grid;
void main() {
  if (!kMany) {
    paint(texelFetch(grid, ivec2(at.xy), 0).r);
    return;
  }
  ivec2 first, last;
  find_texels(first, last);
  last = max(first, last);
  float number = texelFetch(grid, first, 0).r;
  for (int y = first.y; y <= last.y; ++y) {
    for (int x = first.x; x <= last.x; ++x) {
      float other = texelFetch(grid, ivec2(x, y), 0).r;
      if (is_missing(other)) continue;
      bool larger = kBySize && !is_masked(other) && !is_masked(number)
                        ? abs(other) > abs(number) : other > number;
      number = is_missing(number) || larger ? other : number;
    }
  }
  paint(number);
}
)";

/// The version, and what does not differ between the pixels of a draw.
std::string fragment_head(const MapVariant& v) {
  std::string head = kShaderHead;
  const auto define = [&](const std::string& type, const char* name, const std::string& value) {
    head += "const " + type + " " + name + " = " + value + ";\n";
  };
  const auto flag = [&](const char* name, bool value) {
    define("bool", name, value ? "true" : "false");
  };
  define("int", "kLog2", std::to_string(static_cast<int>(ScaleKind::log2)));
  define("int", "kLinear", std::to_string(static_cast<int>(ScaleKind::linear)));
  define("int", "kSqrt", std::to_string(static_cast<int>(ScaleKind::sqrt)));
  define("int", "kScale", std::to_string(static_cast<int>(v.scale)));
  define("float", "kZero", std::to_string(kZeroTexel));
  define("float", "kLastColour", std::to_string(kMapColours - 1) + ".0");
  flag("kLogTexels", v.texels_are_log2);
  flag("kMean", v.use_mean);
  flag("kBySize", v.by_size);
  flag("kMany", v.many);
  return head;
}

}  // namespace

std::string map_vertex_shader() { return std::string(kShaderHead) + kMapVertexShader; }

std::string map_fragment_shader(const MapVariant& variant) {
  return fragment_head(variant) + kColours + kTexels + (variant.grid ? kGridShader : kTileShader);
}

std::string kept_fragment_shader() {
  return std::string(kShaderHead) + R"(
uniform sampler2D kept;
uniform ivec2 origin;
out vec4 colour;
void main() { colour = texelFetch(kept, ivec2(gl_FragCoord.xy) - origin, 0); }
)";
}

}  // namespace attnscope::gl

#include "core/problem/rope.h"

#include <cmath>
#include <numbers>

namespace attnscope {
namespace {

struct RopeInfo {
  RopeFamily family;
  std::string_view name;
  double base;
};
constexpr std::array<RopeInfo, 8> kRopes{{{RopeFamily::cogvideox, "cogvideox", 10000},
                                          {RopeFamily::hunyuan, "hunyuan", 256},
                                          {RopeFamily::flux, "flux", 10000},
                                          {RopeFamily::wan, "wan", 10000},
                                          {RopeFamily::ltx, "ltx", 10000},
                                          {RopeFamily::mochi, "mochi", 1},
                                          {RopeFamily::gptj, "gptj", 10000},
                                          {RopeFamily::llama, "llama", 10000}}};

constexpr std::array<RopeFamily, 8> kFamilies{
    RopeFamily::cogvideox, RopeFamily::hunyuan, RopeFamily::flux, RopeFamily::wan,
    RopeFamily::ltx,       RopeFamily::mochi,   RopeFamily::gptj, RopeFamily::llama};

/// LTX measures positions as shares of 20 frames of 1/25 s · 8 and of 2048 pixels, 32 a cell (the
/// model's constants and its pipeline's default of 25 frames a second).
constexpr std::array<double, 3> kLtxFactors{8.0 / 25 / 20, 32.0 / 2048, 32.0 / 2048};

/// Channels of the t, y and x bands; zeros for families without.
std::array<int64_t, 3> bands_of(RopeFamily family, int64_t d) {
  switch (family) {
    case RopeFamily::cogvideox:
      return {d / 4, d / 8 * 3, d / 8 * 3};
    case RopeFamily::hunyuan:
    case RopeFamily::flux:
      return {d / 8, d / 16 * 7, d / 16 * 7};
    case RopeFamily::wan:
      return {d - 4 * (d / 6), 2 * (d / 6), 2 * (d / 6)};
    default:
      return {};
  }
}

}  // namespace

std::string_view rope_name(RopeFamily family) { return kRopes[static_cast<size_t>(family)].name; }

std::optional<RopeFamily> parse_rope(std::string_view name) {
  for (const RopeInfo& rope : kRopes) {
    if (rope.name == name) return rope.family;
  }
  return std::nullopt;
}

std::span<const RopeFamily> rope_families() { return kFamilies; }

std::optional<HeadRotation> HeadRotation::make(RopeFamily family, const TokenGrid& tokens,
                                               const Shape& shape) {
  const int64_t d = shape.head_dim;
  const double base = shape.base > 0 ? shape.base : kRopes[static_cast<size_t>(family)].base;
  HeadRotation rotation(tokens);
  if (family == RopeFamily::gptj || family == RopeFamily::llama) {
    if (d < 2 || d % 2 != 0) return std::nullopt;
    rotation.add_line(shape, base, family == RopeFamily::llama);
    rotation.fill_tables({1, 1, 1}, {});
    return rotation;
  }
  if (!tokens.has_grid()) return std::nullopt;
  if (family == RopeFamily::ltx) {
    if (d % 2 != 0 || d * shape.heads < 12) return std::nullopt;
    rotation.add_ltx(shape, base);
    std::array<double, 3> factors = kLtxFactors;
    for (double& factor : factors) factor *= 2;
    rotation.fill_tables(factors, {-1, -1, -1});
    return rotation;
  }
  if (family == RopeFamily::mochi) {
    const auto count = static_cast<int64_t>(shape.learnt.size());
    if (d % 2 != 0 || count != 3 * shape.heads * (d / 2)) return std::nullopt;
    rotation.add_mochi(shape);
    // Cells of a square of 192 x 192, scaled to the grid's area; y and x from the middle.
    const double height = static_cast<double>(tokens.height());
    const double width = static_cast<double>(tokens.width());
    const double scale = std::sqrt(192.0 * 192.0 / (height * width));
    rotation.fill_tables({1, scale, scale},
                         {0, scale * (0.5 - height / 2), scale * (0.5 - width / 2)});
    return rotation;
  }
  const auto bands = bands_of(family, d);
  int64_t channels = 0;
  for (int64_t band : bands) {
    if (band < 2 || band % 2 != 0) return std::nullopt;
    channels += band;
  }
  if (channels != d) return std::nullopt;
  rotation.add_bands(bands, base);
  rotation.fill_tables({1, 1, 1}, {});
  return rotation;
}

void HeadRotation::add_pair(int64_t first, int64_t second, size_t axis, double frequency) {
  std::vector<double>& frequencies = axes_[axis].frequencies;
  pairs_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(second),
                    static_cast<int32_t>(axis), static_cast<int32_t>(frequencies.size())});
  frequencies.push_back(frequency);
}

void HeadRotation::add_bands(std::array<int64_t, 3> bands, double base) {
  int64_t channel = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto width = static_cast<double>(bands[axis]);
    for (int64_t i = 0; i < bands[axis]; i += 2, channel += 2) {
      add_pair(channel, channel + 1, axis, std::pow(base, -static_cast<double>(i) / width));
    }
  }
}

void HeadRotation::add_line(const Shape& shape, double base, bool halves) {
  by_place_ = true;
  const int64_t d = shape.head_dim;
  for (int64_t i = 0; i < d / 2; ++i) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    add_pair(halves ? i : 2 * i, halves ? i + d / 2 : 2 * i + 1, 0, frequency);
  }
}

void HeadRotation::add_ltx(const Shape& shape, double base) {
  const int64_t channels = shape.head_dim * shape.heads;
  const int64_t steps = channels / 6;
  // Channels that do not fill a turn of t, y, x stand first and are left alone.
  const int64_t still = channels % 6;
  for (int64_t i = 0; i < shape.head_dim; i += 2) {
    const int64_t pair = (shape.head * shape.head_dim + i - still) / 2;
    if (shape.head * shape.head_dim + i < still) continue;
    const int64_t step = pair / 3;
    const double exponent = static_cast<double>(step) / static_cast<double>(steps - 1);
    add_pair(i, i + 1, static_cast<size_t>(pair % 3),
             std::pow(base, exponent) * std::numbers::pi / 2);
  }
}

void HeadRotation::add_mochi(const Shape& shape) {
  // Turns of the same pair add their angles up.
  const int64_t half = shape.head_dim / 2;
  for (int64_t axis = 0; axis < 3; ++axis) {
    for (int64_t i = 0; i < half; ++i) {
      const auto at = static_cast<size_t>((axis * shape.heads + shape.head) * half + i);
      add_pair(2 * i, 2 * i + 1, static_cast<size_t>(axis), double{shape.learnt[at]});
    }
  }
}

void HeadRotation::fill_tables(std::array<double, 3> factors, std::array<double, 3> offsets) {
  const std::array<int64_t, 3> extents{by_place_ ? tokens_.tokens() : tokens_.frames(),
                                       tokens_.height(), tokens_.width()};
  for (size_t a = 0; a < 3; ++a) {
    Axis& axis = axes_[a];
    if (axis.frequencies.empty()) continue;
    axis.positions = extents[a];
    for (int64_t position = 0; position < axis.positions; ++position) {
      for (double frequency : axis.frequencies) {
        const double angle = frequency * (static_cast<double>(position) * factors[a] + offsets[a]);
        axis.cosines.push_back(static_cast<float>(std::cos(angle)));
        axis.sines.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
}

void HeadRotation::turn(int64_t token, float* row, float direction) const {
  std::array<int64_t, 3> place{token, 0, 0};
  if (!by_place_) {
    const auto coord = tokens_.coord(token);
    if (!coord) return;
    place = {coord->t, coord->y, coord->x};
  }
  for (const Pair& pair : pairs_) {
    const Axis& axis = axes_[static_cast<size_t>(pair.axis)];
    const size_t at =
        static_cast<size_t>(place[static_cast<size_t>(pair.axis)]) * axis.frequencies.size() +
        static_cast<size_t>(pair.column);
    const float a = row[pair.first];
    const float b = row[pair.second];
    const float cosine = axis.cosines[at];
    const float sine = direction * axis.sines[at];
    row[pair.first] = a * cosine - b * sine;
    row[pair.second] = a * sine + b * cosine;
  }
}

}  // namespace attnscope

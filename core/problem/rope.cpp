#include "core/problem/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnscope {
namespace {

/// LTX measures positions as shares of 20 frames of 1/25 s · 8 and of 2048 pixels, 32 a cell (the
/// model's constants and its pipeline's default of 25 frames a second).
constexpr std::array<double, 3> kLtxFactors{8.0 / 25 / 20, 32.0 / 2048, 32.0 / 2048};
/// LTX-2 as shares of 20 s and 2048 pixels; frames a second by default.
constexpr double kLtx2Fps = 24;
/// An audio latent of LTX-2 is 4 hops of 160 samples at 16000 a second; the first is one hop.
constexpr double kAudioHops = 4, kAudioHop = 160.0 / 16000;
/// Cosmos counts time in frames of this rate.
constexpr double kCosmosFps = 24;
constexpr double kLineBase = 10000;
constexpr double kLtxBase = 10000;

bool is_line_family(RopeFamily family) {
  return family == RopeFamily::gptj || family == RopeFamily::llama;
}

double number_or(double number, double otherwise) { return number > 0 ? number : otherwise; }

/// Which of `numbers` the family has no use for.
std::optional<std::string> stray_number(RopeFamily family, const RopeNumbers& numbers) {
  const bool cosmos = family == RopeFamily::cosmos;
  if (numbers.base != 0 && !is_line_family(family)) return "has a base of its own";
  const bool seconds = cosmos || family == RopeFamily::ltx2 || family == RopeFamily::ltx2_audio;
  if (numbers.fps != 0 && !seconds) return "knows no fps";
  if (numbers.scale[0] != 0 && !cosmos && family != RopeFamily::kandinsky5) return "knows no scale";
  if (cosmos && numbers.scale[0] == 0) return "it needs the checkpoint's scale";
  return std::nullopt;
}

/// The reason why positions do not suit the sequence; nothing where they do.
std::optional<std::string> unfit_positions(const TokenPositions& positions,
                                           const TokenGrid& tokens) {
  const auto places = static_cast<int64_t>(positions.values.size());
  if (positions.axes == 3 && places == 3 * tokens.tokens()) return std::nullopt;
  return "it needs positions [" + std::to_string(tokens.tokens()) + ", 3] of t, y and x";
}

/// Tokens beside the video that the model turns by places which `tokens` does not have.
std::optional<std::string> unplaced_tokens(const BandLayout* layout, const TokenGrid& tokens) {
  const RopePlaces places = layout == nullptr ? RopePlaces::cells : layout->places;
  for (const TokenSegment& segment : tokens.other_segments()) {
    if (segment.modality == Modality::padding) continue;
    if (segment.has_grid() || places != RopePlaces::cells) {
      return "the positions of " + segment.name + " are not known to it";
    }
  }
  if (places == RopePlaces::told && !tokens.text_range().empty()) {
    return "the positions of text are its caller's and not known";
  }
  // Its cells stand after the text, whose length may be another in every batch item.
  if (places == RopePlaces::text_first && tokens.valid_items() > 1) {
    for (int64_t item = 1; item < tokens.valid_items(); ++item) {
      if (!tokens.same_padding(0, item)) return "the text's length differs between batch items";
    }
  }
  return std::nullopt;
}

/// The reason why a sequence without a grid is not audio alone; nothing where it is.
std::optional<std::string> unplaced_audio(const TokenGrid& tokens) {
  for (const TokenSegment& segment : tokens.segments()) {
    if (!tokens.has_map() || segment.modality == Modality::audio) continue;
    if (segment.modality == Modality::padding) continue;
    return "the positions of " + segment.name + " are not known to it";
  }
  return std::nullopt;
}

/// Kandinsky 5's pipelines halve the places of videos whose sides have 480 to 854 pixels, 16 a
/// cell, and divide all others by 3.16.
double kandinsky_scale(const TokenGrid& tokens) {
  const auto small = [](int64_t cells) { return cells >= 30 && cells <= 53; };
  return small(tokens.height()) && small(tokens.width()) ? 2 : 3.16;
}

/// The stream's latent frame that frame 0 of the video is.
double first_frame(const TokenGrid& tokens) {
  for (const TokenSegment& segment : tokens.segments()) {
    if (segment.has_grid() && segment.tokens.begin == tokens.video_range().begin) {
      return static_cast<double>(segment.first_frame);
    }
  }
  return 0;
}

std::vector<double> positions_along(int64_t count, double factor, double offset) {
  std::vector<double> positions;
  for (int64_t i = 0; i < count; ++i) {
    positions.push_back(static_cast<double>(i) * factor + offset);
  }
  return positions;
}

}  // namespace

std::optional<std::string> HeadRotation::obstacle(RopeFamily family, const TokenGrid& tokens,
                                                  const Shape& shape) {
  const int64_t d = shape.head_dim;
  const BandLayout* layout = band_layout(family);
  if (auto stray = stray_number(family, shape.numbers)) return stray;
  if (d < 2 || d % 2 != 0) return "the head dimension must be even";
  if (is_line_family(family)) return std::nullopt;
  const bool audio = family == RopeFamily::ltx2_audio && !tokens.has_grid();
  const bool told = shape.positions != nullptr && takes_positions(family);
  if (!tokens.has_grid() && !audio && !told) return "it needs the grid of the video";
  if (shape.head >= shape.heads) return "the model has fewer heads";
  if (layout != nullptr && !band_widths(*layout, d)) {
    return "the head dimension cannot be cut into its bands";
  }
  if (told) return unfit_positions(*shape.positions, tokens);
  const bool ltx = family == RopeFamily::ltx || family == RopeFamily::ltx2;
  if (family == RopeFamily::ltx2_audio && d * shape.heads < 4) {
    return "the model has too few channels";
  }
  if (audio) return unplaced_audio(tokens);
  if (ltx && d * shape.heads < 12) return "the model has too few channels";
  if (family == RopeFamily::mochi &&
      static_cast<int64_t>(shape.learnt.size()) != 3 * shape.heads * (d / 2)) {
    return "it needs learnt frequencies, [3, heads, head dimension / 2]";
  }
  return unplaced_tokens(layout, tokens);
}

std::optional<HeadRotation> HeadRotation::make(RopeFamily family, const TokenGrid& tokens,
                                               const Shape& shape) {
  if (obstacle(family, tokens, shape)) return std::nullopt;
  HeadRotation rotation(tokens);
  if (const BandLayout* layout = band_layout(family)) {
    rotation.add_bands(*layout, shape);
    if (takes_positions(family)) rotation.positions_ = shape.positions;
    if (!rotation.positions_) rotation.fill_tables(rotation.band_positions(*layout, shape));
  } else if (is_line_family(family)) {
    rotation.add_line(shape, number_or(shape.numbers.base, kLineBase),
                      family == RopeFamily::llama ? RopePairs::halves : RopePairs::neighbours);
    rotation.fill_tables(rotation.even_positions({1, 1, 1}, {}));
  } else if (family == RopeFamily::ltx) {
    rotation.add_ltx(shape, kLtxBase, RopePairs::neighbours);
    std::array<double, 3> factors = kLtxFactors;
    for (double& factor : factors) factor *= 2;
    rotation.fill_tables(rotation.even_positions(factors, {-1, -1, -1}));
  } else if (family == RopeFamily::ltx2) {
    rotation.add_ltx(shape, kLtxBase, RopePairs::halves);
    rotation.fill_tables(rotation.ltx2_positions(number_or(shape.numbers.fps, kLtx2Fps)));
  } else if (family == RopeFamily::ltx2_audio) {
    rotation.by_place_ = !tokens.has_grid();
    rotation.add_ltx(shape, kLtxBase, RopePairs::halves, 1);
    rotation.fill_tables(rotation.by_place_
                             ? rotation.audio_positions()
                             : rotation.ltx2_positions(number_or(shape.numbers.fps, kLtx2Fps)));
  } else {
    rotation.add_mochi(shape);
    // Cells of a square of 192 x 192, scaled to the grid's area; y and x from the middle.
    const double height = static_cast<double>(tokens.height());
    const double width = static_cast<double>(tokens.width());
    const double scale = std::sqrt(192.0 * 192.0 / (height * width));
    rotation.fill_tables(rotation.even_positions(
        {1, scale, scale}, {0, scale * (0.5 - height / 2), scale * (0.5 - width / 2)}));
  }
  return rotation;
}

void HeadRotation::add_pair(int64_t first, int64_t second, size_t axis, double frequency) {
  std::vector<double>& frequencies = axes_[axis].frequencies;
  pairs_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(second),
                    static_cast<int32_t>(axis), static_cast<int32_t>(frequencies.size())});
  frequencies.push_back(frequency);
}

void HeadRotation::add_bands(const BandLayout& layout, const Shape& shape) {
  const auto widths = *band_widths(layout, shape.head_dim);
  const int64_t half = (widths[0] + widths[1] + widths[2] + widths[3]) / 2;
  int64_t pair = 0;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const auto width = static_cast<double>(widths[axis]);
    double base = layout.base;
    // Cosmos raises the base until the slowest pair turns as if the axis were `scale` times
    // shorter.
    if (layout.family == RopeFamily::cosmos && axis < 3) {
      base *= std::pow(shape.numbers.scale[axis], width / (width - 2));
    }
    for (int64_t i = 0; i < widths[axis]; i += 2, ++pair) {
      const bool halves = layout.pairs == RopePairs::halves;
      add_pair(halves ? pair : 2 * pair, halves ? pair + half : 2 * pair + 1, axis,
               std::pow(base, -static_cast<double>(i) / width));
    }
  }
}

void HeadRotation::add_line(const Shape& shape, double base, RopePairs pairs) {
  by_place_ = true;
  const bool halves = pairs == RopePairs::halves;
  const int64_t d = shape.head_dim;
  for (int64_t i = 0; i < d / 2; ++i) {
    const double frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d));
    add_pair(halves ? i : 2 * i, halves ? i + d / 2 : 2 * i + 1, 0, frequency);
  }
}

void HeadRotation::add_ltx(const Shape& shape, double base, RopePairs pairs, int64_t axes) {
  const bool halves = pairs == RopePairs::halves;
  const int64_t half = shape.head_dim / 2;
  const int64_t steps = half * shape.heads / axes;
  // Pairs that do not fill a turn of the axes stand first and are left alone.
  const int64_t still = half * shape.heads - axes * steps;
  for (int64_t i = 0; i < half; ++i) {
    const int64_t pair = shape.head * half + i - still;
    if (pair < 0) continue;
    const double exponent = static_cast<double>(pair / axes) / static_cast<double>(steps - 1);
    add_pair(halves ? i : 2 * i, halves ? i + half : 2 * i + 1, static_cast<size_t>(pair % axes),
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

std::array<HeadRotation::Positions, HeadRotation::kAxes> HeadRotation::even_positions(
    std::array<double, 3> factors, std::array<double, 3> offsets) const {
  const std::array<int64_t, 3> extents{by_place_ ? tokens_.tokens() : tokens_.frames(),
                                       tokens_.height(), tokens_.width()};
  std::array<Positions, kAxes> positions;
  if (!by_place_) offsets[0] += factors[0] * first_frame(tokens_);
  for (size_t axis = 0; axis < 3; ++axis) {
    positions[axis].cells = positions_along(extents[axis], factors[axis], offsets[axis]);
  }
  positions[3].cells = {0};
  return positions;
}

std::array<HeadRotation::Positions, HeadRotation::kAxes> HeadRotation::band_positions(
    const BandLayout& layout, const Shape& shape) const {
  const int64_t text = tokens_.text_range().size();
  std::array<double, 3> factors{1, 1, 1};
  std::array<double, 3> offsets{};
  std::array<double, kAxes> text_steps{}, text_starts{};
  if (layout.family == RopeFamily::cosmos && shape.numbers.fps > 0) {
    factors[0] = kCosmosFps / shape.numbers.fps;
  }
  if (layout.family == RopeFamily::kandinsky5) {
    const double usual = kandinsky_scale(tokens_);
    const bool told = shape.numbers.scale[0] > 0;
    const std::array<double, 3> scale =
        told ? shape.numbers.scale : std::array<double, 3>{1, usual, usual};
    for (size_t axis = 0; axis < 3; ++axis) factors[axis] = 1 / scale[axis];
  }
  if (layout.places == RopePlaces::text_axis) {
    text_steps[3] = 1;
  } else if (layout.places == RopePlaces::text_first) {
    offsets[0] = static_cast<double>(text + 1);
    text_steps[0] = 1;
    text_starts[0] = 1;
  } else if (layout.places == RopePlaces::centred) {
    const int64_t height = tokens_.height(), width = tokens_.width();
    offsets[1] = -static_cast<double>(height - height / 2);
    offsets[2] = -static_cast<double>(width - width / 2);
    const auto after = static_cast<double>(std::max(height / 2, width / 2));
    text_steps = {1, 1, 1, 0};
    text_starts = {after, after, after, 0};
  }
  std::array<Positions, kAxes> positions = even_positions(factors, offsets);
  if (text_steps == std::array<double, kAxes>{}) return positions;
  for (size_t axis = 0; axis < kAxes; ++axis) {
    positions[axis].text = positions_along(text, text_steps[axis], text_starts[axis]);
  }
  return positions;
}

std::array<HeadRotation::Positions, HeadRotation::kAxes> HeadRotation::ltx2_positions(
    double fps) const {
  std::array<Positions, kAxes> positions = even_positions(
      {1, 2 * kLtxFactors[1], 2 * kLtxFactors[2]}, {0, kLtxFactors[1] - 1, kLtxFactors[2] - 1});
  // Latent frame 0 is one frame of the video, every further one 8; the place is their middle.
  for (double& t : positions[0].cells) {
    const double begin = std::max(0.0, 8 * t - 7);
    const double end = 8 * t + 1;
    t = (begin + end) / 2 / fps / 20 * 2 - 1;
  }
  return positions;
}

std::array<HeadRotation::Positions, HeadRotation::kAxes> HeadRotation::audio_positions() const {
  std::array<Positions, kAxes> positions = even_positions({1, 1, 1}, {});
  for (double& t : positions[0].cells) {
    const double begin = std::max(0.0, kAudioHops * t + 1 - kAudioHops);
    const double end = kAudioHops * t + 1;
    t = (begin + end) / 2 * kAudioHop / 20 * 2 - 1;
  }
  return positions;
}

void HeadRotation::fill_tables(const std::array<Positions, kAxes>& positions) {
  turns_text_ = !positions[0].text.empty();
  for (size_t a = 0; a < kAxes; ++a) {
    Axis& axis = axes_[a];
    axis.cells = static_cast<int64_t>(positions[a].cells.size());
    for (const std::vector<double>* part : {&positions[a].cells, &positions[a].text}) {
      for (const double position : *part) {
        for (double frequency : axis.frequencies) {
          const double angle = frequency * position;
          axis.cosines.push_back(static_cast<float>(std::cos(angle)));
          axis.sines.push_back(static_cast<float>(std::sin(angle)));
        }
      }
    }
  }
}

void HeadRotation::turn_by_positions(int64_t token, float* row, double direction) const {
  const float* place = positions_->values.data() + token * positions_->axes;
  for (const Pair& pair : pairs_) {
    const auto axis = static_cast<size_t>(pair.axis);
    const double angle =
        axes_[axis].frequencies[static_cast<size_t>(pair.column)] * double{place[axis]} * direction;
    const auto cosine = static_cast<float>(std::cos(angle));
    const auto sine = static_cast<float>(std::sin(angle));
    const float a = row[pair.first], b = row[pair.second];
    row[pair.first] = a * cosine - b * sine;
    row[pair.second] = a * sine + b * cosine;
  }
}

void HeadRotation::turn(int64_t token, float* row, float direction) const {
  if (positions_) return turn_by_positions(token, row, double{direction});
  std::array<int64_t, kAxes> place{token, 0, 0, 0};
  if (!by_place_) {
    const IndexRange text = tokens_.text_range();
    if (const auto coord = tokens_.coord(token)) {
      place = {coord->t, coord->y, coord->x, 0};
    } else if (turns_text_ && text.contains(token)) {
      for (size_t a = 0; a < kAxes; ++a) place[a] = axes_[a].cells + token - text.begin;
    } else {
      return;
    }
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

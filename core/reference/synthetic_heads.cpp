#include "core/reference/synthetic_heads.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/exact_math.h"
#include "core/base/nearest_word.h"

namespace attnscope {
namespace {

constexpr HeadKind kKinds[] = {HeadKind::spatial, HeadKind::temporal, HeadKind::text,
                               HeadKind::sink,    HeadKind::local,    HeadKind::global};

/// Fewer content channels would make a few tokens stand out.
constexpr int64_t kMinContent = 6;
/// Share of the mass that video queries of a position head give to text.
constexpr double kTextShare = 0.05;
constexpr double kTextHeadShare = 0.6;
constexpr double kSinkShare = 0.5;
/// Amplitudes in logits; docs/synthetic.md tells what they make.
constexpr double kFrameWave = 3;
constexpr double kCellWave = 3;
constexpr double kWindowWave = 2;
constexpr double kWindowFlattening = -0.9;
constexpr double kFaintWave = 0.25;
/// Keys in the plateau of a local head's window.
constexpr double kWindowKeys = 16;

struct Least {
  int64_t frames, height, width, text;
};

/// The smallest grids on which a kind stays clear of the other kinds' thresholds.
Least least_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::spatial:
      return {1, 4, 4, 0};
    case HeadKind::temporal:
      return {2, 4, 4, 0};
    case HeadKind::text:
      return {1, 1, 1, 16};
    case HeadKind::sink:
      return {1, 1, 1, 0};
    case HeadKind::local:
      return {2, 6, 6, 0};
    case HeadKind::global:
      return {5, 8, 8, 0};
  }
  return {};
}

/// Sum of four 16-bit integers, centred, of variance 1.
double unit_noise(uint64_t bits) {
  const auto sum = static_cast<int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                        ((bits >> 32) & 0xffff) + (bits >> 48));
  constexpr double kSqrt3 = 0x1.bb67ae8584caap+0;
  return static_cast<double>(sum - 131070) * (kSqrt3 / 65536);
}

}  // namespace

std::span<const HeadKind> head_kinds() { return kKinds; }

std::string_view head_kind_name(HeadKind kind) {
  constexpr std::string_view kNames[] = {"spatial", "temporal", "text", "sink", "local", "global"};
  return kNames[static_cast<size_t>(kind)];
}

HeadKind parse_head_kind(std::string_view name) {
  for (const HeadKind kind : kKinds) {
    if (head_kind_name(kind) == name) return kind;
  }
  throw unknown_name("--head-kinds", std::string(name), head_kind_names());
}

std::vector<std::string> head_kind_names() {
  std::vector<std::string> names;
  for (const HeadKind kind : kKinds) names.emplace_back(head_kind_name(kind));
  return names;
}

std::optional<std::string> head_kind_obstacle(HeadKind kind, const TokenGrid& tokens) {
  const Least least = least_of(kind);
  const auto lacks = [](int64_t needed, const char* what, int64_t got) {
    return "needs at least " + std::to_string(needed) + " " + what + " (got " +
           std::to_string(got) + ")";
  };
  if (tokens.frames() < least.frames) return lacks(least.frames, "frames", tokens.frames());
  if (tokens.height() < least.height) return lacks(least.height, "rows", tokens.height());
  if (tokens.width() < least.width) return lacks(least.width, "columns", tokens.width());
  const int64_t text = tokens.text_range().size();
  if (text < least.text) return lacks(least.text, "text tokens", text);
  // With fewer, an even share of the columns already counts as something.
  constexpr int64_t kLeastVideo = 64;
  const int64_t video = tokens.video_range().size();
  if (video < kLeastVideo) return lacks(kLeastVideo, "video tokens", video);
  return std::nullopt;
}

SyntheticHead::SyntheticHead(HeadKind kind, const TokenGrid& tokens, int64_t head_dim)
    : kind_(kind),
      tokens_(tokens),
      head_dim_(head_dim),
      extent_{tokens.frames(), tokens.height(), tokens.width()} {
  const std::string name = "a " + std::string(head_kind_name(kind)) + " head ";
  if (const auto obstacle = head_kind_obstacle(kind, tokens)) {
    throw usage_error(name + *obstacle + ", grid " + tokens.grid_text() + ", text " +
                      tokens.text_text());
  }
  for (const int64_t extent : extent_) {
    if (extent <= kMaxExtent) continue;
    throw usage_error("grid " + tokens.grid_text() + ": an axis is at most " +
                      std::to_string(kMaxExtent) + " long here");
  }
  add_waves();
  tabulate_waves();
  const int64_t needed = position_channels_ + 2 + kMinContent;
  if (head_dim < needed) {
    throw usage_error(name + "on the grid " + tokens.grid_text() + " needs a head_dim of " +
                      std::to_string(needed) + " (got " + std::to_string(head_dim) + ")");
  }
  add_levels();
  const double root = std::sqrt(static_cast<double>(head_dim));
  const double channels = static_cast<double>(head_dim - position_channels_ - 2);
  content_ = std::sqrt(kContentDeviation * root / std::sqrt(channels));
}

int SyntheticHead::octaves_of(int axis) const {
  // The longest wave covers the axis twice, so that its far ends do not meet.
  int octave = 1;
  while ((int64_t{1} << octave) < 2 * extent_[static_cast<size_t>(axis)]) ++octave;
  return octave;
}

void SyntheticHead::add_octaves(int axis, int first, double amplitude, int64_t shift) {
  if (extent_[static_cast<size_t>(axis)] == 1) return;
  for (int octave = first; octave <= octaves_of(axis); ++octave) {
    waves_.push_back({axis, octave, amplitude, shift});
  }
}

void SyntheticHead::add_waves() {
  constexpr int kT = 0, kY = 1, kX = 2;
  const auto faint = [&](int axis) { add_octaves(axis, octaves_of(axis), kFaintWave); };
  switch (kind_) {
    case HeadKind::spatial:
      add_octaves(kT, 1, kFrameWave);
      faint(kY);
      faint(kX);
      return;
    case HeadKind::temporal:
      add_octaves(kY, 1, kCellWave);
      add_octaves(kX, 1, kCellWave);
      return;
    case HeadKind::local:
      add_octaves(kT, 1, kFrameWave, 1);
      for (const int axis : {kY, kX}) {
        waves_.push_back({axis, 2, kWindowFlattening, 0});
        add_octaves(axis, 3, kWindowWave);
      }
      return;
    default:
      for (const int axis : {kT, kY, kX}) faint(axis);
  }
}

void SyntheticHead::tabulate_waves() {
  const double root = std::sqrt(static_cast<double>(head_dim_));
  for (int axis = 0; axis < 3; ++axis) {
    AxisChannels& channels = axes_[static_cast<size_t>(axis)];
    const int64_t extent = extent_[static_cast<size_t>(axis)];
    std::vector<Wave> own;
    for (const Wave& wave : waves_) {
      if (wave.axis == axis) own.push_back(wave);
    }
    channels.channels = 2 * static_cast<int64_t>(own.size());
    position_channels_ += channels.channels;
    for (int64_t at = 0; at < extent; ++at) {
      for (const Wave& wave : own) {
        const double size = std::sqrt(std::abs(wave.amplitude) * root);
        const double sign = wave.amplitude < 0 ? -1 : 1;
        // Where there is no next frame, the one before is looked at.
        const int64_t sought = at + wave.shift < extent ? at + wave.shift : at - wave.shift;
        const CosSin q = exact_turn(sought, wave.octave);
        const CosSin k = exact_turn(at, wave.octave);
        for (const double value : {q.cos, q.sin}) {
          channels.q.push_back(static_cast<float>(sign * size * value));
        }
        for (const double value : {k.cos, k.sin}) {
          channels.k.push_back(static_cast<float>(size * value));
        }
      }
    }
  }
}

double SyntheticHead::peak() const {
  double sum = 0;
  for (const Wave& wave : waves_) sum += wave.amplitude;
  return sum;
}

void SyntheticHead::add_levels() {
  const auto text = static_cast<double>(tokens_.text_range().size());
  const auto video = static_cast<double>(tokens_.video_range().size());
  const double frames = static_cast<double>(tokens_.frames());
  // Against `keys` keys whose logits are `peak`, `count` keys with this level hold `share`.
  const auto level = [](double peak, double keys, double share, double count) {
    return peak + exact_log(keys / count * (share / (1 - share)));
  };
  const double root = std::sqrt(static_cast<double>(head_dim_));
  if (kind_ == HeadKind::sink) {
    sink_level_ = level(peak() / 2, static_cast<double>(tokens_.tokens()), kSinkShare, 1);
    sink_q_ = static_cast<float>(std::sqrt(std::abs(sink_level_) * root));
    sink_k_ = sink_level_ < 0 ? -sink_q_ : sink_q_;
    return;
  }
  if (text == 0) return;
  switch (kind_) {
    case HeadKind::spatial:
      text_level_ = level(peak(), video / frames, kTextShare, text);
      break;
    case HeadKind::temporal:
      text_level_ = level(peak(), frames, kTextShare, text);
      break;
    case HeadKind::local:
      text_level_ = level(peak(), kWindowKeys, kTextShare, text);
      break;
    case HeadKind::text:
      text_level_ = level(peak() / 2, video, kTextHeadShare, text);
      break;
    default:
      text_level_ = level(peak() / 2, video, kTextShare, text);
  }
  text_q_ = static_cast<float>(std::sqrt(std::abs(text_level_) * root));
  text_k_ = text_level_ < 0 ? -text_q_ : text_q_;
}

void SyntheticHead::write_position(Tensor tensor, int64_t token, float* values) const {
  const auto coord = tokens_.coord(token);
  if (!coord) {
    std::fill_n(values, position_channels_, 0.0F);
    return;
  }
  const int64_t at[] = {coord->t, coord->y, coord->x};
  for (size_t axis = 0; axis < 3; ++axis) {
    const AxisChannels& channels = axes_[axis];
    const std::vector<float>& table = tensor == Tensor::q ? channels.q : channels.k;
    values = std::copy_n(table.data() + at[axis] * channels.channels, channels.channels, values);
  }
}

void SyntheticHead::write_row(Tensor tensor, uint64_t stream, int64_t token, float* values) const {
  int64_t channel = 0;
  if (tensor != Tensor::v) {
    write_position(tensor, token, values);
    channel = position_channels_;
    const bool text = tokens_.text_range().contains(token);
    const bool q = tensor == Tensor::q;
    values[channel++] = q ? (text ? 0 : text_q_) : (text ? text_k_ : 0);
    values[channel++] = q ? sink_q_ : (token == 0 ? sink_k_ : 0);
  }
  const double size = tensor == Tensor::v ? 1 : content_;
  const auto first = static_cast<uint64_t>(token) * static_cast<uint64_t>(head_dim_);
  for (; channel < head_dim_; ++channel) {
    const uint64_t bits = random_bits(stream, first + static_cast<uint64_t>(channel));
    values[channel] = static_cast<float>(size * unit_noise(bits));
  }
}

}  // namespace attnscope

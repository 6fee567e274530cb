#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/token_grid.h"

namespace attnscope {

/// The tokens that a synthetic head attends to; docs/synthetic.md has the thresholds that it keeps.
enum class HeadKind : uint8_t { spatial, temporal, text, sink, local, global };

std::span<const HeadKind> head_kinds();
std::string_view head_kind_name(HeadKind kind);
/// Throws Error(usage) suggesting the nearest name and listing all.
HeadKind parse_head_kind(std::string_view name);
std::vector<std::string> head_kind_names();

/// Why a grid cannot hold a head of this kind ("needs at least 16 text tokens (got 0)"), or
/// nothing where it can.
std::optional<std::string> head_kind_obstacle(HeadKind kind, const TokenGrid& tokens);

/// The rows of Q, K and V of a head whose attention has a known character at scale 1/√head_dim.
/// A logit is a sum of terms, each with channels of its own:
///   Σ a·cos(2π(Δ − shift)/2^octave) over waves of the latent axes, Δ = key − query coordinate
///   (where coordinate + shift lies outside the grid, with −shift);
///   a level that video queries give to text keys; a level that every query gives to the first key;
///   content: random, of standard deviation kContentDeviation.
/// docs/synthetic.md has the numbers. Every value is the same on every machine. Immutable;
/// thread-safe.
class SyntheticHead {
 public:
  enum class Tensor : uint8_t { q, k, v };
  static constexpr double kContentDeviation = 0.5;
  static constexpr int64_t kMaxExtent = 4096;  ///< of a latent axis

  /// Throws Error(usage) where head_kind_obstacle() has something to say, an axis is longer than
  /// kMaxExtent, or head_dim has too few channels for the terms, naming how many it needs.
  SyntheticHead(HeadKind kind, const TokenGrid& tokens, int64_t head_dim);

  HeadKind kind() const { return kind_; }
  /// Writes the `head_dim` values of one token. `stream` is what random values depend on: different
  /// for each head and tensor.
  void write_row(Tensor tensor, uint64_t stream, int64_t token, float* values) const;

 private:
  struct Wave {
    int axis = 0;
    int octave = 1;
    double amplitude = 0;
    int64_t shift = 0;
  };
  /// The channels of one axis at every coordinate: [extent, channels].
  struct AxisChannels {
    int64_t channels = 0;
    std::vector<float> q, k;
  };

  void add_waves();
  void add_octaves(int axis, int first, double amplitude, int64_t shift = 0);
  void add_levels();
  void tabulate_waves();
  double peak() const;
  int octaves_of(int axis) const;
  void write_position(Tensor tensor, int64_t token, float* values) const;

  HeadKind kind_;
  TokenGrid tokens_;
  int64_t head_dim_;
  std::array<int64_t, 3> extent_{};
  std::vector<Wave> waves_;
  std::array<AxisChannels, 3> axes_;
  int64_t position_channels_ = 0;
  double text_level_ = 0;
  double sink_level_ = 0;
  float text_q_ = 0, text_k_ = 0, sink_q_ = 0, sink_k_ = 0;
  double content_ = 0;  ///< of one content channel, times a value of variance 1
};

}  // namespace attnscope

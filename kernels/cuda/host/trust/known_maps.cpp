#include "kernels/cuda/host/trust/known_maps.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/stream/value_panels.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {
namespace {

constexpr int64_t kNarrow = 40;  ///< channels
constexpr int64_t kAllHeld = std::numeric_limits<int64_t>::max();
/// Exponents of random rows of this length reach beyond kHeldExponent; sums in float32 are
/// still good for what is asked of them.
constexpr float kLoudness = 12;

template <typename T>
void append(std::vector<std::byte>& bytes, T stored) {
  const auto* from = reinterpret_cast<const std::byte*>(&stored);
  bytes.insert(bytes.end(), from, from + sizeof(stored));
}

/// Rows from `first_loud` on are loud. Of float32 none is: those are never held.
HeadTensor random_tensor(DType dtype, int64_t tokens, int64_t width, unsigned seed,
                         int64_t first_loud = kAllHeld) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < tokens * width; ++i) {
    const bool loud = dtype != DType::f32 && i / width >= first_loud;
    const float value = (loud ? kLoudness : 1.0f) * normal(random);
    if (dtype == DType::f32) append(bytes, value);
    if (dtype == DType::f16) append(bytes, to_f16(value));
    if (dtype == DType::bf16) append(bytes, to_bf16(value));
  }
  const std::vector<int64_t> shape{tokens, width};
  return HeadTensor(std::make_shared<MemoryTensor>("random", dtype, shape, std::move(bytes)),
                    Layout::sd);
}

/// Of every fifth entry none, of the others between −1 and 1.
Mask random_biases(int64_t queries, int64_t keys) {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < queries * keys; ++i) {
    const float bias = uniform(random);
    append(bytes, i % 5 == 0 ? -std::numeric_limits<float>::infinity() : bias);
  }
  return Mask::tensor(std::make_shared<MemoryTensor>(
      "biases", DType::f32, std::vector<int64_t>{queries, keys}, std::move(bytes)));
}

AttentionProblem::Parts parts_of(DType dtype, int64_t queries, int64_t keys, int64_t width,
                                 int64_t first_loud) {
  AttentionProblem::Parts parts;
  parts.q = random_tensor(dtype, queries, width, 1, first_loud);
  parts.k = random_tensor(dtype, keys, width, 2);
  parts.id.kind = CallKind::cross;
  parts.name = "the device's first maps";
  return parts;
}

}  // namespace

AttentionProblem ragged_map(DType dtype) {
  constexpr int64_t kKeys = 1100;
  AttentionProblem::Parts parts = parts_of(dtype, 140, kKeys, 72, kTileRows);
  parts.v = random_tensor(dtype, kKeys, kValueChannels + 8, 3);
  parts.mask = Mask::window(700);
  return AttentionProblem::make(std::move(parts));
}

AttentionProblem narrow_map(DType dtype) {
  return AttentionProblem::make(parts_of(dtype, 100, 300, kNarrow, kAllHeld));
}

AttentionProblem loud_map(DType dtype) {
  return AttentionProblem::make(parts_of(dtype, 100, 300, kNarrow, 0));
}

AttentionProblem biased_map(DType dtype, ScoreFunction score) {
  // One tile: biases take more memory than all else.
  AttentionProblem::Parts parts = parts_of(dtype, 60, 120, kNarrow, kAllHeld);
  parts.mask = random_biases(60, 120);
  parts.score = score;
  return AttentionProblem::make(std::move(parts));
}

AttentionProblem linear_map(DType dtype) {
  AttentionProblem::Parts parts = parts_of(dtype, 60, 140, kNarrow, kAllHeld);
  parts.score = ScoreFunction::linear_elu1;
  return AttentionProblem::make(std::move(parts));
}

AttentionProblem video_map(DType dtype) {
  constexpr int64_t kTokens = 150;
  AttentionProblem::Parts parts = parts_of(dtype, kTokens, kTokens, kNarrow, kTileRows);
  parts.query_tokens = TokenGrid::video(kTokens, {2, 8, 9}, 6, TextPlace::end);
  parts.key_tokens = parts.query_tokens;
  parts.id.kind = CallKind::self;
  return AttentionProblem::make(std::move(parts));
}

}  // namespace attnscope::cuda

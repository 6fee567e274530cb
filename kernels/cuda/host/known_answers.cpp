#include "kernels/cuda/host/known_answers.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/tensor/memory_tensor.h"

namespace attnscope {
namespace {

// More than a tile of rows and than one segment of keys, all of them ragged.
constexpr int64_t kQueries = 140;
constexpr int64_t kKeys = 1100;
constexpr int64_t kHeadDim = 72;

HeadTensor random_tensor(DType dtype, int64_t tokens, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes;
  for (int64_t i = 0; i < tokens * kHeadDim; ++i) {
    const float value = normal(random);
    const auto append = [&](auto stored) {
      const auto* from = reinterpret_cast<const std::byte*>(&stored);
      bytes.insert(bytes.end(), from, from + sizeof(stored));
    };
    if (dtype == DType::f32) append(value);
    if (dtype == DType::f16) append(to_f16(value));
    if (dtype == DType::bf16) append(to_bf16(value));
  }
  const std::vector<int64_t> shape{tokens, kHeadDim};
  return HeadTensor(std::make_shared<MemoryTensor>("random", dtype, shape, std::move(bytes)),
                    Layout::sd);
}

std::vector<float> weights_of(const TileBackend& backend, const AttentionProblem& problem) {
  const auto head = backend.bind(problem, 0, 0);
  std::vector<std::byte> queries(static_cast<size_t>(kQueries * problem.q().row_bytes()));
  problem.q().read_rows(0, 0, {0, kQueries}, queries.data());
  std::vector<int64_t> index(kQueries);
  std::iota(index.begin(), index.end(), 0);
  std::vector<RowNorm> norms(kQueries);
  std::vector<float> weights(kQueries * kKeys);
  std::byte* const block = reinterpret_cast<std::byte*>(weights.data());
  std::vector<std::byte> workspace(
      static_cast<size_t>(backend.workspace_bytes(problem, kQueries, kKeys, true)));
  head->emit_panel({queries.data(), index}, norms, {0, kKeys},
                   {{&block, 1}, kKeys, kKeys, Encoding::f32}, workspace);
  return weights;
}

}  // namespace

void check_known_answers(const TileBackend& backend, const TileBackend& trusted, bool tf32) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    AttentionProblem::Parts parts;
    parts.q = random_tensor(dtype, kQueries, 1);
    parts.k = random_tensor(dtype, kKeys, 2);
    parts.mask = Mask::window(700);
    parts.id.kind = CallKind::cross;
    parts.name = "the device's first maps";
    const AttentionProblem problem = AttentionProblem::make(std::move(parts));
    const std::vector<float> got = weights_of(backend, problem);
    const std::vector<float> expected = weights_of(trusted, problem);
    const float relative = tf32 && dtype == DType::f32 ? 2e-2f : 2e-4f;
    for (size_t i = 0; i < got.size(); ++i) {
      const float allowed = 1e-3f / kKeys + relative * expected[i];
      if (std::fabs(got[i] - expected[i]) <= allowed) continue;
      throw Error(ErrorCode::unavailable,
                  backend.description() + ": computes a map of " + std::string(dtype_name(dtype)) +
                      " tensors wrongly: weight (" + std::to_string(i / kKeys) + ", " +
                      std::to_string(i % kKeys) + ") is " + std::to_string(got[i]) + ", expected " +
                      std::to_string(expected[i]));
    }
  }
}

}  // namespace attnscope

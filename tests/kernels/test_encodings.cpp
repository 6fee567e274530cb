// How entries are stored: every encoding, and the kernels' encoders against core's definitions.
#include <cmath>
#include <cstring>
#include <random>

#include "core/base/dtype.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

/// Weights over all magnitudes, and the borders of every encoding.
std::vector<float> sample_weights() {
  std::vector<float> weights{
      0,           1,          0x1p-24f,    0x1.fffffep-25f, 0x1p-100f, 0x1p-101f,       0x1p-120f,
      0.5f,        0x1p-14f,   0x1p-28f,    0x1p-38f,        0x1p-39f,  0x1.000002p-39f, 0x1p-40f,
      0.99999994f, 0x1.5p-37f, 0x1.002p-1f, 0x1.006p-1f};
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-42, 0);
  for (int i = 0; i < 3000; ++i) weights.push_back(std::exp2(exponent(random)));
  return weights;
}

template <typename Stored>
std::vector<Stored> encode(const CpuKernels& kernels, const std::vector<float>& weights,
                           float factor, Encoding encoding) {
  std::vector<Stored> stored(weights.size());
  const EncodeRows rows{.source = weights.data(),
                        .factors = &factor,
                        .destination = reinterpret_cast<std::byte*>(stored.data()),
                        .rows = 1,
                        .count = static_cast<int64_t>(weights.size())};
  kernels.encode_weights(rows, encoding);
  return stored;
}

}  // namespace

TEST_CASE("encoders agree with core's definitions on every instruction set") {
  const std::vector<float> weights = sample_weights();
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    INFO(kernels->isa);
    const auto f32 = encode<float>(*kernels, weights, 0.75f, Encoding::f32);
    const auto scaled = encode<f16>(*kernels, weights, 0.75f, Encoding::f16_scaled);
    const auto plain = encode<f16>(*kernels, weights, 0.75f, Encoding::f16);
    const auto codes = encode<uint8_t>(*kernels, weights, 0.75f, Encoding::u8_log2);
    for (size_t i = 0; i < weights.size(); ++i) {
      const float weight = weights[i] * 0.75f;
      INFO("weight " << weight << " at " << i);
      REQUIRE(f32[i] == (weight >= 0x1p-100f ? weight : 0.0f));
      REQUIRE(scaled[i].bits == to_f16(weight * kF16Scale).bits);
      REQUIRE(plain[i].bits == to_f16(weight).bits);
      const int expected = encode_u8_log2(double{weight});
      if (codes[i] == expected) continue;
      // Off by one, and only within a thousandth of the border between two codes.
      const double exact = 255 + std::log2(double{weight}) * 254 / 24;
      REQUIRE(std::abs(codes[i] - expected) == 1);
      REQUIRE(std::fabs(exact - std::floor(exact) - 0.5) < 1e-3);
    }
  }
}

TEST_CASE("logits beyond float16 are stored as its largest number, not as masked ones") {
  const Oracle oracle({.shape = {1, 1, 1, 14, 300, 16},
                       .dtype = DType::f32,
                       .mask = "causal",
                       .amplitude = 100,
                       .scale = 1});
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile wide(14, 300, 128, Encoding::f32);
    GuardedTile half(14, 300, 128, Encoding::f16);
    run.emit(iota(14), {}, {0, 300}, Quantity::logits, wide);
    run.emit(iota(14), {}, {0, 300}, Quantity::logits, half);
    int beyond = 0;
    for (int64_t row = 0; row < 14; ++row) {
      for (int64_t col = 0; col <= row; ++col) {
        const double logit = wide.value(row, col);
        beyond += std::fabs(logit) > 65504 ? 1 : 0;
        REQUIRE(half.value(row, col) ==
                to_float(to_f16(static_cast<float>(std::clamp(logit, -65504.0, 65504.0)))));
      }
      REQUIRE(std::isinf(half.value(row, 299)));
    }
    CHECK(beyond > 0);
  }
}

TEST_CASE("logits are stored as float32 and float16, masked ones as minus infinity") {
  const Oracle oracle({.shape = {1, 1, 1, 14, 300, 16}, .dtype = DType::f16, .mask = "causal"});
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile wide(14, 290, 128, Encoding::f32);
    GuardedTile half(14, 290, 128, Encoding::f16);
    run.emit(iota(14), {}, {7, 297}, Quantity::logits, wide);
    run.emit(iota(14), {}, {7, 297}, Quantity::logits, half);
    CHECK(wide.guards_intact());
    CHECK(half.guards_intact());
    for (int64_t row = 0; row < 14; ++row) {
      for (int64_t col = 0; col < 290; ++col) {
        const double logit = wide.value(row, col);
        if (col + 7 > row) {
          REQUIRE(logit == -std::numeric_limits<double>::infinity());
        }
        // The reference rounds its double; only the kernels' float32 logit is the same twice.
        const double tolerance = named.name == "reference" ? 1e-6 * std::fabs(logit) : 0;
        const double rounded = to_float(to_f16(static_cast<float>(logit)));
        if (half.value(row, col) == rounded) continue;
        REQUIRE(std::fabs(half.value(row, col) - rounded) <= tolerance);
      }
    }
  }
}

TEST_CASE("stored weights stay within their encoding's error") {
  const Oracle oracle({.shape = {1, 1, 1, 40, 2000, 32}, .dtype = DType::bf16});
  std::vector<Oracle::Row> expected;
  for (int64_t i = 0; i < 40; ++i) expected.push_back(oracle.row(0, 0, i));
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile scaled(40, 2000, 512, Encoding::f16_scaled);
    GuardedTile codes(40, 2000, 512, Encoding::u8_log2);
    run.emit_panel(iota(40), {0, 2000}, scaled);
    run.emit_panel(iota(40), {0, 2000}, codes);
    CHECK(scaled.guards_intact());
    CHECK(codes.guards_intact());
    double worst_code = 0;
    for (int64_t row = 0; row < 40; ++row) {
      double l1 = 0;
      for (int64_t col = 0; col < 2000; ++col) {
        const double weight = expected[static_cast<size_t>(row)].weights[static_cast<size_t>(col)];
        l1 += std::fabs(scaled.value(row, col) - weight);
        const double decoded = decode_u8_log2(static_cast<uint8_t>(codes.value(row, col)));
        if (weight >= 0x1p-23) {
          worst_code = std::max(worst_code, std::fabs(decoded / weight - 1));
        }
      }
      CHECK(l1 <= 0x1p-11 + 2000 * 0x1p-39);
    }
    CHECK(worst_code <= 0.0335);
  }
}

}  // namespace attnscope::test

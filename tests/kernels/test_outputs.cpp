// Attention outputs of every backend against sums over V taken directly in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/stream/value_panels.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"

namespace attnscope::test {
namespace {

const std::vector<NamedBackend>& backends() {
  static const std::vector<NamedBackend> all = [] {
    std::vector<NamedBackend> found = all_backends();
    for (NamedBackend& named : all_backends()) {
      if (named.name == "reference") {
        // Its heads have no kernel for outputs.
        found.push_back({"reference by weights",
                         std::make_unique<ForwardingBackend>(std::move(named.backend)), false});
      }
    }
    return found;
  }();
  return all;
}

constexpr float kGuard = -54321.5f;

/// Outputs of some rows between guards.
struct Outputs {
  int64_t rows, width, stride;
  std::vector<float> memory;
  std::vector<RowNorm> norms;

  Outputs(const HeadRun& run, const std::vector<int64_t>& index, int64_t channels)
      : rows(static_cast<int64_t>(index.size())),
        width(channels),
        stride(channels + 3),
        memory(static_cast<size_t>((rows + 2) * stride), kGuard) {
    norms = run.outputs(index, {memory.data() + stride, stride});
  }
  float at(int64_t row, int64_t c) const {
    return memory[static_cast<size_t>((row + 1) * stride + c)];
  }
  bool guards_intact() const {
    for (int64_t i = 0; i < static_cast<int64_t>(memory.size()); ++i) {
      const bool inside = i / stride > 0 && i / stride <= rows && i % stride < width;
      if (!inside && memory[static_cast<size_t>(i)] != kGuard) return false;
    }
    return true;
  }
};

/// Of one output: what rounded weights and float32 sums over 256 keys may add up to.
double tolerance(double logit_error, double magnitude, double largest) {
  return (3e-5 + 2 * logit_error) * magnitude + 0x1p-90 * largest;
}

void check_head(const Oracle& oracle, const NamedBackend& named, int64_t batch, int64_t head) {
  const AttentionCase& description = oracle.description();
  const int64_t width = description.value_width;
  INFO(oracle.text() << " dv=" << width << " b=" << batch << " h=" << head << ", backend "
                     << named.name);
  const HeadRun run(oracle, *named.backend, batch, head);
  const std::vector<int64_t> rows = iota(description.shape.queries);
  const Outputs outputs(run, rows, width);
  CHECK(outputs.guards_intact());
  double worst = 0, largest_output = 0;
  std::string place;
  for (int64_t i = 0; i < outputs.rows; ++i) {
    const Oracle::Row row = oracle.row(batch, head, i);
    const double logit_error = logit_error_of(named, description, row);
    if (is_normalised(description.score)) {
      const double lse = outputs.norms[static_cast<size_t>(i)].lse();
      if (std::isinf(row.lse)) {
        CHECK(lse == row.lse);
      } else {
        const double of_sums = lse_error_of(named, description, row);
        CHECK(std::fabs(lse - row.lse) <= 2e-5 + 2e-6 * std::fabs(row.lse) + of_sums);
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0, magnitude = 0, largest = 0;
      for (size_t j = 0; j < row.weights.size(); ++j) {
        const double value = oracle.value(batch, head, static_cast<int64_t>(j), c);
        sum += row.weights[j] * value;
        magnitude += row.weights[j] * std::fabs(value);
        largest = std::max(largest, std::fabs(value));
      }
      largest_output = std::max(largest_output, std::fabs(sum));
      const double got = static_cast<double>(outputs.at(i, c));
      if (std::isinf(row.lse) && is_normalised(description.score)) {
        CHECK(got == 0);
        continue;
      }
      const double error = std::fabs(got - sum) / tolerance(logit_error, magnitude, largest);
      if (error <= worst) continue;
      worst = std::isnan(error) ? 1e300 : error;
      place = "row " + std::to_string(i) + ", channel " + std::to_string(c) + ": got " +
              std::to_string(got) + ", expected " + std::to_string(sum);
    }
  }
  INFO(place);
  CHECK(worst <= 1);
  const bool only_padding = description.mask == "padded_keys" && description.shape.batch > 1 &&
                            batch == description.shape.batch - 1;
  if (description.mask != "masked_rows") CHECK((largest_output > 0) != only_padding);
}

void check_case(const AttentionCase& description) {
  const Oracle oracle(description);
  for (const NamedBackend& named : backends()) {
    if (named.is_twin_for(description.dtype) || named.leaves(oracle.problem())) continue;
    check_head(oracle, named, 0, 0);
    const Shape& s = description.shape;
    if (s.batch * s.heads > 1) check_head(oracle, named, s.batch - 1, s.heads - 1);
  }
}

constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("outputs of every shape and dtype agree with double precision", "[numbers]") {
  struct Case {
    Shape shape;
    int64_t width;
  };
  const Case cases[] = {{{1, 1, 1, 1, 1, 1}, 1},      {{1, 1, 1, 3, 257, 1}, 33},
                        {{1, 1, 1, 130, 31, 3}, 5},   {{2, 4, 2, 25, 511, 32}, 32},
                        {{1, 6, 2, 13, 256, 64}, 64}, {{1, 2, 2, 61, 300, 64}, 128},
                        {{1, 1, 1, 2, 33, 8}, 4096},  {{1, 3, 1, 100, 700, 16}, 72}};
  for (const Case& c : cases) {
    for (const DType dtype : kDTypes) {
      check_case({.shape = c.shape, .dtype = dtype, .value_width = c.width});
    }
  }
}

TEST_CASE("outputs under every mask and score function agree with double precision", "[numbers]") {
  for (const std::string_view mask : kMaskNames) {
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid,
                                      ScoreFunction::linear_elu1, ScoreFunction::linear_relu}) {
      const bool finite_bias = mask == "dense_float" || mask.ends_with("_bias");
      if (is_linear(score) && finite_bias) continue;
      check_case({.shape = {2, 4, 2, 29, 601, 8},
                  .dtype = score == ScoreFunction::sigmoid ? DType::f16 : DType::bf16,
                  .score = score,
                  .mask = mask,
                  .value_width = 40});
    }
  }
}

TEST_CASE("outputs of capped logits and sinks agree with double precision", "[numbers]") {
  for (const auto& [score, sinks] : {std::pair{ScoreFunction::softcap(3), "none"},
                                     {ScoreFunction::softcap(30), "query"},
                                     {ScoreFunction::softmax, "head"}}) {
    check_case({.shape = {2, 4, 2, 29, 601, 8},
                .dtype = DType::bf16,
                .score = score,
                .mask = "causal",
                .sinks = sinks,
                .value_width = 40});
  }
}

TEST_CASE("outputs of products of one sign are within their proven bound", "[numbers]") {
  for (const DType dtype : kDTypes) {
    check_case({.shape = {1, 1, 1, 30, 600, 64},
                .dtype = dtype,
                .common_channel = 100,
                .value_width = 16});
  }
}

TEST_CASE("outputs of tiny and huge logits and values agree with double precision", "[numbers]") {
  for (const DType dtype : kDTypes) {
    check_case({.shape = {1, 1, 1, 30, 600, 64},
                .dtype = dtype,
                .amplitude = 35,
                .scale = 1,
                .value_width = 16});
    check_case(
        {.shape = {1, 1, 1, 30, 600, 64}, .dtype = dtype, .amplitude = 1e-3, .value_width = 16});
    // Rows whose reference moves while they are summed.
    check_case({.shape = {1, 1, 1, 90, 1500, 8},
                .dtype = dtype,
                .amplitude = 6,
                .scale = 1,
                .value_width = 16,
                .value_amplitude = 1000});
    check_case({.shape = {1, 1, 1, 20, 600, 8},
                .dtype = dtype,
                .value_width = 8,
                .value_amplitude = 1e-3});
  }
}

TEST_CASE("the identity as V gives the weights") {
  constexpr int64_t kKeys = 300, kQueries = 50;
  const Oracle oracle(
      {.shape = {1, 1, 1, kQueries, kKeys, 16}, .mask = "causal", .value_width = kKeys});
  AlignedVector<float> identity(
      static_cast<size_t>(ceil_div(kKeys, kValueChannels) * kKeys * kValueChannels));
  for (int64_t j = 0; j < kKeys; ++j) {
    identity[static_cast<size_t>((j / kValueChannels * kKeys + j) * kValueChannels +
                                 j % kValueChannels)] = 1;
  }
  for (const NamedBackend& named : all_backends()) {
    if (named.bf16_dots) continue;
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile tile(kQueries, kKeys, kKeys, Encoding::f32);
    run.emit_panel(iota(kQueries), {0, kKeys}, tile);
    std::vector<float> out(static_cast<size_t>(kQueries * kKeys), kGuard);
    run.outputs(iota(kQueries), {out.data(), kKeys}, {identity.data(), kKeys, kKeys});
    double worst = 0;
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < kKeys; ++j) {
        const double weight = tile.value(i, j);
        const double got = static_cast<double>(out[static_cast<size_t>(i * kKeys + j)]);
        worst = std::max(worst, std::fabs(got - weight) - 0x1p-22 * weight);
      }
    }
    CHECK(worst <= 0x1p-90);
  }
}

TEST_CASE("bits of outputs depend neither on how rows are cut nor on the instruction set") {
  // References move, so that rescaling is part of it.
  const Oracle oracle({.shape = {1, 1, 1, 130, 1100, 24},
                       .dtype = DType::bf16,
                       .mask = "key_bias",
                       .amplitude = 4,
                       .scale = 1,
                       .value_width = 40});
  std::map<std::string, std::vector<std::vector<float>>> by_name;
  for (const NamedBackend& named : all_backends()) {
    if (named.name == "reference" || named.backend->name() == "cpu-nofma") continue;
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    const Outputs whole(run, iota(130), 40);
    for (const int64_t first : {0, 1, 11, 95, 96, 129}) {
      std::vector<int64_t> part;
      for (int64_t i = first; i < 130; ++i) part.push_back(i);
      const Outputs again(run, part, 40);
      CHECK(std::memcmp(&again.memory[static_cast<size_t>(again.stride)],
                        &whole.memory[static_cast<size_t>((first + 1) * whole.stride)],
                        part.size() * static_cast<size_t>(whole.stride) * 4) == 0);
    }
    if (!named.bf16_dots) by_name[named.kind()].push_back(whole.memory);
  }
  for (const auto& [name, results] : by_name) {
    INFO(name);
    for (const auto& other : results) CHECK((other == results.front()));
  }
}

TEST_CASE("values beyond what float32 products hold are refused, not spread") {
  const Oracle oracle({.shape = {1, 1, 1, 5, 300, 8},
                       .dtype = DType::f32,
                       .value_width = 4,
                       .value_amplitude = 3e37});
  for (const NamedBackend& named : all_backends()) {
    if (named.name == "reference" || named.bf16_dots) continue;
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    std::vector<float> out(5 * 4);
    std::string message;
    try {
      run.outputs(iota(5), {out.data(), 4});
    } catch (const Error& error) {
      if (error.code() == ErrorCode::value) message = error.what();
    }
    if (!message.empty()) {
      CHECK(message.find("case: head 0, query ") != std::string::npos);
      continue;
    }
    // Weights that are normalised before they meet V need not overflow: then they must be right.
    CHECK(named.backend->name().starts_with("cuda"));
    for (int64_t i = 0; i < 5; ++i) {
      const Oracle::Row row = oracle.row(0, 0, i);
      for (int64_t c = 0; c < 4; ++c) {
        double expected = 0;
        double magnitude = 0;
        for (int64_t j = 0; j < 300; ++j) {
          const double term = row.weights[static_cast<size_t>(j)] * oracle.value(0, 0, j, c);
          expected += term;
          magnitude += std::fabs(term);
        }
        const auto got = static_cast<double>(out[static_cast<size_t>(i * 4 + c)]);
        CHECK(std::fabs(got - expected) <= 1e-4 * magnitude);
      }
    }
  }
}

}  // namespace attnscope::test

// Weights of either sign (linear:normaliser): entries and outputs of every backend against double.
#include <cmath>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/stream/value_panels.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

namespace attnscope::test {
namespace {

constexpr int64_t kRows = 37, kKeys = 700, kWidth = 48, kChannels = 40;

std::vector<float> ramp(int64_t count, double step, double shift) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(std::sin(step * static_cast<double>(i) + shift)));
  }
  return values;
}

struct Case {
  std::vector<float> q = ramp(kRows * kWidth, 0.7, 0.2), k = ramp(kKeys * kWidth, 1.3, 0.1),
                     v = ramp(kKeys * kChannels, 0.37, 0.4);
  AttentionProblem problem = made();

  AttentionProblem made() const {
    AttentionProblem::Parts parts;
    parts.q = tensor("q", kRows, kWidth, q);
    parts.k = tensor("k", kKeys, kWidth, k);
    parts.v = tensor("v", kKeys, kChannels, v);
    parts.scale = 0.25;
    parts.score = ScoreFunction::linear_normaliser;
    parts.id.kind = CallKind::cross;
    return AttentionProblem::make(std::move(parts));
  }
  static HeadTensor tensor(const char* name, int64_t tokens, int64_t width,
                           const std::vector<float>& values) {
    return {make_tensor(name, DType::f32, {1, 1, tokens, width}, values), Layout::bhsd};
  }
  double weight(int64_t row, int64_t key) const {
    double sum = 0;
    for (int64_t c = 0; c < kWidth; ++c) {
      sum += double{q[static_cast<size_t>(row * kWidth + c)]} *
             double{k[static_cast<size_t>(key * kWidth + c)]};
    }
    return 0.25 * sum;
  }
  double output(int64_t row, int64_t channel) const {
    double sum = 0;
    for (int64_t key = 0; key < kKeys; ++key) {
      sum += weight(row, key) * double{v[static_cast<size_t>(key * kChannels + channel)]};
    }
    return sum;
  }
  QueryBlock queries(const std::vector<int64_t>& index) const {
    return {reinterpret_cast<const std::byte*>(q.data()), index};
  }
};

void check_entries(const Case& of, const BoundHead& head, const TileBackend& backend,
                   Quantity quantity) {
  const std::vector<int64_t> index = iota(kRows);
  const IndexRange keys{3, kKeys - 5};
  AlignedVector<std::byte> workspace(
      static_cast<size_t>(backend.workspace_bytes(of.problem, kRows, keys.size(), false)));
  std::vector<float> entries(static_cast<size_t>(kRows * keys.size()));
  auto* const tile = reinterpret_cast<std::byte*>(entries.data());
  head.emit(of.queries(index), {}, keys, quantity, {{&tile, 1}, keys.size(), keys.size()},
            workspace);
  double worst = 0;
  int64_t below = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < keys.size(); ++j) {
      const double got = entries[static_cast<size_t>(r * keys.size() + j)];
      worst = std::max(worst, std::fabs(got - of.weight(r, keys.begin + j)));
      if (got < 0) ++below;
    }
  }
  CHECK(worst < 1e-5);
  CHECK(below > kRows);
}

void check_outputs(const Case& of, const BoundHead& head, const TileBackend& backend) {
  const std::vector<int64_t> index = iota(kRows);
  const BoundValues values(of.problem, 0, 0);
  AlignedVector<std::byte> workspace(
      static_cast<size_t>(backend.outputs_workspace_bytes(of.problem, kRows)));
  std::vector<float> out(static_cast<size_t>(kRows * kChannels));
  head.outputs(of.queries(index), {}, values.panels(), {out.data(), kChannels}, workspace);
  double worst = 0, largest = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const double expected = of.output(r, c);
      largest = std::max(largest, std::fabs(expected));
      worst = std::max(worst,
                       std::fabs(double{out[static_cast<size_t>(r * kChannels + c)]} - expected));
    }
  }
  CHECK(worst < 1e-4 * largest);
}

}  // namespace

TEST_CASE("weights of either sign are the products, and their outputs sums of them") {
  const Case of;
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const auto head = named.backend->bind(of.problem, 0, 0);
    check_entries(of, *head, *named.backend, Quantity::logits);
    const bool device = named.backend->device() != nullptr;
    if (!device) {
      check_entries(of, *head, *named.backend, Quantity::weights);
      check_outputs(of, *head, *named.backend);
    } else {
      CHECK(refused([&] { check_outputs(of, *head, *named.backend); }, ErrorCode::usage,
                    {"does not compute outputs of score linear:normaliser", "--backend cpu"}) ==
            "");
    }
  }
}

TEST_CASE("weights of either sign have no mask") {
  const Case of;
  CHECK(refused(
            [&] {
              (void)of.problem.with_mask(Mask::key_range({0, 4}, kKeys));
            },
            ErrorCode::usage, {"score linear:normaliser takes no mask"}) == "");
}

}  // namespace attnscope::test

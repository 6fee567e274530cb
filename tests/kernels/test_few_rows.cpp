// Heads that are bound for a few rows read K anew for each call: the bits of packed heads.
#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

#include "core/base/aligned_vector.h"
#include "core/base/error.h"
#include "core/stream/few_rows.h"
#include "core/tensor/memory_tensor.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/keys/product_stream.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/simd/cpu_dispatch.h"
#include "tests/support/backend/backend_harness.h"
#include "tests/support/backend/forwarding_backend.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

namespace attnscope::test {
namespace {

/// Binds every head for a few rows.
class FewRows : public ForwardingBackend {
 public:
  explicit FewRows(std::unique_ptr<TileBackend> inner) : FewRows(*inner, inner) {}

  int64_t outputs_workspace_bytes(const AttentionProblem& problem, int64_t rows) const override {
    return backend_.outputs_workspace_bytes(problem, rows);
  }
  std::unique_ptr<BoundHead> bind(const AttentionProblem& problem, int64_t batch,
                                  int64_t head) const override {
    return few_.bind_for_few(problem, batch, head);
  }
  int64_t few_rows(const AttentionProblem& problem) const { return few_.few_rows(problem); }

 private:
  FewRows(const TileBackend& backend, std::unique_ptr<TileBackend>& inner)
      : ForwardingBackend(std::move(inner)),
        backend_(backend),
        few_(dynamic_cast<const FewRowBackend&>(backend)) {}

  const TileBackend& backend_;
  const FewRowBackend& few_;
};

/// Every kind of products on every instruction set of this machine, on so many threads.
std::vector<CpuBackendOptions> all_ways(int threads) {
  std::vector<CpuBackendOptions> ways;
  for (const CpuKernels* kernels : available_cpu_kernels()) {
    const auto add = [&](CpuProducts products, const CpuKernels::Products& there) {
      if (there.softmax != nullptr) ways.push_back({threads, kernels, products});
    };
    add(CpuProducts::floats, kernels->f32);
    if (sanitized() && kernels != &best_cpu_kernels()) continue;
    add(CpuProducts::bf16, kernels->bf16);
    add(CpuProducts::bf16_emulated, kernels->bf16_emulated);
    add(CpuProducts::tiles, kernels->tiles);
    add(CpuProducts::tiles_emulated, kernels->tiles_emulated);
    add(CpuProducts::f16_tiles, kernels->f16_tiles);
    add(CpuProducts::f16_tiles_emulated, kernels->f16_tiles_emulated);
  }
  return ways;
}

/// Keys of one block, of a ragged one, and of many pieces; references that move; masks that leave
/// out blocks and cut through others.
std::vector<AttentionCase> few_row_cases() {
  std::vector<AttentionCase> cases;
  for (const std::string_view mask : kMaskNames) {
    cases.push_back({.shape = {1, 2, 1, 40, 1111, 6},
                     .dtype = DType::bf16,
                     .mask = mask,
                     .amplitude = 4,
                     .scale = 1,
                     .value_width = 5});
  }
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    cases.push_back({.shape = {1, 1, 1, 14, 20, 33}, .dtype = dtype, .value_width = 3});
    cases.push_back({.shape = {2, 2, 1, 14, 9001, 128}, .dtype = dtype, .amplitude = 3});
    // Every other row has powers too large for the table.
    cases.push_back({.shape = {1, 1, 1, 14, 3000, 32},
                     .dtype = dtype,
                     .amplitude = 50,
                     .scale = 0.15,
                     .q_shift = 60,
                     .mixed_rows = true});
    // Lengths that float32 does not hold, of which the packed way says that they are infinite.
    if (dtype == DType::f16) continue;
    cases.push_back(
        {.shape = {1, 1, 1, 14, 700, 64}, .dtype = dtype, .amplitude = 3e18, .scale = 1e-37});
    cases.push_back(
        {.shape = {1, 1, 1, 14, 9001, 96}, .dtype = dtype, .score = ScoreFunction::sigmoid});
  }
  cases.push_back({.shape = {1, 1, 1, 14, 9001, 64},
                   .dtype = DType::f16,
                   .score = ScoreFunction::linear_elu1,
                   .mask = "window",
                   .k_shift = -60});
  cases.push_back({.shape = {1, 1, 1, 14, 2000, 8},
                   .dtype = DType::bf16,
                   .far = {.keys = {300, 600}, .product = -1e17}});
  return cases;
}

/// The tile unit's, as far as this machine can emulate it; null: it cannot.
std::unique_ptr<TileBackend> emulating_backend(int threads) {
  if (!cpu_products_obstacle(CpuProducts::tiles_emulated).empty()) return nullptr;
  return make_cpu_backend({.threads = threads, .products = CpuProducts::tiles_emulated});
}

bool same(const std::vector<RowNorm>& a, const std::vector<RowNorm>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RowNorm& x, const RowNorm& y) {
    return x.sum == y.sum && x.exponent == y.exponent;
  });
}

/// Ascending.
std::vector<int64_t> choose_rows(int64_t of, int64_t most, std::mt19937& random) {
  std::vector<int64_t> rows = iota(of);
  std::shuffle(rows.begin(), rows.end(), random);
  rows.resize(std::uniform_int_distribution<size_t>(1, static_cast<size_t>(most))(random));
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool same_rows(const GuardedTile& a, const GuardedTile& b, size_t rows) {
  bool equal = a.guards_intact() && b.guards_intact();
  for (size_t row = 0; equal && row < rows; ++row) {
    equal = a.row_bytes(static_cast<int64_t>(row)) == b.row_bytes(static_cast<int64_t>(row));
  }
  return equal;
}

/// Some rows and keys of a head, asked of both.
void check_same(const Oracle& oracle, const HeadRun& packed, const HeadRun& few,
                const std::vector<int64_t>& rows, IndexRange keys) {
  const AttentionProblem& problem = oracle.problem();
  const auto count = static_cast<int64_t>(rows.size());
  const bool normalised = is_normalised(problem.score());
  std::vector<RowNorm> norms;
  if (normalised) {
    norms = packed.norms(rows);
    CHECK(same(few.norms(rows), norms));
    GuardedTile expected(count, keys.size(), 130, Encoding::f32);
    GuardedTile given(count, keys.size(), 130, Encoding::f32);
    CHECK(same(packed.emit_panel(rows, keys, expected), norms));
    CHECK(same(few.emit_panel(rows, keys, given), norms));
    CHECK(same_rows(expected, given, rows.size()));
  }
  for (const Quantity quantity : {Quantity::weights, Quantity::logits}) {
    if (quantity == Quantity::logits && is_linear(problem.score())) continue;
    GuardedTile expected(count, keys.size(), 130, Encoding::f32);
    GuardedTile given(count, keys.size(), 130, Encoding::f32);
    const auto divisors = quantity == Quantity::weights ? norms : std::vector<RowNorm>();
    packed.emit(rows, divisors, keys, quantity, expected);
    few.emit(rows, divisors, keys, quantity, given);
    CHECK(same_rows(expected, given, rows.size()));
  }
  if (!problem.v()) return;
  const int64_t width = problem.v().width();
  std::vector<float> expected(static_cast<size_t>(count * width));
  std::vector<float> given(expected.size(), -1.0f);
  CHECK(same(packed.outputs(rows, {expected.data(), width}), norms));
  CHECK(same(few.outputs(rows, {given.data(), width}), norms));
  CHECK(std::memcmp(expected.data(), given.data(), expected.size() * sizeof(float)) == 0);
}

}  // namespace

TEST_CASE("rows have the bits of a packed head's, whatever the threads, products and masks") {
  std::mt19937 random(11);
  for (const AttentionCase& description : few_row_cases()) {
    const Oracle oracle(description);
    const AttentionProblem& problem = oracle.problem();
    const int64_t batch = problem.batch() - 1, head = problem.num_heads() - 1;
    for (const int threads : {1, 3}) {
      if (sanitized() && threads == 1) continue;
      for (const CpuBackendOptions& way : all_ways(threads)) {
        const auto backend = make_cpu_backend(way);
        const FewRows for_few(make_cpu_backend(way));
        REQUIRE(for_few.few_rows(problem) == kRegisterRows);
        INFO(oracle.text() << ", " << backend->description() << ", products "
                           << static_cast<int>(way.products));
        const HeadRun packed(oracle, *backend, batch, head);
        const HeadRun few(oracle, for_few, batch, head);
        for (int trial = 0; trial < (sanitized() ? 1 : 2); ++trial) {
          const auto rows = choose_rows(problem.num_queries(), for_few.few_rows(problem), random);
          std::uniform_int_distribution<int64_t> at(0, problem.num_keys() - 1);
          const int64_t a = at(random), b = at(random);
          check_same(oracle, packed, few, rows, {std::min(a, b), std::max(a, b) + 1});
        }
        check_same(oracle, packed, few, {0}, {0, problem.num_keys()});
      }
    }
  }
}

TEST_CASE("few rows are bound without room for K, many with it") {
  const Oracle oracle({.shape = {1, 1, 1, 40, 60000, 64}, .dtype = DType::bf16});
  const auto backend = make_cpu_backend({.threads = 2, .products = CpuProducts::vectors});
  const int64_t floats_of_row = round_up(60000, kBlockKeys);
  const auto emulating = emulating_backend(2);
  if (emulating != nullptr) {
    // Products of the rows with all keys are kept.
    const auto tiles = [&](int64_t rows) {
      const auto cost = bind_cost_for_rows(*emulating, oracle.problem(), rows);
      return cost.resident + cost.transient;
    };
    CHECK(tiles(2) - tiles(1) == 4 * floats_of_row + oracle.problem().q().row_bytes());
    CHECK(tiles(1) < 4 * floats_of_row + (int64_t{3} << 20));
    CHECK(tiles(kRegisterRows) < tiles(kRegisterRows + 1));
    CHECK(tiles(kRegisterRows + 1) == tiles(oracle.problem().num_queries()));
  }
  const auto bytes = [&](int64_t rows) {
    const auto cost = bind_cost_for_rows(*backend, oracle.problem(), rows);
    return cost.resident + cost.transient;
  };
  const int64_t k = oracle.problem().num_keys() * oracle.problem().k().row_bytes();
  CHECK(bytes(kRegisterRows) < k / 2);
  CHECK(bytes(kRegisterRows) == bytes(1));
  CHECK(bytes(kRegisterRows + 1) > k);
  CHECK(bytes(kRegisterRows + 1) == bytes(oracle.problem().num_queries()));
}

namespace {

constexpr int64_t kKeys = 30000;
constexpr int64_t kWidth = 64;

/// K of random numbers, which fails wherever one of some tokens is read.
class SpoiltKeys : public TensorSource {
 public:
  /// `bad`: tokens that cannot be read; `not_finite`: those of which channel 7 is infinite or NaN.
  explicit SpoiltKeys(std::vector<int64_t> bad, const std::vector<int64_t>& not_finite = {})
      : bad_(std::move(bad)), numbers_(kKeys * kWidth) {
    std::mt19937 random(5);
    for (float& x : numbers_) x = std::normal_distribution<float>()(random);
    for (const int64_t token : not_finite) {
      numbers_[static_cast<size_t>(token * kWidth + 7)] =
          token % 2 == 0 ? -std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
    }
  }

  const std::string& name() const override { return name_; }
  DType dtype() const override { return DType::f32; }
  std::span<const int64_t> shape() const override { return shape_; }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    for (const int64_t token : bad_) {
      if (token >= begin[0] && token < begin[0] + count[0]) {
        throw Error(ErrorCode::file, "token " + std::to_string(token));
      }
    }
    std::memcpy(destination, numbers_.data() + begin[0] * kWidth,
                static_cast<size_t>(count[0] * kWidth) * sizeof(float));
  }

 private:
  const std::vector<int64_t> bad_;
  std::vector<float> numbers_;
  const std::string name_ = "k";
  const std::vector<int64_t> shape_{kKeys, kWidth};
};

struct Stream {
  PackedFormat format{DType::f32, kWidth, ScoreFunction::softmax, PackedProducts::floats};
  HeadTensor k;
  AlignedVector<float> q;

  explicit Stream(std::vector<int64_t> bad)
      : k(std::make_shared<SpoiltKeys>(std::move(bad)), Layout::sd), q(kRegisterRows * kWidth) {
    for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<float>(i % 7) - 3;
  }
  StreamedProduct product() const {
    return {.format = format, .k = k, .q = q.data(), .raw = best_cpu_kernels().f32.raw};
  }
};

constexpr int64_t kBlocks = (kKeys + kBlockKeys - 1) / kBlockKeys;

/// The message with which the tile unit refuses a row of these keys; empty where it takes the row.
std::string refusal(std::shared_ptr<const TensorSource> keys, int threads) {
  // Rows of equal numbers, in f32.
  const std::vector<std::byte> q(2 * kWidth * sizeof(float), std::byte{0x3e});
  AttentionProblem::Parts parts;
  parts.q = HeadTensor(
      std::make_shared<MemoryTensor>("q", DType::f32, std::vector<int64_t>{2, kWidth}, q),
      Layout::sd);
  parts.k = HeadTensor(std::move(keys), Layout::sd);
  parts.id.kind = CallKind::cross;
  const AttentionProblem problem = AttentionProblem::make(std::move(parts));
  const auto backend = emulating_backend(threads);
  const auto head = bind_for_rows(*backend, problem, 0, 0, 1);
  std::vector<std::byte> workspace(
      static_cast<size_t>(backend->workspace_bytes(problem, 1, 0, false)));
  const int64_t index = 1;
  RowNorm norm;
  try {
    head->row_norms({q.data(), {&index, 1}}, {&norm, 1}, workspace);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a stream of products may leave out blocks and begin and end anywhere") {
  const Stream given({});
  AlignedVector<float> panels(static_cast<size_t>(packed_key_elements(given.format, kKeys)));
  pack_keys(given.format, given.k, 0, 0, 1, panels.data());
  std::mt19937 random(2);
  for (const int threads : {1, 2, 5}) {
    for (int round = 0; round < 10; ++round) {
      const IndexRange blocks{round * 3, kBlocks - round};
      ProductStream stream(given.product(), blocks, threads);
      bool equal = true;
      for (int64_t block = blocks.begin; block < blocks.end; block += 1 + random() % (2 + round)) {
        const IndexRange keys =
            intersect({block * kBlockKeys, (block + 1) * kBlockKeys}, {0, kKeys});
        AlignedVector<float> expected(kRegisterRows * kBlockKeys);
        best_cpu_kernels().f32.raw({.q = given.q.data(),
                                    .k = panels.data() + block * kBlockKeys * kWidth,
                                    .steps = kWidth,
                                    .panels = (1u << ceil_div(keys.size(), kPanelKeys)) - 1,
                                    .out = expected.data(),
                                    .out_stride = kBlockKeys});
        // Twice: a block stays until another one is asked for.
        for (int again = 0; again < 2; ++again) {
          const float* const products = stream.block(block);
          for (int64_t row = 0; row < kRegisterRows; ++row) {
            equal = equal && std::equal(products + row * stream.stride(),
                                        products + row * stream.stride() + keys.size(),
                                        expected.data() + row * kBlockKeys);
          }
        }
      }
      CHECK(equal);
    }
  }
}

TEST_CASE("a stream of products fails at the first keys that cannot be read") {
  const Stream given({29000, 9000});
  for (const int threads : {1, 2, 5}) {
    for (int round = 0; round < 5; ++round) {
      ProductStream stream(given.product(), {0, kBlocks}, threads);
      std::string failure;
      int64_t taken = 0;
      try {
        for (; taken < kBlocks; ++taken) stream.block(taken);
      } catch (const Error& error) {
        failure = error.what();
      }
      CHECK(failure == "token 9000");
      // Not before the piece that they are in.
      CHECK(taken > 9000 / kBlockKeys - 8);
      CHECK(taken <= 9000 / kBlockKeys);
    }
  }
}

TEST_CASE("a row of the tile unit is refused for the first key that is not finite or not read") {
  if (emulating_backend(1) == nullptr) return skip_test("the tile unit cannot be emulated here");
  const auto keys = [](std::vector<int64_t> bad, const std::vector<int64_t>& not_finite) {
    return std::make_shared<SpoiltKeys>(std::move(bad), not_finite);
  };
  for (const int threads : {1, 2, 5}) {
    for (int round = 0; round < (sanitized() ? 1 : 5); ++round) {
      CHECK(refusal(keys({}, {}), threads).empty());
      CHECK(refusal(keys({29000, 9000}, {20000}), threads) == "token 9000");
      CHECK(refusal(keys({29000}, {kKeys - 1, 8192}), threads) ==
            "k: batch 0, head 0, token 8192, channel 7 is -inf (expected finite numbers)");
      CHECK(refusal(keys({}, {kKeys - 1}), threads) ==
            "k: batch 0, head 0, token 29999, channel 7 is NaN (expected finite numbers)");
    }
  }
}

}  // namespace attnscope::test

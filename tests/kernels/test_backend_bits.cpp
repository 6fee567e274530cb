// Results that must agree to the last bit: of one product and two, any split of rows and keys, any
// instruction set, any number of threads.
#include <random>
#include <thread>

#include "tests/support/backend/backend_harness.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"

namespace attnscope::test {
namespace {

/// Cases whose references move, whose masks cut through blocks, and whose edges are ragged.
std::vector<AttentionCase> bit_cases() {
  std::vector<AttentionCase> cases;
  for (const std::string_view mask : kMaskNames) {
    cases.push_back({.shape = {1, 2, 1, 61, 1111, 6},
                     .dtype = DType::bf16,
                     .mask = mask,
                     .amplitude = 4,
                     .scale = 1});
  }
  cases.push_back({.shape = {1, 1, 1, 61, 900, 64}, .dtype = DType::f16});
  cases.push_back(
      {.shape = {1, 1, 1, 61, 900, 17}, .dtype = DType::f32, .amplitude = 30, .scale = 1});
  cases.push_back(
      {.shape = {1, 1, 1, 61, 900, 17}, .score = ScoreFunction::linear_elu1, .mask = "window"});
  // Several runs of key blocks, of rows with small exponents, with large ones whose references
  // move, and where a mask cuts runs.
  const AttentionCase long_rows{.shape = {1, 1, 1, 130, 4700, 64}, .dtype = DType::bf16};
  cases.push_back(long_rows);
  cases.push_back(long_rows);
  cases.back().amplitude = 4;
  cases.back().scale = 0.5;
  cases.push_back(long_rows);
  cases.back().mask = "window";
  // Products so far below that blocks of the rows that have them are computed in another way.
  for (const double product : {-1e9, -1e17, -1e30}) {
    cases.push_back({.shape = {1, 1, 1, 61, 900, 8},
                     .dtype = DType::bf16,
                     .far = {.keys = {300, 600}, .product = product}});
  }
  cases.push_back({.shape = {1, 1, 1, 61, 900, 8},
                   .dtype = DType::bf16,
                   .far = {.keys = {0, 512}, .bias = -1e30f, .by_row = true}});
  return cases;
}

bool same(const std::vector<RowNorm>& a, const std::vector<RowNorm>& b) {
  bool equal = a.size() == b.size();
  for (size_t i = 0; equal && i < a.size(); ++i) {
    equal = a[i].sum == b[i].sum && a[i].exponent == b[i].exponent;
  }
  return equal;
}

/// A random ascending choice of rows.
std::vector<int64_t> some_rows(int64_t count, std::mt19937& random) {
  std::vector<int64_t> rows;
  const auto share = std::uniform_real_distribution<double>(0.02, 1)(random);
  for (int64_t i = 0; i < count; ++i) {
    if (std::bernoulli_distribution(share)(random)) rows.push_back(i);
  }
  if (rows.empty()) rows.push_back(count / 2);
  return rows;
}

IndexRange some_keys(int64_t count, std::mt19937& random) {
  std::uniform_int_distribution<int64_t> at(0, count - 1);
  const int64_t a = at(random);
  const int64_t b = at(random);
  return {std::min(a, b), std::max(a, b) + 1};
}

/// The whole map from one call.
struct Whole {
  GuardedTile tile;
  std::vector<RowNorm> norms;

  Whole(const Oracle& oracle, const HeadRun& run, Encoding encoding)
      : tile(oracle.problem().num_queries(), oracle.problem().num_keys(), 512, encoding) {
    norms = run.emit_panel(iota(oracle.problem().num_queries()), {0, oracle.problem().num_keys()},
                           tile);
  }
};

/// True where a tile of these rows and keys holds the bytes of the whole map; an entry has `bytes`
/// bytes.
bool same_entries(const Whole& whole, const GuardedTile& tile, const std::vector<int64_t>& rows,
                  IndexRange keys, int64_t bytes) {
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto all = whole.tile.row_bytes(rows[r]);
    const auto part = tile.row_bytes(static_cast<int64_t>(r));
    if (!std::equal(part.begin(), part.end(), all.begin() + keys.begin * bytes)) return false;
  }
  return true;
}

void check_splits(const Oracle& oracle, const NamedBackend& named, std::mt19937& random) {
  const HeadRun run(oracle, *named.backend, 0, oracle.problem().num_heads() - 1);
  const Encoding encoding = random() % 2 == 0 ? Encoding::f32 : Encoding::f16_scaled;
  const Whole whole(oracle, run, encoding);
  CHECK(same(run.norms(iota(oracle.problem().num_queries())), whole.norms));
  for (int trial = 0; trial < (sanitized() ? 1 : 3); ++trial) {
    const auto rows = some_rows(oracle.problem().num_queries(), random);
    const IndexRange keys = some_keys(oracle.problem().num_keys(), random);
    std::vector<RowNorm> norms;
    for (int64_t row : rows) norms.push_back(whole.norms[static_cast<size_t>(row)]);
    INFO(rows.size() << " rows from " << rows.front() << ", keys " << keys.begin << ":"
                     << keys.end);
    const auto count = static_cast<int64_t>(rows.size());
    GuardedTile direct(count, keys.size(), 130, encoding);
    run.emit(rows, norms, keys, Quantity::weights, direct);
    CHECK(direct.guards_intact());
    CHECK(same_entries(whole, direct, rows, keys, encoding_bytes(encoding)));
    GuardedTile panel(count, keys.size(), 70, encoding);
    CHECK(same(run.emit_panel(rows, keys, panel), norms));
    CHECK(panel.guards_intact());
    CHECK(same_entries(whole, panel, rows, keys, encoding_bytes(encoding)));
  }
}

}  // namespace

TEST_CASE("entries and norms do not depend on how the map is cut", "[numbers]") {
  std::mt19937 random(3);
  for (const AttentionCase& description : bit_cases()) {
    const Oracle oracle(description);
    for (const NamedBackend& named : all_backends()) {
      if (named.is_twin_for(description.dtype)) continue;
      INFO(oracle.text() << ", backend " << named.name);
      check_splits(oracle, named, random);
    }
  }
}

TEST_CASE("backends of one name give the same bits on every instruction set", "[numbers]") {
  const auto backends = all_backends();
  for (const AttentionCase& description : bit_cases()) {
    const Oracle oracle(description);
    std::vector<std::pair<std::string, Whole>> seen;
    for (const NamedBackend& named : backends) {
      // The emulation's order of rounding is the instruction's as documented; whether a processor
      // keeps to it, its own tolerance test tells.
      if (named.name.ends_with(" bf16")) continue;
      const HeadRun run(oracle, *named.backend, 0, 0);
      Whole whole(oracle, run, Encoding::f32);
      const std::string kind = named.kind();
      for (const auto& [other_kind, other] : seen) {
        if (other_kind != kind) continue;
        INFO(oracle.text() << ", " << named.name);
        CHECK(same(whole.norms, other.norms));
        CHECK(same_entries(whole, other.tile, iota(oracle.problem().num_queries()),
                           {0, oracle.problem().num_keys()}, 4));
      }
      seen.emplace_back(kind, std::move(whole));
    }
  }
}

TEST_CASE("null blocks are left out and change nothing else") {
  const Oracle oracle({.shape = {1, 1, 1, 30, 900, 16}, .dtype = DType::f16});
  for (const NamedBackend& named : all_backends()) {
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    GuardedTile all(30, 900, 200, Encoding::f16_scaled);
    const auto norms = run.emit_panel(iota(30), {0, 900}, all);
    for (const bool one_product : {false, true}) {
      GuardedTile some(30, 900, 200, Encoding::f16_scaled);
      some.drop_block(0);
      some.drop_block(3);
      if (one_product) {
        CHECK(same(run.emit_panel(iota(30), {0, 900}, some), norms));
      } else {
        run.emit(iota(30), norms, {0, 900}, Quantity::weights, some);
      }
      CHECK(some.guards_intact());
      for (int64_t row = 0; row < 30; ++row) {
        CHECK(some.value(row, 250) == all.value(row, 250));
        CHECK(some.value(row, 899) == all.value(row, 899));
      }
    }
  }
}

TEST_CASE("a bound head serves several threads at once") {
  const Oracle oracle({.shape = {1, 1, 1, 80, 700, 32}, .dtype = DType::bf16, .mask = "causal"});
  for (const NamedBackend& named : all_backends()) {
    if (named.name == "reference") continue;
    INFO(named.name);
    const HeadRun run(oracle, *named.backend, 0, 0);
    const Whole whole(oracle, run, Encoding::f16_scaled);
    std::vector<GuardedTile> tiles;
    for (int i = 0; i < 4; ++i) tiles.emplace_back(20, 700, 512, Encoding::f16_scaled);
    {
      std::vector<std::jthread> threads;
      for (int64_t i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
          std::vector<int64_t> rows = iota(20);
          for (int64_t& row : rows) row += 20 * i;
          run.emit_panel(rows, {0, 700}, tiles[static_cast<size_t>(i)]);
        });
      }
    }
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t row = 0; row < 20; ++row) {
        CHECK(tiles[static_cast<size_t>(i)].row_bytes(row) == whole.tile.row_bytes(20 * i + row));
      }
    }
  }
}

}  // namespace attnscope::test

#include <atomic>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>

#include "core/base/checked_math.h"
#include "core/mask/mask.h"
#include "tests/core/mask/mask_rectangles.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Shape = MaskShape;
using Definition = MaskDefinition;

std::vector<uint8_t> random_bits(std::mt19937_64& random, int64_t count, int64_t one_in) {
  std::vector<uint8_t> bits(static_cast<size_t>(count));
  for (uint8_t& bit : bits) bit = pick(random, 1, one_in) == 1 ? 3 : 0;
  return bits;
}

}  // namespace

TEST_CASE("no mask leaves everything") {
  const Mask none;
  CHECK(none.is_none());
  CHECK(none.describe() == "none");
  CHECK_FALSE(none.has_finite_bias());
  check_mask(
      none, [](int64_t, int64_t, int64_t, int64_t) { return 0.0f; }, {}, true, 200);
  CHECK(none.classify(0, 0, {3, 3}, {0, 5}) == TileClass::empty);
}

TEST_CASE("causal mask") {
  const auto causal = [](int64_t, int64_t, int64_t i, int64_t j) { return masked_unless(j <= i); };
  check_mask(Mask::causal(), causal, {}, true);
  check_mask(Mask::causal(), causal, {1, 1, 30, 200}, true);
  check_mask(Mask::causal(), causal, {1, 1, 200, 30}, true);
  CHECK(Mask::causal().describe() == "causal");
}

TEST_CASE("window mask") {
  for (const int64_t reach :
       {int64_t{0}, int64_t{1}, int64_t{17}, int64_t{1000}, std::numeric_limits<int64_t>::max()}) {
    check_mask(
        Mask::window(reach),
        [=](int64_t, int64_t, int64_t i, int64_t j) {
          return masked_unless(std::abs(i - j) <= reach);
        },
        {}, true);
  }
  CHECK(Mask::window(128).describe() == "window:128");
  CHECK(refused([] { Mask::window(-1); }, ErrorCode::usage, {"window:-1"}) == "");
}

TEST_CASE("key mask") {
  std::mt19937_64 random(3);
  const Shape shape;
  for (const size_t items : {1, 2}) {
    std::vector<std::vector<uint8_t>> valid;
    for (size_t b = 0; b < items; ++b) {
      valid.push_back(random_bits(random, shape.keys, 2));
      // A long run of each kind.
      std::fill_n(valid.back().begin() + 5, 20, uint8_t{1});
      std::fill_n(valid.back().begin() + 40, 20, uint8_t{0});
    }
    check_mask(
        Mask::keys(valid),
        [=](int64_t b, int64_t, int64_t, int64_t j) {
          return masked_unless(
              valid[items == 1 ? 0 : static_cast<size_t>(b)][static_cast<size_t>(j)] != 0);
        },
        shape, true);
  }
  const Mask mask = Mask::keys({{1, 0}, {1, 1}});
  CHECK(refused([&] { mask.check_shape(3, 1, 5, 2); }, ErrorCode::usage, {"2 lists", "3"}) == "");
  CHECK(refused([&] { mask.check_shape(2, 1, 5, 4); }, ErrorCode::usage, {"2 keys", "4"}) == "");
  CHECK(refused([] { Mask::keys({}); }, ErrorCode::usage, {"no list"}) == "");
}

TEST_CASE("key length mask") {
  const std::vector<int64_t> lengths{0, 33};
  check_mask(
      Mask::key_lengths(lengths, 70),
      [=](int64_t b, int64_t, int64_t, int64_t j) {
        return masked_unless(j < lengths[static_cast<size_t>(b)]);
      },
      {}, true);
  CHECK(Mask::key_lengths(lengths, 70).describe() == "key_lengths:0,33");
  CHECK(refused([] { Mask::key_lengths({71}, 70); }, ErrorCode::usage, {"71", "0 to 70"}) == "");
  CHECK(refused([] { Mask::key_lengths({-1}, 70); }, ErrorCode::usage, {"-1"}) == "");
  CHECK(refused([] { Mask::key_lengths({}, 70); }, ErrorCode::usage, {"no length"}) == "");
  CHECK(refused([&] { Mask::key_lengths(lengths, 70).check_shape(2, 1, 5, 71); }, ErrorCode::usage,
                {"70", "71"}) == "");
}

TEST_CASE("key range mask") {
  for (const IndexRange range :
       {IndexRange{0, 70}, IndexRange{0, 9}, IndexRange{20, 41}, IndexRange{69, 70}}) {
    check_mask(
        Mask::key_range(range, 70),
        [=](int64_t, int64_t, int64_t, int64_t j) { return masked_unless(range.contains(j)); }, {},
        true);
  }
  CHECK(Mask::key_range({3, 8}, 70).describe() == "key_range:3-8");
  CHECK(refused([] { Mask::key_range({3, 71}, 70); }, ErrorCode::usage, {"3 to 71", "70"}) == "");
  CHECK(refused([] { Mask::key_range({3, 3}, 70); }, ErrorCode::usage, {"3 to 3"}) == "");
  CHECK(refused(
            [] {
              Mask::key_range({3, 8}, 70).check_shape(2, 1, 5, 71);
            },
            ErrorCode::usage, {"70", "71"}) == "");
}

TEST_CASE("segment mask") {
  // Segment 1 has no queries, segment 3 no keys.
  const std::vector<int64_t> cu_queries{0, 20, 20, 55, 60, 90}, cu_keys{0, 30, 35, 50, 50, 70};
  check_mask(
      Mask::segments(cu_queries, cu_keys),
      [&](int64_t, int64_t, int64_t i, int64_t j) {
        for (size_t s = 0; s + 1 < cu_queries.size(); ++s) {
          if (i >= cu_queries[s] && i < cu_queries[s + 1] && j >= cu_keys[s] &&
              j < cu_keys[s + 1]) {
            return 0.0f;
          }
        }
        return -kInfinity;
      },
      {}, false);
  const Mask two = Mask::segments({0, 4, 8}, {0, 6, 9});
  // The boundaries are part of the name: caches tell masks apart by it.
  CHECK(two.describe().rfind("segments:2:", 0) == 0);
  CHECK(two.describe() == Mask::segments({0, 4, 8}, {0, 6, 9}).describe());
  CHECK(two.describe() != Mask::segments({0, 5, 8}, {0, 6, 9}).describe());
  CHECK(two.describe() != Mask::segments({0, 4, 8}, {0, 5, 9}).describe());
  CHECK(two.classify(0, 0, {0, 4}, {0, 6}) == TileClass::full);
  CHECK(two.classify(0, 0, {4, 8}, {0, 6}) == TileClass::empty);
  CHECK(two.classify(0, 0, {3, 5}, {0, 6}) == TileClass::mixed);
  const auto make = [](std::vector<int64_t> q, std::vector<int64_t> k) {
    return [=] { Mask::segments(q, k); };
  };
  CHECK(refused(make({0, 4}, {0, 2, 4}), ErrorCode::usage, {"1 segments", "2"}) == "");
  CHECK(refused(make({1, 4}, {0, 4}), ErrorCode::usage, {"queries", "begin with 0"}) == "");
  CHECK(refused(make({0, 4}, {0, 3, 2}), ErrorCode::usage, {"keys"}) == "");
  CHECK(refused(make({0}, {0}), ErrorCode::usage, {"queries"}) == "");
  CHECK(refused([&] { two.check_shape(1, 1, 9, 9); }, ErrorCode::usage, {"8 queries", "9"}) == "");
  CHECK(refused([&] { two.check_shape(1, 1, 8, 8); }, ErrorCode::usage, {"9 keys", "8"}) == "");
}

TEST_CASE("block mask") {
  std::mt19937_64 random(5);
  struct Case {
    int64_t heads, block_queries, block_keys, one_in;
  };
  // Blocks of one entry need more than one word of bits a row.
  for (const Case& c : {Case{3, 16, 8, 2}, Case{1, 7, 5, 8}, Case{3, 1, 1, 2}, Case{1, 100, 100, 1},
                        Case{1, 4, 1, 40}}) {
    const Shape shape;
    BlockMask blocks{c.heads,
                     ceil_div(shape.queries, c.block_queries),
                     ceil_div(shape.keys, c.block_keys),
                     c.block_queries,
                     c.block_keys,
                     {}};
    blocks.bits = random_bits(random, c.heads * blocks.query_blocks * blocks.key_blocks, c.one_in);
    // Whole block rows of each kind, beyond a word.
    for (int64_t kb = 0; kb < blocks.key_blocks; ++kb) blocks.bits[static_cast<size_t>(kb)] = 1;
    check_mask(
        Mask::blocks(blocks),
        [&](int64_t, int64_t h, int64_t i, int64_t j) {
          const int64_t row = (c.heads == 1 ? 0 : h) * blocks.query_blocks + i / c.block_queries;
          return masked_unless(
              blocks.bits[static_cast<size_t>(row * blocks.key_blocks + j / c.block_keys)] != 0);
        },
        shape, true);
  }
}

TEST_CASE("block masks that do not fit are refused") {
  const BlockMask good{2, 3, 4, 32, 16, std::vector<uint8_t>(24)};
  const Mask mask = Mask::blocks(good);
  CHECK(mask.describe() == "blocks:32x16");
  mask.check_shape(5, 2, 96, 64);
  mask.check_shape(5, 2, 65, 49);
  CHECK(refused([&] { mask.check_shape(1, 3, 96, 64); }, ErrorCode::usage, {"2 heads", "3"}) == "");
  CHECK(refused([&] { mask.check_shape(1, 2, 97, 64); }, ErrorCode::usage, {"97 queries"}) == "");
  CHECK(refused([&] { mask.check_shape(1, 2, 96, 48); }, ErrorCode::usage, {"48 keys"}) == "");
  BlockMask bad = good;
  bad.bits.pop_back();
  CHECK(refused([&] { Mask::blocks(bad); }, ErrorCode::usage, {"2x3x4", "23"}) == "");
  bad = good;
  bad.block_keys = 0;
  CHECK(refused([&] { Mask::blocks(bad); }, ErrorCode::usage, {"at least 1"}) == "");
  bad = good;
  bad.heads = bad.query_blocks = int64_t{1} << 40;
  CHECK(refused([&] { Mask::blocks(bad); }, ErrorCode::usage, {"blocks need"}) == "");
}

namespace {

/// A mask tensor of this shape (4 extents, of which `drop` leading ones are left out).
struct TensorMask {
  std::shared_ptr<const TensorSource> source;
  Definition bias;
};

TensorMask random_tensor_mask(DType dtype, std::array<int64_t, 4> extent, size_t drop) {
  std::mt19937_64 random(11);
  const auto count = static_cast<size_t>(*checked_count(extent));
  std::vector<float> values(count);
  std::vector<double> stored(count);
  for (size_t i = 0; i < count; ++i) {
    // Runs of 0 and masked keys, told in several ways, finite numbers between.
    const auto key = static_cast<int64_t>(i) % extent[3];
    const int64_t kind = dtype == DType::boolean ? pick(random, 0, 1) : pick(random, 0, 2);
    values[i] = key < 20 || kind == 0   ? 0.0f
                : key < 40 || kind == 1 ? -kInfinity
                                        : 0.25f * static_cast<float>(pick(random, -8, 8));
    constexpr double kMaskedWays[] = {-HUGE_VAL, -1e9, -0x1.fep127, -0x1p22};
    stored[i] = values[i] == -kInfinity ? kMaskedWays[pick(random, 0, 3)] : double{values[i]};
  }
  const std::vector<int64_t> shape(extent.begin() + static_cast<int64_t>(drop), extent.end());
  TensorMask mask;
  if (dtype == DType::boolean) {
    std::vector<uint8_t> bits;
    for (float v : values) bits.push_back(v == 0 ? 1 : 0);
    mask.source = make_tensor("mask.npy", dtype, shape, bits);
  } else if (dtype == DType::f64) {
    mask.source = make_tensor("mask.npy", dtype, shape, stored);
  } else if (dtype == DType::bf16) {
    std::vector<bf16> rounded;
    for (double v : stored) rounded.push_back(to_bf16(static_cast<float>(v)));
    mask.source = make_tensor("mask.npy", dtype, shape, rounded);
  } else {
    mask.source =
        make_tensor("mask.npy", dtype, shape, std::vector<float>(stored.begin(), stored.end()));
  }
  mask.bias = [values, extent](int64_t b, int64_t h, int64_t i, int64_t j) {
    const std::array<int64_t, 4> at{b, h, i, j};
    int64_t index = 0;
    for (size_t axis = 0; axis < 4; ++axis) {
      index = index * extent[axis] + (extent[axis] == 1 ? 0 : at[axis]);
    }
    return values[static_cast<size_t>(index)];
  };
  return mask;
}

}  // namespace

TEST_CASE("tensor masks broadcast") {
  const Shape shape;
  struct Case {
    std::array<int64_t, 4> extent;
    size_t drop;
  };
  for (const Case& c : {Case{{2, 1, 1, 70}, 0}, Case{{1, 3, 1, 70}, 1}, Case{{1, 1, 1, 70}, 3},
                        Case{{1, 1, 1, 70}, 2}, Case{{2, 3, 1, 1}, 0}, Case{{1, 1, 1, 1}, 4},
                        Case{{2, 3, 90, 70}, 0}, Case{{1, 1, 90, 70}, 2}, Case{{2, 1, 90, 1}, 0},
                        Case{{1, 3, 90, 70}, 1}}) {
    for (const DType dtype : {DType::boolean, DType::f32, DType::bf16, DType::f64}) {
      const TensorMask expected = random_tensor_mask(dtype, c.extent, c.drop);
      const Mask mask = Mask::tensor(expected.source);
      CHECK(mask.describe() == "tensor");
      check_mask(mask, expected.bias, shape, c.extent[2] == 1, 400);
      if (dtype == DType::boolean) CHECK_FALSE(mask.has_finite_bias());
    }
  }
}

TEST_CASE("a dense bias is read in pieces") {
  // More keys and more rows than one piece holds.
  const TensorMask wide = random_tensor_mask(DType::f32, {1, 1, 3, 70000}, 2);
  CHECK(fills_as_defined(Mask::tensor(wide.source), wide.bias, 0, 0, {0, 1, 2}, {17, 69990}));
  const TensorMask tall = random_tensor_mask(DType::boolean, {1, 1, 3000, 40}, 2);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 3000; ++i) {
    if (i % 1000 != 7) rows.push_back(i);
  }
  CHECK(fills_as_defined(Mask::tensor(tall.source), tall.bias, 0, 0, rows, {1, 40}));
}

TEST_CASE("whether a tensor mask holds finite biases") {
  const auto mask = [](std::vector<float> values) {
    const auto size = static_cast<int64_t>(values.size());
    return Mask::tensor(make_tensor("m", DType::f32, {size}, values));
  };
  CHECK_FALSE(mask({0, -kInfinity, -0.0f}).has_finite_bias());
  CHECK(mask({0, -10000, 0}).has_finite_bias());
  CHECK(mask({0, std::nextafter(-0x1p22f, 0.0f)}).has_finite_bias());
  CHECK_FALSE(mask({0, -0x1p22f, -1e9f, -FLT_MAX}).has_finite_bias());
  const auto dense = [](std::vector<float> values) {
    return Mask::tensor(make_tensor("m", DType::f32, {2, 2}, values));
  };
  CHECK_FALSE(dense({0, -kInfinity, -0.0f, 0}).has_finite_bias());
  CHECK(dense({0, 0, 0, 1}).has_finite_bias());
  CHECK_FALSE(dense({0, -1e9f, -0x1p22f, -FLT_MAX}).has_finite_bias());
}

TEST_CASE("biases that only together are as low as masked ones mask") {
  const auto mask = [](std::vector<float> values) {
    return Mask::tensor(make_tensor("m", DType::f32, {4}, values));
  };
  const Mask both = mask({-3e6f, -3e6f, 0, -2e6f}) & mask({-1e6f, -2e6f, -3e6f, -2194304.0f});
  const int64_t query = 0;
  float out[4];
  both.fill_bias(0, 0, {&query, 1}, {0, 4}, out, 4);
  CHECK(out[0] == -4e6f);
  CHECK(out[1] == -kInfinity);
  CHECK(out[2] == -3e6f);
  CHECK(out[3] == -kInfinity);
}

TEST_CASE("a mask that is sparse in blocks has empty and full tiles") {
  constexpr int64_t kQueries = 500, kKeys = 700, kBlock = 128;
  std::mt19937_64 random(3);
  for (const DType dtype : {DType::boolean, DType::f32}) {
    std::vector<int> kept(4 * 6);
    for (int& k : kept) k = static_cast<int>(pick(random, 0, 2));
    std::vector<float> values;
    std::vector<uint8_t> bits;
    for (int64_t i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < kKeys; ++j) {
        const int kind = kept[static_cast<size_t>(i / kBlock * 6 + j / kBlock)];
        const bool keep = kind == 1 || (kind == 2 && (i + j) % 3 == 0);
        values.push_back(keep ? 0.0f : -kInfinity);
        bits.push_back(keep ? 1 : 0);
      }
    }
    const std::vector<int64_t> shape{kQueries, kKeys};
    const Mask mask =
        Mask::tensor(dtype == DType::boolean ? make_tensor("m", dtype, shape, bits)
                                             : make_tensor("m", dtype, shape, values));
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t k = 0; k < 6; ++k) {
        const IndexRange queries{q * kBlock, std::min((q + 1) * kBlock, kQueries)};
        const IndexRange keys{k * kBlock, std::min((k + 1) * kBlock, kKeys)};
        const int kind = kept[static_cast<size_t>(q * 6 + k)];
        const TileClass expected = kind == 0   ? TileClass::empty
                                   : kind == 1 ? TileClass::full
                                               : TileClass::mixed;
        CHECK(mask.classify(1, 2, queries, keys) == expected);
        CHECK(mask.classify(0, 0, {queries.begin + 1, queries.end}, {keys.begin + 5, keys.end}) ==
              expected);
      }
    }
    const Definition bias = [values](int64_t, int64_t, int64_t i, int64_t j) {
      return values[static_cast<size_t>(i * kKeys + j)];
    };
    check_mask(mask, bias, {2, 3, kQueries, kKeys}, false, 300);
    CHECK_FALSE(mask.has_finite_bias());
  }
}

namespace {

/// Counts what is read of a tensor.
class CountedTensor : public TensorSource {
 public:
  explicit CountedTensor(std::shared_ptr<const TensorSource> inner) : inner_(std::move(inner)) {}
  DType dtype() const override { return inner_->dtype(); }
  std::span<const int64_t> shape() const override { return inner_->shape(); }
  const std::string& name() const override { return inner_->name(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    elements += *checked_count(count);
    inner_->read(begin, count, destination);
  }
  mutable std::atomic<int64_t> elements{0};

 private:
  std::shared_ptr<const TensorSource> inner_;
};

}  // namespace

TEST_CASE("tensor masks are read when they are needed, and padding once") {
  constexpr int64_t kKeys = 1'000'000;
  std::vector<uint8_t> valid(kKeys, 1);
  std::fill(valid.begin() + 700'001, valid.end(), 0);
  const auto padding =
      std::make_shared<CountedTensor>(make_tensor("m", DType::boolean, {1, 1, 1, kKeys}, valid));
  const Mask mask = Mask::tensor(padding);
  CHECK(padding->elements == 0);
  CHECK(mask.classify(0, 0, {0, 10}, {0, 700'001}) == TileClass::full);
  CHECK(padding->elements == kKeys);
  CHECK(mask.classify(0, 0, {0, 10}, {700'001, kKeys}) == TileClass::empty);
  CHECK(mask.classify(0, 0, {0, 10}, {700'000, 700'002}) == TileClass::mixed);
  float out[3];
  const std::vector<int64_t> query{5};
  mask.fill_bias(0, 0, query, {700'000, 700'003}, out, 3);
  CHECK(out[0] == 0.0f);
  CHECK(out[1] == -kInfinity);
  CHECK(padding->elements == kKeys);
  // Too many runs to be worth keeping.
  std::vector<float> ragged(40'000);
  for (size_t i = 0; i < ragged.size(); ++i) ragged[i] = 0.125f * static_cast<float>(i % 7);
  const Mask many = Mask::tensor(make_tensor("m", DType::f32, {1, 1, 1, 40'000}, ragged));
  const Definition bias = [ragged](int64_t, int64_t, int64_t, int64_t j) {
    return ragged[static_cast<size_t>(j)];
  };
  CHECK(fills_as_defined(many, bias, 0, 0, {0, 3, 4}, {17, 39'990}));
  CHECK(many.has_finite_bias());
}

TEST_CASE("whole blocks of a tensor mask are read once, and rows alone are read alone") {
  constexpr int64_t kSide = 512;
  std::vector<uint8_t> bits;
  for (int64_t i = 0; i < kSide; ++i) {
    // Blocks of 128 keys: kept, hidden, mixed, kept.
    for (int64_t j = 0; j < kSide; ++j)
      bits.push_back(j < 128 || j >= 384 || (j >= 256 && j % 2 == 0));
  }
  const auto tensor =
      std::make_shared<CountedTensor>(make_tensor("m", DType::boolean, {kSide, kSide}, bits));
  const Mask mask = Mask::tensor(tensor);
  const Definition bias = [bits](int64_t, int64_t, int64_t i, int64_t j) {
    return bits[static_cast<size_t>(i * kSide + j)] != 0 ? 0.0f : -kInfinity;
  };
  // Nobody asked what the blocks hold: the row is read, and no other.
  CHECK(fills_as_defined(mask, bias, 0, 0, {5}, {3, 500}));
  CHECK(tensor->elements == 497);
  CHECK(mask.classify(0, 0, {0, 12}, {0, 128}) == TileClass::full);
  const int64_t before = tensor->elements;
  // Of twelve rows the mixed block alone is read.
  CHECK(fills_as_defined(mask, bias, 0, 0, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, {3, 500}));
  CHECK(tensor->elements == before + 12 * 128);
  // Rows of another band are not known.
  CHECK(fills_as_defined(mask, bias, 0, 0, {127, 128}, {0, 256}));
  CHECK(tensor->elements == before + 12 * 128 + 2 * 256);
}

TEST_CASE("tensor masks that cannot be used are refused") {
  const auto tensor = [](DType dtype, std::vector<int64_t> shape, auto values) {
    return make_tensor("mask.npy", dtype, std::move(shape), values);
  };
  CHECK(refused(
            [&] {
              Mask::tensor(tensor(DType::f32, {1, 1, 1, 1, 2}, std::vector<float>(2)));
            },
            ErrorCode::usage, {"mask.npy", "4 dimensions", "got 5"}) == "");
  CHECK(refused([&] { Mask::tensor(tensor(DType::u8, {2}, std::vector<uint8_t>(2))); },
                ErrorCode::usage, {"bool or floating", "u8"}) == "");
  CHECK(refused(
            [&] {
              Mask::tensor(tensor(DType::f32, {0, 2}, std::vector<float>()));
            },
            ErrorCode::usage, {"without elements"}) == "");
  const Mask two = Mask::tensor(tensor(DType::f32, {3, 1, 2}, std::vector<float>(6)));
  CHECK(refused([&] { two.check_shape(2, 4, 5, 2); }, ErrorCode::usage,
                {"[1, 3, 1, 2]", "[2, 4, 5, 2]"}) == "");
  // Values are judged when they are read.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(refused(
            [&] {
              Mask::tensor(tensor(DType::f32, {2, 1, 3}, std::vector<float>{0, 0, 0, 0, nan, 0}))
                  .classify(0, 0, {0, 1}, {0, 1});
            },
            ErrorCode::value, {"mask.npy", "[1, 0, 1]", "NaN"}) == "");
  const Mask dense =
      Mask::tensor(tensor(DType::f32, {3, 2}, std::vector<float>{0, 0, 0, 0, 0, kInfinity}));
  float out[4];
  const std::vector<int64_t> first{0, 1}, last{1, 2};
  dense.fill_bias(0, 0, first, {0, 2}, out, 2);
  CHECK(refused(
            [&] {
              dense.fill_bias(0, 0, last, {1, 2}, out, 2);
            },
            ErrorCode::value, {"[2, 1]", "+inf"}) == "");
}

TEST_CASE("conjunctions of masks") {
  std::mt19937_64 random(13);
  const Shape shape;
  BlockMask blocks{1, 9, 7, 10, 10, random_bits(random, 63, 2)};
  const TensorMask bias = random_tensor_mask(DType::f32, {2, 1, 1, 70}, 0);
  const TensorMask dense = random_tensor_mask(DType::f32, {1, 1, 90, 70}, 2);
  const auto causal = [](int64_t, int64_t, int64_t i, int64_t j) { return masked_unless(j <= i); };
  const auto window = [](int64_t, int64_t, int64_t i, int64_t j) {
    return masked_unless(std::abs(i - j) <= 25);
  };
  const auto block = [&](int64_t, int64_t, int64_t i, int64_t j) {
    return masked_unless(blocks.bits[static_cast<size_t>(i / 10 * 7 + j / 10)] != 0);
  };
  const auto sum = [](Definition a, Definition b) {
    return
        [=](int64_t n, int64_t h, int64_t i, int64_t j) { return a(n, h, i, j) + b(n, h, i, j); };
  };
  check_mask(Mask::causal() & Mask::window(25), sum(causal, window), shape, false);
  check_mask(Mask::window(25) & Mask::blocks(blocks), sum(window, block), shape, false);
  check_mask(Mask::tensor(bias.source) & Mask::blocks(blocks), sum(bias.bias, block), shape, false);
  check_mask(Mask::tensor(bias.source) & Mask::tensor(dense.source) & Mask::causal(),
             sum(sum(bias.bias, dense.bias), causal), shape, false);
  check_mask(Mask() & Mask::causal(), causal, shape, true);
  CHECK((Mask::causal() & Mask::window(3)).describe() == "causal & window:3");
  CHECK((Mask::causal() & Mask::tensor(bias.source)).has_finite_bias());
  const Mask both = Mask::causal() & Mask::key_lengths({3}, 5);
  CHECK(refused([&] { both.check_shape(1, 1, 5, 6); }, ErrorCode::usage, {"5", "6"}) == "");
}

// Masks as captures state them: by less than their entries.
#include <atomic>
#include <thread>

#include "core/base/checked_math.h"
#include "core/mask/block_causal.h"
#include "core/mask/mask_valid.h"
#include "core/mask/query_spans.h"
#include "core/mask/recorded_blocks.h"
#include "core/mask/same_segment.h"
#include "tests/core/mask/mask_rectangles.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 150;
constexpr MaskShape kSquare{2, 3, kTokens, kTokens};

template <typename T>
size_t element(int64_t item, int64_t token, const std::vector<T>& list) {
  return static_cast<size_t>((list.size() > kTokens ? item * kTokens : 0) + token);
}

/// For each of `items` a run of valid tokens, padding at the end, and both mixed in between.
std::vector<uint8_t> valid_tokens(int64_t items) {
  std::mt19937_64 random(31);
  std::vector<uint8_t> valid;
  for (int64_t item = 0; item < items; ++item) {
    for (int64_t token = 0; token < kTokens; ++token) {
      valid.push_back(token < 70                ? 1
                      : token > 100 + 20 * item ? 0
                                                : static_cast<uint8_t>(pick(random, 0, 1) * 7));
    }
  }
  return valid;
}

std::vector<int64_t> shape_of(int64_t items) {
  return items == 0 ? std::vector<int64_t>{kTokens} : std::vector<int64_t>{items, kTokens};
}

}  // namespace

TEST_CASE("valid keys and valid pairs, a list for all batch items or one each") {
  for (const int64_t items : {0, 2}) {
    const std::vector<uint8_t> valid = valid_tokens(std::max<int64_t>(items, 1));
    const auto tensor = make_tensor("valid", DType::boolean, shape_of(items), valid);
    const auto is_valid = [&](int64_t b, int64_t token) {
      return valid[element(b, token, valid)] != 0;
    };
    check_mask(
        valid_keys_mask(tensor),
        [&](auto b, auto, auto, auto j) { return masked_unless(is_valid(b, j)); }, kSquare, true);
    check_mask(
        valid_keys_mask(tensor),
        [&](auto b, auto, auto, auto j) { return masked_unless(is_valid(b, j)); },
        {2, 3, 9, kTokens}, true);
    check_mask(
        valid_pairs_mask(tensor),
        [&](auto b, auto, auto i, auto j) {
          return masked_unless(is_valid(b, i) && is_valid(b, j));
        },
        kSquare, true);
  }
}

TEST_CASE("segments in one piece, apart, alternating, and one alone") {
  std::mt19937_64 random(37);
  std::vector<std::vector<int64_t>> lists(6, std::vector<int64_t>(kTokens));
  for (int64_t token = 0; token < kTokens; ++token) {
    const auto at = static_cast<size_t>(token);
    lists[0][at] = token < 40 ? 5 : token < 41 ? -3 : 9;
    lists[1][at] = token < 40 || token > 90 ? 0 : INT64_MIN;
    lists[2][at] = token % 3;
    lists[3][at] = 12;
    lists[4][at] = token;
    lists[5][at] = pick(random, 0, 4) == 0 ? pick(random, 0, 3) : 1;
  }
  for (const auto& list : lists) {
    check_mask(
        same_segment_mask(make_tensor("segments", DType::i64, {kTokens}, list)),
        [&](auto, auto, auto i, auto j) {
          return masked_unless(list[static_cast<size_t>(i)] == list[static_cast<size_t>(j)]);
        },
        kSquare, true);
  }
  std::vector<int64_t> two = lists[0];
  two.insert(two.end(), lists[2].begin(), lists[2].end());
  check_mask(
      same_segment_mask(make_tensor("segments", DType::i64, {2, kTokens}, two)),
      [&](auto b, auto, auto i, auto j) {
        return masked_unless(two[element(b, i, two)] == two[element(b, j, two)]);
      },
      kSquare, true);
}

TEST_CASE("block-causal masks") {
  for (const int64_t block : {int64_t{1}, int64_t{7}, int64_t{50}, kTokens, int64_t{1} << 40,
                              std::numeric_limits<int64_t>::max()}) {
    for (const MaskShape& shape : {kSquare, MaskShape{1, 1, 40, 150}, MaskShape{1, 1, 150, 40}}) {
      check_mask(
          block_causal_mask(block),
          [=](auto, auto, auto i, auto j) { return masked_unless(j / block <= i / block); }, shape,
          true);
    }
  }
  CHECK(block_causal_mask(1560).describe() == "block_causal:1560");
  CHECK(refused([] { block_causal_mask(0); }, ErrorCode::usage, {"block_causal:0"}) == "");
}

TEST_CASE("recorded blocks, for all batch items and heads or for each") {
  std::mt19937_64 random(41);
  struct Case {
    int64_t batch, heads, queries, keys;
  };
  for (const Case& c :
       {Case{2, 3, 16, 8}, Case{1, 3, 7, 64}, Case{2, 1, 1, 1}, Case{1, 1, 100, 100}}) {
    const MaskShape shape;
    const std::vector<int64_t> extent{c.batch, c.heads, ceil_div(shape.queries, c.queries),
                                      ceil_div(shape.keys, c.keys)};
    std::vector<uint8_t> bits(static_cast<size_t>(*checked_count(extent)));
    for (uint8_t& bit : bits) bit = static_cast<uint8_t>(pick(random, 0, 1));
    const Mask mask = recorded_blocks_mask(make_tensor("blocks", DType::boolean, extent, bits),
                                           c.queries, c.keys);
    check_mask(
        mask,
        [&](auto b, auto h, auto i, auto j) {
          const int64_t plane = (c.batch == 1 ? 0 : b) * c.heads + (c.heads == 1 ? 0 : h);
          const int64_t row = plane * extent[2] + i / c.queries;
          return masked_unless(bits[static_cast<size_t>(row * extent[3] + j / c.keys)] != 0);
        },
        shape, true);
  }
}

namespace {

std::shared_ptr<const TensorSource> span_tensor(const std::vector<QuerySpan>& spans) {
  return make_tensor("FILE: tensor t", DType::i64, {static_cast<int64_t>(spans.size()), 5},
                     query_span_rows(spans));
}

}  // namespace

TEST_CASE("spans of queries and keys: runs, diagonals, several a query, queries without") {
  const MaskShape shape{1, 2, 90, 70};
  const std::vector<std::vector<QuerySpan>> lists{
      {{{0, 90}, {0, 70}}},
      {{{0, 70}, {0, 70}, true}},
      // A stream in three pieces: a first one, one that sees it, one that sees less of it.
      {{{0, 20}, {0, 20}, true},
       {{20, 40}, {0, 20}},
       {{20, 40}, {20, 40}, true},
       {{60, 90}, {5, 9}},
       {{60, 90}, {30, 31}},
       {{60, 90}, {40, 55}, true},
       {{60, 90}, {60, 70}, true}},
      {{{3, 4}, {69, 70}}, {{89, 90}, {0, 1}, true}}};
  for (const auto& spans : lists) {
    const Mask mask = query_spans_mask(span_tensor(spans));
    mask.check_shape(1, 2, 90, 70);
    check_mask(
        mask,
        [&](auto, auto, auto i, auto j) {
          return masked_unless(std::any_of(spans.begin(), spans.end(), [&](const QuerySpan& s) {
            return s.queries.contains(i) && s.keys.contains(j) &&
                   (!s.causal || j - s.keys.begin <= i - s.queries.begin);
          }));
        },
        shape, true);
  }
}

TEST_CASE("spans that are out of bounds or out of order are refused by their row") {
  const auto error = [](const std::vector<int64_t>& rows) {
    const auto count = static_cast<int64_t>(rows.size()) / 5;
    const Mask mask = query_spans_mask(make_tensor("FILE: tensor t", DType::i64, {count, 5}, rows));
    return thrown_text(ErrorCode::usage, [&] { mask.check_shape(2, 3, 10, 8); });
  };
  CHECK(error({0, 11, 0, 8, 0}) ==
        "FILE: tensor t: row 0: its queries are no range within 0 to 10 (got [0, 11, 0, 8, 0])");
  CHECK(error({0, 4, 0, 8, 0, 4, 4, 0, 8, 0}) ==
        "FILE: tensor t: row 1: its queries are no range within 0 to 10 (got [4, 4, 0, 8, 0])");
  CHECK(error({-1, 4, 0, 8, 0}).find("row 0: its queries") != std::string::npos);
  CHECK(error({0, 4, 3, 9, 0}).find("its keys are no range within 0 to 8") != std::string::npos);
  CHECK(error({0, 4, 0, 8, 2}).find("neither 0 nor 1") != std::string::npos);
  CHECK(error({0, 4, 0, 4, 0, 0, 4, 3, 8, 0}).find("row 1: its keys do not follow") !=
        std::string::npos);
  CHECK(error({0, 4, 4, 8, 0, 0, 4, 0, 3, 0}).find("row 1: its keys do not follow") !=
        std::string::npos);
  CHECK(error({0, 4, 0, 4, 0, 3, 5, 0, 8, 0}).find("row 1: its queries neither follow") !=
        std::string::npos);
  CHECK(error({4, 8, 0, 4, 0, 0, 4, 0, 8, 0}).find("row 1: its queries neither follow") !=
        std::string::npos);
  CHECK(error({4, 8, 0, 4, 0}) == "");
  const auto wrong = [](DType dtype, std::vector<int64_t> shape) {
    std::vector<int64_t> values(static_cast<size_t>(*checked_count(shape)));
    if (dtype == DType::i64) {
      return refused([&] { query_spans_mask(make_tensor("t", dtype, shape, values)); },
                     ErrorCode::usage, {"expected i64 [n, 5]"});
    }
    const std::vector<uint8_t> bytes(values.size());
    return refused([&] { query_spans_mask(make_tensor("t", dtype, shape, bytes)); },
                   ErrorCode::usage, {"expected i64 [n, 5]", "bool"});
  };
  CHECK(wrong(DType::boolean, {2, 5}) == "");
  CHECK(wrong(DType::i64, {2, 4}) == "");
  CHECK(wrong(DType::i64, {10}) == "");
}

TEST_CASE("recorded masks say how they are told") {
  const auto valid = make_tensor("valid", DType::boolean, {2}, std::vector<uint8_t>{1, 0});
  CHECK(valid_keys_mask(valid).describe() == "valid");
  CHECK(valid_pairs_mask(valid).describe() == "valid_pairs");
  CHECK(same_segment_mask(make_tensor("s", DType::i64, {1}, std::vector<int64_t>{0})).describe() ==
        "segments");
  const auto blocks = make_tensor("b", DType::boolean, {1, 1, 1, 1}, std::vector<uint8_t>{1});
  CHECK(query_spans_mask(span_tensor({{{0, 1}, {0, 1}}})).describe() == "spans");
  CHECK(recorded_blocks_mask(blocks, 128, 64).describe() == "blocks:128x64");
}

TEST_CASE("recorded masks that cannot be used are refused") {
  const auto bools = [](std::vector<int64_t> shape) {
    const auto count = static_cast<size_t>(*checked_count(shape));
    return make_tensor("FILE: tensor t", DType::boolean, std::move(shape),
                       std::vector<uint8_t>(count));
  };
  const auto numbers = make_tensor("FILE: tensor t", DType::i64, {4}, std::vector<int64_t>(4));
  const auto says = [](const std::function<void()>& call, std::vector<std::string> parts) {
    return refused(call, ErrorCode::usage, std::move(parts));
  };
  CHECK(says([&] { valid_keys_mask(numbers); }, {"FILE: tensor t", "expected bool", "i64 [4]"}) ==
        "");
  CHECK(says([&] { valid_pairs_mask(bools({1, 1, 4})); }, {"[B, tokens]", "[1, 1, 4]"}) == "");
  CHECK(says([&] { valid_pairs_mask(bools({2, 0})); }, {"[2, 0]"}) == "");
  CHECK(says([&] { same_segment_mask(bools({4})); }, {"expected i64", "bool [4]"}) == "");
  CHECK(says(
            [&] {
              recorded_blocks_mask(bools({2, 2}), 1, 1);
            },
            {"[B or 1, H or 1", "[2, 2]"}) == "");
  CHECK(says([&] { recorded_blocks_mask(numbers, 1, 1); }, {"expected bool", "i64"}) == "");

  const Mask keys = valid_keys_mask(bools({2, 4}));
  keys.check_shape(2, 5, 9, 4);
  CHECK(says([&] { keys.check_shape(3, 5, 9, 4); }, {"bool [3, 4] or [4]", "bool [2, 4]"}) == "");
  CHECK(says([&] { keys.check_shape(2, 5, 9, 5); }, {"bool [2, 5]"}) == "");
  valid_keys_mask(bools({4})).check_shape(3, 5, 9, 4);
  const Mask pairs = valid_pairs_mask(bools({4}));
  pairs.check_shape(3, 5, 4, 4);
  CHECK(says([&] { pairs.check_shape(3, 5, 9, 4); }, {"[3, 9]"}) == "");
  const Mask segments = same_segment_mask(numbers);
  segments.check_shape(1, 1, 4, 4);
  CHECK(says([&] { segments.check_shape(1, 1, 3, 4); }, {"[1, 3]"}) == "");
  CHECK(says([&] { segments.check_shape(1, 1, 4, 3); }, {"[1, 3]"}) == "");
  const Mask blocks = recorded_blocks_mask(bools({1, 3, 2, 5}), 64, 32);
  blocks.check_shape(7, 3, 128, 160);
  blocks.check_shape(7, 3, 65, 129);
  CHECK(says([&] { blocks.check_shape(7, 2, 128, 160); }, {"bool [7, 2, 2, 5]", "64x32"}) == "");
  CHECK(says([&] { blocks.check_shape(7, 3, 129, 160); }, {"[7, 3, 3, 5]"}) == "");
  CHECK(says([&] { blocks.check_shape(7, 3, 128, 128); }, {"[7, 3, 2, 4]"}) == "");
}

namespace {

/// Counts what is read of a tensor.
class CountedTensor : public TensorSource {
 public:
  explicit CountedTensor(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {}
  DType dtype() const override { return source_->dtype(); }
  std::span<const int64_t> shape() const override { return source_->shape(); }
  const std::string& name() const override { return source_->name(); }
  void read(std::span<const int64_t> begin, std::span<const int64_t> count,
            std::byte* destination) const override {
    elements += *checked_count(count);
    source_->read(begin, count, destination);
  }
  mutable std::atomic<int64_t> elements = 0;

 private:
  std::shared_ptr<const TensorSource> source_;
};

}  // namespace

TEST_CASE("recorded masks are read once, at their first use, whoever asks") {
  const auto valid =
      std::make_shared<CountedTensor>(make_tensor("v", DType::boolean, {kTokens}, valid_tokens(1)));
  const auto segments = std::make_shared<CountedTensor>(
      make_tensor("s", DType::i64, {kTokens}, std::vector<int64_t>(kTokens)));
  const auto blocks = std::make_shared<CountedTensor>(
      make_tensor("b", DType::boolean, {1, 3, 2, 2}, std::vector<uint8_t>(12, 1)));
  const Mask masks[] = {valid_pairs_mask(valid), same_segment_mask(segments),
                        recorded_blocks_mask(blocks, 75, 75)};
  for (const Mask& mask : masks) mask.check_shape(1, 3, kTokens, kTokens);
  CHECK(valid->elements + segments->elements + blocks->elements == 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const Mask& mask : masks) mask.classify(0, 1, {0, kTokens}, {0, kTokens});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(valid->elements == kTokens);
  CHECK(segments->elements == kTokens);
  CHECK(blocks->elements == 4);  // of the one head
}

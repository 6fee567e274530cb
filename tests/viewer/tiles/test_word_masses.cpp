// The numbers that the words' pane asks for: sums of rows and columns, mean weights on some keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/service_harness.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

constexpr HeadId kHead{0, 1, 2};

AttentionCase described(ScoreFunction score, std::string_view mask, int64_t rows, int64_t keys) {
  AttentionCase c;
  c.shape = {2, 4, 2, rows, keys, 24};
  c.score = score;
  c.mask = mask;
  c.seed = 11;
  return c;
}

WishesByKind wish_for(const LineRequest& line) {
  WishesByKind wishes;
  wishes.words_line = line;
  return wishes;
}

WishesByKind wish_for(const MassRequest& masses) {
  WishesByKind wishes;
  wishes.masses = masses;
  return wishes;
}

/// The mean of column `key` over the rows that attend to anything, in double.
double mean_of(const MapReference& reference, IndexRange rows, int64_t key) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    double whole = 0;
    for (int64_t k = 0; k < reference.cols; ++k) whole += reference.at(row, k);
    if (whole == 0) continue;
    sum += reference.at(row, key);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TEST_CASE("sums of rows and of columns are those of the reference, however many they are") {
  for (const std::string_view mask : {"none", "causal_and_keys", "masked_rows"}) {
    const Oracle oracle(described(ScoreFunction::softmax, mask, 331, 283));
    INFO(oracle.text());
    const MapReference reference(oracle, kHead, Quantity::weights);
    ServiceHarness harness(oracle.problem());
    for (const bool reverse : {false, true}) {
      std::vector<int64_t> many;
      for (int64_t i = 0; i < 200; i += 1 + i % 3) many.push_back(i);
      for (const std::vector<int64_t>& tokens : {std::vector<int64_t>{7}, {3, 4, 250}, many}) {
        const LineRequest request{kHead, Quantity::weights, reverse, tokens, true};
        harness.want(wish_for(request));
        REQUIRE(harness.wait([&] { return find(harness.service(), request) != nullptr; }));
        const auto line = find(harness.service(), request);
        const int64_t length = reverse ? reference.rows : reference.cols;
        REQUIRE(static_cast<int64_t>(line->values.size()) == length);
        int64_t wrong = 0;
        for (int64_t i = 0; i < length; ++i) {
          double sum = 0;
          for (const int64_t token : tokens) {
            sum += reverse ? reference.at(i, token) : reference.at(token, i);
          }
          const double off = std::abs(line->values[static_cast<size_t>(i)] - sum);
          const double allowed =
              static_cast<double>(tokens.size()) * reference.absolute + reference.relative * sum;
          if (off > allowed) ++wrong;
        }
        INFO(reverse << ", " << tokens.size() << " tokens");
        CHECK(wrong == 0);
        // The mean of the same tokens is another line.
        LineRequest mean = request;
        mean.sum = false;
        CHECK((tokens.size() == 1 || find(harness.service(), mean) == nullptr));
      }
    }
  }
}

TEST_CASE("the sum of a few columns is the sum of each of them") {
  const Oracle oracle(described(ScoreFunction::softmax, "none", 400, 300));
  ServiceHarness harness(oracle.problem());
  const auto line_of = [&](const std::vector<int64_t>& tokens) {
    const LineRequest request{kHead, Quantity::weights, true, tokens, true};
    harness.want(wish_for(request));
    REQUIRE(harness.wait([&] { return find(harness.service(), request) != nullptr; }));
    return find(harness.service(), request)->values;
  };
  const auto a = line_of({5}), b = line_of({120}), both = line_of({5, 120});
  for (size_t i = 0; i < both.size(); ++i) {
    CHECK(both[i] == Approx(static_cast<double>(a[i]) + static_cast<double>(b[i])).epsilon(1e-6));
  }
}

TEST_CASE("mean weights on keys are those of the reference; rows without keys do not count") {
  struct Case {
    ScoreFunction score;
    std::string_view mask;
    int64_t rows, keys;
    MassRequest request;
  };
  const Case cases[] = {
      {ScoreFunction::softmax, "none", 331, 283, {kHead, {40, 331}, {0, 40}}},
      {ScoreFunction::softmax, "masked_rows", 331, 283, {kHead, {0, 331}, {5, 6}}},
      {ScoreFunction::softmax, "causal_and_keys", 9001, 130, {kHead, {17, 8900}, {3, 128}}},
      {ScoreFunction::sigmoid, "none", 200, 90, {kHead, {0, 200}, {80, 90}}},
  };
  for (const Case& c : cases) {
    const Oracle oracle(described(c.score, c.mask, c.rows, c.keys));
    INFO(oracle.text());
    const MapReference reference(oracle, kHead, Quantity::weights);
    ServiceHarness harness(oracle.problem());
    CHECK(harness.service().offers(MassRequest{}));
    CHECK(find(harness.service(), c.request) == nullptr);
    harness.want(wish_for(c.request));
    REQUIRE(harness.wait([&] { return find(harness.service(), c.request) != nullptr; }));
    const auto found = find(harness.service(), c.request);
    REQUIRE(static_cast<int64_t>(found->masses.size()) == c.request.keys.size());
    int64_t wrong = 0;
    for (int64_t k = 0; k < c.request.keys.size(); ++k) {
      const double expected = mean_of(reference, c.request.rows, c.request.keys.begin + k);
      if (!reference.close(found->masses[static_cast<size_t>(k)], expected)) ++wrong;
    }
    CHECK(wrong == 0);
    CHECK(found->rows > 0);
    CHECK((found->rows < c.request.rows.size()) == (c.mask == "masked_rows"));
    CHECK(harness.service().status().problem.empty());
  }
}

TEST_CASE("masses do not depend on the threads, to the bit") {
  const Oracle oracle(described(ScoreFunction::softmax, "none", 20000, 64));
  const MassRequest request{kHead, {0, 20000}, {0, 32}};
  std::vector<double> first;
  for (const int threads : {1, 2}) {
    TileService::Settings settings = ServiceHarness::small_settings();
    settings.threads = threads;
    ServiceHarness harness(oracle.problem(), settings);
    harness.want(wish_for(request));
    REQUIRE(harness.wait([&] { return find(harness.service(), request) != nullptr; }));
    const std::vector<double> masses = find(harness.service(), request)->masses;
    if (first.empty()) first = masses;
    CHECK(masses == first);
  }
}

TEST_CASE("words that are not there, and sums of logits, are refused in words") {
  const Oracle oracle(described(ScoreFunction::softmax, "none", 64, 64));
  ServiceHarness harness(oracle.problem());
  const auto refused = [&](const WishesByKind& wishes) {
    return thrown_text(ErrorCode::usage, [&] { harness.want(wishes); });
  };
  CHECK_FALSE(refused(wish_for(MassRequest{kHead, {0, 65}, {0, 4}})).empty());
  CHECK_FALSE(refused(wish_for(MassRequest{kHead, {0, 64}, {4, 4}})).empty());
  CHECK_FALSE(refused(wish_for(MassRequest{kHead, {0, 64}, {60, 65}})).empty());
  CHECK(refused(wish_for(MassRequest{kHead, {0, 64}, {0, 64}})).empty());
  const LineRequest sum{kHead, Quantity::logits, true, {1, 2}, true};
  CHECK(refused(wish_for(sum)) == "lines of logits have means, and no sum");
}

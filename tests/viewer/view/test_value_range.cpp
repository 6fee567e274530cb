#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "io/pictures/shader_scale.h"
#include "tests/support/catch.h"
#include "tests/support/fake_captures.h"
#include "viewer/view/value_range.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using TilePtr = std::shared_ptr<const MapTile>;

/// A tile of `side` × `side` texels with values from `value(row, col)`; means are half of them.
TilePtr tile(int level, int64_t row, int64_t col, int64_t side, bool exact,
             const std::function<float(int64_t, int64_t)>& value,
             Quantity quantity = Quantity::weights) {
  auto made = std::make_shared<MapTile>();
  made->id = {{}, quantity, level, row, col};
  made->rows = made->cols = side;
  made->exact = exact;
  for (int64_t r = 0; r < side; ++r) {
    for (int64_t c = 0; c < side; ++c) {
      made->max.push_back(value(r, c));
      made->mean.push_back(made->max.back() / 2);
    }
  }
  return made;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

constexpr MapRect kAll{0, 1e6, 0, 1e6};

}  // namespace

TEST_CASE("quantiles of weights are those of the values, to a sixteenth of an octave") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> octave(-12, 3);
  std::vector<double> values;
  const TilePtr one = tile(0, 0, 0, 200, true, [&](int64_t, int64_t) {
    const auto value = static_cast<float>(std::exp2(octave(random)));
    values.push_back(double{value});
    return value;
  });
  const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  CHECK(histogram.exact());
  CHECK(histogram.total() == 40000);
  CHECK(histogram.zeros() == 0);
  for (const double share : {0.01, 0.25, 0.5, 0.999}) {
    const auto range = histogram.quantiles(share, 1);
    REQUIRE(range);
    CHECK(std::abs(std::log2(range->low / quantile(values, share))) < 1.0 / 16);
  }
  const ValueHistogram means = ValueHistogram::of(std::vector{one}, kAll, Pool::mean);
  CHECK(means.quantiles(0.5, 1)->low == Approx(histogram.quantiles(0.5, 1)->low / 2));
  double sum = 0;
  for (const double count : histogram.counts()) sum += count;
  CHECK(sum == 40000);
  CHECK(histogram.edge(0) == std::exp2(-64));
  CHECK(histogram.edge(histogram.counts().size()) == std::exp2(16));
}

TEST_CASE("only what is seen counts, by the entries that are seen") {
  // The left half is 1/4, the right half 1/64.
  const TilePtr one =
      tile(0, 0, 0, 256, true, [](int64_t, int64_t c) { return c < 128 ? 0.25f : 1.0f / 64; });
  // A coarser tile below it: each texel stands for 16 entries.
  const TilePtr coarse = tile(2, 1, 0, 4, true, [](int64_t, int64_t) { return 1.0f / 1024; });
  const std::vector<TilePtr> tiles{one, coarse, nullptr};
  const auto middle = [&](const MapRect& view) {
    return ValueHistogram::of(tiles, view, Pool::max).quantiles(0.5, 0.5)->low;
  };
  const auto near = [](double value) { return Approx(value).epsilon(0.05); };
  CHECK(middle({0, 256, 0, 100}) == near(0.25));
  CHECK(middle({0, 256, 120, 256}) == near(1.0 / 64));
  CHECK(middle({1024, 1040, 0, 16}) == near(1.0 / 1024));
  const ValueHistogram part = ValueHistogram::of(tiles, {1024, 1030.5, 0, 3}, Pool::max);
  CHECK(part.total() == Approx(6.5 * 3));
  CHECK(ValueHistogram::of(tiles, {500, 600, 500, 600}, Pool::max).empty());
  CHECK_FALSE(ValueHistogram::of({}, kAll, Pool::max).quantiles(0, 1));
}

TEST_CASE("samples count only where nothing is exact; zeros, masks and NaN count by themselves") {
  const TilePtr sampled = tile(0, 0, 0, 4, false, [](int64_t, int64_t) { return 0.5f; });
  const TilePtr exact = tile(0, 0, 1, 4, true, [](int64_t r, int64_t) {
    if (r == 1) return std::numeric_limits<float>::quiet_NaN();
    return r == 0 ? 0.0f : r == 2 ? -std::numeric_limits<float>::infinity() : 0.125f;
  });
  const ValueHistogram both = ValueHistogram::of(std::vector{sampled, exact}, kAll, Pool::max);
  CHECK(both.exact());
  CHECK(both.total() == 4);
  CHECK(both.zeros() == 4);
  CHECK(both.masked() == 4);
  CHECK(both.missing() == 4);
  CHECK_FALSE(both.has_nothing_to_scale());
  CHECK(both.quantiles(0.5, 1)->high < 0.14);
  const ValueHistogram only = ValueHistogram::of(std::vector{sampled}, kAll, Pool::max);
  CHECK_FALSE(only.exact());
  CHECK(only.total() == 16);
}

TEST_CASE("tiny and huge weights count in the first and last bin") {
  const TilePtr one = tile(0, 0, 0, 2, true, [](int64_t r, int64_t c) {
    return r == 0 ? (c == 0 ? 1e-44f : 1e-30f) : (c == 0 ? 3e38f : 1.0f);
  });
  const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  CHECK(histogram.total() == 4);
  CHECK(histogram.counts().front() == 2);
  CHECK(histogram.counts().back() == 1);
  CHECK(histogram.counts()[64 * 16] == 1);
  CHECK(histogram.edge(64 * 16) == 1);
}

TEST_CASE("logits are counted evenly, and an added mask does not squeeze them") {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(2, 3);
  std::vector<double> values;
  const TilePtr one = tile(
      0, 0, 0, 200, true,
      [&](int64_t r, int64_t c) {
        if (r == 0) return -std::numeric_limits<float>::infinity();
        if (r == 1 && c < 3) return -1e4f;
        const auto value = static_cast<float>(normal(random));
        values.push_back(double{value});
        return value;
      },
      Quantity::logits);
  const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  CHECK(histogram.quantity() == Quantity::logits);
  CHECK(histogram.total() == 199 * 200);
  const auto range = histogram.quantiles(0.01, 0.999);
  REQUIRE(range);
  CHECK(range->low == Approx(quantile(values, 0.01)).margin(0.1));
  CHECK(range->high == Approx(quantile(values, 0.999)).margin(0.1));
  CHECK(histogram.edge(0) > -50);
  const TilePtr even = tile(
      0, 0, 0, 4, true, [](int64_t, int64_t) { return -3.0f; }, Quantity::logits);
  CHECK(ValueHistogram::of(std::vector{even}, kAll, Pool::max).quantiles(0.01, 0.999)->low == -3);
}

TEST_CASE("the range shown is what was set, or fits what is seen") {
  const TilePtr one = tile(0, 0, 0, 100, true, [](int64_t r, int64_t) {
    return static_cast<float>(std::exp2(-static_cast<double>(r) / 10));
  });
  const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  ViewState state;
  const ValueRange weights = shown_range(state, histogram, 1000);
  CHECK(weights.high == Approx(1).epsilon(0.06));
  // Rows beyond the 89th hold less than a thousandth of the sum.
  CHECK(weights.low == Approx(std::exp2(-8.9)).epsilon(0.06));
  state.product = ViewProduct::lift;
  CHECK(shown_range(state, histogram, 1000).high == Approx(1000 * weights.high));
  // Not yet the numbers of the product.
  state.product = ViewProduct::logits;
  CHECK(shown_range(state, histogram, 1000).low == -1);
  state.product = ViewProduct::weights;
  state.range = {false, 0.25, 0.75};
  CHECK(shown_range(state, histogram, 1000).high == 0.75);
  state.range = {};
  CHECK(shown_range(state, {}, 1000).low == Approx(1.0 / 16000));
  CHECK(shown_range(state, {}, 1000).high == Approx(0.016));
  const TilePtr even = tile(0, 0, 0, 9, true, [](int64_t, int64_t) { return 0.02f; });
  const ValueRange wide =
      shown_range(state, ValueHistogram::of(std::vector{even}, kAll, Pool::max), 50);
  CHECK(wide.high / wide.low == Approx(2));
  CHECK(wide.low < 0.02);
  CHECK(wide.high > 0.02);
}

TEST_CASE("the shader's numbers give the units of the scale") {
  ViewState state;
  state.colormap = "turbo";
  const double factor = 100;
  for (const ScaleKind scale :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    state.scale = scale;
    const ValueRange range{scale == ScaleKind::symlog ? -3.0 : 0.01, 20};
    const ColourScale colours = shown_scale(state, range);
    CHECK(colours.map() == Colormap::turbo);
    const ShaderScale shader = shader_scale(colours, factor);
    for (const float texel : {0.0005f, 0.01f, 0.2f}) {
      const float v = texel * shader.factor;
      float t = v;
      if (shader.kind == ScaleKind::log2) t = std::log2(v);
      if (shader.kind == ScaleKind::sqrt) t = std::sqrt(v);
      if (shader.kind == ScaleKind::symlog) t = std::log2(1 + v / shader.linear);
      INFO(scale_kind_name(scale) << " " << texel);
      CHECK((t - shader.low) / (shader.high - shader.low) ==
            Approx(colours.unit(double{texel} * factor)).margin(1e-5));
    }
  }
  state.colormap = "none";
  CHECK_FALSE(usage_text([&] { shown_scale(state, {0, 1}); }).empty());
}

TEST_CASE("the automatic range of the window is that of pictures") {
  // Nearly all of the mass in a few texels of a large view.
  std::vector<float> values;
  const TilePtr one = tile(0, 0, 0, 256, true, [&](int64_t r, int64_t c) {
    const bool peak = r < 6 && c == 10;
    values.push_back(peak ? 0.1f + 0.02f * static_cast<float>(r) : 1e-8f);
    return values.back();
  });
  const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  ViewState state;
  const ValueRange range = shown_range(state, histogram, 256);
  const ValueRange picture = ColourScale::fit({}, values).range();
  CHECK(picture.high >= 0.18);
  CHECK(std::abs(std::log2(range.high / picture.high)) < 1.0 / 16);
  CHECK(std::abs(std::log2(range.low / picture.low)) < 1.0 / 16);
}

TEST_CASE("where all is 0, masked or missing there is nothing to scale") {
  for (const float value :
       {0.0f, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const TilePtr one = tile(0, 0, 0, 4, true, [&](int64_t, int64_t) { return value; });
    const ValueHistogram histogram = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
    CHECK(histogram.has_nothing_to_scale());
    ViewState state;
    CHECK(shown_scale(state, histogram, 256).is_of_nothing());
    // A range that was set is shown.
    state.range = {false, 0.25, 0.75};
    CHECK_FALSE(shown_scale(state, histogram, 256).is_of_nothing());
  }
  // Nothing seen yet is another thing.
  CHECK_FALSE(ValueHistogram().has_nothing_to_scale());
  CHECK_FALSE(shown_scale(ViewState(), ValueHistogram(), 256).is_of_nothing());
}

TEST_CASE("all of what is seen: from the least to the greatest, outliers too") {
  const TilePtr weights = tile(0, 0, 0, 100, true, [](int64_t r, int64_t c) {
    if (r == 0 && c == 0) return 0.9f;
    if (r == 0 && c == 1) return 1e-9f;
    return r == 0 && c == 2 ? 0.0f : 0.001f;
  });
  const ValueHistogram seen = ValueHistogram::of(std::vector{weights}, kAll, Pool::max);
  REQUIRE(seen.extent());
  CHECK(seen.extent()->low == Approx(1e-9));
  CHECK(seen.extent()->high == Approx(0.9));
  ViewState state;
  const double usual = shown_range(state, seen, 100).low;
  CHECK(usual > 1e-4);
  state.range.whole = true;
  CHECK(shown_range(state, seen, 100).low == Approx(1e-9));
  CHECK(shown_range(state, seen, 100).high == Approx(0.9));
  state.product = ViewProduct::lift;
  CHECK(shown_range(state, seen, 100).high == Approx(90));
  const TilePtr logits = tile(
      0, 0, 0, 100, true,
      [](int64_t r, int64_t c) { return r == 0 && c == 0 ? -1e4f : static_cast<float>(c) / 100; },
      Quantity::logits);
  const ValueHistogram even = ValueHistogram::of(std::vector{logits}, kAll, Pool::max);
  CHECK(even.extent()->low == -1e4);
  CHECK(even.extent()->high == Approx(0.99));
  CHECK_FALSE(ValueHistogram::of({}, kAll, Pool::max).extent());
}

TEST_CASE("how much of what is seen lies beyond the colours") {
  // A quarter is 1/4, a half 1/64, a quarter 1/1024.
  const TilePtr one = tile(0, 0, 0, 64, true, [](int64_t, int64_t c) {
    return c < 16 ? 0.25f : c < 48 ? 1.0f / 64 : 1.0f / 1024;
  });
  const ValueHistogram seen = ValueHistogram::of(std::vector{one}, kAll, Pool::max);
  const auto beyond = [&](double low, double high) { return seen.beyond({low, high}); };
  CHECK(beyond(0.01, 0.1).below == Approx(0.25));
  CHECK(beyond(0.01, 0.1).above == Approx(0.25));
  CHECK(beyond(0.1, 0.2).below == Approx(0.75));
  CHECK(beyond(1.0 / 1024, 0.25).below == 0);
  CHECK(beyond(1.0 / 1024, 0.25).above == 0);
  ViewState state;
  state.product = ViewProduct::lift;
  state.range = {false, 1, 10};
  const ColourScale scale = shown_scale(state, seen, 100);
  CHECK(shown_beyond(state, seen, scale, 100).above == Approx(0.25));
  CHECK(shown_beyond(state, seen, scale, 100).below == Approx(0.25));
  state.product = ViewProduct::logits;
  CHECK(shown_beyond(state, seen, scale, 100).above == 0);
}

TEST_CASE("colours of weights end at 1, the largest weight that there is") {
  // One token attends to itself alone; a bin's upper edge and a margin lie beyond 1.
  const TilePtr ones = tile(0, 0, 0, 1, true, [](int64_t, int64_t) { return 1.0f; });
  const ValueHistogram seen = ValueHistogram::of(std::vector{ones}, kAll, Pool::max);
  ViewState state;
  const auto range = [&](ScoreFunction score, int64_t keys) {
    return shown_range(state, seen, keys, shown_most(state, score, keys));
  };
  for (const ScaleKind kind : {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt}) {
    state.scale = kind;
    for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid}) {
      CHECK(range(score, 1).high == 1);
      CHECK(range(score, 1).low <= 0.5);
    }
    // Weights of either sign know no such end.
    CHECK(range(ScoreFunction::linear_normaliser, 1).high > 1);
  }
  state.scale = ScaleKind::log2;
  state.range.whole = true;
  CHECK(range(ScoreFunction::softmax, 1).high == 1);
  state.range = {};
  // Lift counts in keys, logits have no end.
  state.product = ViewProduct::lift;
  CHECK(range(ScoreFunction::softmax, 4).high == 4);
  state.product = ViewProduct::logits;
  CHECK(shown_most(state, ScoreFunction::softmax, 4) == kNoMost);
  state.product = ViewProduct::weights;
  // With nothing seen yet; and a range that was set stays as it was set.
  CHECK(shown_range(state, {}, 4, 1).high == 1);
  state.range = {false, 0.5, 2};
  CHECK(shown_range(state, seen, 1, 1).high == 2);
  const ColourScale wide(Colormap::viridis, ScaleKind::log2, {0.7, 1.45});
  CHECK(bounded_scale(wide, 1).range().high == 1);
  CHECK(bounded_scale(wide, 1).range().low == 0.5);
  CHECK(bounded_scale(wide, 2).range().high == 1.45);
  CHECK(bounded_scale(ColourScale::of_nothing(Colormap::viridis, ScaleKind::log2), 1)
            .is_of_nothing());
}

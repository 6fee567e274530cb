#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/mass_range.h"
#include "io/pictures/canvas.h"
#include "io/pictures/colour_bar.h"
#include "io/pictures/colour_scale.h"
#include "io/pictures/picture_style.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

const PictureStyle kDark;

bool same(Rgb a, Rgb b) { return a == b; }

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the automatic range ignores zeros and outliers") {
  std::vector<float> weights(1001, 0.0f);
  for (size_t i = 1; i < weights.size(); ++i) weights[i] = static_cast<float>(i) / 1000;
  weights.push_back(std::numeric_limits<float>::quiet_NaN());
  weights.push_back(std::numeric_limits<float>::infinity());
  for (const ScaleKind kind : {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt}) {
    const ColourScale scale = ColourScale::fit({Colormap::viridis, kind, {}}, weights);
    // Of 0.001, 0.002 … 1 a thousandth of the sum lies below 0.032 (31 · 32 / 2 of 500 500).
    CHECK(scale.range().low == Approx(kind == ScaleKind::log2 ? 0.032 : 0.001 + 0.01 * 0.999));
    CHECK(scale.range().high == Approx(0.001 + 0.999 * 0.999));
  }
  const RangeChoice quartiles = parse_range_choice("p25:p75", "--range");
  const ColourScale part =
      ColourScale::fit({Colormap::viridis, ScaleKind::log2, quartiles}, weights);
  CHECK(part.range().low == Approx(0.001 + 0.25 * 0.999));
  CHECK(part.range().high == Approx(0.001 + 0.75 * 0.999));
  const ColourScale given =
      ColourScale::fit({Colormap::viridis, ScaleKind::sqrt, {false, 0, 0.5}}, weights);
  CHECK(given.range().low == 0);
  CHECK(given.range().high == 0.5);
}

TEST_CASE("an even row is shown in the middle, nothing at all somewhere") {
  const std::vector<float> even(50, 0.02f);
  const ColourScale log = ColourScale::fit({}, even);
  CHECK(log.range().high / log.range().low == Approx(2));
  for (const ScaleKind kind : {ScaleKind::log2, ScaleKind::linear}) {
    const ColourScale scale = ColourScale::fit({Colormap::magma, kind, {}}, even);
    CHECK(scale.unit(0.02f) == Approx(0.5));
  }
  const ColourScale root = ColourScale::fit({Colormap::magma, ScaleKind::sqrt, {}}, even);
  CHECK(root.unit(0.02f) == Approx((1 - std::sqrt(0.5)) / (std::sqrt(1.5) - std::sqrt(0.5))));
  const ColourScale nothing = ColourScale::fit({}, std::vector<float>(50, 0.0f));
  CHECK(nothing.range().low > 0);
  CHECK(nothing.range().high > nothing.range().low);
}

TEST_CASE("every scale and colour map is read back from its name") {
  // The words of options, scripts and session files.
  CHECK(scale_kind_names() == std::vector<std::string>{"log", "linear", "sqrt", "symlog"});
  for (const std::string& name : scale_kind_names()) {
    CHECK(scale_kind_name(*parse_scale_kind(name)) == name);
  }
  CHECK(parse_scale_kind("log") == ScaleKind::log2);
  CHECK_FALSE(parse_scale_kind(""));
  CHECK_FALSE(parse_scale_kind("log2"));
  CHECK(colormap_names().size() == 6);
  CHECK(colormap_names().back() == "grey");
  for (const std::string& name : colormap_names()) {
    CHECK(colormap_name(*parse_colormap(name)) == name);
  }
}

TEST_CASE("units, values and colours agree on every scale") {
  for (const ScaleKind kind :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    const ColourScale scale(Colormap::inferno, kind, {0.25, 4});
    INFO(scale_kind_name(kind));
    for (const double unit : {0.0, 0.2, 0.4, 0.6, 1.0}) {
      CHECK(scale.unit(scale.value_at(unit)) == Approx(unit).margin(1e-12));
      CHECK(same(scale.colour(scale.value_at(unit)), colormap_at(Colormap::inferno, unit)));
    }
    CHECK(same(scale.colour(100), colormap_at(Colormap::inferno, 1)));
    CHECK(same(scale.colour(0.01), colormap_at(Colormap::inferno, 0)));
    CHECK(same(scale.colour(std::nan("")), kDark.masked_cell));
    CHECK(parse_scale_kind(scale_kind_name(kind)) == kind);
  }
  CHECK(ColourScale(Colormap::grey, ScaleKind::log2, {0.25, 4}).unit(1) == Approx(0.5));
  CHECK(ColourScale(Colormap::grey, ScaleKind::linear, {0, 4}).unit(1) == Approx(0.25));
  CHECK(ColourScale(Colormap::grey, ScaleKind::sqrt, {0, 4}).unit(1) == Approx(0.5));
  // Only a logarithm has no place for 0.
  CHECK(same(ColourScale(Colormap::inferno, ScaleKind::log2, {0.25, 4}).colour(0),
             kDark.masked_cell));
  CHECK(same(ColourScale(Colormap::viridis, ScaleKind::linear, {0, 4}).colour(0),
             colormap_at(Colormap::viridis, 0)));
  CHECK_FALSE(parse_scale_kind("log10"));
}

TEST_CASE("ticks are round, ascending and far enough apart") {
  const ColourScale log(Colormap::viridis, ScaleKind::log2, {1.0 / 300000, 0.3});
  const auto ticks = log.ticks(0.1);
  REQUIRE(ticks.size() == 5);
  CHECK(ticks.front().label == "10⁻⁵");
  CHECK(ticks.back().label == "10⁻¹");
  CHECK(ticks.back().unit == Approx(log.unit(0.1)));
  const auto linear = ColourScale(Colormap::viridis, ScaleKind::linear, {0, 0.01}).ticks(0.2);
  REQUIRE(linear.size() == 6);
  CHECK(linear[1].label == "0.002");
  CHECK(linear[1].unit == Approx(0.2));
  for (const ScaleKind kind :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    for (const ValueRange range :
         {ValueRange{1e-30, 1}, {1e-6, 3e-6}, {0.5, 1}, {3, 4.7}, {1, 9e8}}) {
      for (const double gap : {0.02, 0.09, 0.3, 0.5}) {
        const auto all = ColourScale(Colormap::viridis, kind, range).ticks(gap);
        INFO(scale_kind_name(kind) << " " << range.low << " " << range.high << " gap " << gap);
        REQUIRE(all.size() >= 2);
        CHECK(all.size() <= 1 + 1 / gap);
        for (size_t i = 0; i < all.size(); ++i) {
          CHECK(all[i].unit >= 0);
          CHECK(all[i].unit <= 1);
          // Letters: all but the later bytes of UTF-8.
          CHECK(std::count_if(all[i].label.begin(), all[i].label.end(),
                              [](char c) { return (c & 0xc0) != 0x80; }) <= 10);
          if (i > 0) CHECK(all[i].unit - all[i - 1].unit >= gap * 0.999);
        }
      }
    }
  }
}

TEST_CASE("symlog shows both sides of 0 by their octaves") {
  const ColourScale even(Colormap::grey, ScaleKind::symlog, {-8, 8});
  CHECK(even.linear_part() == 8.0 / 1024);
  CHECK(even.unit(0) == Approx(0.5));
  CHECK(even.unit(8) == Approx(1));
  CHECK(even.unit(-8) == Approx(0).margin(1e-12));
  // log2(1 + 1024·v/8) of v = 1/4 is log2(33), of the end log2(1025).
  CHECK(even.unit(0.25) == Approx(0.5 + 0.5 * std::log2(33) / std::log2(1025)));
  CHECK(even.unit(-0.25) == Approx(1 - even.unit(0.25)));
  CHECK(even.value_at(even.unit(-0.125)) == Approx(-0.125));
  CHECK(even.transformed(-0.25) == Approx(-std::log2(33)));
  const ColourScale uneven(Colormap::grey, ScaleKind::symlog, {-1, 4});
  CHECK(uneven.unit(-1) == Approx(0).margin(1e-12));
  CHECK(uneven.unit(4) == Approx(1));
  CHECK(uneven.unit(0) == Approx(std::log2(257) / (std::log2(257) + std::log2(1025))));
  CHECK(same(uneven.colour(std::nan("")), kDark.masked_cell));
  CHECK(same(uneven.colour(0), colormap_at(Colormap::grey, uneven.unit(0))));
  CHECK(parse_scale_kind("symlog") == ScaleKind::symlog);
  // Negative values count in the automatic range, zeros do not.
  const ColourScale fit = ColourScale::fit({Colormap::grey, ScaleKind::symlog, {true, 0, 1}},
                                           std::vector{-3.f, 0.f, 5.f});
  CHECK(fit.range().low == -3);
  CHECK(fit.range().high == 5);

  const auto ticks = even.ticks(0.1);
  const auto zero = std::find_if(ticks.begin(), ticks.end(),
                                 [](const ScaleTick& tick) { return tick.label == "0"; });
  REQUIRE(zero != ticks.end());
  CHECK(zero->unit == Approx(0.5));
  std::vector<std::string> labels;
  for (const ScaleTick& tick : ticks) labels.push_back(tick.label);
  for (const char* label : {"1", "-1", "0.1", "-0.1"}) {
    CHECK(std::count(labels.begin(), labels.end(), label) == 1);
  }
  for (size_t i = 0; i < ticks.size(); ++i) {
    CHECK(ticks[i].unit == Approx(1 - ticks[ticks.size() - 1 - i].unit).margin(1e-9));
  }
  for (size_t i = 1; i < ticks.size(); ++i) CHECK(ticks[i].unit - ticks[i - 1].unit >= 0.0999);
}

TEST_CASE("what is next to nothing is widened") {
  CHECK(widened_range({1, 1}, ScaleKind::log2).high == Approx(std::sqrt(2)));
  CHECK(widened_range({1, 1}, ScaleKind::log2).low == Approx(std::sqrt(0.5)));
  CHECK(widened_range({1, 4}, ScaleKind::log2).high == 4);
  CHECK(widened_range({-2, -2}, ScaleKind::symlog).low == -3);
  CHECK(widened_range({-2, -2}, ScaleKind::linear).high == -1);
  CHECK(widened_range({0.5, 0.6}, ScaleKind::linear).high == 0.6);
}

TEST_CASE("ranges are read, and refused with a reason") {
  CHECK(parse_range_choice("auto", "--range").quantiles);
  const RangeChoice given = parse_range_choice("1e-4:0.5", "--range");
  CHECK_FALSE(given.quantiles);
  CHECK(given.low == 1e-4);
  CHECK(given.high == 0.5);
  const RangeChoice percent = parse_range_choice("p5:p99.5", "--range");
  CHECK(percent.quantiles);
  CHECK(percent.low == Approx(0.05));
  CHECK(percent.high == Approx(0.995));
  for (const char* text : {"", "1", "a:b", "2:1", "1:1", "p1:2", "p-1:p50", "p1:p101", "1:inf",
                           "nan:1", "1:2:3", "1 :2"}) {
    INFO(text);
    const std::string message = message_of([&] { parse_range_choice(text, "--range"); });
    CHECK(message.starts_with("--range "));
  }
  const ColourChoice log{Colormap::viridis, ScaleKind::log2, {false, 0, 1}};
  CHECK(message_of([&] { check_colour_choice(log, "--range"); }).find("log") != std::string::npos);
  const ColourChoice root{Colormap::viridis, ScaleKind::sqrt, {false, -1, 1}};
  CHECK_FALSE(message_of([&] { check_colour_choice(root, "--range"); }).empty());
  CHECK(message_of([] {
          check_colour_choice({Colormap::viridis, ScaleKind::linear, {false, -1, 1}}, "--range");
        }).empty());
}

TEST_CASE("a colour bar rises from its low end to its high end, with ticks where they belong") {
  Canvas canvas(200, 320, kDark.background);
  const PixelRect bar{20, 40, kBarWidth, 256};
  const ColourScale scale(Colormap::viridis, ScaleKind::log2, {1e-8, 1});
  draw_colour_bar(canvas, bar, scale, "weight", kDark);
  CHECK(same(canvas.at(20, 40), colormap_at(Colormap::viridis, 255.5 / 256)));
  CHECK(same(canvas.at(35, 295), colormap_at(Colormap::viridis, 0.5 / 256)));
  CHECK(same(canvas.at(27, 40 + 128), colormap_at(Colormap::viridis, 127.5 / 256)));
  CHECK(same(canvas.at(27, 39), kDark.background));
  CHECK(same(canvas.at(27, 296), kDark.background));
  // A decade is 32 pixels: ticks stand on multiples, none between.
  for (int y = 42; y < 290; ++y) {
    INFO(y);
    CHECK(same(canvas.at(37, y), kDark.quiet_text) == ((296 - y) % 32 == 0));
  }
}

TEST_CASE("an automatic range does not cut off the cells that hold the mass") {
  // A peaked row of a real size: 119 of 119 056 cells are the whole story.
  std::vector<float> values(119056, 1e-9f);
  for (size_t i = 0; i < 119; ++i) {
    values[i * 1000] = i < 20 ? 0.03f : static_cast<float>(0.001 + 1e-5 * static_cast<double>(i));
  }
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  const auto beyond = [&](const ColourScale& scale) {
    double mass = 0;
    for (const float v : values) mass += double{v} > scale.range().high ? double{v} : 0;
    return mass / total;
  };
  for (const ScaleKind kind :
       {ScaleKind::log2, ScaleKind::linear, ScaleKind::sqrt, ScaleKind::symlog}) {
    ColourChoice choice;
    choice.scale = kind;
    const ColourScale scale = ColourScale::fit(choice, values);
    CHECK(beyond(scale) <= kMostMassBeyond);
    // The many cells that have next to nothing have no colours of their own on a log scale.
    CHECK((kind == ScaleKind::log2) == (scale.range().low > 1e-4));
    // The cells of the peak are told apart.
    CHECK(scale.unit(0.03) > scale.unit(0.0015) + 0.01);
    // Percentiles that were asked for are taken as they are.
    choice.range = parse_range_choice("p1:p99.9", "--range");
    CHECK(beyond(ColourScale::fit(choice, values)) > 0.9);
  }
}

TEST_CASE("where the mass is spread, an automatic range is that of the quantiles") {
  std::vector<float> values;
  for (int i = 0; i < 20000; ++i) values.push_back(std::exp2(-12 + 3 * std::sin(0.37f * i)));
  ColourChoice linear;
  linear.scale = ScaleKind::linear;
  const ColourScale scale = ColourScale::fit(linear, values);
  ColourChoice percents = linear;
  percents.range = parse_range_choice("p1:p99.9", "--range");
  CHECK(scale.range().high == ColourScale::fit(percents, values).range().high);
  CHECK(scale.range().low == ColourScale::fit(percents, values).range().low);
}

TEST_CASE("a scale of nothing has no colour bar but says so") {
  const std::vector<float> zeros(9, 0.0f);
  const ColourScale nothing = ColourScale::fit({}, zeros);
  CHECK(nothing.is_of_nothing());
  CHECK(nothing.has_values());
  CHECK_FALSE(ColourScale::fit({}, std::vector<float>(3, std::nanf(""))).has_values());
  CHECK_FALSE(ColourScale::fit({}, std::vector<float>{0, 0.5f}).is_of_nothing());
  const PixelRect bar{10, 30, kBarWidth, 100};
  Canvas canvas(160, 150, kDark.background);
  draw_colour_bar(canvas, bar, nothing, "weight", kDark);
  int coloured = 0, written = 0;
  for (int y = 0; y < canvas.height(); ++y) {
    for (int x = 0; x < canvas.width(); ++x) {
      const Rgb c = canvas.at(x, y);
      coloured += std::max({c.r, c.g, c.b}) - std::min({c.r, c.g, c.b}) > 40 ? 1 : 0;
      written += y > bar.y && !(c == kDark.background) ? 1 : 0;
    }
  }
  CHECK(coloured == 0);
  CHECK(written > 100);
}

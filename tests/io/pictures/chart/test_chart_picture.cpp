// Charts: every text stands within the page and on no other, whatever the style, the width and the
// chart; what is drawn stands where its numbers say.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/pictures/chart/chart_picture.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

ChartSeries line_of(std::string name, std::vector<ChartPoint> points) {
  ChartSeries series;
  series.name = std::move(name);
  series.points = std::move(points);
  return series;
}

PictureText long_text() {
  return {"A model with a name that takes more than one line of a narrow page, 14B",
          {"recall against density, mean over a layer's heads  ·  1152 heads of 48 layers, steps "
           "0-49, cond and uncond  ·  256 rows of each head",
           "24 heads are left out: their weights are no shares of a row, or all rows are masked"}};
}

/// 48 layers: a colour bar, a log axis of shares, a point that is not there.
Chart many_layers() {
  Chart chart;
  chart.text = long_text();
  chart.x = {"share of the keys that a row may see, largest weights first", true, true, {}, {}};
  chart.y = {
      "share of the attention mass that they hold", false, true, ValueRange{0.45, 1.005}, {}};
  for (int layer = 0; layer < 48; ++layer) {
    ChartSeries series = line_of("", {});
    series.dots = true;
    series.depth = layer / 47.0;
    for (const double share : {0.5, 0.8, 0.9, 0.95, 0.99}) {
      series.points.push_back({share * share * std::pow(2.0, -layer / 6.0), share});
    }
    series.points[2].y = std::nan("");
    chart.series.push_back(std::move(series));
  }
  chart.depth = {"layer", "0", "47"};
  return chart;
}

/// Named places with long names, and a legend of long names.
Chart named_layers() {
  Chart chart;
  chart.text = long_text();
  chart.y.title = "entropy of a row in nats, mean over rows";
  chart.x.title = "layer";
  for (int i = 0; i < 7; ++i) {
    chart.series.push_back(line_of(fmt::format("unconditional branch, step {}", i), {}));
    for (int layer = 0; layer < 48; ++layer) {
      chart.series.back().points.push_back({layer + i / 10.0, 3.0 + i + std::sin(layer)});
    }
  }
  for (int layer = 0; layer < 48; ++layer) {
    chart.x.names.push_back({static_cast<double>(layer),
                             layer < 2
                                 ? fmt::format("single_transformer_blocks.{}.attn cross", layer)
                                 : std::to_string(layer)});
  }
  return chart;
}

Chart stacked_bars() {
  Chart chart;
  chart.text.title = "bars";
  chart.x.title = "diffusion step";
  chart.y = {"share of the heads", false, true, ValueRange{0, 1}, {}};
  for (int i = 0; i < 50; ++i) {
    chart.x.names.push_back({static_cast<double>(i), fmt::format("cond {}", i)});
  }
  for (size_t c = 0; c < 6; ++c) {
    ChartSeries series = line_of(fmt::format("class {}", c), {});
    series.colour = c;
    for (int i = 0; i < 50; ++i) {
      series.bases.push_back(static_cast<double>(c) / 6);
      series.points.push_back({static_cast<double>(i), static_cast<double>(c + 1) / 6});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart marked_keys() {
  Chart chart;
  chart.text.title = "keys";
  chart.x = {"key, by its place in the sequence", false, false, ValueRange{0, 33000}, {}};
  chart.y = {"mass of the heaviest of each 33 keys, mean over rows", true, true, {}, {}};
  chart.series.push_back(line_of("", {}));
  for (int i = 0; i < 1000; ++i) {
    chart.series.back().points.push_back({33.0 * i + 16, i % 97 == 0 ? 0 : 1e-5 * (1 + i % 50)});
  }
  chart.marks.push_back({0, "text"});
  for (int t = 0; t < 41; ++t) chart.marks.push_back({226 + 800.0 * t, fmt::format("t{}", t)});
  return chart;
}

/// One point, whose axes have no extent of their own.
Chart single_point() {
  Chart chart;
  chart.text.title = "one";
  chart.x.title = "layer";
  chart.x.names = {{0, "0"}};
  chart.y.title = "entropy";
  chart.series.push_back(line_of("head", {{0, 4.5}}));
  return chart;
}

std::map<std::string, Chart> charts() {
  Chart nothing;
  nothing.x.title = nothing.y.title = "nothing";
  return {{"many layers", many_layers()}, {"named layers", named_layers()},
          {"bars", stacked_bars()},       {"keys", marked_keys()},
          {"point", single_point()},      {"nothing", nothing}};
}

/// A text with what reaches below and above its capitals.
PixelRect inked(const PlacedText& text) {
  const int more = (text.box.height + 2) / 4;
  return {text.box.x, text.box.y - more / 2, text.box.width, text.box.height + more + more / 2};
}

bool meet(const PixelRect& a, const PixelRect& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

void check_texts(const ChartPicture& picture) {
  const std::vector<PlacedText>& texts = picture.texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    INFO(texts[i].text);
    const PixelRect box = inked(texts[i]);
    CHECK(box.x >= 0);
    CHECK(box.y >= 0);
    CHECK(box.x + box.width <= picture.width());
    CHECK(box.y + box.height <= picture.height());
    CHECK_FALSE(meet(texts[i].box, picture.frame()));
    for (size_t j = 0; j < i; ++j) {
      INFO(texts[j].text);
      CHECK_FALSE(meet(box, inked(texts[j])));
    }
  }
}

}  // namespace

TEST_CASE("texts of charts stand within the page and on no other") {
  for (const StyleName name : {StyleName::dark, StyleName::paper, StyleName::slide}) {
    for (const int width : {0, 300, 500, 1004, 1800, 4000}) {
      for (const auto& [what, chart] : charts()) {
        PictureStyle style = picture_style(name);
        style.page_width = width;
        INFO(what << ", style " << static_cast<int>(name) << ", " << width << " pixels");
        if (name == StyleName::slide && width == 300 && (what == "keys" || what == "many layers")) {
          // Letters of a slide leave no room for two numbers.
          CHECK_THROWS_AS(ChartPicture(chart, style), Error);
          continue;
        }
        const ChartPicture picture(chart, style);
        CHECK((width == 0 || picture.width() == width));
        CHECK(picture.frame().width > picture.width() / 4);
        CHECK(picture.frame().height >= 6 * style.text_height);
        CHECK(picture.frame().y + picture.frame().height < picture.height());
        check_texts(picture);
      }
    }
  }
}

TEST_CASE("a chart for paper is 85 mm wide, and takes the width and height that are given") {
  const Chart chart = many_layers();
  CHECK(ChartPicture(chart, picture_style(StyleName::paper)).width() == 1004);
  PictureStyle style = picture_style(StyleName::paper);
  style.page_width = 1200;
  style.page_height = 1000;
  const ChartPicture picture(chart, style);
  CHECK(picture.width() == 1200);
  CHECK(picture.height() == 1000);
  check_texts(picture);
  style.page_height = 300;
  CHECK_THROWS_AS(ChartPicture(chart, style), Error);
}

TEST_CASE("a title of one's own, or none, and no legend") {
  const Chart chart = named_layers();
  PictureStyle style;
  style.title = "My title";
  const ChartPicture named(chart, style);
  CHECK(named.texts().front().text == "My title");
  style.title = "";
  style.legend = false;
  const ChartPicture bare(chart, style);
  CHECK(bare.height() < named.height());
  for (const PlacedText& text : bare.texts()) {
    CHECK(text.text.find("unconditional") == std::string::npos);
    CHECK(text.text.find("left out") == std::string::npos);
  }
}

TEST_CASE("what a chart draws stands where its numbers say") {
  Chart chart;
  chart.x = {"x", false, false, ValueRange{0, 10}, {}};
  chart.y = {"y", true, false, ValueRange{1e-4, 1}, {}};
  chart.series.push_back(line_of("dots", {{5, 1e-2}, {7, 0}}));
  chart.series.back().line = false;
  chart.series.back().dots = true;
  ChartSeries bars = line_of("bar", {{2, 0.1}});
  bars.bases = {1e-3};
  bars.colour = 1;
  chart.series.push_back(bars);
  const PictureStyle style;
  const ChartPicture picture(chart, style);
  const PixelRect frame = picture.frame();
  const PixelPoint middle = picture.place({5, 1e-2});
  CHECK(middle.x == Approx(frame.x + frame.width / 2.0));
  CHECK(middle.y == Approx(frame.y + frame.height / 2.0));
  const Canvas canvas = picture.draw();
  const auto at = [&](PixelPoint p) {
    return canvas.at(static_cast<int>(p.x), static_cast<int>(p.y));
  };
  CHECK(at(middle) == style.curve(0));
  CHECK(at(picture.place({2, 1e-2})) == style.curve(1));
  CHECK(at(picture.place({2, 0.2})) == style.background);
  CHECK(at(picture.place({2, 5e-4})) == style.background);
  CHECK(at(picture.place({2.5, 3e-3})) == style.background);
}

TEST_CASE("series of a colour bar run from one end of it to the other, and stand out") {
  for (const StyleName name : {StyleName::dark, StyleName::paper}) {
    const PictureStyle style = picture_style(name);
    const Chart chart = many_layers();
    const ChartPicture picture(chart, style);
    for (const ChartSeries& series : chart.series) {
      const Rgb colour = picture.colour_of(series);
      const double light = 0.2126 * colour.r + 0.7152 * colour.g + 0.0722 * colour.b;
      CHECK((name == StyleName::dark ? light > 50 : light < 190));
    }
    CHECK_FALSE(picture.colour_of(chart.series.front()) == picture.colour_of(chart.series.back()));
  }
}

TEST_CASE("each axis of numbers has two of them, whole, or the page is refused") {
  Chart chart;
  chart.x = {"x", false, false, ValueRange{123456, 123499}, {}};
  chart.y = {"y", false, false, ValueRange{0.000123451, 0.000123459}, {}};
  chart.series.push_back(line_of("", {{123460, 0.000123455}}));
  const Chart many = many_layers();
  Chart narrow = many;
  narrow.x.range = ValueRange{0.21, 0.29};
  int drawn = 0, refused = 0;
  for (const Chart* each :
       {&static_cast<const Chart&>(chart), &many, &static_cast<const Chart&>(narrow)}) {
    for (const int width : {200, 300, 400, 700, 2000}) {
      PictureStyle style = picture_style(StyleName::slide);
      style.page_width = width;
      INFO(width);
      try {
        const ChartPicture picture(*each, style);
        const PixelRect frame = picture.frame();
        int below = 0, beside = 0;
        for (const PlacedText& text : picture.texts()) {
          CHECK((text.text.find("…") == std::string::npos));
          const bool is_number = text.text.find_first_of("0123456789") != std::string::npos;
          const int bottom = frame.y + frame.height;
          if (text.box.y > bottom && text.box.y < bottom + 3 * style.text_height) {
            below += is_number ? 1 : 0;
          }
          if (text.box.x + text.box.width <= frame.x && text.box.y + text.box.height >= frame.y &&
              text.box.y <= bottom) {
            beside += is_number ? 1 : 0;
          }
        }
        CHECK(below >= 2);
        CHECK(beside >= 2);
        ++drawn;
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::usage);
        CHECK(std::string(error.what()).starts_with("--width: this picture needs at least"));
        ++refused;
      }
    }
  }
  CHECK(drawn > 0);
  CHECK(refused > 0);
}

TEST_CASE("the name of a part stands beside its neighbour's where it fits into the part") {
  Chart chart;
  chart.x = {"key", false, false, ValueRange{0, 1000}, {}};
  chart.y.title = "mass";
  chart.series.push_back(line_of("", {{0, 1}, {999, 2}}));
  chart.marks = {{0, "a text of very many words"}, {10, "video"}, {990, "padding of the sequence"}};
  const PictureStyle style;
  const ChartPicture picture(chart, style);
  check_texts(picture);
  int found = 0;
  for (const PlacedText& text : picture.texts()) {
    found += text.text == "video" ? 1 : 0;
    CHECK(text.text != "padding of the sequence");
  }
  CHECK(found == 1);
}

TEST_CASE("axes have round values, as many as there is room for") {
  ChartAxis axis;
  const std::vector<double> values{0.2, 7.3, std::nan("")};
  const AxisScale scale(axis, values);
  CHECK(scale.range().low == 0);
  CHECK(scale.range().high > 7.3);
  for (const int most : {2, 4, 8}) {
    const auto ticks = scale.ticks(most);
    CHECK(ticks.size() <= static_cast<size_t>(most));
    CHECK(ticks.size() >= 1);
  }
  axis.log = true;
  const std::vector<double> wide{1e-6, 0, -1, 0.5};
  const AxisScale log(axis, wide);
  CHECK_FALSE(log.shows(0));
  CHECK(log.unit(1e-6) > 0);
  CHECK(log.unit(0.5) < 1);
  axis.shares = true;
  bool percent = false;
  for (const auto& tick : log.ticks(8)) percent |= tick.label.find('%') != std::string::npos;
  CHECK(percent);
}

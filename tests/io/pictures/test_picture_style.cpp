#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/number_words.h"
#include "io/pictures/film/film_animation.h"
#include "io/pictures/film/filmstrip.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/text/text_ink.h"
#include "tests/support/catch.h"
#include "tests/support/drawn_page.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::vector<StyleName> kStyles{StyleName::dark, StyleName::paper, StyleName::slide};

/// Relative luminance of WCAG 2.1.
double luminance(Rgb c) {
  const auto channel = [](uint8_t value) {
    const double v = value / 255.0;
    return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * channel(c.r) + 0.7152 * channel(c.g) + 0.0722 * channel(c.b);
}

double contrast(Rgb a, Rgb b) {
  const double high = std::max(luminance(a), luminance(b));
  const double low = std::min(luminance(a), luminance(b));
  return (high + 0.05) / (low + 0.05);
}

QueryVolumes sample_film(int64_t frames, size_t heads) {
  QueryVolumes volumes;
  volumes.grid = {frames, 5, 8};
  volumes.model = "a model of a name that is not short at all, 42 layers";
  volumes.capture = "capture";
  volumes.query_text = "query 1,2,3";
  volumes.domain = "all";
  volumes.domain_text = "softmax domain all";
  for (size_t i = 0; i < heads; ++i) {
    QueryVolume volume;
    volume.label = "step 10 layer 2 cond joint batch 0 head " + std::to_string(i);
    volume.query = {1, 2, 3};
    for (int64_t n = 0; n < frames * 40; ++n) {
      volume.video.push_back(static_cast<float>((n * 37) % 101) / 1e5F);
    }
    volumes.volumes.push_back(std::move(volume));
  }
  return volumes;
}

/// No text ends right before the title of a colour bar.
void check_title_apart(const Canvas& page, const std::string& title) {
  std::vector<TextMark> texts;
  for (const CanvasMark& mark : page.marks()) {
    if (const auto* const text = std::get_if<TextMark>(&mark)) texts.push_back(*text);
  }
  const auto bar = std::find_if(texts.begin(), texts.end(),
                                [&](const TextMark& text) { return text.text == title; });
  REQUIRE(bar != texts.end());
  for (const TextMark& text : texts) {
    const bool beside = std::abs(text.y - bar->y) < 2 * text.cap_height && text.x < bar->x;
    INFO(text.text);
    if (beside) CHECK(text.x + text_width(text.text, text.cap_height) + 2 <= bar->x);
  }
}

PictureStyle page_of(StyleName name, int width, int height = 0) {
  // Letters are small enough for the narrowest page.
  PictureStyle look = picture_style(name, 96, width < 600 ? 6 : 0);
  look.page_width = width;
  look.page_height = height;
  look.vector = true;
  return look;
}

}  // namespace

TEST_CASE("words stand out from the ground in every style, and curves do") {
  for (const StyleName name : kStyles) {
    const PictureStyle look = picture_style(name);
    INFO(static_cast<int>(name));
    for (const Rgb colour : {look.text, look.quiet_text, look.query, look.key}) {
      CHECK(contrast(colour, look.background) >= 4.5);
    }
    for (size_t i = 0; i < 4; ++i) CHECK(contrast(look.curve(i), look.background) >= 3);
    // What a log scale cannot show is none of the colours at the low end of a map.
    for (const std::string& map : colormap_names()) {
      const Rgb low = colormap_at(*parse_colormap(map), 0);
      const Rgb masked = look.masked_cell;
      const int apart =
          std::abs(low.r - masked.r) + std::abs(low.g - masked.g) + std::abs(low.b - masked.b);
      CHECK(apart > 10);
    }
  }
}

TEST_CASE("a style has its size of text in points, and the rest of its lengths by that") {
  const PictureStyle paper = picture_style(StyleName::paper, 300, 7);
  CHECK(paper.text_height == std::lround(7 * 300 / 72.0 * 0.729));
  CHECK(paper.px(14) == paper.text_height);
  CHECK(picture_style(StyleName::dark).text_height == PictureStyle().text_height);
  CHECK(picture_style(StyleName::dark, 192).text_height == 28);
  CHECK(PictureStyle().px(37) == 37);
}

TEST_CASE("a page is exactly as wide as it is told, and no text is cut or lies on another") {
  QueryVolumes volumes = sample_film(21, 3);
  for (int word = 0; word < 200; ++word) volumes.query_text += " word" + std::to_string(word);
  volumes.volumes[1].label += "  ·  text token 3  \"" + volumes.query_text + "\"";
  for (const StyleName name : kStyles) {
    for (const int width : {300, 480, 900, 1920, 4000}) {
      INFO(width);
      FilmStyle film;
      film.look = page_of(name, width);
      const Canvas strip = drawn_page(Filmstrip(volumes, film).page(), film.look);
      CHECK(strip.width() == width);
      check_page_texts(strip);
      const FilmAnimation moving(volumes, film);
      CHECK(moving.width() == width);
    }
  }
}

TEST_CASE("masses of any size keep clear of labels and within the page") {
  QueryVolumes volumes = sample_film(3, 1);
  volumes.shown = "the keys of moving shapes";
  volumes.shares = true;
  QueryVolume& volume = volumes.volumes.front();
  for (const double text : {0.3, 0.000803, -1.23e-8, 3.21e-45}) {
    for (const double video : {0.99999912, -1.23e-8}) {
      std::fill(volume.video.begin(), volume.video.end(), 0.0F);
      volume.video.front() = static_cast<float>(video);
      volume.text = {static_cast<float>(text)};
      for (const int width : {300, 480, 1004, 1210, 1920}) {
        INFO(video << " " << text << " " << width);
        FilmStyle film;
        film.look = picture_style(StyleName::paper, 300, width == 300 ? 5 : 7);
        film.look.page_width = width;
        film.look.vector = true;
        check_page_texts(drawn_page(Filmstrip(volumes, film).page(), film.look));
      }
    }
  }
}

TEST_CASE("labels of an animation keep their end, where the head stands") {
  const QueryVolumes volumes = sample_film(2, 8);
  FilmStyle film;
  film.look.vector = true;
  for (const int width : {0, 900}) {
    film.look.page_width = width;
    std::string text;
    const Canvas image = FilmAnimation(volumes, film).frame(0);
    for (const CanvasMark& mark : image.marks()) {
      if (const auto* const words = std::get_if<TextMark>(&mark)) text += words->text + "\n";
    }
    INFO(text);
    for (int head = 0; head < 8; ++head) {
      CHECK(text.find("head " + std::to_string(head) + "\n") != std::string::npos);
    }
  }
}

TEST_CASE("a box in which frames would be specks is refused, and a narrow page has them larger") {
  const QueryVolumes many = sample_film(21, 4);
  FilmStyle film;
  film.look = picture_style(StyleName::slide);
  film.look.page_width = 1920;
  film.look.page_height = 1080;
  std::string complaint;
  try {
    Filmstrip small(many, film);
  } catch (const Error& error) {
    complaint = error.what();
  }
  INFO(complaint);
  CHECK(complaint.starts_with("--size: frames would be "));
  CHECK(complaint.find("fewer heads") != std::string::npos);
  // A page of 45 mm.
  film.look = picture_style(StyleName::paper);
  film.look.page_width = 531;
  const QueryVolumes one = sample_film(21, 1);
  const Filmstrip narrow(one, film);
  CHECK(narrow.cell(1, 0, 0).y == narrow.cell(0, 0, 0).y);
  CHECK(narrow.cell(0, 0, 0).width * 8 >= film.look.px(50));
}

TEST_CASE("a table of 48 layers has its page, whatever its width") {
  MetricTable table;
  table.text = {"a title of words that are many enough for a second line on a narrow page",
                {"capture  ·  entropy  ·  exact  ·  softmax domain all"}};
  table.names = {"layer", "head", {}, {}};
  table.value_name = "entropy";
  for (int i = 0; i < 48; ++i) table.names.rows.push_back(std::to_string(i));
  for (int i = 0; i < 24; ++i) table.names.columns.push_back(std::to_string(i));
  for (int i = 0; i < 48 * 24; ++i) table.values.push_back(static_cast<float>(i) / 100);
  for (const StyleName name : kStyles) {
    for (const int width : {480, 900, 1920, 4000}) {
      INFO(width);
      table.look = page_of(name, width);
      const Canvas page = HeatTablePicture(table).draw();
      CHECK(page.width() == width);
      check_page_texts(page);
    }
  }
}

TEST_CASE("a box is kept to, and what no page has says the least that does") {
  const QueryVolumes volumes = sample_film(21, 2);
  FilmStyle film;
  film.look = page_of(StyleName::slide, 1920, 1080);
  const Filmstrip strip(volumes, film);
  CHECK(strip.width() == 1920);
  CHECK(strip.height() <= 1080);
  CHECK(strip.cell(0, 0, 0).width > 4);
  film.look.page_width = 120;
  film.look.page_height = 0;
  std::string complaint;
  try {
    Filmstrip narrow(volumes, film);
  } catch (const Error& error) {
    complaint = error.what();
  }
  INFO(complaint);
  const size_t at = complaint.find("at least ");
  REQUIRE(at != std::string::npos);
  film.look.page_width = std::stoi(complaint.substr(at + 9));
  CHECK(Filmstrip(volumes, film).width() == film.look.page_width);
  film.look.page_width -= 1;
  CHECK_THROWS_AS(Filmstrip(volumes, film), Error);
}

TEST_CASE("chosen frames stand in chosen columns") {
  const QueryVolumes volumes = sample_film(21, 1);
  FilmStyle film;
  film.frames = {0, 4, 8, 9, 10};
  film.columns = 2;
  const Filmstrip strip(volumes, film);
  CHECK(strip.cell(4, 0, 0).y == strip.cell(0, 0, 0).y);
  CHECK(strip.cell(8, 0, 0).y > strip.cell(4, 0, 0).y);
  CHECK(strip.cell(10, 0, 0).x == strip.cell(0, 0, 0).x);
  CHECK(FilmAnimation(volumes, film).frames() == 5);
  film.frames = {21};
  CHECK_THROWS_AS(Filmstrip(volumes, film), Error);
}

TEST_CASE("a picture without title and legend begins with its cells") {
  MetricTable table;
  table.text = {"title", {"line"}};
  table.names = {"layer", "head", {"0"}, {"0", "1"}};
  table.values = {1, 2};
  table.look.title = "";
  table.look.legend = false;
  const HeatTablePicture bare(table);
  CHECK(bare.cell(0, 0).y < 100);
  CHECK(bare.width() < 200 + 2 * bare.cell(0, 0).width);
  table.look.title = "Another";
  table.look.vector = true;
  const Canvas named = HeatTablePicture(table).draw();
  CHECK(std::get<TextMark>(named.marks()[0]).text == "Another");
}

TEST_CASE("a line is drawn with smooth edges where it stands, once where its pieces meet") {
  Canvas canvas(40, 20, Rgb{0, 0, 0});
  const std::vector<PixelPoint> points{{5, 10}, {20, 10}, {35, 10}};
  canvas.polyline(points, 2, {200, 100, 0});
  CHECK(canvas.at(20, 9) == Rgb{200, 100, 0});
  CHECK(canvas.at(20, 10) == Rgb{200, 100, 0});
  CHECK(canvas.at(20, 8) == Rgb{0, 0, 0});
  CHECK(canvas.at(2, 10) == Rgb{0, 0, 0});
  const std::vector<PixelPoint> slope{{0, 0}, {40, 20}};
  Canvas other(40, 20, Rgb{0, 0, 0});
  other.polyline(slope, 1, {255, 255, 255});
  double ink = 0;
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 40; ++x) ink += other.at(x, y).r / 255.0;
  }
  // A line's ink is its length times its width.
  CHECK(ink == Approx(std::sqrt(40.0 * 40 + 20 * 20)).epsilon(0.06));
}

TEST_CASE("a matrix has its page in every style, with and without a grid") {
  MatrixContent content;
  content.map.rows = content.map.cols = 60;
  content.map.block_rows = content.map.block_cols = 4;
  for (int i = 0; i < 3600; ++i) content.map.max.push_back(static_cast<float>(i + 1) / 1e4F);
  content.map.mean = content.map.max;
  content.rows = content.cols = {0, 240};
  content.text = {"title", {"capture  ·  step 10 layer 2 cond joint batch 0 head 3"}};
  content.domain = "softmax domain all";
  for (const bool grid : {false, true}) {
    content.query_tokens = content.key_tokens =
        grid ? TokenGrid::video(240, {4, 6, 8}, 48, TextPlace::start) : TokenGrid::unknown(240);
    for (const StyleName name : kStyles) {
      for (const int width : {480, 900, 1920, 4000}) {
        INFO(width);
        content.look = page_of(name, width);
        const MatrixPicture picture(content);
        CHECK(picture.width() == width);
        const Canvas page = picture.draw();
        check_page_texts(page);
        check_title_apart(page, "weight");
      }
    }
  }
}

TEST_CASE("the colour bars of one film have one notation") {
  QueryVolumes volumes = sample_film(3, 2);
  for (size_t i = 0; i < 120; ++i) {
    volumes.volumes[0].video[i] = 0.01F * static_cast<float>(i + 1);
    volumes.volumes[1].video[i] = 1e-6F * static_cast<float>(i + 1);
  }
  for (QueryVolume& volume : volumes.volumes) volume.text.clear();
  volumes.domain = "video";
  FilmStyle film;
  film.look.vector = true;
  const std::string strips = page_texts(drawn_page(Filmstrip(volumes, film).page(), film.look));
  const std::string moving = page_texts(FilmAnimation(volumes, film).frame(0));
  for (const std::string& text : {strips, moving}) {
    INFO(text);
    CHECK(text.find("10⁻") != std::string::npos);
    CHECK(text.find("\n0.") == std::string::npos);
  }
  // By itself the first one has decimals.
  volumes.volumes.pop_back();
  const std::string alone = page_texts(drawn_page(Filmstrip(volumes, film).page(), film.look));
  CHECK(alone.find("\n0.") != std::string::npos);
  CHECK(alone.find("10⁻") == std::string::npos);
}

TEST_CASE("cells and bar of a table count in one power of ten, which stands above the bar") {
  MetricTable table;
  table.text = {"title", {"line"}};
  table.names = {"layer", "head", {"0"}, {"0", "1", "2", "3"}};
  table.value_name = "entropy";
  table.values = {1e-5F, 2.5e-5F, 4e-5F, 5e-5F};
  table.look.vector = true;
  const HeatTablePicture picture(table);
  const int width = picture.width();
  const std::string text = page_texts(picture.draw());
  INFO(text);
  CHECK(text.find("\n×10⁻⁵\nentropy\n") != std::string::npos);
  CHECK(text.find("\n2.50\n") != std::string::npos);
  CHECK(text.find("\n4\n") != std::string::npos);
  CHECK(text.find("×10⁻⁵\n2") == std::string::npos);
  // The page is the one of any values.
  table.values = {1, 2, 3, 4};
  CHECK(HeatTablePicture(table).width() == width);
}

TEST_CASE("cells and colour bar of a table have one notation") {
  MetricTable table;
  table.text = {"entropy", {"line"}};
  table.names = {"layer", "head", {"0"}, {"0", "1", "2", "3"}};
  table.value_name = "entropy";
  table.values = {1e-6F, 3.2e-4F, 0.051F, 0.4F};
  table.colours = {Colormap::viridis, ScaleKind::log2, {true, 0, 1, false}};
  table.look.vector = true;
  const std::string text = page_texts(HeatTablePicture(table).draw());
  INFO(text);
  for (const std::string word : {"10⁻⁶", "3.2×10⁻⁴", "5.1×10⁻²", "4×10⁻¹"}) {
    INFO(word);
    CHECK(text.find("\n" + word + "\n") != std::string::npos);
  }
  CHECK(text.find("\n0.") == std::string::npos);
  // Where decimals do for the bar, cells have them too.
  table.values = {0.02F, 0.1F, 0.25F, 0.4F};
  const std::string plain = page_texts(HeatTablePicture(table).draw());
  INFO(plain);
  CHECK(plain.find("×") == std::string::npos);
  CHECK(plain.find("\n0.25\n") != std::string::npos);
}

TEST_CASE("a difference without any value says so, and never 0") {
  MetricTable table;
  table.text = {"A − B", {"line"}};
  table.names = {"query", "key frame", {"0"}, {"0", "1"}};
  table.value_name = "A − B";
  table.values = {std::nanf(""), std::nanf("")};
  table.colours = {Colormap::coolwarm, ScaleKind::symlog, {false, 0, 0, false}};
  table.look.vector = true;
  const std::string text = page_texts(HeatTablePicture(table).draw());
  INFO(text);
  CHECK(text.ends_with("A − B\nno\nvalue\n"));
}

TEST_CASE("a difference that is 0 everywhere says so, and has no scale") {
  MetricTable table;
  table.text = {"A − B", {"line"}};
  table.names = {"query", "key frame", {"0"}, {"0", "1"}};
  table.value_name = "A − B";
  table.values = {0, 0};
  table.colours = {Colormap::coolwarm, ScaleKind::linear, {false, 0, 0, false}};
  table.look.vector = true;
  const HeatTablePicture picture(table);
  const Canvas page = picture.draw();
  const std::string text = page_texts(page);
  INFO(text);
  CHECK(text.ends_with("A − B\n0\neverywhere\n"));
  const PixelRect cell = picture.cell(0, 0);
  CHECK(page.at(cell.x + 1, cell.y + 1) == colormap_at(Colormap::coolwarm, 0.5));
}

TEST_CASE("lines of a label are not broken between a number and its per cent sign") {
  const std::string text = "mean " + share_words(0.123);
  for (int width = 10; width < 200; width += 5) {
    for (const std::string& line : wrapped_words(text, width, 14)) CHECK_FALSE(line == "%");
  }
  CHECK(text_width(share_words(0.123), 14) == text_width("12.3 %", 14));
}

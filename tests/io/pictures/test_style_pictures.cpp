// Pictures of each style beside those of tests/golden; ATTNSCOPE_UPDATE_GOLDEN=1 in the environment
// writes these instead.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "io/pictures/film/film_grid.h"
#include "io/pictures/matrix_picture.h"
#include "io/pictures/metric_table.h"
#include "io/pictures/mosaic_picture.h"
#include "tests/support/catch.h"
#include "tests/support/drawn_page.h"
#include "tests/support/picture_compare.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kStyles{"dark", "paper", "slide"};

/// A style whose pictures are small.
PictureStyle small_style(const std::string& name, int width) {
  PictureStyle look = picture_style(*parse_style_name(name), 96, 9);
  look.page_width = width;
  return look;
}

/// Weights around a place that moves from frame to frame.
QueryVolumes moving_weights(size_t heads) {
  QueryVolumes volumes;
  volumes.grid = {4, 6, 8};
  volumes.model = "A model";
  volumes.capture = "capture";
  volumes.query_text = "query 1,2,3";
  volumes.domain = "all";
  volumes.domain_text = "softmax domain all";
  for (size_t head = 0; head < heads; ++head) {
    QueryVolume volume;
    volume.label = "step 0 layer " + std::to_string(head / 4) + " joint batch 0 head " +
                   std::to_string(head % 4);
    volume.query = {1, 2, 3};
    for (int n = 0; n < 4 * 6 * 8; ++n) {
      const double t = n / 48, y = n / 8 % 6 - 2.0, x = n % 8 - 2 - t * (1 + 0.2 * double(head));
      volume.video.push_back(static_cast<float>(0.02 * std::exp(-(x * x + y * y) / 3)));
    }
    volumes.volumes.push_back(std::move(volume));
  }
  return volumes;
}

PooledMap banded_map(int64_t side, int64_t block) {
  PooledMap map;
  map.block_rows = map.block_cols = block;
  map.rows = map.cols = side;
  for (int64_t i = 0; i < side * side; ++i) {
    const auto apart = static_cast<double>((i / side - i % side) % 12);
    map.max.push_back(static_cast<float>(0.2 * std::exp(-std::abs(apart))));
  }
  map.mean = map.max;
  return map;
}

void check_golden(const std::string& name, const Canvas& canvas) {
  const TemporaryFolder folder;
  const fs::path now = folder.path() / "now.png";
  write_picture(canvas, {}, "", now, false);
  const fs::path golden = fs::path(project_folder()) / "tests/golden" / (name + ".png");
  if (std::getenv("ATTNSCOPE_UPDATE_GOLDEN") != nullptr) {
    fs::copy_file(now, golden, fs::copy_options::overwrite_existing);
    return;
  }
  const Picture drawn = read_png(now.string()), then = read_png(golden.string());
  REQUIRE(drawn.width == then.width);
  REQUIRE(drawn.height == then.height);
  const PictureLikeness likeness = compare_pictures(drawn, then, drawn.height);
  INFO(name << ": similarity " << likeness.similarity << ", bad pixels " << likeness.bad_share);
  CHECK(likeness.similarity >= 0.995);
  CHECK(likeness.bad_share <= 0.001);
}

}  // namespace

TEST_CASE("films look in every style as they did") {
  for (const std::string& style : kStyles) {
    FilmStyle film;
    film.look = small_style(style, 460);
    const QueryVolumes two = moving_weights(2);
    check_golden("film-" + style, drawn_page(Filmstrip(two, film).page(), film.look));
    const QueryVolumes many = moving_weights(16);
    check_golden("films-" + style, drawn_page(FilmGrid(many, film).page(), film.look));
  }
}

TEST_CASE("maps look in every style as they did") {
  for (const std::string& style : kStyles) {
    MatrixContent content;
    content.map = banded_map(60, 4);
    content.rows = content.cols = {0, 240};
    content.text = {"A model", {"capture  ·  step 0 layer 1 joint batch 0 head 3"}};
    content.domain = "softmax domain all";
    content.query_tokens = content.key_tokens =
        TokenGrid::video(240, {4, 6, 8}, 48, TextPlace::start);
    content.look = small_style(style, 460);
    check_golden("matrix-" + style, MatrixPicture(content).draw());
    MosaicContent mosaic;
    mosaic.names = {"layer", "head", {"0", "1"}, {"0", "1", "2", "3"}};
    mosaic.maps.assign(7, banded_map(16, 15));
    mosaic.maps.emplace_back();
    mosaic.cell_text = "mean of 15×15 blocks";
    mosaic.text = content.text;
    mosaic.domain = content.domain;
    mosaic.look = content.look;
    check_golden("mosaic-" + style, MosaicPicture(mosaic).draw());
  }
}

TEST_CASE("tables look in every style as they did") {
  for (const std::string& style : kStyles) {
    MetricTable table;
    table.text = {"A model", {"capture  ·  text_mass  ·  exact  ·  softmax domain all"}};
    table.names = {"layer", "head", {"0", "1", "2"}, {"0", "1", "2", "3"}};
    for (int i = 0; i < 11; ++i) table.values.push_back(static_cast<float>(i * i) * 3e-5F);
    table.values.push_back(std::nanf(""));
    table.value_name = "text_mass";
    table.look = small_style(style, 460);
    check_golden("heatmap-" + style, HeatTablePicture(table).draw());
  }
}

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/render/overlay.h"
#include "io/pictures/picture_page.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

OverlayFiles numbered(size_t count, std::vector<int64_t> frames = {}) {
  OverlayFiles overlay;
  overlay.option = "--overlay x";
  overlay.files.resize(count);
  overlay.frames = std::move(frames);
  return overlay;
}

/// Which file shows each moment.
std::vector<int64_t> pictures(const OverlayFiles& files, int64_t latent_frames,
                              const VideoGeometry& geometry = {},
                              FilmTime time = FilmTime::latent) {
  std::vector<int64_t> shown;
  for (const FilmMoment& moment : overlay_moments(files, latent_frames, geometry, time)) {
    shown.push_back(moment.picture);
  }
  return shown;
}

void write_grey(const std::string& path, int width, int height, uint8_t level) {
  write_picture(Canvas(width, height, {level, level, level}), {}, "", path, false);
}

}  // namespace

TEST_CASE("latent frames get the picture of their place, or the middle of the frames they cover") {
  CHECK(pictures(numbered(3), 3) == std::vector<int64_t>{0, 1, 2});
  // 1 + 4 + 4 video frames.
  CHECK(pictures(numbered(9), 3) == std::vector<int64_t>{0, 2, 6});
  // 1 + 8 + 8, as of LTX; tubelets of two.
  CHECK(pictures(numbered(17), 3, {1, 8, 32}) == std::vector<int64_t>{0, 4, 12});
  CHECK(pictures(numbered(6), 3, {2, 2, 16}) == std::vector<int64_t>{0, 2, 4});
  CHECK(refused(
            [] {
              pictures(numbered(9), 3, {1, 8, 32});
            },
            ErrorCode::usage, {"17 video frames (1, then 8 each)"}) == "");
  // In the video's own time every picture is shown.
  CHECK(pictures(numbered(6), 2, {2, 4, 16}, FilmTime::nearest) ==
        std::vector<int64_t>{0, 1, 2, 3, 4, 5});
  CHECK(latent_frames_of(numbered(6), 2, {2, 4, 16}) == std::vector<int64_t>{0, 0, 1, 1, 1, 1});
  CHECK(pictures(numbered(1), 1) == std::vector<int64_t>{0});
  CHECK(pictures(numbered(4, {1, 0, 1, 1}), 2) == std::vector<int64_t>{1, 2});
  CHECK(refused([] { pictures(numbered(4), 3); }, ErrorCode::usage, {"4", "3", "9"}) == "");
  CHECK(refused([] { pictures(numbered(2, {0, 2}), 3); }, ErrorCode::usage, {"frame 1"}) == "");
}

TEST_CASE("a folder's pictures come in the order of their numbers") {
  const TemporaryFolder folder;
  for (const char* name : {"f10.png", "f2.png", "f1.PNG", "notes.txt", "f002b.png"}) {
    write_grey(folder / name, 1, 1, 0);
  }
  const Capture capture = Capture::open(sample("moving-shapes"));
  std::vector<std::string> names;
  for (const auto& file : find_overlay(folder.path().string(), capture).files) {
    names.push_back(file.filename().string());
  }
  CHECK(names == std::vector<std::string>{"f1.PNG", "f2.png", "f002b.png", "f10.png"});
  CHECK(find_overlay("", capture).empty());
  CHECK(find_overlay("capture", capture).frames == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(refused([&] { find_overlay(folder / "none", capture); }, ErrorCode::file, {"none"}) == "");
  const TemporaryFolder empty;
  CHECK(refused([&] { find_overlay(empty.path().string(), capture); }, ErrorCode::usage,
                {".png"}) == "");
}

TEST_CASE("the video lies under a filmstrip, and large pictures are made smaller") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "video");
  for (int i = 0; i < 7; ++i) {
    write_grey(folder / ("video/" + std::to_string(i) + ".png"), 2000, 1000,
               static_cast<uint8_t>(20 + 30 * i));
  }
  const auto draw = [&](const std::string& overlay, const std::string& out) {
    return run_attnscope({"render", sample("moving-shapes"), "--picture", "filmstrip", "--query",
                          "3,8,7", "--layers", "2", "--heads", "0", "--range", "1:2", "--colormap",
                          "grey", "--overlay", overlay, "-o", folder / out, "--quiet"});
  };
  const auto result = draw(folder / "video", "film.png");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Picture picture = read_png(folder / "film.png");
  // All weights are below the range: black that covers 15 % of each frame's grey.
  for (int i = 0; i < 7; ++i) {
    const auto grey = static_cast<uint8_t>(std::lround((20 + 30 * i) * 0.85));
    int found = 0;
    for (size_t p = 0; p < picture.pixels.size(); p += 3) found += picture.pixels[p] == grey;
    INFO(i);
    CHECK(found > 140 * 18 * 18);
  }
  CHECK(draw("capture", "own.png").exit_code == 0);
  // A picture that is the output's own name is an input.
  const std::string before = read_file(folder / "video/3.png");
  std::vector<std::string> onto{"render",    sample("moving-shapes"),
                                "--picture", "filmstrip",
                                "--query",   "3,8,7",
                                "--layers",  "2",
                                "--overlay", folder / "video",
                                "-o",        folder / "video/3.png",
                                "--force"};
  CHECK(run_attnscope(onto).exit_code != 0);
  CHECK(read_file(folder / "video/3.png") == before);
  std::filesystem::remove(folder / "video/6.png");
  const auto missing = draw(folder / "video", "six.png");
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "6 pictures"));
  write_bytes(folder / "video/6.png", "no picture");
  const auto broken = draw(folder / "video", "broken.png");
  CHECK(broken.exit_code == 1);
  CHECK(contains(broken.err, "6.png"));
}

TEST_CASE("weights over the video are a tint on a linear scale, an outline or contours") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "video");
  constexpr int kGrey = 120;
  for (int i = 0; i < 7; ++i) {
    write_grey(folder / ("video/" + std::to_string(i) + ".png"), 24, 24, kGrey);
  }
  const auto draw = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words{"render",    sample("moving-shapes"),
                                   "--picture", "filmstrip",
                                   "--query",   "3,8,7",
                                   "--layers",  "2",
                                   "--heads",   "0",
                                   "--overlay", folder / "video",
                                   "-o",        folder / out,
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_attnscope(words);
  };
  /// Pixels of the video as it was, or as much of it as a tint of the smallest weights leaves.
  const auto seen = [&](const std::string& out) {
    const Picture picture = read_png(folder / out);
    int found = 0;
    for (size_t p = 0; p < picture.pixels.size(); p += 3) {
      found += std::abs(picture.pixels[p + 1] - kGrey) <= 25;
    }
    return found;
  };
  /// Pixels of the frames that are clearly of a colour.
  const auto coloured = [&](const std::string& out) {
    const Picture picture = read_png(folder / out);
    int found = 0;
    for (size_t p = 0; p < picture.pixels.size(); p += 3) {
      const auto [low, high] =
          std::minmax({picture.pixels[p], picture.pixels[p + 1], picture.pixels[p + 2]});
      found += high - low > 50;
    }
    return found;
  };
  std::map<std::string, int> video;
  for (const std::string mode : {"tint", "outline", "contour"}) {
    const auto result = draw(mode + ".png", {"--over", mode});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(nlohmann::json::parse(result.out).at("over") == mode);
    video[mode] = seen(mode + ".png");
  }
  REQUIRE(draw("plain.png", {}).exit_code == 0);
  CHECK(read_file(folder / "plain.png") == read_file(folder / "tint.png"));
  REQUIRE(draw("log.png", {"--colour-scale", "log"}).exit_code == 0);
  REQUIRE(draw("thin.png", {"--opacity", "0.3"}).exit_code == 0);
  REQUIRE(draw("over.gif", {"--over", "outline"}).exit_code == 0);
  constexpr int kCells = 7 * 12 * 16;
  const int all = kCells * 12 * 12;
  CHECK(video["tint"] > all / 2);
  CHECK(video["outline"] > all / 2);
  CHECK(video["contour"] > all / 2);
  CHECK(coloured("log.png") > 2 * coloured("tint.png"));
  CHECK(seen("thin.png") > video["tint"]);
  CHECK(read_file(folder / "outline.png") != read_file(folder / "contour.png"));

  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--opacity", "0"},
                                                {"--opacity", "1.5"},
                                                {"--opacity", "nan"},
                                                {"--over", "shade"},
                                                {"--over", "outline", "--opacity", "0.5"}}) {
    const auto result = draw("wrong.png", wrong);
    INFO(wrong[0] << " " << wrong[1]);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.out + result.err, wrong[0]));
    CHECK_FALSE(std::filesystem::exists(folder / "wrong.png"));
  }
  const auto without =
      run_attnscope({"render", sample("moving-shapes"), "--picture", "filmstrip", "--query",
                     "3,8,7", "--over", "outline", "-o", folder / "wrong.png"});
  CHECK(without.exit_code == 2);
  CHECK(contains(without.err, "no use without --overlay"));
}

TEST_CASE("a film over every picture of the video plays in the video's time") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "video");
  for (int i = 0; i < 25; ++i) {
    write_grey(folder / ("video/" + std::to_string(i) + ".png"), 24, 24,
               static_cast<uint8_t>(30 + 8 * i));
  }
  const auto draw = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> words{"render",       sample("moving-shapes"),
                                   "--picture",    "filmstrip",
                                   "--query",      "3,8,7",
                                   "--layers",     "2",
                                   "--heads",      "0",
                                   "--range",      "1:2",
                                   "--colour-map", "grey",
                                   "--overlay",    folder / "video",
                                   "-o",           folder / out,
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_attnscope(words);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  CHECK(draw("strip.png", {}).at("time") == "latent");
  CHECK(draw("film.gif", {}).at("time") == "nearest");
  CHECK(draw("linear.png", {"--time", "linear"}).at("time") == "linear");
  CHECK(draw("video.png", {"--time", "nearest"}).at("time") == "nearest");
  // All weights are below the range: black that covers 15 % of each picture's grey.
  const auto pictures_in = [&](const std::string& file) {
    const Picture picture = read_png(folder / file);
    std::array<int, 256> levels{};
    for (size_t p = 0; p < picture.pixels.size(); p += 3) ++levels[picture.pixels[p]];
    int found = 0;
    for (int i = 0; i < 25; ++i) {
      found += levels[static_cast<size_t>(std::lround((30 + 8 * i) * 0.85))] > 140 * 140;
    }
    return found;
  };
  CHECK(pictures_in("strip.png") == 7);
  CHECK(pictures_in("video.png") == 25);
}

TEST_CASE("pictures of every video frame are counted as the model's latent frames hold them") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "video");
  // 1 + 6 x 8, of which the sample's seven latent frames show 0, 4, 12 ...
  for (int i = 0; i < 49; ++i) {
    const int level = i % 8 == 4 || i == 0 ? 200 : 100;
    write_grey(folder / ("video/" + std::to_string(i) + ".png"), 24, 24,
               static_cast<uint8_t>(level));
  }
  const auto draw = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"render",     sample("moving-shapes"),
                                   "--picture",  "filmstrip",
                                   "--query",    "3,8,7",
                                   "--layers",   "2",
                                   "--heads",    "0",
                                   "--range",    "1:2",
                                   "--colormap", "grey",
                                   "--overlay",  folder / "video",
                                   "-o",         folder / "film.png",
                                   "--quiet",    "--force"};
    words.insert(words.end(), more.begin(), more.end());
    return run_attnscope(words);
  };
  const auto unknown = draw({});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "their 25 video frames (1, then 4 each)"));
  const auto told = draw({"--as", "model=ltx-video"});
  INFO(told.err);
  REQUIRE(told.exit_code == 0);
  const Picture picture = read_png(folder / "film.png");
  std::array<int, 2> found{};
  for (size_t p = 0; p < picture.pixels.size(); p += 3) {
    found[0] += picture.pixels[p] == 85;   // 0.85 of 100
    found[1] += picture.pixels[p] == 170;  // and of 200
  }
  CHECK(found[1] > 7 * 140 * 140 / 4);
  CHECK(found[0] < found[1] / 100);
}

#include <array>
#include <cmath>

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

void write_grey(const std::string& path, int width, int height, uint8_t level) {
  write_canvas_png(Canvas(width, height, {level, level, level}), path, false);
}

}  // namespace

TEST_CASE("latent frames get the picture of their place, or the middle of the frames they cover") {
  CHECK(overlay_of_frames(numbered(3), 3) == std::vector<size_t>{0, 1, 2});
  // 1 + 4 + 4 video frames.
  CHECK(overlay_of_frames(numbered(9), 3) == std::vector<size_t>{0, 2, 6});
  // 1 + 8 + 8, as of LTX; tubelets of two.
  CHECK(overlay_of_frames(numbered(17), 3, {1, 8, 32}) == std::vector<size_t>{0, 4, 12});
  CHECK(overlay_of_frames(numbered(6), 3, {2, 2, 16}) == std::vector<size_t>{0, 2, 4});
  CHECK(refused(
            [] {
              overlay_of_frames(numbered(9), 3, {1, 8, 32});
            },
            ErrorCode::usage, {"17 video frames (1, then 8 each)"}) == "");
  CHECK(overlay_of_frames(numbered(1), 1) == std::vector<size_t>{0});
  CHECK(overlay_of_frames(numbered(4, {1, 0, 1, 1}), 2) == std::vector<size_t>{1, 2});
  CHECK(refused([] { overlay_of_frames(numbered(4), 3); }, ErrorCode::usage, {"4", "3", "9"}) ==
        "");
  CHECK(refused(
            [] {
              overlay_of_frames(numbered(2, {0, 2}), 3);
            },
            ErrorCode::usage, {"frame 1"}) == "");
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

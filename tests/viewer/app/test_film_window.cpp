// The query's film in the window: over the video, played, resampled, written into files.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "io/files/json_types.h"
#include "io/pictures/picture_style.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/png_picture.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "viewer/app/film_export.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

const std::string kSample = project_folder() + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The sample with `each` pictures a latent frame, but for the first, as videos have them.
void write_video_sample(const fs::path& folder, int each) {
  fs::copy(kSample, folder, fs::copy_options::recursive);
  Json catalogue = Json::parse(read_bytes(folder / "capture.json"));
  Json frames = Json::array();
  for (int t = 0; t < 7; ++t) {
    for (int i = 0; i < (t == 0 ? 1 : each); ++i) {
      const std::string file = "p" + std::to_string(t) + "-" + std::to_string(i) + ".png";
      fs::copy_file(fs::path(kSample) / ("frame" + std::to_string(t) + ".png"), folder / file);
      frames.push_back({{"file", file}, {"t", t}});
    }
  }
  catalogue["frames"] = frames;
  std::ofstream(folder / "capture.json") << catalogue.dump();
}

}  // namespace

TEST_CASE("a film lies over the video, is clicked and played, and comes back with the session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--cache", "none"},
      "layer 2\nhead 0\nquery 3 8 7\nwait exact\nshot plain.png\nexpect film_frames == 7\n"
      "film tint\nwait exact\nshot tint.png\nfilm opacity 0.3\nwait exact\nshot faint.png\n"
      "film outline\nwait exact\nshot outline.png\nfilm contour\nwait exact\nshot contour.png\n"
      // By the mouse.
      "click \"Query/Film\"\nclick \"Film/One\"\nwait idle\nkey Esc\nwait exact\n"
      "expect film_frame == 0\nclick \"Film/Time\"\nwait exact\nexpect film_frame == 3\n"
      "shot one.png\nclick \"Query/t3\"\nwait exact\nexpect query != 3 8 7\n"
      "key Space\nwait idle 0.6\n");
  INFO(result.err);
  // A film that plays is never idle.
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "wait idle: not there after 0.6 s"));
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  const char* const pictures[] = {"plain.png",   "tint.png",    "faint.png",
                                  "outline.png", "contour.png", "one.png"};
  for (const char* a : pictures) {
    for (const char* b : pictures) CHECK((a == b || bytes(a) != bytes(b)));
  }
  const WindowResult played = run_window(
      folder.path().string(), {kSample, "--cache", "none"},
      "layer 2\nhead 0\nquery 3 8 7\nfilm tint\nfilm loop off\nfilm frame 4\nwait exact\n"
      "film play\nwait idle\nexpect film_frame == 6\nsave-session kept.session\n"
      "key Ctrl+Z\nwait idle\nexpect film_frame == 4\nfilm frame 9\n");
  CHECK(played.exit_code == 1);
  CHECK(contains(played.err, "film frame 9: outside the film (valid 0 to 6)"));
  CHECK(contains(bytes("kept.session"), "\nfilm tint\n"));
  CHECK(contains(bytes("kept.session"), "\nfilm one\n"));
  CHECK(contains(bytes("kept.session"), "\nfilm frame 6\n"));
  const WindowResult again =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "wait exact\nexpect film_frame == 6\n");
  INFO(again.err);
  CHECK(again.exit_code == 0);
}

TEST_CASE("a difference's film lies over the video; where the volume is there is no film") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--cache", "none"},
      "layer 2\nhead 0\nb head 3 0\nquery 3 8 7\nfilm tint\nwait exact\nshot a.png\n"
      "difference signed\nwait exact\nshot signed.png\nfilm outline\nwait exact\n"
      "shot outline.png\nfilm tint\nfilm difference.gif\nfilm play\nexpect playing == off\n"
      "film stop\nkey Shift+Space\nwait picture\nplay off\nexpect film_frames == 7\n"
      "volume on\nwait exact\nfilm play\n");
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "the query pane shows no film"));
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("a.png") != bytes("signed.png"));
  CHECK(bytes("signed.png") != bytes("outline.png"));
  CHECK(bytes("difference.gif").substr(0, 6) == "GIF89a");
}

TEST_CASE("a film is written as an animation, a video and pictures, resampled too") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_video_sample(folder.path() / "capture", 4);
  const WindowResult result = run_window(
      folder.path().string(), {"capture", "--cache", "none"},
      "layer 2\nhead 0\nquery 3 8 7\nfilm tint\nwait exact\nexpect film_frames == 7\nfilm "
      "latent.gif\n"
      "film linear\nwait exact\nexpect film_frames == 25\nfilm frames/\nfilm nearest\nfilm all\n"
      "wait exact\nshot all.png\nfilm latent\nwait exact\nfilm page.pdf\nfilm page.png\n"
      "click \"Toolbar/Theme\"\nfilm light.png\nword circle\nfilm outline\nfilm words.gif\nfilm "
      "frames/\n");
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "already exists"));
  const auto bytes = [&](const std::string& name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("latent.gif").substr(0, 6) == "GIF89a");
  CHECK(bytes("words.gif") != bytes("latent.gif"));
  CHECK(std::distance(fs::directory_iterator(folder.path() / "frames"), fs::directory_iterator()) ==
        25);
  CHECK(bytes("page.pdf").substr(0, 5) == "%PDF-");
  const Picture dark = read_png(folder / "page.png"), light = read_png(folder / "light.png");
  CHECK(dark.at(0, 0) == PictureStyle().background);
  CHECK(light.at(0, 0) == picture_style(StyleName::slide).background);
  // Seven moments stand on a page in lines, where a picture of one is less than half as wide.
  CHECK(dark.width > 2 * read_png(folder / "frames/frame-0003.png").width);
  // Between two latent frames the numbers change, while the picture of the video is the same.
  CHECK(bytes("frames/frame-0003.png") != bytes("frames/frame-0004.png"));
}

TEST_CASE("the plane of a frame through the volume has the video's picture") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_video_sample(folder.path() / "capture", 1);
  const auto run = [&](const std::string& script) {
    return run_window(folder.path().string(), {"capture", "--cache", "none"},
                      "size 1000 700\nquery 3 8 7\nvolume slice t 3\nvolume orbit 0 0\n" + script);
  };
  const WindowResult shown =
      run("wait exact\nshot cells.png\nclick Volume/Video\nwait exact\nshot tint.png\n"
          "film opacity 0.2\nwait exact\nshot faint.png\nvolume slice x 3\nfilm none\n"
          "wait exact\nshot side.png\nfilm tint\nwait exact\nshot same.png\n");
  INFO(shown.err);
  REQUIRE(shown.exit_code == 0);
  const auto at = [&](const char* name) { return read_png(folder.path() / name); };
  const auto differ = [](const Picture& a, const Picture& b) {
    // The volume itself, without what is written above and below it.
    int count = 0;
    for (size_t i = size_t{200} * a.width * 3; i < size_t{390} * a.width * 3; ++i) {
      count += std::abs(int{a.pixels[i]} - int{b.pixels[i]}) > 12 ? 1 : 0;
    }
    return count;
  };
  CHECK(differ(at("cells.png"), at("tint.png")) > 3000);
  CHECK(differ(at("tint.png"), at("faint.png")) > 1000);
  // Pictures are of frames: no other plane has them.
  CHECK(differ(at("side.png"), at("same.png")) < 300);
  std::ofstream(folder.path() / "capture/p3-0.png") << "no picture";
  const WindowResult broken = run("film tint\nwait exact\nshot broken.png\n");
  CHECK(broken.exit_code == 0);
  CHECK(differ(at("cells.png"), read_png(folder.path() / "broken.png")) < 300);
}

TEST_CASE("pictures that cannot be read, or are not there, are told, and the film goes on") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_video_sample(folder.path() / "capture", 1);
  std::ofstream(folder.path() / "capture/p4-0.png") << "no picture";
  const WindowResult broken =
      run_window(folder.path().string(), {"capture", "--cache", "none"},
                 "query 3 8 7\nfilm tint\nwait exact\nshot broken.png\nfilm out.gif\n");
  CHECK(broken.exit_code == 1);
  CHECK(contains(broken.err, "p4-0.png"));
  CHECK_FALSE(fs::exists(folder.path() / "out.gif"));
  CHECK(fs::exists(folder.path() / "broken.png"));

  Json catalogue = Json::parse(read_bytes(folder.path() / "capture/capture.json"));
  catalogue["frames"].erase(4);
  std::ofstream(folder.path() / "capture/capture.json") << catalogue.dump();
  const WindowResult lacking =
      run_window(folder.path().string(), {"capture", "--cache", "none"},
                 "query 3 8 7\nfilm tint\nwait exact\nshot lacking.png\nfilm none\nwait exact\n"
                 "film plain.gif\nfilm tint\nfilm out.gif\n");
  CHECK(lacking.exit_code == 1);
  CHECK(contains(lacking.err,
                 "film out.gif: no picture of the video is recorded for latent frame 4"));
  CHECK(fs::exists(folder.path() / "plain.gif"));
  const WindowResult name = run_window(folder.path().string(), {"capture", "--cache", "none"},
                                       "query 3 8 7\nfilm out.webm\n");
  CHECK(name.exit_code == 2);
}

TEST_CASE("a film of more moments than a page can be high is refused before it is drawn") {
  FilmContent content;
  content.frames = 4000;
  content.height = content.width = 16;
  content.numbers.assign(static_cast<size_t>(content.frames * content.cells()), 0.1F);
  for (int64_t t = 0; t < content.frames; ++t) content.moments.push_back({t, t});
  const ColourScale scale(Colormap::viridis, ScaleKind::log2, {0.01, 1});
  const FilmExport::Film film{content, {}, scale, 1, {"c", "h", "w", "d", "weight"}, {}};
  const TemporaryFolder folder;
  for (const std::string name : {"a.png", "a.svg"}) {
    try {
      const FilmExport page(film, folder.path() / name, false, [] {});
      FAIL("it was not refused");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK(contains(error.what(), name + ": "));
      CHECK(contains(error.what(), "not fit one picture"));
    }
  }
  CHECK_NOTHROW(FilmExport(film, folder.path() / "a.gif", false, [] {}));
}

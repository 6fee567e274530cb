// Tracks beside the map, in a window.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

WindowResult in_window(const TemporaryFolder& folder, const std::string& script) {
  return run_window(folder.path().string(),
                    {kSample, "--layers", "2", "--heads", "0", "--cache", "none"}, script);
}

std::string line_with(const std::string& text, const std::string& start) {
  const size_t at = text.find(start);
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

TEST_CASE("probes have the numbers of their row and key, which are those of stats") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      in_window(folder,
                "track rows entropy\ntrack keys mass\nwait exact\nexpect tracks_rows == 1024\n"
                "probe 700 200\n");
  CHECK(r.err == "");
  REQUIRE(r.exit_code == 0);
  const auto tracks = Json::parse(line_with(r.out, "{\"q\""))["tracks"];
  const ProgramResult stats =
      run_attnscope({"stats", kSample, "--layers", "2", "--heads", "0", "--json", "--quiet",
                     "--with", "column_mass,entropy_rows,lse_rows"});
  INFO(stats.err);
  REQUIRE(stats.exit_code == 0);
  const auto head = Json::parse(stats.out)["heads"][0];
  const auto near = [&](const char* mine, const char* array, size_t place) {
    INFO(mine);
    CHECK(tracks[mine].get<double>() == Approx(head[array][place].get<double>()).epsilon(1e-6));
  };
  near("entropy", "entropy_rows", 700);
  near("lse", "lse_rows", 700);
  near("column_mass", "column_mass", 200);
}

TEST_CASE("a track stands beside the map, in line with it at every zoom, and is clicked through") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  // Of the map's area, the left strip is 76 pixels wide, and the upper one 48 high.
  const WindowResult r = in_window(
      folder,
      "size 1000 700\nwait exact\nshot off.png\nkey N\nkey Shift+N\nexpect row_track == entropy\n"
      "expect key_track == mass\nwait exact\nshot on.png\nzoom 100 116 40 56\nwait exact\n"
      "shot near.png\nclick \"Matrix/Row track\"\nexpect row_track == lse\nwait exact\n"
      "shot lse.png\nclick \"Matrix/Key track\"\nexpect key_track == off\nkey Ctrl+Z\n"
      "expect key_track == mass\ntrack rows off\ntrack keys off\nfit\nwait exact\nshot "
      "again.png\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const Picture off = read_png(folder / "off.png"), on = read_png(folder / "on.png");
  const auto differing = [](const Picture& a, const Picture& b, int x0, int x1, int y0, int y1) {
    int differ = 0;
    for (int y = y0; y < y1; ++y) {
      for (int x = x0; x < x1; ++x) differ += !(a.at(x, y) == b.at(x, y));
    }
    return differ;
  };
  CHECK(differing(off, on, 66, 600, 72, 500) > 10000);
  // The rulers' own bands and the right column stay.
  CHECK(differing(off, read_png(folder / "again.png"), 0, 1000, 0, 670) < 10);
  // Sixteen rows of the map: their numbers stand in steps as high as a row of cells.
  const Picture close = read_png(folder / "near.png"), lse = read_png(folder / "lse.png");
  CHECK(differing(close, lse, 66, 140, 160, 500) > 100);
  CHECK(differing(close, lse, 160, 600, 160, 500) == 0);
}

TEST_CASE("a click on two frames' mass shows them in the map; probes tell the mass") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = in_window(
      folder,
      "size 1000 700\nkey Shift+F\nexpect frame_matrix == on\nwait exact\nshot whole.png\n"
      "hover Frames/t3/t5\nshot pointed.png\nclick Frames/t3/t5\nwait exact\nprobe 450 740\n"
      "save-session clicked.session\nkey Ctrl+Z\nsave-session back.session\npane frames\nwait "
      "exact\n"
      "frames off\nexpect frame_matrix == off\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  // Sixteen words, then frames of 12 × 12.
  CHECK(contains(read_file(folder.path() / "clicked.session"), "\nzoom 448 592 736 880\n"));
  CHECK_FALSE(contains(read_file(folder.path() / "back.session"), "zoom"));
  const ProgramResult stats = run_attnscope({"stats", kSample, "--layers", "2", "--heads", "0",
                                             "--json", "--quiet", "--with", "frame_frame"});
  REQUIRE(stats.exit_code == 0);
  const auto expected = Json::parse(stats.out)["heads"][0]["frame_frame"];
  const auto tracks = Json::parse(line_with(r.out, "{\"q\""))["tracks"];
  // The text is frame 0 there.
  const auto& row = expected.size() == 8 ? expected[4][6] : expected[4 * 8 + 6];
  CHECK(tracks["frame_mass"].get<double>() == Approx(row.get<double>()).epsilon(1e-6));
  // Of offset 2 in time: the masses of the frames' pairs, over keys of a frame.
  double mean = 0;
  for (int64_t t = 0; t + 2 < 7; ++t) {
    const auto& each = expected.size() == 8
                           ? expected[static_cast<size_t>(t + 1)][static_cast<size_t>(t + 3)]
                           : expected[static_cast<size_t>((t + 1) * 8 + t + 3)];
    mean += each.get<double>() / 5 / 144;
  }
  CHECK(tracks["by_dt"].get<double>() == Approx(mean).epsilon(1e-6));
  const auto entry = Json::parse(line_with(r.out, "{\"q\""));
  CHECK(tracks["over_dt"].get<double>() ==
        Approx(entry["weight"].get<double>() / mean).epsilon(1e-6));
}

TEST_CASE(
    "the entry under the mouse is pinned by a key, marked in map and film, and gone back to") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = in_window(
      folder,
      "size 1000 700\nwait exact\nkey P\nexpect pins == none\nhover Matrix/Map\nwait exact\nkey P\n"
      "print pins\nhover \"Matrix/Pin 1\"\nhover \"Query/Pin 1\"\npin 5 60 900\nexpect pins != "
      "none\n"
      "zoom 600 700 100 200\nkey 5\nexpect query == 0 3 8\nsave-session there.session\nshot "
      "there.png\n"
      "key Ctrl+Z\nexpect query == none\nunpin 5\nfit\nhover \"Matrix/Pin 1\"\nwait exact\nkey P\n"
      "expect pins == none\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  const std::string session = read_file(folder.path() / "there.session");
  CHECK(contains(session, "\nzoom 10.5 110.5 850.5 950.5\n"));
  CHECK(contains(session, "\nquery 0 3 8\n"));
  CHECK(contains(session, "\npin 5 60 900\n"));
  // The session brings them back.
  const WindowResult again = run_window(folder.path().string(), {"--session", "there.session"},
                                        "wait exact\nexpect pins != none\nhover \"Matrix/Pin 5\"\n"
                                        "key 7\nshot told.png\n");
  INFO(again.err);
  CHECK(again.exit_code == 0);
  const WindowResult none = in_window(folder, "pin 3\n");
  CHECK(none.exit_code != 0);
  CHECK(none.err.find("pin 3: there is no pin 3") != std::string::npos);
}

TEST_CASE("pins and tracks follow the order of the matrix") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  // By y, x and t: the query (4, 9, 0) stands at 16 + 9·12·7 + 4, the key (0, 8, 8) at 16 + 104·7.
  const WindowResult r = in_window(
      folder,
      "pin 1 700 120\norder yxt\nzoom 300 340 300 340\npin 1\nsave-session placed.session\n"
      "track rows entropy\nwait exact\nhover \"Matrix/Pin 1\"\nwait exact\nkey P\n"
      "expect pins == none\nshot placed.png\norder stored\nwait exact\nshot stored.png\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(read_file(folder.path() / "placed.session"), "\nzoom 756.5 796.5 724.5 764.5\n"));
}

TEST_CASE("tracks that cannot be had are told in one line") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const ProgramResult written = run_attnscope(
      {"export", kSample, "--layers", "2", "--heads", "0", "--quiet", "-o", folder / "maps.h5"});
  INFO(written.err);
  REQUIRE(written.exit_code == 0);
  const WindowResult r = run_window(folder.path().string(), {"maps.h5"}, "track keys mass\n");
  CHECK(r.exit_code == 1);
  CHECK(r.err.find("track: an export has no sums of its rows and keys") != std::string::npos);
  const WindowResult frames = run_window(folder.path().string(), {"maps.h5"}, "pane frames\n");
  CHECK(frames.exit_code == 1);
  CHECK(frames.err.find("frames on: an export has no sums") != std::string::npos);
  const WindowResult wrong = in_window(folder, "track rows entropi\n");
  CHECK(wrong.exit_code != 0);
  CHECK(wrong.err.find("did you mean entropy?") != std::string::npos);
}

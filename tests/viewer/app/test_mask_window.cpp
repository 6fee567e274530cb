// The sparse mask over the map, in the window.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = std::string(project_folder()) + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The number that `print NAME` printed after `which` earlier ones of this name.
double printed(const std::string& out, const std::string& name, int which = 0) {
  size_t at = 0;
  for (int i = 0; i <= which; ++i) {
    at = out.find(name + " ", i == 0 ? 0 : at + 1);
    REQUIRE(at != std::string::npos);
  }
  return std::stod(out.substr(at + name.size() + 1));
}

}  // namespace

TEST_CASE("the window's numbers of a mask are those of attnscope mask") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::vector<std::string> head{kSample, "--layers", "2", "--heads", "0"};
  const std::vector<std::string> masks{"spatial:frames=1", "topk:block=32,keep=0.2"};
  std::vector<std::string> arguments{"mask"};
  arguments.insert(arguments.end(), head.begin(), head.end());
  std::string script = "size 1200 800\n";
  for (const std::string& mask : masks) {
    arguments.insert(arguments.end(), {"--mask", mask});
    script += "mask " + mask +
              "\nwait mask\nprint density\nprint recall\nprint oracle_recall\nprint output_error\n";
  }
  arguments.insert(arguments.end(), {"--json", "--quiet"});
  const auto command = run_attnscope(arguments);
  REQUIRE(command.exit_code == 0);
  const auto heads = Json::parse(command.out)["heads"];
  const WindowResult result = run_window(folder.path().string(), head, script);
  INFO(result.err << result.out);
  REQUIRE(result.exit_code == 0);
  for (size_t m = 0; m < masks.size(); ++m) {
    for (const char* const name : {"density", "recall", "output_error"}) {
      INFO(masks[m] << " " << name);
      // Printed with six digits; oracle_recall ends in a name that is printed too.
      const std::string line = std::string("\n") + name;
      CHECK(printed("\n" + result.out, line, static_cast<int>(m)) ==
            Approx(heads[m][name].get<double>()).epsilon(1e-5));
    }
    CHECK(printed(result.out, "oracle_recall", static_cast<int>(m)) ==
          Approx(heads[m]["oracle_recall"].get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("a mask veils what it drops, goes back, and comes back with the session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--layers", "2", "--heads", "0"},
      "size 1000 700\nwait exact\nshot plain.png\nmask window:100\nwait mask\nwait idle\n"
      "expect mask == window:100\nexpect density > 0.1\nexpect density < 0.3\n"
      "click Mask/Header\nsave-session s.session\nshot veiled.png\nkey Shift+M\nwait idle\n"
      "shot wide.png\nmask off\nexpect mask == none\nwait idle\nshot off.png\nkey Ctrl+Z\n"
      "expect mask == window:100\nopen s.session\nwait mask\nwait exact\n"
      "expect mask == window:100\nclick Mask/Pattern\nclick Pattern/causal\nwait mask\n"
      "expect mask == causal\npane mask\nwait idle\nshot alone.png\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Picture plain = read_png((folder / "plain.png")), off = read_png((folder / "off.png"));
  const Picture wide = read_png((folder / "wide.png"));
  // Of the map's own area: a corner that the window drops, a place on the diagonal that it keeps.
  const auto at = [](const Picture& picture, uint32_t x, uint32_t y) {
    const size_t place = (static_cast<size_t>(y) * picture.width + x) * 3;
    return picture.pixels[place] + picture.pixels[place + 1] + picture.pixels[place + 2];
  };
  int darker = 0, same = 0;
  for (uint32_t y = 150; y < 550; ++y) {
    for (uint32_t x = 100; x < 600; ++x) {
      const int before = at(plain, x, y), after = at(wide, x, y);
      CHECK_FALSE(after > before + 60);
      darker += after + 20 < before ? 1 : 0;
      same += after == before ? 1 : 0;
    }
  }
  CHECK(darker > 50000);
  CHECK(same > 10000);
  int changed = 0;
  for (uint32_t y = 150; y < 550; ++y) {
    for (uint32_t x = 100; x < 600; ++x) changed += at(plain, x, y) != at(off, x, y) ? 1 : 0;
  }
  CHECK(changed < 10);
}

TEST_CASE("blocks are brushed on and off over the matrix, taken back, and kept by the session") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--layers", "2", "--heads", "0"},
      "size 1000 700\nmask spatial:frames=1\nwait mask\nprint density\nclick Mask/Keep\n"
      "drag Matrix/Map 0.7 0.1 0.9 0.3\nwait mask\nprint density\nclick Mask/Drop\n"
      "drag Matrix/Map 0 0 1 1\nwait mask\nexpect density == 0\nexpect recall == 0\n"
      "key Ctrl+Z\nwait mask\nprint density\nsave-session s.session\nclick Mask/Clear\nwait mask\n"
      "print density\nopen s.session\nwait mask\nprint density\nclick Mask/Lost\nwait idle\n"
      "shot lost.png\nmask brush off\nzoom 0 1024 0 1024\ndrag Matrix/Map 0.5 0.5 0.6 0.6\n"
      "expect mask == spatial:frames=1\nfit\nmask off\nmask brush drop\n"
      "drag Matrix/Map 0 0 0.4 0.4\nwait mask\nexpect mask == none\nprint density\n");
  INFO(result.err << result.out);
  REQUIRE(result.exit_code == 0);
  std::vector<double> density;
  for (int i = 0; i < 6; ++i) density.push_back(printed(result.out, "density", i));
  CHECK(density[1] > density[0] + 0.02);
  CHECK(density[2] == density[1]);
  CHECK(density[3] == density[0]);
  CHECK(density[4] == density[1]);
  // 0.4 of either side, in blocks of 2.
  CHECK(density[5] == Approx(1 - 0.4 * 0.4).margin(0.005));
  // Where weight is lost the veil is red.
  const Picture lost = read_png(folder / "lost.png");
  int red = 0;
  for (size_t i = 0; i + 2 < lost.pixels.size(); i += 3) {
    red += lost.pixels[i] > lost.pixels[i + 1] + 25 && lost.pixels[i] > lost.pixels[i + 2] + 25;
  }
  CHECK(red > 1000);
  const auto failed = run_window(folder.path().string(), {kSample}, "mask drop 0 10 0 1025\n");
  CHECK(failed.exit_code != 0);
  CHECK(
      contains(failed.err, ":1: mask: queries 0:10, keys 0:1025 lie beyond the map (1024 x 1024)"));
}

TEST_CASE("a mask that is saved is read by attnscope mask and by the window") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::vector<std::string> head{kSample, "--layers", "2", "--heads", "0"};
  // 1024 tokens are drawn in blocks of 2, which spatial:frames=1 over 144 tokens a frame fits.
  const WindowResult result =
      run_window(folder.path().string(), head,
                 "mask spatial:frames=1\nsave-mask kept.npy\nprint density\nprint recall\n"
                 "order yxt\nmask kept.npy\nwait mask\nprint density\nprint recall\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  for (const char* const name : {"\ndensity", "\nrecall"}) {
    CHECK(printed("\n" + result.out, name, 0) == printed("\n" + result.out, name, 1));
  }
  std::vector<std::string> arguments{"mask"};
  arguments.insert(arguments.end(), head.begin(), head.end());
  arguments.insert(arguments.end(), {"--mask", folder / "kept.npy", "--json"});
  const auto command = run_attnscope(arguments);
  REQUIRE(command.exit_code == 0);
  CHECK_FALSE(contains(command.err, "is measured on"));
  const auto facts = Json::parse(read_file(folder / "kept.npy.json"));
  CHECK(facts["capture"] == std::filesystem::path(kSample).filename().string());
  CHECK(facts["mask"] == "spatial:frames=1");
  CHECK(facts["block"] == 2);
  CHECK(facts["heads"][0]["layer"] == 2);
  CHECK(facts["heads"][0]["head"] == 0);
  const auto row = Json::parse(command.out)["heads"][0];
  CHECK(printed(result.out, "density") == Approx(row["density"].get<double>()).epsilon(1e-5));
  const auto failed = [&](const std::string& script) {
    const WindowResult run = run_window(folder.path().string(), head, script);
    CHECK(run.exit_code != 0);
    return run.err;
  };
  CHECK(contains(failed("mask kept.npy 64\nwait mask\n"), "a block is 2 tokens, as "));
  CHECK(contains(failed("save-mask a.npy\n"), ":1: save-mask a.npy: there is no mask"));
  CHECK(contains(failed("mask causal\nsave-mask a.txt\n"), "must end in .npy"));
  CHECK(contains(failed("mask causal\nsave-mask kept.npy\n"), "already exists"));
  CHECK(contains(failed("order yxt\nmask causal\nsave-mask a.npy\n"), "another order"));
}

TEST_CASE("masks that cannot be had are told in one line, and the window stays") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const auto failed = [&](const std::string& script) {
    const WindowResult result = run_window(folder.path().string(), {kSample}, script);
    CHECK(result.exit_code != 0);
    return result.err;
  };
  CHECK(contains(failed("mask spatail\n"), ":1: mask spatail: no such pattern, did you mean"));
  CHECK(contains(failed("mask causal 64\n"), ":1: mask causal: only a FILE.npy is told its block"));
  const std::string missing = failed("wait picture\nmask blocks.npy 64\nwait mask\n");
  CHECK(contains(missing, ":3: wait mask: "));
  CHECK(contains(missing, "blocks.npy"));
  CHECK(contains(failed("print density\n"), "density: not known yet"));
}

// Heads under the hand: a cursor that keys move, heads that are selected together and come to the
// command line, the query that walks. Through the window's own events.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

WindowResult run(const TemporaryFolder& folder, const std::string& script) {
  return run_window(folder.path().string(), {kSample, "--cache", "none"},
                    "atlas on\nwait atlas\nwait idle\n" + script);
}

/// "layer.head" of the heads that a command of the program takes with these words.
std::vector<std::string> taken(const std::string& command, const std::string& words) {
  std::vector<std::string> arguments{command, kSample, "--json"};
  if (command == "stats") arguments.insert(arguments.end(), {"--sample", "4"});
  if (command == "mask") arguments.insert(arguments.end(), {"--mask", "window:64"});
  std::istringstream split(words);
  for (std::string word; split >> word;) arguments.push_back(word);
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::vector<std::string> heads;
  const auto answer = nlohmann::json::parse(result.out);
  for (const auto& row : answer.at("heads")) {
    heads.push_back(std::to_string(row.at("layer").get<int>()) + "." +
                    std::to_string(row.at("head").get<int>()));
  }
  return heads;
}

/// What stands behind `name ` in the output's line that begins so.
std::string printed(const std::string& out, const std::string& name) {
  const size_t at = out.find(name + " ");
  REQUIRE(at != std::string::npos);
  return out.substr(at + name.size() + 1, out.find('\n', at) - at - name.size() - 1);
}

}  // namespace

TEST_CASE("arrows move a cursor over the heads, whose maps are seen; Enter and B keep them") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "hover \"Atlas/L1/H1\"\nkey Right\nkey Down\nwait idle\nshot cursor.png\n"
          // Nothing is kept until Enter.
          "expect head == 0\nexpect layer == 0\n"
          "key Enter\nexpect layer == 2\nexpect head == 2\n"
          "key End\nkey Enter\nexpect layer == 3\nexpect head == 3\n"
          "key Right\nkey Down\nkey Enter\nexpect layer == 3\nexpect head == 3\n"
          "key Home\nkey B\nwait idle\nexpect b == \"step 10 layer 0 branch cond head 0\"\n"
          // Space selects it; Escape lets the cursor go, and then acts as everywhere.
          "key Space\nexpect selected_heads == 0.0\nkey Space\nexpect selected_heads == none\n"
          "query 3 5 6\nkey Escape\nexpect query == \"3 5 6\"\nkey Escape\nexpect query == none\n"
          // Over the map the arrows move that.
          "zoom 100 200 100 200\nhover \"Matrix/Map\"\nkey Down\n"
          "expect zoom == \"112.5 212.5 100 200\"\n");
  INFO(r.err << r.out);
  CHECK(r.exit_code == 0);
  const WindowResult sorted =
      run(folder,
          "atlas sort entropy\natlas filter layers=1-2\nwait idle\nhover \"Atlas/L1/H1\"\n"
          "key Home\nkey Enter\nprint layer\nprint head\natlas filter none\n"
          "pane atlas\nhover \"Toolbar/Menu\"\nkey Home\nkey Enter\nprint b\n");
  INFO(sorted.err << sorted.out);
  CHECK(sorted.exit_code == 0);
}

TEST_CASE("heads are selected by Ctrl, Shift, a box and keys, undone, kept, and let go") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "drag \"Atlas/L1/H2\" 0.5 0.5 0.5 0.5 ctrl\nexpect selected_heads == 1.2\n"
          "expect layer == 0\n"
          "drag \"Atlas/L2/H1\" 0.5 0.5 0.5 0.5 shift\n"
          "expect selected_heads == 1.2,1.3,2.0,2.1\n"
          "drag \"Atlas/L1/H3\" 0.5 0.5 0.5 0.5 ctrl\nexpect selected_heads == 1.2,2.0,2.1\n"
          "shot selected.png\nsave-session kept.session\n"
          "key Ctrl+Z\nexpect selected_heads == 1.2,1.3,2.0,2.1\n"
          "click \"Atlas/Clear\"\nexpect selected_heads == none\n"
          "drag \"Atlas/Area\" 0 0 1 0.99\n"
          "atlas filter heads=1\nwait idle\nhover \"Atlas/L0/H1\"\nkey Ctrl+A\n"
          "expect selected_heads == 0.1,1.1,2.1,3.1\n"
          // A plain click keeps a head and the selection; the filter hides none of it.
          "atlas filter none\nwait idle\nclick \"Atlas/L3/H0\"\nexpect layer == 3\n"
          "expect selected_heads == 0.1,1.1,2.1,3.1\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(read_bytes(folder.path() / "kept.session"), "\nheads select 1.2,2.0,2.1\n"));
  const WindowResult again =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "expect selected_heads == 1.2,2.0,2.1\n");
  INFO(again.err);
  CHECK(again.exit_code == 0);
  const WindowResult wrong = run(folder, "heads select 3\n");
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "heads select 3: expected LAYER.HEAD"));
}

TEST_CASE("the command line takes the very heads that were selected, as words and as a file") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "drag \"Atlas/L2/H3\" 0.5 0.5 0.5 0.5 ctrl\ndrag \"Atlas/L0/H1\" 0.5 0.5 0.5 0.5 ctrl\n"
          "key Ctrl+Shift+C\nprint clipboard\nsave-heads picked.json\nkey Ctrl+Shift+S\n"
          "key Ctrl+E\nexpect clipboard != \"\"\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  const std::string words = printed(r.out, "clipboard");
  CHECK(words == "--pick 2.3,0.1");
  const std::vector<std::string> two{"0.1", "2.3"};
  CHECK(taken("stats", words) == two);
  CHECK(taken("mask", words) == two);
  for (const char* const file : {"picked.json", "attnscope-heads-1.json"}) {
    CHECK(taken("stats", "--from " + (folder.path() / file).string()) == two);
  }
  const WindowResult none = run(folder, "save-heads none.json\n");
  CHECK(none.exit_code == 1);
  CHECK(contains(none.err, "save-heads none.json: no head is selected"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "none.json"));
  const WindowResult there = run(folder, "heads select 1.1\nsave-heads picked.json\n");
  CHECK(there.exit_code == 1);
  CHECK(contains(there.err, "already exists"));
}

TEST_CASE("cells have the colours of classes at every size where that is chosen") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run(folder,
          "shot thumbnails.png\natlas class\nexpect atlas_cells == class\nwait idle\n"
          "shot classes.png\nclick \"Atlas/Class global\"\nexpect atlas_filter == global\n"
          "size 320 400\nwait idle\nclick \"Atlas/Class global\"\n"
          "expect atlas_filter == none\n");
  INFO(r.err << r.out);
  CHECK(r.exit_code == 0);
  CHECK(read_bytes(folder.path() / "thumbnails.png") != read_bytes(folder.path() / "classes.png"));
}

TEST_CASE("keys walk the query through the video and along the entries of its row") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run_window(folder.path().string(), {kSample, "--cache", "none"},
                 "query 3 5 6\nkey Shift+Right\nexpect query == \"3 5 7\"\nkey Shift+Down\n"
                 "key PageDown\nexpect query == \"4 6 7\"\nkey Shift+Left\nkey Shift+Up\n"
                 "key PageUp\nexpect query == \"3 5 6\"\nwalk t -3\nexpect query == \"0 5 6\"\n"
                 // Nothing is before the first frame.
                 "key PageUp\nexpect query == \"0 5 6\"\n"
                 "wait query\nkey J\nwait idle\nkey Ctrl+C\nprint clipboard\n"
                 "walk smaller\nwait idle\nkey Ctrl+C\nprint clipboard\n"
                 "walk larger\nwait idle\nkey Ctrl+C\nprint clipboard\nshot walked.png\n");
  INFO(r.err << r.out);
  REQUIRE(r.exit_code == 0);
  std::vector<std::pair<std::string, double>> entries;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("weight ");
    REQUIRE(at != std::string::npos);
    entries.emplace_back(line, std::stod(line.substr(at + 7)));
  }
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].second > entries[1].second);
  CHECK(entries[2] == entries[0]);
  const WindowResult nowhere =
      run_window(folder.path().string(), {kSample, "--cache", "none"}, "query 6 5 6\nwalk t 1\n");
  CHECK(nowhere.exit_code == 1);
  CHECK(contains(nowhere.err, "walk t 1: that is beyond the video (0 to 6)"));
}

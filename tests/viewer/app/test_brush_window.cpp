#include <cmath>
#include <sstream>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = std::string(project_folder()) + "/samples/moving-shapes";

}  // namespace

TEST_CASE("several queries are picked by dragging over the film and over the matrix") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run_window(folder.path().string(), {kSample, "--size", "1000x700"},
                 "wait exact\n"
                 // Rows and columns 3 to 6 of a frame of 12×12.
                 "drag Query/t2 0.3 0.3 0.56 0.56 shift\n"
                 "expect query == mean of 16\n"
                 "save-session a.session\n"
                 // A click with Ctrl takes one of them away, and puts it back.
                 "drag Query/t2 0.3 0.3 0.3 0.3 ctrl\n"
                 "expect query == mean of 15\n"
                 "drag Query/t2 0.3 0.3 0.3 0.3 ctrl\n"
                 "expect query == mean of 16\n"
                 "drag Query/t4 0.3 0.3 0.3 0.3 ctrl\n"
                 "expect query == mean of 17\n"
                 "key Ctrl+Z\n"
                 "expect query == mean of 16\n"
                 "query 2 3:7 3:7\n"
                 "wait query\n"
                 "key Ctrl+L\n"
                 "print clipboard\n"
                 // Two of 1024 rows of the whole map, in the order that it is seen.
                 "fit\n"
                 "zoom 16 26 0 1024\n"
                 "order yxt\n"
                 "drag Matrix/Map 0.5 0.25 0.6 0.45 shift\n"
                 "expect query == mean of 3\n"
                 "save-session b.session\n"
                 "drag Matrix/Map 0.5 0.05 0.6 0.05 shift ctrl\n"
                 "expect query == mean of 4\n"
                 "drag Matrix/Map 0.5 0.95 0.6 0.95 shift\n"
                 "print query\n"
                 "quit\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.out, "--query 2,3:7,3:7"));
  // Row 3, column 3 of frame 2: 16 + 2·144 + 3·12 + 3.
  CHECK(contains(read_bytes(folder / "a.session"), "\nquery 2 3:7 3:7\n"));
  // Places 2 to 4 of y 0, x 0 are frames 2 to 4 of it.
  CHECK(contains(read_bytes(folder / "b.session"), "\nquery 2:5 0 0\n"));
  CHECK(contains(r.out, "query 2 0 1\n"));
}

TEST_CASE("a box of queries beside the grid is refused by its place") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const auto error = [&](const std::string& line) {
    return run_window(folder.path().string(), {kSample}, line + "\nquit\n").err;
  };
  CHECK(contains(error("query 2 3:13 3"), "query 2,3:13,3 (Y)"));
  CHECK(contains(error("query 7 3:4 3"),
                 "query 7,3:4,3 (T): outside the grid (got 7, valid 0 to 6)"));
  CHECK(contains(error("drag Query/t2 0 0 2 0"), "expected shares"));
  CHECK(contains(error("drag Nowhere 0 0 1 0"), "no such label"));
}

TEST_CASE("the wheel zooms the matrix at the mouse, and goes back") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r = run_window(folder.path().string(), {kSample, "--size", "1000x700"},
                                    "wait exact\n"
                                    "wheel Matrix/Map 3\n"
                                    "save-session in.session\n"
                                    "wheel Matrix/Map -3\n"
                                    "save-session out.session\n"
                                    "quit\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const auto width = [&](const char* name) {
    const std::string session = read_bytes(folder / name);
    const size_t zoom = session.find("\nzoom ");
    if (zoom == std::string::npos) return 1024.0;  // all of the map
    std::istringstream numbers(session.substr(zoom + 6));
    double q0 = 0, q1 = 0, k0 = 0, k1 = 0;
    numbers >> q0 >> q1 >> k0 >> k1;
    return k1 - k0;
  };
  CHECK(width("in.session") == Approx(1024 / std::pow(1.25, 3)));
  CHECK(width("out.session") == Approx(1024));
  CHECK(contains(run_window(folder.path().string(), {kSample}, "wheel Matrix/Map 0\n").err,
                 "wheel: expected notches"));
}

TEST_CASE("a window begins with the tokens of --query, --index and --at") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const auto begun = [&](const std::vector<std::string>& words) {
    std::vector<std::string> line{kSample};
    line.insert(line.end(), words.begin(), words.end());
    return run_window(folder.path().string(), line, "print query\nquit\n");
  };
  // Row 3, column 5 of frame 2: 16 + 2*144 + 3*12 + 5. The recorder did not tell what a token
  // covers.
  const std::string place = "query 2 3 5\n";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--query", "2,3,5"},
           {"--query", "345"},
           {"--index", "345"},
           {"--at", "frame=2,x=11,y=6,cell=1x2x2"},
           {"--query", "2,3,5", "--at", "frame=2,x=11,y=6,cell=1x2x2"}}) {
    const WindowResult r = begun(words);
    INFO(words.back() << r.err);
    CHECK(r.exit_code == 0);
    CHECK(r.out == place);
  }
  CHECK(begun({"--query", "2,3:7,3:7", "--index", "3"}).out == "query mean of 17\n");
  CHECK(contains(begun({"--at", "frame=2,x=11,y=6,cell=1x2x2"}).err,
                 "frame 2, x 11, y 6 is token 2,3,5 (cell 1x2x2"));
  const WindowResult unknown = begun({"--at", "frame=2,x=11,y=6"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "is not known"));
  const WindowResult outside = begun({"--at", "frame=7,x=0,y=0,cell=1x2x2"});
  CHECK(outside.exit_code == 2);
  CHECK(contains(outside.err, "frame 7 is outside the decoded video"));
}

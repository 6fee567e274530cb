#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = std::string(project_folder()) + "/samples/moving-shapes";

std::string reversed_list(int64_t tokens) {
  std::string text;
  for (int64_t i = tokens - 1; i >= 0; --i) text += std::to_string(i) + " ";
  return text;
}

}  // namespace

TEST_CASE("the order of the matrix is chosen by hand, by key and by script, and told") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_bytes(folder / "back.txt", reversed_list(1024));
  const WindowResult r = run_window(folder.path().string(), {kSample, "--size", "1000x700"},
                                    "wait exact\nexpect order == stored\n"
                                    "click Matrix/Order\n"
                                    "click Order/yxt\n"
                                    "expect order == yxt\n"
                                    "wait exact\n"
                                    "key O\n"
                                    "expect order == stored\n"
                                    "order back.txt keys\n"
                                    "wait exact\n"
                                    "key Ctrl+Z\n"
                                    "expect order == stored\n"
                                    "order tiles:2x4x4\n"
                                    "zoom 16 48 16 48\n"
                                    "wait exact\n"
                                    "print order\n"
                                    // Entries are asked for by their tokens, whatever is seen.
                                    "probe 100 200\n"
                                    "order stored\n"
                                    "probe 100 200\n"
                                    "save-session a.session\n"
                                    "order hilbert rows\n"
                                    "print order\n"
                                    "save-session b.session\n"
                                    "order yxt\n"
                                    "open b.session\n"
                                    "print order\n"
                                    "quit\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.out, "order tiles:2x4x4\n"));
  const size_t first = r.out.find("{\"q\":100"), second = r.out.rfind("{\"q\":100");
  REQUIRE(first != second);
  CHECK(r.out.substr(first, r.out.find('\n', first) - first) ==
        r.out.substr(second, r.out.find('\n', second) - second));
  const std::string last = "order hilbert stored\n";
  CHECK(r.out.find(last) != r.out.rfind(last));
}

TEST_CASE("an order that cannot be had is one line, and what was open stays") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  write_bytes(folder / "short.txt", "0 1 2");
  write_bytes(folder / "word.txt", "0 1 two");
  const auto error = [&](const std::string& line) {
    const WindowResult r = run_window(folder.path().string(), {kSample}, line + "\nquit\n");
    CHECK(r.exit_code != 0);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    return r.err;
  };
  CHECK(contains(error("order short.txt"),
                 "short.txt: has 3 numbers, expected 1024 or, of the grid alone, 1008"));
  CHECK(contains(error("order word.txt"), "number 2: expected a whole number, got two"));
  CHECK(contains(error("order none.txt"), "none.txt"));
  CHECK(contains(error("order hilbrt"), "did you mean hilbert?"));
  CHECK(contains(error("order yxt columns"), "columns"));
  const ProgramResult maps = run_attnscope({"export", kSample, "--layers", "2", "--heads", "0",
                                            "--steps", "10", "--quiet", "-o", folder / "maps.h5"});
  REQUIRE(maps.exit_code == 0);
  const WindowResult of_export =
      run_window(folder.path().string(), {folder / "maps.h5"}, "order yxt\nquit\n");
  CHECK(contains(of_export.err, "maps of an export stand in the order"));
}

TEST_CASE("a view in another order is shown again by its command line") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult r =
      run_window(folder.path().string(),
                 {kSample, "--order", "yxt", "--order-keys", "hilbert", "--layers", "3"},
                 "print order\nkey Ctrl+L\nprint clipboard\nzoom 16 48 16 48\nquit\n");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(contains(r.out, "order yxt hilbert\n"));
  CHECK(contains(r.out, "--order yxt --order-keys hilbert"));
  const WindowResult wrong =
      run_window(folder.path().string(), {kSample, "--order", "sideways"}, "quit\n");
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "order sideways: no such order"));
}

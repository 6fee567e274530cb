// The program's files: the libraries that it loads, and the window's program beside it.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Ended {
  int exit_code = -1;
  std::string err;
};

/// Runs a program with words that need no quotes.
Ended run_copy(const std::filesystem::path& program, const std::string& words) {
  const std::string err = program.string() + ".err";
  const int status = std::system((program.string() + " " + words + " >/dev/null 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(err)};
}

}  // namespace

TEST_CASE("no command but view loads what draws the window") {
  if (sanitized()) {
    skip_test("sanitizers load libraries of their own");
    return;
  }
  ProgramSettings settings;
  // The system's loader then prints what it would load, and starts nothing.
  settings.environment = {"LD_TRACE_LOADED_OBJECTS=1"};
  const auto loaded = run_attnscope({"--version"}, settings);
  INFO(loaded.out);
  REQUIRE(loaded.out.find("libc.so") != std::string::npos);
  for (const char* name : {"libglfw", "libepoxy", "libX11", "libfreetype", "libfontconfig"}) {
    INFO(name);
    CHECK(loaded.out.find(name) == std::string::npos);
  }
}

TEST_CASE("a program without the window's beside it says so") {
  const TemporaryFolder folder;
  const std::filesystem::path alone = folder.path() / "attnscope";
  std::filesystem::copy_file(program_path(), alone);
  const auto version = run_copy(alone, "--version");
  CHECK(version.exit_code == 0);
  const auto view = run_copy(alone, "view dump --screenshot a.png");
  INFO(view.err);
  CHECK(view.exit_code == 1);
  CHECK(view.err.find("attnscope: view: ") == 0);
  const bool windowless = view.err.find("this build has no window") != std::string::npos;
  const bool missing =
      view.err.find((folder / "attnscope-window") + ", which belongs beside") != std::string::npos;
  CHECK((windowless || missing));
  CHECK(std::count(view.err.begin(), view.err.end(), '\n') == 1);
  // A bad command line is refused before the window's program is looked for.
  const auto wrong = run_copy(alone, "view --no-such-option");
  CHECK(wrong.exit_code == 2);
}

// Where pictures of the window may not come.
#include <filesystem>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("no picture or mask is written into the capture that is seen") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "dump");
  CallFile().pair({1, 1, 64, 8}, {1, 1, 64, 8}).write(folder.path() / "dump/call.safetensors");
  for (const std::string line :
       {"shot dump/x.png", "mask causal\nwait idle\nsave-mask dump/m.npy"}) {
    const WindowResult refused = run_window(folder.path().string(), {"dump", "--cache", "none"},
                                            "wait exact\n" + line + "\n");
    INFO(line << ": " << refused.err);
    CHECK(refused.exit_code != 0);
    CHECK(contains(refused.err, "would stand in dump, which is read"));
  }
  const WindowResult early =
      run_window(folder.path().string(), {"dump", "--cache", "none", "--screenshot", "dump/x.png"});
  CHECK(early.exit_code == 1);
  CHECK(contains(early.err, "would stand in dump, which is read"));
  CHECK(std::distance(fs::directory_iterator(folder.path() / "dump"), {}) == 1);
  // Beside the file that it is, there is room.
  const WindowResult beside =
      run_window(folder.path().string(),
                 {"dump/call.safetensors", "--cache", "none", "--screenshot", "dump/x.png"});
  INFO(beside.err);
  CHECK(beside.exit_code == 0);
}

TEST_CASE("a screenshot and a script are the work of one process") {
  const TemporaryFolder folder;
  ProgramSettings settings;
  settings.environment = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"};
  const auto refused =
      run_attnscope({"view", sample("moving-shapes"), "--screenshot", folder / "x.png"}, settings);
  INFO(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--screenshot " + (folder / "x.png")));
  CHECK(contains(refused.err, "all tasks would write it: this is task 1 of 2"));
  CHECK(fs::is_empty(folder.path()));
  const auto script =
      run_attnscope({"view", sample("moving-shapes"), "--script", folder / "steps.txt"}, settings);
  INFO(script.err);
  CHECK(script.exit_code == 2);
  CHECK(contains(script.err, "what is written by --script " + (folder / "steps.txt")));
}

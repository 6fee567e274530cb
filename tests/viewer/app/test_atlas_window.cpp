// The heads of all layers in the window: shown, filtered, clicked, kept in a session.
#include <filesystem>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/hidden_window.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const std::string kSample = project_folder() + "/samples/moving-shapes";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a script shows every head of a step, filters and clicks them") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(
      folder.path().string(), {kSample, "--cache", "none"},
      "atlas on\nwait atlas\nexpect atlas_heads == 16\nexpect atlas_sketched == 16\n"
      "wait exact\nshot thumbs.png\n"
      "click \"Atlas/L2/H1\"\nwait exact\nexpect layer == 2\nexpect head == 1\n"
      "atlas entropy\nwait idle\nshot entropy.png\natlas sort text_mass\nwait idle\n"
      "click \"Atlas/L0/H3\"\nwait exact\nexpect layer == 0\n"
      "atlas filter entropy<5\nwait idle\nexpect atlas_heads < 16\nexpect atlas_heads > 0\n"
      "click \"Atlas/Filter\"\nwait idle\nexpect atlas_heads == 16\n"
      "atlas exact\nwait atlas\nexpect atlas_exact == 16\npane atlas\nwait idle\n"
      "save-session kept.session\nkey T\nwait exact\n");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto bytes = [&](const char* name) { return read_bytes(folder.path() / name); };
  CHECK(bytes("thumbs.png") != bytes("entropy.png"));
  CHECK(contains(bytes("kept.session"), "\natlas sort text_mass\n"));
  CHECK(contains(bytes("kept.session"), "\npane atlas\n"));
  const WindowResult again =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "wait atlas\nexpect atlas_exact == 16\nexpect layer == 0\n");
  INFO(again.err);
  CHECK(again.exit_code == 0);
  const WindowResult picture =
      run_window(folder.path().string(),
                 {"--session", "kept.session", "--cache", "none", "--screenshot", "whole.png"});
  INFO(picture.err);
  CHECK(picture.exit_code == 0);
  CHECK(std::filesystem::file_size(folder.path() / "whole.png") > 1000);
  const WindowResult wrong =
      run_window(folder.path().string(), {"--session", "kept.session", "--cache", "none"},
                 "atlas filter sharp\n");
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "atlas filter: \"sharp\": expected NAME=VALUE"));
}

TEST_CASE("without the atlas nothing of it is known, and a picture waits for none") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const WindowResult result = run_window(folder.path().string(), {kSample, "--cache", "none"},
                                         "wait exact\nexpect exact == true\nprint atlas_heads\n");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "atlas_heads: not known yet"));
  const WindowResult wrong =
      run_window(folder.path().string(), {kSample, "--cache", "none"}, "atlas sort sharpness\n");
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err, "atlas sort"));
}

TEST_CASE("a picture of a session that shows one pane alone waits for that pane") {
  if (!can_open_windows()) return;
  for (const char* const pane : {"query", "histogram", "atlas", "matrix"}) {
    INFO(pane);
    const TemporaryFolder folder;
    const WindowResult kept =
        run_window(folder.path().string(), {kSample, "--cache", "none"},
                   std::string("pane ") + pane + "\nwait exact\nsave-session kept.session\n");
    INFO(kept.err);
    REQUIRE(kept.exit_code == 0);
    const WindowResult picture =
        run_window(folder.path().string(),
                   {"--session", "kept.session", "--cache", "none", "--screenshot", "pane.png"});
    INFO(picture.err);
    CHECK(picture.exit_code == 0);
    CHECK(std::filesystem::file_size(folder.path() / "pane.png") > 1000);
  }
}

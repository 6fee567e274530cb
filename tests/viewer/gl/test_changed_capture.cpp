// Needs a display: run by ctest under xvfb-run.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/temporary_folder.h"
#include "tests/viewer/gl/hidden_app.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

/// A copy of the sample, written long ago: a change must not share its time.
fs::path copy_sample(const TemporaryFolder& folder) {
  const fs::path copy = folder.path() / "sample";
  fs::copy(project_folder() + "/samples/moving-shapes", copy, fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  return copy;
}

/// Gives the last byte of each tensor file another value.
void change_tensors(const fs::path& capture) {
  for (const auto& entry : fs::recursive_directory_iterator(capture)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get());
    file.seekp(-1, std::ios::end);
    file.put(static_cast<char>(last ^ 1));
  }
}

}  // namespace

TEST_CASE("neither pictures nor numbers leave the window of a capture that was changed") {
  const TemporaryFolder folder;
  const fs::path capture = copy_sample(folder);
  HiddenApp hidden;
  hidden.app.open(capture);
  REQUIRE(hidden.wait_for(WaitFor::exact));
  REQUIRE_NOTHROW(hidden.app.picture());
  const double limit = hidden.app.seconds() + 60;
  while (!hidden.app.probe(3, 5) && hidden.app.seconds() < limit) hidden.app.step(0.02);
  REQUIRE(hidden.app.probe(3, 5));

  change_tensors(capture);
  const std::string changed = "was changed while it was read";
  CHECK(refused([&] { hidden.app.picture(); }, ErrorCode::file, {changed}) == "");
  CHECK(refused([&] { hidden.app.probe(3, 5); }, ErrorCode::file, {changed}) == "");
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  hidden.press("F12");
  fs::current_path(before);
  CHECK(hidden.app.failed());
  CHECK_FALSE(fs::exists(folder.path() / "attnscope-1.png"));
  hidden.press("Escape");
  // Opened again it is another capture, and as good as the first.
  hidden.app.open(capture);
  REQUIRE(hidden.wait_for(WaitFor::exact));
  CHECK_NOTHROW(hidden.app.picture());
}

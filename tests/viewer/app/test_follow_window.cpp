// A window that follows a capture while it is written: calls appear, what is shown stays, entries
// of what came later are right.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/picture_compare.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/waiting.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

constexpr int64_t kTokens = 40;

ReferenceCall call_of(int64_t step, int64_t layer) {
  ReferenceCall call({1, 2, 2, kTokens, kTokens, 8}, static_cast<uint64_t>(100 * step + layer));
  call.fact("kind", "self")
      .fact("step", std::to_string(step))
      .fact("layer", std::to_string(layer))
      .fact("grid", "5x2x4");
  return call;
}

/// As a recorder does: complete under its name, and listed after that.
void record(const fs::path& dump, int64_t step, int64_t layer, Json& listed) {
  const std::string name =
      "step" + std::to_string(step) + "_layer" + std::to_string(layer) + ".safetensors";
  fs::create_directory(dump);
  call_of(step, layer).write(dump / (name + ".part"));
  fs::rename(dump / (name + ".part"), dump / name);
  listed.push_back({{"file", name}});
  const Json root{{"format", "attnscope-capture/1"}, {"calls", listed}};
  write_bytes(dump / "catalogue.part", root.dump());
  fs::rename(dump / "catalogue.part", dump / "capture.json");
}

std::vector<Json> json_lines(const std::string& out) {
  std::vector<Json> lines;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("{")) lines.push_back(Json::parse(line));
  }
  return lines;
}

/// Waits for a file that a script writes.
void wait_for_file(const fs::path& file) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!fs::exists(file) && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

TEST_CASE("a followed capture shows its calls as they come, from the first one on") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  // Layers of one step, then another step, whose calls stand between those that are known.
  auto window = std::async(std::launch::async, [&] {
    return run_window(folder.path().string(), {"dump", "--follow"},
                      "shot waiting.png\nwait calls 1\nwait exact\nprobe 7 9\nzoom 0 20 0 20\n"
                      "save-session first.session\nwait calls 4\nwait exact\nexpect rows == 40\n"
                      "expect layer == 1\nexpect step == 5\nprobe 7 9\nlayer 0\nwait exact\n"
                      "probe 7 9\nstep 2\nlayer 1\nhead 1\nwait exact\nexpect step == 2\n"
                      "probe 30 3\natlas on\nwait atlas\nexpect atlas_heads == 4\nprint calls\n");
  });
  wait_for_file(folder.path() / "waiting.png");
  // The first file is written while it is looked at.
  Json listed = Json::array();
  record(folder / "elsewhere", 5, 1, listed);
  const std::string bytes = read_file(folder / "elsewhere/step5_layer1.safetensors");
  fs::create_directory(dump);
  write_bytes(dump / "step5_layer1.safetensors", bytes.substr(0, bytes.size() / 2));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  listed.clear();
  record(dump, 5, 1, listed);
  wait_for_file(folder.path() / "first.session");
  record(dump, 5, 0, listed);
  record(dump, 2, 0, listed);
  record(dump, 2, 1, listed);
  const WindowResult result = window.get();
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.find("waiting for the first call of dump") != std::string::npos);
  CHECK(result.out.find("calls 4") != std::string::npos);
  const std::vector<Json> probes = json_lines(result.out);
  REQUIRE(probes.size() == 4);
  const auto expect = [&](size_t probe, int64_t step, int64_t layer, int64_t head, int64_t query,
                          size_t key) {
    INFO(probes[probe].dump());
    const double exact = call_of(step, layer).row(0, head, query)[key];
    CHECK(exact > 1e-6);
    CHECK(std::abs(probes[probe]["weight"].get<double>() - exact) < 1e-5 * exact + 1e-9);
  };
  expect(0, 5, 1, 0, 7, 9);
  expect(1, 5, 1, 0, 7, 9);
  expect(2, 5, 0, 0, 7, 9);
  expect(3, 2, 1, 1, 30, 3);
}

TEST_CASE("what cannot be followed, and what is added and cannot be read, is told") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  Json listed = Json::array();
  record(dump, 0, 0, listed);
  const std::string where = folder.path().string();
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const WindowResult result = run_window(where, arguments, "quit\n");
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(refused({"dump/step0_layer0.safetensors", "--follow"}).find("expected a folder") !=
        std::string::npos);
  CHECK(refused({"--follow"}).find("expected a CAPTURE") != std::string::npos);
  const WindowResult alone = run_window(where, {"dump"}, "wait calls 2\n");
  CHECK(alone.exit_code == 1);
  CHECK(alone.err.find("there are 1, and nothing is followed (--follow)") != std::string::npos);

  auto window = std::async(std::launch::async, [&] {
    return run_window(where, {"dump", "--follow"},
                      "wait exact\nsave-session open.session\nwait calls 2 8\n");
  });
  wait_for_file(folder.path() / "open.session");
  // The first call comes once more, under another name.
  call_of(0, 0).write(dump / "again.safetensors");
  listed.push_back({{"file", "again.safetensors"}});
  write_bytes(dump / "capture.json",
              Json{{"format", "attnscope-capture/1"}, {"calls", listed}}.dump());
  const WindowResult result = window.get();
  CHECK(result.exit_code == 1);
  INFO(result.err);
  CHECK(result.err.find("wait calls 2: not there after 8 s") != std::string::npos);
  CHECK(result.err.find("is also in") != std::string::npos);
}

TEST_CASE("pictures of the video that come after the calls lie under the film") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  Json listed = Json::array();
  record(dump, 0, 0, listed);
  auto window = std::async(std::launch::async, [&] {
    return run_window(folder.path().string(), {"dump", "--follow"},
                      "query 2 1 1\nfilm tint\nwait exact\nshot before.png\n"
                      "save-session open.session\nwait pictures 5\nwait exact\nshot after.png\n"
                      "wait pictures 6 2\n");
  });
  wait_for_file(folder.path() / "open.session");
  Json root{{"format", "attnscope-capture/1"}, {"calls", listed}};
  for (int t = 0; t < 5; ++t) {
    const std::string name = "frame" + std::to_string(t) + ".png";
    fs::copy_file(std::string(project_folder()) + "/samples/moving-shapes/" + name, dump / name);
    root["frames"].push_back({{"file", name}, {"t", t}});
  }
  write_bytes(dump / "catalogue.part", root.dump());
  fs::rename(dump / "catalogue.part", dump / "capture.json");
  const WindowResult result = window.get();
  INFO(result.err);
  // All was taken but a sixth picture.
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("wait pictures 6: not there after 2 s") != std::string::npos);
  const Picture before = read_png(folder.path() / "before.png");
  const Picture after = read_png(folder.path() / "after.png");
  int changed = 0;
  for (size_t i = 0; i < before.pixels.size(); ++i) {
    changed += std::abs(int{before.pixels[i]} - int{after.pixels[i]}) > 12 ? 1 : 0;
  }
  CHECK(changed > 5000);
}

TEST_CASE("the time line of a followed capture grows, and goes to the newest step where told") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const fs::path dump = folder.path() / "dump";
  Json listed = Json::array();
  record(dump, 0, 0, listed);
  auto window = std::async(std::launch::async, [&] {
    return run_window(folder.path().string(), {"dump", "--follow"},
                      "wait calls 1\nhead 1\nzoom 0 20 0 20\nwait exact\nsave-session one.session\n"
                      "wait calls 2\nwait exact\nexpect step == 0\nclick \"Timeline/S3\"\n"
                      "expect step == 3\nclick \"Timeline/Follow\"\nsave-session two.session\n"
                      "wait calls 3\nwait exact\nexpect step == 7\nexpect head == 1\n");
  });
  wait_for_file(folder.path() / "one.session");
  record(dump, 3, 0, listed);
  wait_for_file(folder.path() / "two.session");
  record(dump, 7, 0, listed);
  const WindowResult result = window.get();
  INFO(result.err);
  CHECK(result.exit_code == 0);
}

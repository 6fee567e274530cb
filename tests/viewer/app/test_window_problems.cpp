#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/hidden_window.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kHeads = 2, kTokens = 40, kWidth = 8;

/// Two heads, of which head 1 has a NaN in `tensor`.
void write_broken(const std::filesystem::path& path, const std::string& tensor) {
  const auto values = [&](bool broken) {
    std::vector<float> all(kHeads * kTokens * kWidth);
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::sin(static_cast<float>(i));
    if (broken) all[kTokens * kWidth + 77] = std::numeric_limits<float>::quiet_NaN();
    std::string bytes(all.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), all.data(), bytes.size());
    return bytes;
  };
  CallFile file;
  for (const std::string name : {"q", "k"}) {
    file.tensor(name, "F32", {1, kHeads, kTokens, kWidth}, values(name == tensor));
  }
  file.write(path);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a head with NaN says so in every pane, and nothing waits for it") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  for (const std::string tensor : {"q", "k"}) {
    const std::string name = "nan-" + tensor + ".safetensors";
    write_broken(folder / name, tensor);
    const auto start = std::chrono::steady_clock::now();
    const WindowResult waited = run_window(at, {name, "--heads", "1"}, "fit\nwait exact\n");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(40));
    INFO(waited.err);
    CHECK(waited.exit_code == 1);
    CHECK(contains(waited.err, "script.txt:2: wait exact: "));
    CHECK(contains(waited.err, name));
    CHECK(contains(waited.err, "NaN"));

    const WindowResult shot =
        run_window(at, {name, "--heads", "1", "--screenshot", "map-" + tensor + ".png"});
    CHECK(shot.exit_code == 1);
    CHECK(contains(shot.err, "NaN"));
    CHECK_FALSE(std::filesystem::exists(folder / ("map-" + tensor + ".png")));

    // The other head is looked at as ever.
    const WindowResult other = run_window(
        at, {name, "--heads", "1"},
        "wait idle\nclick \"Matrix/Problem\"\nclick \"Query/Problem\"\n"
        "click \"Histogram/Problem\"\nhead 0\nwait exact\nexpect exact == true\nprobe 1 1\n");
    INFO(other.err);
    CHECK(other.exit_code == 0);
    CHECK(contains(other.out, "\"exact\":true"));
  }
}

TEST_CASE("a part outside the map is refused, and not another one shown") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  write_broken(folder / "good.safetensors", "none");
  for (const std::string zoom :
       {"0,41,0,10", "0,10,0,99999", "-1,10,0,10", "5,5,0,10", "9,5,0,10"}) {
    const WindowResult refused = run_window(at, {"good.safetensors", "--zoom", zoom}, "fit\n");
    INFO(refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err,
                   "--zoom " + zoom + ": is empty or outside the map (valid: 0,40,0,40"));
  }
  CHECK(run_window(at, {"good.safetensors", "--zoom", "0,40,0.5,10"}, "wait exact\n").exit_code ==
        0);
}

TEST_CASE("a pipe in place of a capture, session, script or order is told, not waited for") {
  if (!can_open_windows()) return;
  const TemporaryFolder folder;
  const std::string at = folder.path().string();
  write_broken(folder / "good.safetensors", "none");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"pipe", "--screenshot", "out.png"},
           {"good.safetensors", "pipe", "--screenshot", "out.png"},
           {"good.safetensors", "--session", "pipe", "--screenshot", "out.png"},
           {"--session", "pipe", "--screenshot", "out.png"},
           {"good.safetensors", "--script", "pipe"},
           {"good.safetensors", "--order", "pipe", "--screenshot", "out.png"}}) {
    const WindowResult refused = run_window(at, words);
    INFO(words.back() << "\n" << refused.err);
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, "pipe: is no regular file"));
  }
}

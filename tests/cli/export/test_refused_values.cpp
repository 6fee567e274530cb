// Exports of values that no run gets past: told early where that is possible, and nothing is left.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cli/common/fault_settings.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kTokens = 900;

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    names.push_back(item.path().filename().string());
  }
  return names;
}

/// Exports in all forms, each of which must fail with one line that holds `what`, and leave
/// nothing.
void check_refused(const AttentionCapture& call, const std::string& what,
                   const std::vector<std::vector<std::string>>& forms) {
  const TemporaryFolder inputs;
  const std::string path = inputs / "call.safetensors";
  call.file().write(path);
  for (std::vector<std::string> arguments : forms) {
    const TemporaryFolder outputs;
    arguments.insert(arguments.begin(), {"export", path, "-o", outputs / "out.h5", "--quiet"});
    arguments.insert(arguments.end(), {"--threads", "1"});
    const ProgramResult result = run_attnscope(arguments);
    INFO(arguments.back() << ": " << result.err);
    CHECK(result.exit_code == 1);
    CHECK(result.err.find(what) != std::string::npos);
    CHECK(result.err.find("--resume") == std::string::npos);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(names_in(outputs.path()).empty());
  }
}

const std::vector<std::vector<std::string>> kForms{
    {}, {"--product", "lse"}, {"--topk", "5"}, {"--compress", "gzip"}, {"--block", "16"}};

}  // namespace

TEST_CASE("an export whose last row has too large logits leaves nothing") {
  AttentionCapture call(1, kTokens);
  std::fill_n(call.q.end() - call.d, call.d, 1e8f);
  check_refused(call, "head 3, query 899: logits are too large for float32 to tell keys apart",
                kForms);
}

TEST_CASE("an export whose last row has nothing but biases beyond what float32 tells apart") {
  AttentionCapture call(2, kTokens);
  call.masked_bias = -3.5e6f;
  call.allowed.assign(static_cast<size_t>(kTokens * kTokens), 1);
  std::fill_n(call.allowed.end() - kTokens, kTokens, static_cast<unsigned char>(0));
  check_refused(call, "query 899: logits are too large for float32 to tell keys apart", kForms);
}

TEST_CASE("numbers of heads whose values turn out bad late leave nothing, as exports do") {
  AttentionCapture call(1, kTokens);
  const TemporaryFolder inputs, outputs;
  const std::string path = inputs / "call.safetensors";
  call.file().write(path);
  std::fill_n(call.q.end() - call.d, call.d, 1e8f);
  call.file().write(inputs / "bad.safetensors");
  const std::string bad = read_file(inputs / "bad.safetensors");
  REQUIRE(bad.size() == std::filesystem::file_size(path));
  // The last head's values change while the first one's numbers are being kept.
  const std::string paused = inputs / "paused";
  std::atomic<bool> ended = false;
  std::thread change([&] {
    while (!std::filesystem::exists(paused) && !ended) std::this_thread::yield();
    // A change that shows would end the run as such.
    const auto time = std::filesystem::last_write_time(path);
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << bad;
    std::filesystem::last_write_time(path, time);
    std::ofstream(paused + ".go") << "go";
  });
  const auto result = run_attnscope(
      {"stats", path, "-o", outputs / "out.json", "--quiet", "--threads", "1"},
      with_faults({"ATTNSCOPE_FAULT=pause-write:2", "ATTNSCOPE_FAULT_PAUSE=" + paused}));
  ended = true;
  change.join();
  INFO(result.err);
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("logits are too large") != std::string::npos);
  CHECK(result.err.find("; nothing was kept\n") != std::string::npos);
  CHECK(names_in(outputs.path()).empty());
}

TEST_CASE("an export of outputs that float32 does not hold leaves nothing") {
  AttentionCapture call(3, kTokens);
  std::fill_n(call.v.end() - call.d * kTokens, call.d * kTokens, 3e38f);
  std::fill_n(call.v.end() - call.d * kTokens, call.d, -3e38f);
  for (float& value : call.k) value = 0;
  check_refused(call, "float32 holds", {{"--product", "output"}});
}

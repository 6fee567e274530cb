// Shapes that no call has: told with file, tensor and number, before anything is made of them.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/call_file.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"

using namespace attnscope::test;

namespace {

constexpr int64_t kMiB = 1 << 20;

/// q and k of zeros that take no disk.
void write_hole(const std::string& path, const std::string& shape, int64_t bytes) {
  const auto tensor = [&](const std::string& name, int64_t begin) {
    return "\"" + name + R"(":{"dtype":"F16","shape":[)" + shape + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(begin + bytes) + "]}";
  };
  write_bytes(path, safetensors_bytes("{" + tensor("q", 0) + "," + tensor("k", bytes) + "}", ""));
  std::filesystem::resize_file(path,
                               std::filesystem::file_size(path) + static_cast<uint64_t>(2 * bytes));
}

}  // namespace

TEST_CASE("a small file of millions of heads takes neither time nor memory") {
  const TemporaryFolder folder;
  const std::string file = folder / "heads.safetensors";
  for (const std::string shape : {"1,4194304,1,1", "4194304,1,1,1", "2,2097152,1,1"}) {
    write_hole(file, shape, int64_t{2} << 22);
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"info", file},
             {"export", file, "--dry-run", "-o", folder / "x.h5", "--memory", "64MiB"},
             {"stats", file, "--json", "--memory", "64MiB"},
             {"verify", file}}) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--layout", "bhsd"});
      const ProgramResult result = run_attnscope(all);
      INFO(words.front() << " " << shape << ": peak " << result.peak_bytes / kMiB << " MiB\n"
                         << result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.err ==
            "attnscope: " + file +
                ": tensor q: has 4194304 heads (batch items x heads, limit 262144)\n");
      if (!sanitized()) CHECK(result.peak_bytes < 64 * kMiB);
    }
  }
}

TEST_CASE("a head without channels is told as that") {
  const TemporaryFolder folder;
  const std::string file = folder / "empty.safetensors";
  write_hole(file, "1,1,4,0", 0);
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{}, {"--layout", "bhsd"}, {"--scale", "1"}}) {
    for (const std::string command : {"info", "stats"}) {
      std::vector<std::string> words{command, file};
      words.insert(words.end(), more.begin(), more.end());
      const ProgramResult result = run_attnscope(words);
      INFO(result.err);
      CHECK(result.exit_code == 1);
      CHECK(result.err ==
            "attnscope: " + file + ": tensor q: has no channels (shape [1, 1, 4, 0])\n");
    }
  }
}

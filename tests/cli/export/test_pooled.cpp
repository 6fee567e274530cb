#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope::test;

namespace {

const std::string kGroup = "/calls/step0010_layer002_cond_joint/";

void require_run(const std::vector<std::string>& arguments) {
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

std::vector<std::string> export_layer(const std::string& out,
                                      const std::vector<std::string>& more) {
  std::vector<std::string> arguments{
      "export", sample("moving-shapes"), "--layers", "2", "-o", out, "--quiet", "--force"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Compares a level with the entries under its blocks.
void check_level(const DatasetValues& map, const DatasetValues& max, const DatasetValues& mean,
                 int64_t block) {
  const int64_t rows = map.shape[2], cols = map.shape[3];
  const int64_t block_rows = (rows + block - 1) / block, block_cols = (cols + block - 1) / block;
  REQUIRE(max.shape == std::vector<int64_t>{map.shape[0], map.shape[1], block_rows, block_cols});
  REQUIRE(mean.shape == max.shape);
  double worst = 0;
  for (int64_t head = 0; head < map.shape[0] * map.shape[1]; ++head) {
    for (int64_t r = 0; r < block_rows; ++r) {
      for (int64_t c = 0; c < block_cols; ++c) {
        double largest = 0, sum = 0, count = 0;
        for (int64_t i = r * block; i < std::min(rows, (r + 1) * block); ++i) {
          for (int64_t j = c * block; j < std::min(cols, (c + 1) * block); ++j) {
            const double w = map.values[static_cast<size_t>((head * rows + i) * cols + j)];
            largest = std::max(largest, w);
            sum += w;
            ++count;
          }
        }
        const auto at = static_cast<size_t>((head * block_rows + r) * block_cols + c);
        worst = std::max(worst, std::fabs(max.values[at] - largest) / (1e-9 + largest));
        worst = std::max(worst, std::fabs(mean.values[at] - sum / count) / (1e-9 + sum / count));
      }
    }
  }
  CHECK(worst < 1e-5);
}

}  // namespace

TEST_CASE("pooled exports are the maxima and means of an exported map's blocks", "[numbers]") {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& crop :
       {std::vector<std::string>{}, {"--rows", "5:700", "--cols", "16:1000"}}) {
    auto whole = crop;
    whole.insert(whole.end(), {"--dtype", "f32"});
    require_run(export_layer(folder / "map.h5", whole));
    const auto map = read_dataset(folder / "map.h5", kGroup + "weights");
    for (const int64_t block : {1, 7, 16, 100, 5000}) {
      auto arguments = crop;
      arguments.insert(arguments.end(), {"--block", std::to_string(block)});
      require_run(export_layer(folder / "pooled.h5", arguments));
      check_level(map, read_dataset(folder / "pooled.h5", kGroup + "weights_max"),
                  read_dataset(folder / "pooled.h5", kGroup + "weights_mean"), block);
    }
    auto arguments = crop;
    arguments.insert(arguments.end(), {"--block", "12", "--pyramid"});
    require_run(export_layer(folder / "pyramid.h5", arguments));
    int levels = 0;
    for (int64_t block = 12;; block *= 2, ++levels) {
      const std::string level = kGroup + "level_" + std::to_string(block) + "/";
      const auto max = read_dataset(folder / "pyramid.h5", level + "weights_max");
      check_level(map, max, read_dataset(folder / "pyramid.h5", level + "weights_mean"), block);
      if (max.shape[2] == 1 || max.shape[3] == 1) break;
    }
    CHECK(levels >= 6);
    CHECK(run_attnscope({"verify", folder / "pyramid.h5", "--quiet"}).exit_code == 0);
  }
}

TEST_CASE("pooled exports have the same bytes however they were computed, and notice damage") {
  const TemporaryFolder folder;
  std::string first;
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{}, {"--threads", "1", "--memory", "4MiB"}, {"--threads", "3"}}) {
    auto arguments = how;
    arguments.insert(arguments.end(), {"--block", "16", "--pyramid"});
    require_run(export_layer(folder / "out.h5", arguments));
    const std::string bytes = read_file(folder / "out.h5");
    if (first.empty()) first = bytes;
    CHECK(bytes == first);
  }
  auto damaged = first;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  std::ofstream(folder / "bad.h5", std::ios::binary) << damaged;
  CHECK(run_attnscope({"verify", folder / "bad.h5", "--quiet"}).exit_code == 3);
  const auto info = run_attnscope({"info", folder / "out.h5"});
  CHECK(info.exit_code == 0);
  CHECK(info.out.find("complete") != std::string::npos);
}

TEST_CASE("an interrupted pooled export leaves nothing, and its memory stays within the budget") {
  const TemporaryFolder folder;
  const std::string capture = folder / "heads.safetensors";
  write_sparse_heads(capture, 40, 9000, 64);
  const std::string out = folder / "out.h5";
  const auto result =
      run_attnscope({"export", capture, "--block", "8", "--pyramid", "-o", out, "--quiet"},
                    {.signal = SIGTERM, .signal_from = out + ".lock"});
  INFO(result.err);
  CHECK(result.exit_code == 4);
  CHECK(result.err.find("interrupted: nothing was kept") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK_FALSE(std::filesystem::exists(out + ".part.new"));
  if (sanitized()) return;
  const auto small =
      run_attnscope({"export", capture, "--heads", "0-2", "--block", "8", "--pyramid", "-o", out,
                     "--force", "--quiet", "--memory", "24MiB"});
  INFO(small.err);
  REQUIRE(small.exit_code == 0);
  CHECK(small.peak_bytes < (int64_t{24 + 64} << 20));
}

TEST_CASE("pooled exports that cannot be meant are refused") {
  const TemporaryFolder folder;
  const struct {
    std::vector<std::string> arguments;
    std::string text;
  } cases[] = {{{"--product", "weights", "--block", "16"}, "--block belongs to"},
               {{"--pyramid"}, "--pyramid belongs to"},
               {{"--block", "0"}, "--block"},
               {{"--block", "16", "--resume", "--verify-all"}, "--verify-all"},
               {{"--block", "16", "--compress", "gzip"}, "--compress"},
               {{"--block", "16", "--dtype", "u8"}, "--dtype"},
               {{"--product", "pool"}, "did you mean pooled"}};
  for (const auto& c : cases) {
    const auto result = run_attnscope(export_layer(folder / "x.h5", c.arguments));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(c.text) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "x.h5"));
  }
}

TEST_CASE("a pooled export with --resume is complete, of another run, or starts afresh") {
  const TemporaryFolder folder;
  const std::string out = folder / "pooled.h5";
  const auto resume = [&](const char* block) {
    return run_attnscope({"export", sample("moving-shapes"), "--layers", "2", "--product", "pooled",
                          "--block", block, "-o", out, "--resume"});
  };
  std::ofstream(out + ".part") << "what a killed run left";
  const auto first = resume("16");
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(out + ".part"));
  const std::string bytes = read_file(out);
  const auto again = resume("16");
  INFO(again.err);
  CHECK(again.exit_code == 0);
  CHECK(again.err.find("is complete already") != std::string::npos);
  const auto other = resume("32");
  INFO(other.err);
  CHECK(other.exit_code == 1);
  CHECK(other.err.find("block: expected 32, got 16") != std::string::npos);
  CHECK(read_file(out) == bytes);
  std::filesystem::remove(out);
  std::ofstream(out + ".journal") << "of tiles";
  std::ofstream(out + ".part") << "tiles";
  CHECK(resume("16").exit_code == 1);
  CHECK(read_file(out + ".part") == "tiles");
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr int64_t kText = 3, kVideo = 2 * 4 * 5, kTokens = kText + kVideo;

/// Three layers behind each other; layer 7 has a mask of its own.
struct Layers {
  std::vector<AttentionCapture> calls;
  Layers() {
    for (uint64_t seed : {21, 22, 23}) calls.emplace_back(seed, kTokens);
    for (int64_t i = 0; i < kTokens * kTokens; ++i) {
      calls[1].allowed.push_back(i % 5 != 0 || i % (kTokens + 1) == 0 ? 1 : 0);
    }
  }
  void write(const std::filesystem::path& folder, const std::string& step = "4") const {
    const char* const numbers[] = {"0", "7", "9"};
    for (size_t l = 0; l < 3; ++l) {
      CallFile file = calls[l].file();
      file.fact("grid", "2x4x5")
          .fact("text", "3@start")
          .fact("layer", numbers[l])
          .fact("step", step);
      file.fact("tokens", R"(["a","red","dog"])");
      file.write(folder / ("step" + step + "layer" + numbers[l] + ".safetensors"));
    }
  }
  /// Mean over `heads` of layer l's maps.
  std::vector<double> mean_map(size_t l, const std::vector<int64_t>& heads) const {
    std::vector<double> mean(static_cast<size_t>(kTokens * kTokens));
    for (int64_t h : heads) {
      const auto map = calls[l].weights(h);
      for (size_t i = 0; i < mean.size(); ++i) {
        mean[i] += map[i] / static_cast<double>(heads.size());
      }
    }
    return mean;
  }
  /// The whole product of ½(I + Ā), last layer leftmost: [outputs, inputs].
  std::vector<double> rollout(const std::vector<int64_t>& heads) const {
    std::vector<double> product(static_cast<size_t>(kTokens * kTokens));
    for (int64_t i = 0; i < kTokens; ++i) product[static_cast<size_t>(i * kTokens + i)] = 1;
    for (size_t l = 0; l < calls.size(); ++l) {
      const auto map = mean_map(l, heads);
      std::vector<double> next(product.size());
      for (int64_t i = 0; i < kTokens; ++i) {
        for (int64_t m = 0; m < kTokens; ++m) {
          const double factor =
              0.5 * ((i == m ? 1 : 0) + map[static_cast<size_t>(i * kTokens + m)]);
          for (int64_t j = 0; j < kTokens; ++j) {
            next[static_cast<size_t>(i * kTokens + j)] +=
                factor * product[static_cast<size_t>(m * kTokens + j)];
          }
        }
      }
      product = std::move(next);
    }
    return product;
  }
};

/// The float32 values at the end of a .npy.
std::vector<float> npy_values(const std::string& path, size_t count) {
  const std::string bytes = read_file(path);
  std::vector<float> values(count);
  REQUIRE(bytes.size() >= count * sizeof(float));
  std::memcpy(values.data(), bytes.data() + bytes.size() - count * sizeof(float),
              count * sizeof(float));
  return values;
}

}  // namespace

TEST_CASE("a rollout is a row, or a column, of the product of all layers") {
  const TemporaryFolder folder, results;
  const Layers layers;
  layers.write(folder.path());
  struct Case {
    std::vector<std::string> arguments;
    std::vector<int64_t> heads;
    std::vector<int64_t> start;
    bool reverse;
  };
  const std::vector<Case> cases{
      {{"--query", "1,2,3"}, {0, 1, 2, 3}, {kText + 20 + 13}, false},
      {{"--query", "1,2,3", "--reverse"}, {0, 1, 2, 3}, {kText + 20 + 13}, true},
      {{"--index", "0", "--heads", "1,3"}, {1, 3}, {0}, false},
      {{"--text-token", "2", "--reverse", "--heads", "2"}, {2}, {2}, true},
      {{"--query", "0,1,1:4", "--text-token", "1"}, {0, 1, 2, 3}, {1, 9, 10, 11}, false},
  };
  int number = 0;
  for (const Case& c : cases) {
    const std::string out = results / ("out" + std::to_string(++number) + ".h5");
    std::vector<std::string> arguments{"rollout", folder.path().string(), "-o", out, "--json",
                                       "--quiet"};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const auto result = run_attnscope(arguments);
    INFO(number << " " << result.err);
    REQUIRE(result.exit_code == 0);
    const auto product = layers.rollout(c.heads);
    std::vector<double> expected(static_cast<size_t>(kTokens));
    for (int64_t start : c.start) {
      for (int64_t j = 0; j < kTokens; ++j) {
        const int64_t entry = c.reverse ? j * kTokens + start : start * kTokens + j;
        expected[static_cast<size_t>(j)] +=
            product[static_cast<size_t>(entry)] / static_cast<double>(c.start.size());
      }
    }
    const auto text = read_dataset(out, "/text"), volume = read_dataset(out, "/volume");
    REQUIRE(volume.shape == std::vector<int64_t>{1, 2, 4, 5});
    double worst = 0, sum = 0;
    for (int64_t j = 0; j < kTokens; ++j) {
      const double got = j < kText ? text.values[static_cast<size_t>(j)]
                                   : volume.values[static_cast<size_t>(j - kText)];
      worst = std::max(worst, std::abs(got / expected[static_cast<size_t>(j)] - 1));
      sum += expected[static_cast<size_t>(j)];
    }
    CHECK(worst < 2e-6);
    const auto json = Json::parse(result.out);
    CHECK(json["format"] == "attnscope-rollout/1");
    CHECK(json["layers"] == std::vector<int>{0, 7, 9});
    CHECK(json["direction"] == (c.reverse ? "to_outputs" : "to_inputs"));
    CHECK(std::abs(json["sum"].get<double>() - sum) < 1e-5);
    if (!c.reverse) CHECK(std::abs(sum - 1) < 1e-9);
  }
}

TEST_CASE("a rollout's bytes depend neither on memory nor on threads") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "capture");
  std::vector<AttentionCapture> calls;
  for (int l = 0; l < 2; ++l) {
    CallFile file = AttentionCapture(static_cast<uint64_t>(l + 1), 300).file();
    file.fact("grid", "3x10x10").fact("layer", std::to_string(l));
    file.write(folder.path() / "capture" / (std::to_string(l) + ".safetensors"));
  }
  for (const bool reverse : {false, true}) {
    std::vector<std::string> bytes;
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--threads", "1", "--memory", "1500KiB"},
          {"--threads", "3", "--memory", "1GiB"},
          {"--threads", "2", "--memory", "2MiB"}}) {
      const std::string out = folder / "out.npy";
      std::vector<std::string> arguments{"rollout", folder / "capture", "--query", "1,2,3", "-o",
                                         out,       "--force",          "--quiet"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      if (reverse) arguments.emplace_back("--reverse");
      const auto result = run_attnscope(arguments);
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      bytes.push_back(read_file(out));
    }
    CHECK(bytes[0] == bytes[1]);
    CHECK(bytes[0] == bytes[2]);
    const auto values = npy_values(folder / "out.npy", 300);
    CHECK(*std::max_element(values.begin(), values.end()) > 0.2f);
  }
}

TEST_CASE("what cannot be rolled out is refused with the reason") {
  const TemporaryFolder folder;
  const Layers layers;
  std::filesystem::create_directory(folder.path() / "steps");
  layers.write(folder.path() / "steps", "4");
  layers.write(folder.path() / "steps", "5");
  const std::string cross = folder / "cross.safetensors", batch = folder / "batch.safetensors",
                    plain = folder / "plain.safetensors", worded = folder / "worded.safetensors";
  CallFile().pair({1, 1, 24, 8}, {1, 1, 7, 8}).fact("grid", "2x3x4").write(cross);
  CallFile().pair({2, 1, 24, 8}, {2, 1, 24, 8}).fact("grid", "2x3x4").write(batch);
  CallFile().pair({1, 1, 24, 8}, {1, 1, 24, 8}).write(plain);
  CallFile().pair({1, 1, 24, 8}, {1, 1, 24, 8}).fact("text", "4@start").write(worded);
  struct Refusal {
    std::vector<std::string> arguments;
    std::string part;
  };
  const std::vector<Refusal> refusals{
      {{cross, "--index", "0"}, "cross attention"},
      {{batch, "--index", "0"}, "choose one with --batch"},
      {{folder / "steps", "--index", "0"}, "choose one with --steps"},
      {{plain}, "rollout needs"},
      {{plain, "--text-token", "0"}, "has no text tokens"},
      {{plain, "--index", "24"}, "valid 0 to 23"},
      {{plain, "--index", "0", "-o", folder / "x.png"}, "no token grid"},
      {{plain, "--index", "0", "-o", folder / "x.h5"}, "no token grid"},
      {{worded, "--index", "0", "-o", folder / "x.h5"}, "no token grid"},
      {{plain, "--index", "0", "-o", folder / "x.txt"}, "must end in"},
      {{plain, "--index", "0", "-o", folder / "x.csv", "--style", "paper"}, "--style"},
      {{plain, "--index", "0", "--score", "sigmoid"}, "sigmoid"},
      {{folder / "steps", "--steps", "4", "--text-token", "3"}, "valid 0 to 2"},
  };
  for (const Refusal& refusal : refusals) {
    auto arguments = refusal.arguments;
    arguments.insert(arguments.begin(), "rollout");
    arguments.emplace_back("--quiet");
    const auto result = run_attnscope(arguments);
    INFO(refusal.part << "\n" << result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, refusal.part));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
  CHECK(run_attnscope({"rollout", batch, "--index", "0", "--batch", "1"}).exit_code == 0);
  const auto words = run_attnscope(
      {"rollout", folder / "steps", "--steps", "5", "--text-token", "1", "--top", "43", "--quiet"});
  CHECK(contains(words.out, "text 2 dog"));
  CHECK(contains(words.out, "rollout to text token 1, layers 0, 7, 9"));
  const auto plan = run_attnscope(
      {"rollout", folder / "steps", "--steps", "5", "--index", "1", "--dry-run", "--json"});
  CHECK(contains(plan.out, "\"layers\":3"));
}

TEST_CASE("a rollout is drawn with the options of query's films") {
  const TemporaryFolder folder;
  const std::string dump = folder / "dump";
  std::filesystem::create_directory(dump);
  Layers().write(dump);
  const std::string svg = folder / "x.svg", png = folder / "x.png", gif = folder / "x.gif";
  const auto rollout = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"rollout", dump, "--query", "1,2,3"});
    const auto result = run_attnscope(more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  const std::vector<std::string> page{"--style", "paper", "--width", "600px"};
  const auto with = [&](const std::string& file, const char* extra) {
    std::vector<std::string> words = page;
    words.insert(words.end(), {"-o", file, extra});
    return words;
  };
  const Json plan = Json::parse(rollout({"--width", "600px", "-o", png, "--dry-run", "--json"}));
  CHECK(plan["picture"]["width"] == 600);
  CHECK_FALSE(std::filesystem::exists(png));
  rollout(with(png, "--quiet"));
  rollout(with(svg, "--quiet"));
  rollout({"--frames", "1", "-o", gif, "--quiet"});
  const Picture picture = read_png(png);
  CHECK(picture.width == 600);
  CHECK(contains(read_bytes(svg), "rollout to"));
  CHECK(read_bytes(gif).substr(0, 6) == "GIF89a");
}

TEST_CASE("an interrupted rollout writes nothing; its memory stays within the budget") {
  const TemporaryFolder folder;
  const std::string out = folder / "out.csv";
  const std::string small = folder / "small.safetensors";
  write_synthetic_head(small, 800, 16);
  const auto result = stop_in_the_midst(
      {"rollout", small, "--index", "5", "--reverse", "--backend", "reference"}, out);
  INFO(result.err);
  CHECK(result.exit_code == 4);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK_FALSE(std::filesystem::exists(out + ".part"));
  if (sanitized()) return;
  const std::string large = folder / "large.safetensors";
  write_synthetic_head(large, 17776, 64);
  const auto done = run_attnscope(
      {"rollout", large, "--index", "5", "--reverse", "--memory", "12MiB", "--quiet", "-o", out});
  INFO("peak " << done.peak_bytes << "\n" << done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.peak_bytes <= (12 + 64) << 20);
}

// attnscope diff --product: differences as blocks, frame by frame, as volumes.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Ten tokens of text, then two frames of 5 x 8.
constexpr int64_t kTokens = 90, kText = 10, kFrame = 40;

/// Captures a and b, each of two heads, and what lies between head 0 of a and head 1 of b.
struct Captures {
  TemporaryFolder folder;
  ReferenceCall a = call_of(1), b = call_of(2);
  std::vector<std::vector<double>> difference;

  Captures() {
    a.write(folder.path() / "a.safetensors");
    b.write(folder.path() / "b.safetensors");
    for (int64_t i = 0; i < kTokens; ++i) {
      difference.push_back(a.row(0, 0, i));
      const auto other = b.row(0, 1, i);
      for (size_t j = 0; j < other.size(); ++j) difference.back()[j] -= other[j];
    }
  }
  static ReferenceCall call_of(uint64_t seed) {
    return ReferenceCall({1, 2, 1, kTokens, kTokens, 16}, seed)
        .fact("step", "4")
        .fact("layer", "2")
        .fact("grid", "2x5x8")
        .fact("text", "10@start");
  }
  /// Head 0 of a with head 1 of b.
  ProgramResult run(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"diff",
                                       folder / "a.safetensors",
                                       folder / "b.safetensors",
                                       "--heads",
                                       "0",
                                       "--b-head",
                                       "1",
                                       "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_attnscope(arguments);
  }
  void make(const std::vector<std::string>& more) const {
    const auto result = run(more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  double at(int64_t i, int64_t j) const {
    return difference[static_cast<size_t>(i)][static_cast<size_t>(j)];
  }
};

/// Pixels of a map's picture, left of its colour bar, that are red (A larger) and blue (B larger).
struct Coloured {
  int64_t red = 0, blue = 0;
};
Coloured coloured_in(const std::string& path) {
  constexpr int kBar = 180;
  const Picture picture = read_png(path);
  Coloured found;
  for (int y = 0; y < static_cast<int>(picture.height); ++y) {
    for (int x = 0; x < static_cast<int>(picture.width) - kBar; ++x) {
      const auto pixel = picture.at(x, y);
      found.red += pixel.r > pixel.b + 40 ? 1 : 0;
      found.blue += pixel.b > pixel.r + 40 ? 1 : 0;
    }
  }
  return found;
}

/// The parts of the sequence.
std::vector<std::pair<int64_t, int64_t>> parts() {
  return {{0, kText}, {kText, kText + kFrame}, {kText + kFrame, kTokens}};
}

}  // namespace

TEST_CASE("blocks of differences are those of entries, in any memory") {
  const Captures captures;
  const std::string file = captures.folder / "d.h5";
  captures.make({"--product", "pooled:16", "-o", file});
  const DatasetValues max = read_dataset(file, "/difference_max");
  const DatasetValues mean = read_dataset(file, "/difference_mean");
  REQUIRE(max.shape == std::vector<int64_t>{1, 6, 6});
  REQUIRE(mean.shape == max.shape);
  double above = 0, below = 0;
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t c = 0; c < 6; ++c) {
      double sum = 0, largest = 0, count = 0;
      for (int64_t i = r * 16; i < std::min(kTokens, r * 16 + 16); ++i) {
        for (int64_t j = c * 16; j < std::min(kTokens, c * 16 + 16); ++j, ++count) {
          sum += captures.at(i, j);
          if (std::abs(captures.at(i, j)) > std::abs(largest)) largest = captures.at(i, j);
        }
      }
      INFO("block " << r << " " << c);
      const auto cell = static_cast<size_t>(r * 6 + c);
      CHECK(std::abs(max.values[cell] - largest) < 1e-6);
      CHECK(std::abs(mean.values[cell] - sum / count) < 1e-7);
      above = std::max(above, largest);
      below = std::min(below, largest);
    }
  }
  CHECK(above > 0.01);
  CHECK(below < -0.01);
  CHECK(read_text_attribute(file, "format") == "attnscope-diff-maps/1");
  CHECK(read_dataset(file, "/query_block").values.back() == 80);
  CHECK(read_dataset(file, "/a_head").values == std::vector<double>{0});
  CHECK(read_dataset(file, "/b_head").values == std::vector<double>{1});
  captures.make({"--product", "pooled:16", "-o", captures.folder / "slow.h5", "--memory", "1500KiB",
                 "--threads", "1"});
  CHECK(read_file(captures.folder / "slow.h5") == read_file(file));
}

TEST_CASE("sums over frames and text are those of entries") {
  const Captures captures;
  const std::string file = captures.folder / "d.h5";
  const auto result = captures.run({"--product", "frames", "-o", file, "--json"});
  REQUIRE(result.exit_code == 0);
  const Json printed = Json::parse(result.out);
  CHECK(printed["query_parts"] == Json({"text", "t0", "t1"}));
  const DatasetValues difference = read_dataset(file, "/difference");
  const DatasetValues absolute = read_dataset(file, "/abs_difference");
  REQUIRE(difference.shape == std::vector<int64_t>{1, 3, 3});
  const auto of = parts();
  double most = 0;
  for (size_t q = 0; q < 3; ++q) {
    for (size_t k = 0; k < 3; ++k) {
      double sum = 0, size = 0;
      for (int64_t i = of[q].first; i < of[q].second; ++i) {
        for (int64_t j = of[k].first; j < of[k].second; ++j) {
          sum += captures.at(i, j);
          size += std::abs(captures.at(i, j));
        }
      }
      const auto rows = static_cast<double>(of[q].second - of[q].first);
      INFO("part " << q << " " << k);
      CHECK(std::abs(difference.values[q * 3 + k] - sum / rows) < 1e-6);
      CHECK(std::abs(absolute.values[q * 3 + k] - size / rows) < 1e-6);
      CHECK(std::abs(printed["pairs"][0]["difference"][q][k].get<double>() - sum / rows) < 1e-6);
      most = std::max(most, std::abs(sum / rows));
    }
    CHECK(read_dataset(file, "/rows").values[q] == static_cast<double>(of[q].second - of[q].first));
  }
  CHECK(most > 0.005);
  // Without a file it is printed.
  CHECK(captures.run({"--product", "frames"}).out.find("t1") != std::string::npos);
}

TEST_CASE("a volume is the difference of a query's rows, or of the video's mean row") {
  const Captures captures;
  captures.make({"--product", "volume", "--query", "1,2,3", "-o", captures.folder / "v.npy"});
  const NpyArray volume = read_npy(captures.folder / "v.npy");
  REQUIRE(volume.shape == std::vector<int64_t>{1, 2, 5, 8});
  const int64_t query = kText + kFrame + 2 * 8 + 3;
  double most = 0;
  for (int64_t j = kText; j < kTokens; ++j) {
    const double expected = captures.at(query, j);
    CHECK(std::abs(volume.values[static_cast<size_t>(j - kText)] - expected) < 1e-6);
    most = std::max(most, std::abs(expected));
  }
  CHECK(most > 0.005);
  captures.make({"--product", "volume", "-o", captures.folder / "v.h5"});
  const DatasetValues mean = read_dataset(captures.folder / "v.h5", "/volume");
  const DatasetValues text = read_dataset(captures.folder / "v.h5", "/text");
  REQUIRE(mean.shape == volume.shape);
  REQUIRE(text.shape == std::vector<int64_t>{1, kText});
  most = 0;
  for (int64_t j = 0; j < kTokens; ++j) {
    double expected = 0;
    for (int64_t i = kText; i < kTokens; ++i) expected += captures.at(i, j) / (2 * kFrame);
    const double got = j < kText ? text.values[static_cast<size_t>(j)]
                                 : mean.values[static_cast<size_t>(j - kText)];
    CHECK(std::abs(got - expected) < 1e-7);
    most = std::max(most, std::abs(expected));
  }
  CHECK(most > 5e-4);
  CHECK(read_dataset(captures.folder / "v.h5", "/rows").values == std::vector<double>{80});
}

TEST_CASE("exports have the maps of differences that their captures have") {
  const Captures captures;
  const auto export_of = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> run{"export",  captures.folder / (name + ".safetensors"),
                                 "-o",      captures.folder / (name + ".h5"),
                                 "--dtype", "f32",
                                 "--quiet", "--force"};
    run.insert(run.end(), more.begin(), more.end());
    REQUIRE(run_attnscope(run).exit_code == 0);
    return captures.folder / (name + ".h5");
  };
  const std::string a = export_of("a", {});
  const auto make = [&](const std::string& side_b, const std::string& product) {
    const std::string out = captures.folder / "out.h5";
    const auto result = run_attnscope({"diff", a, side_b, "--heads", "0", "--b-head", "1",
                                       "--product", product, "-o", out, "--force", "--quiet"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return out;
  };
  captures.make({"--product", "pooled:7", "-o", captures.folder / "computed.h5"});
  const auto computed = read_dataset(captures.folder / "computed.h5", "/difference_mean").values;
  for (const std::string& side_b : {export_of("b", {}), captures.folder / "b.safetensors"}) {
    const auto stored = read_dataset(make(side_b, "pooled:7"), "/difference_mean").values;
    REQUIRE(stored.size() == computed.size());
    for (size_t i = 0; i < stored.size(); ++i) CHECK(std::abs(stored[i] - computed[i]) < 1e-7);
    CHECK(read_dataset(make(side_b, "frames"), "/difference").values.size() == 9);
    CHECK(read_dataset(make(side_b, "volume"), "/volume").values.size() == 80);
  }
  // Of a part of a map there are blocks, but no frames and no volumes.
  const std::string part = export_of("b", {"--rows", "20:60", "--cols", "10:50"});
  const std::string blocks = make(part, "pooled:8");
  CHECK(read_dataset(blocks, "/difference_max").shape == std::vector<int64_t>{1, 5, 5});
  CHECK(read_dataset(blocks, "/query_block").values.front() == 20);
  CHECK(read_dataset(blocks, "/key_block").values.front() == 10);
  double sum = 0;
  for (int64_t i = 20; i < 28; ++i) {
    for (int64_t j = 10; j < 18; ++j) sum += captures.at(i, j) / 64;
  }
  CHECK(std::abs(read_dataset(blocks, "/difference_mean").values.front() - sum) < 1e-7);
  for (const std::string product : {"frames", "volume"}) {
    const auto refused = run_attnscope({"diff", a, part, "--heads", "0", "--b-head", "1",
                                        "--product", product, "-o", captures.folder / "no.h5"});
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("a part of") + refused.err.find("do not both have") !=
          2 * std::string::npos);
  }
}

TEST_CASE("differences are drawn") {
  const Captures captures;
  const std::vector<std::vector<std::string>> pictures{
      {"--product", "pooled:4", "-o", captures.folder / "pooled.png"},
      {"--product", "pooled:4", "--pool", "mean", "-o", captures.folder / "mean.png"},
      {"--product", "frames", "-o", captures.folder / "frames.png"},
      {"--product", "volume", "-o", captures.folder / "volume.png"},
      {"--product", "volume", "--index", "30", "-o", captures.folder / "volume.gif"}};
  for (const auto& picture : pictures) {
    captures.make(picture);
    CHECK(std::filesystem::file_size(picture.back()) > 1000);
  }
  CHECK(read_file(captures.folder / "mean.png") != read_file(captures.folder / "pooled.png"));
  const Coloured drawn = coloured_in(captures.folder / "pooled.png");
  CHECK(drawn.red > 50000);
  CHECK(drawn.blue > 50000);
  // Several pairs, and pairs without any difference, which are grey but for their labels.
  for (const std::string product : {"pooled:4", "frames"}) {
    for (const std::string b : {"b", "a"}) {
      const auto result = run_attnscope(
          {"diff", captures.folder / "a.safetensors", captures.folder / (b + ".safetensors"),
           "--product", product, "-o", captures.folder / "both.png", "--force", "--quiet"});
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      const Coloured both = coloured_in(captures.folder / "both.png");
      CHECK((both.red > 3000) == (b == "b"));
      CHECK((both.blue > 3000) == (b == "b"));
    }
  }
}

TEST_CASE("maps of differences that cannot be had are one clear line") {
  const Captures captures;
  const auto refusal = [&](const std::vector<std::string>& more, const std::string& what) {
    const auto result = captures.run(more);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.err.find(what) != std::string::npos);
  };
  const std::string h5 = captures.folder / "x.h5";
  refusal({"--product", "pooled:0", "-o", h5}, "expected pooled:N");
  refusal({"--product", "pooled:x", "-o", h5}, "expected pooled:N");
  refusal({"--product", "frame", "-o", h5}, "did you mean frames?");
  refusal({"--product", "pooled:8"}, "must end in .h5, .png, .svg or .pdf");
  refusal({"--product", "pooled:8", "-o", captures.folder / "x.npy"},
          "must end in .h5, .png, .svg or .pdf");
  refusal({"--product", "volume", "-o", captures.folder / "x.csv"},
          ".h5, .npy, .png, .svg, .pdf, .gif or .mp4");
  refusal({"--product", "volume", "--query", "2,0,0", "-o", h5}, "2");
  refusal({"--product", "frames", "--query", "1,0,0", "-o", h5}, "choose the rows of --product");
  refusal({"--product", "frames", "--sample", "4", "-o", h5}, "--sample does not apply");
  refusal({"--product", "frames", "--classes"}, "take one of them");
  refusal({"--query", "1,0,0"}, "--query belongs to --product");
  CHECK_FALSE(std::filesystem::exists(h5));
  const auto small = captures.run({"--product", "pooled:1", "-o", h5, "--memory", "64KiB"});
  CHECK(small.exit_code == 1);
  CHECK(small.err.find("the smallest that works is") != std::string::npos);
}

TEST_CASE("what cannot be written leaves nothing") {
  const Captures captures;
  for (const std::string name : {"d.h5", "d.png"}) {
    ProgramSettings little;
    little.max_file_bytes = 2048;
    const auto result =
        run_attnscope({"diff", captures.folder / "a.safetensors", captures.folder / "b.safetensors",
                       "--product", "pooled:2", "-o", captures.folder / name, "--quiet"},
                      little);
    INFO(name << ": " << result.err);
    CHECK(result.exit_code == 1);
    CHECK_FALSE(std::filesystem::exists(captures.folder / name));
    CHECK_FALSE(std::filesystem::exists(captures.folder / (name + ".part")));
  }
}

TEST_CASE("a run that is stopped leaves nothing, of exports too") {
  const TemporaryFolder folder;
  for (const std::string name : {"a", "b"}) {
    const std::string capture = folder / (name + ".safetensors");
    ReferenceCall({1, 4, 4, 900, 900, 8}, name == "a" ? 1 : 2).write(capture);
    REQUIRE(
        run_attnscope({"export", capture, "-o", folder / (name + ".h5"), "--quiet"}).exit_code ==
        0);
  }
  const std::vector<std::vector<std::string>> runs{
      {"diff", folder / "a.h5", folder / "b.h5", "--memory", "3MiB"},
      {"diff", folder / "a.h5", folder / "b.h5", "--product", "pooled:64"},
      {"diff", folder / "a.h5", folder / "b.safetensors", "--backend", "reference", "--product",
       "pooled:64"}};
  for (const auto& run : runs) {
    const std::string out = folder / "out.h5";
    const auto result = stop_in_the_midst(run, out, SIGINT);
    INFO(run.back() << ": " << result.err);
    CHECK(result.exit_code == 4);
    CHECK(result.err.find("nothing was written") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(out));
    CHECK_FALSE(std::filesystem::exists(out + ".part"));
  }
}

// Pictures of exports beside those of the capture that they were made from.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/png_picture.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensor_files.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

void run(const std::vector<std::string>& arguments) {
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

Picture draw(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  const std::string out = folder / "picture.png";
  arguments.insert(arguments.begin(), "render");
  arguments.insert(arguments.end(), {"-o", out, "--force", "--quiet"});
  run(arguments);
  return read_png(out);
}

/// Pixels that differ by more than a step of a colour, below the text on top (which names the file)
/// and among those that both have.
size_t differing(const Picture& a, const Picture& b) {
  size_t count = 0;
  for (int y = 110; y < static_cast<int>(std::min(a.height, b.height)); ++y) {
    for (int x = 0; x < static_cast<int>(std::min(a.width, b.width)); ++x) {
      const attnscope::Rgb p = a.at(x, y), q = b.at(x, y);
      const int off = std::max({std::abs(p.r - q.r), std::abs(p.g - q.g), std::abs(p.b - q.b)});
      count += off > 6 ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("pictures of an export are those of its capture") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes");
  const std::string plain = folder / "plain.h5", packed = folder / "packed.h5",
                    blocks = folder / "blocks.h5", pyramid = folder / "pyramid.h5";
  run({"export", capture, "--layers", "1,2", "--dtype", "f32", "--quiet", "-o", plain});
  run({"export", capture, "--layers", "1,2", "--dtype", "f32", "--compress", "gzip", "--quiet",
       "-o", packed});
  run({"export", capture, "--layers", "1,2", "--product", "pooled", "--block", "8", "--quiet", "-o",
       blocks});
  run({"export", capture, "--layers", "1,2", "--product", "pooled", "--block", "8", "--pyramid",
       "--quiet", "-o", pyramid});
  for (const char* pool : {"max", "mean"}) {
    const std::vector<std::string> matrix{"--picture", "matrix",  "--layers", "2",      "--heads",
                                          "3",         "--block", "16",       "--pool", pool};
    const std::vector<std::string> mosaic{"--picture", "mosaic", "--layers", "1,2",
                                          "--block",   "16",     "--pool",   pool};
    for (const auto& how : {matrix, mosaic}) {
      INFO(how[1] << " " << pool);
      std::vector<std::string> arguments{capture};
      arguments.insert(arguments.end(), how.begin(), how.end());
      const Picture expected = draw(folder, arguments);
      for (const std::string& file : {plain, packed, blocks, pyramid}) {
        INFO(file);
        arguments.front() = file;
        const Picture got = draw(folder, arguments);
        CHECK(got.height == expected.height);
        CHECK(differing(got, expected) == 0);
      }
      // The comparison would notice another map.
      arguments.front() = plain;
      std::replace(arguments.begin(), arguments.end(), std::string("2"), std::string("1"));
      std::replace(arguments.begin(), arguments.end(), std::string("1,2"), std::string("1"));
      CHECK(differing(draw(folder, arguments), expected) > 1000);
    }
  }
}

TEST_CASE("a heatmap of exported numbers is that of the capture") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes"), stats = folder / "stats.h5";
  run({"stats", capture, "--quiet", "-o", stats});
  for (const std::string metric : {"entropy", "same_frame_mass"}) {
    const auto json_of = [&](const std::string& input, const std::string& name) {
      const auto result =
          run_attnscope({"render", input, "--picture", "heatmap", "--metric", metric, "--layers",
                         "1-3", "--heads", "0,2", "--json", "--quiet", "-o", folder / name});
      INFO(result.err);
      REQUIRE(result.exit_code == 0);
      return Json::parse(result.out);
    };
    const auto expected = json_of(capture, metric + "-capture.png");
    const auto got = json_of(stats, metric + "-stats.png");
    REQUIRE(got["values"].size() == 6);
    for (size_t i = 0; i < 6; ++i) {
      const auto& a = got["values"][i];
      const auto& b = expected["values"][i];
      CHECK(a["head"] == b["head"]);
      const double value = b[metric].get<double>();
      CHECK(value > 0);
      CHECK(std::fabs(a[metric].get<double>() - value) <= 1e-6 * value);
    }
    CHECK(differing(read_png(folder / (metric + "-capture.png")),
                    read_png(folder / (metric + "-stats.png"))) == 0);
  }
  // One flipped byte in the middle is found.
  const auto size = static_cast<int64_t>(std::filesystem::file_size(stats));
  const char old = poke(stats, size / 2, 0);
  poke(stats, size / 2, static_cast<char>(old ^ 1));
  const auto damaged = run_attnscope(
      {"render", stats, "--picture", "heatmap", "--metric", "entropy", "-o", folder / "x.png"});
  CHECK(damaged.exit_code == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "x.png"));
}

TEST_CASE("crops of pooled exports keep to its blocks") {
  const TemporaryFolder folder;
  const std::string capture = sample("moving-shapes"), blocks = folder / "blocks.h5";
  run({"export", capture, "--layers", "2", "--heads", "1", "--product", "pooled", "--block", "48",
       "--rows", "10:400", "--cols", "33:300", "--quiet", "-o", blocks});
  const auto render = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"render", blocks, "--picture", "matrix", "--force", "-o", folder / "crop.png"});
    return run_attnscope(more);
  };
  CHECK(render({}).exit_code == 0);
  CHECK(render({"--rows", "58:400", "--cols", "81:129", "--block", "96"}).exit_code == 0);
  struct Case {
    std::vector<std::string> more;
    std::string words;
  };
  for (const Case& c : {Case{{"--rows", "60:400"}, "cuts blocks of the export"},
                        Case{{"--rows", "58:100"}, "cuts blocks of the export"},
                        Case{{"--rows", "0:58"}, "the export has 10:400"},
                        Case{{"--block", "50"}, "blocks of 48 (expected a multiple)"},
                        Case{{"--heads", "0"}, "--heads 0"}, Case{{"--dry-run"}, "--dry-run"}}) {
    const auto refused = render(c.more);
    INFO(c.more.front() << " " << refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find(c.words) != std::string::npos);
  }
}

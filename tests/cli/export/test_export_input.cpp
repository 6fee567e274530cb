// Exports as the input of `render` and `query`.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/cli/common/fault_settings.h"
#include "tests/support/answers.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

std::string export_sample(const TemporaryFolder& folder, const std::string& name,
                          const std::vector<std::string>& more) {
  const std::string out = folder / name;
  std::vector<std::string> arguments{"export", sample("moving-shapes"), "-o", out, "--layers", "2",
                                     "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return out;
}

NpyArray query_npy(const TemporaryFolder& folder, const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"query"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const std::string out = folder / "volume.npy";
  for (const char* word : {"--force", "--quiet", "-o"}) all.emplace_back(word);
  all.push_back(out);
  const auto result = run_attnscope(all);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return read_npy(out);
}

}  // namespace

TEST_CASE("a query of an export is the query of its capture") {
  const TemporaryFolder folder;
  const std::string maps = export_sample(folder, "maps.h5", {"--heads", "1,3", "--dtype", "f32"});
  const std::string coded = export_sample(folder, "u8.h5", {"--heads", "1,3", "--dtype", "u8"});
  const std::string rows =
      export_sample(folder, "rows.h5",
                    {"--query", "3,8,7", "--query", "3,8,8", "--heads", "1,3", "--dtype", "f32"});
  const std::string packed =
      export_sample(folder, "gzip.h5", {"--heads", "1,3", "--dtype", "f32", "--compress", "gzip"});
  for (const std::vector<std::string>& how : {std::vector<std::string>{"--query", "3,8,7"},
                                              {"--query", "3,8,7", "--heads", "3"},
                                              {"--query", "3,8,7:9"},
                                              {"--query", "3,8,7", "--mean", "heads"}}) {
    INFO(how[1] << " " << how.back());
    std::vector<std::string> of_capture{sample("moving-shapes"), "--layers", "2"};
    if (how.back() != "3") of_capture.insert(of_capture.end(), {"--heads", "1,3"});
    of_capture.insert(of_capture.end(), how.begin(), how.end());
    const NpyArray expected = query_npy(folder, of_capture);
    const std::vector<double> values(expected.values.begin(), expected.values.end());
    for (const std::string& file : {maps, rows, coded, packed}) {
      INFO(file);
      std::vector<std::string> of_export{file};
      of_export.insert(of_export.end(), how.begin(), how.end());
      const NpyArray got = query_npy(folder, of_export);
      CHECK(got.shape == expected.shape);
      // The log code is good for 3.34 %.
      if (file == coded) {
        CHECK(worst_error(got.values, values, 1e-4) <= 0.034);
      } else {
        CHECK(worst_error(got.values, values, 0x1p-24) <= 1e-6);
      }
    }
  }
  const auto summary = run_attnscope({"query", rows, "--query", "3,8,7", "--heads", "1"});
  const auto same = run_attnscope(
      {"query", sample("moving-shapes"), "--layers", "2", "--query", "3,8,7", "--heads", "1"});
  CHECK(summary.exit_code == 0);
  CHECK(summary.out == same.out);
}

TEST_CASE("a matrix of an export has the cells of its capture's") {
  const TemporaryFolder folder;
  const std::string maps = export_sample(folder, "maps.h5", {"--heads", "1,3", "--dtype", "f32"});
  const auto drawn = run_attnscope({"render", maps, "--picture", "matrix", "--heads", "3", "--json",
                                    "-o", folder / "map.png", "--block", "16"});
  INFO(drawn.err);
  REQUIRE(drawn.exit_code == 0);
  CHECK(drawn.out.find("\"missing_cells\": 0") != std::string::npos);
  CHECK(drawn.err.find("not there") == std::string::npos);
  const auto crop = run_attnscope({"render", maps, "--picture", "matrix", "--heads", "3", "--json",
                                   "-o", folder / "crop.png", "--rows", "16:160", "--cols", ":16"});
  INFO(crop.err);
  CHECK(crop.exit_code == 0);
  CHECK(std::filesystem::file_size(folder / "crop.png") > 1000);
}

TEST_CASE("what an interrupted export lacks is hatched in pictures and refused to queries") {
  const TemporaryFolder folder;
  const AttentionCapture capture(5, 2000);
  capture.file().write(folder / "call.safetensors");
  const std::string out = folder / "out.h5";
  const auto to = [&](const std::string& file) {
    return std::vector<std::string>{"export",    folder / "call.safetensors",
                                    "-o",        file,
                                    "--dtype",   "u8",
                                    "--heads",   "0",
                                    "--threads", "1",
                                    "--quiet"};
  };
  const long writes = calls_of(to(folder / "whole.h5"), "stop-write");
  // The structure is written before the tiles (a row of chunks in two pieces), the journal and the
  // mark after them.
  const auto stopped = run_attnscope(to(out), with_fault("stop-write", writes - 9));
  INFO(stopped.err);
  REQUIRE(stopped.exit_code == 4);
  const std::string part = out + ".part";
  const auto drawn =
      run_attnscope({"render", part, "--picture", "matrix", "-o", folder / "part.png", "--json"});
  INFO(drawn.err);
  REQUIRE(drawn.exit_code == 0);
  CHECK(drawn.err.find("cells are not there") != std::string::npos);
  CHECK(drawn.out.find("\"missing_cells\": 0") == std::string::npos);
  const auto last = run_attnscope({"query", part, "--index", "1999"});
  CHECK(last.exit_code == 2);
  CHECK(last.err.find("the tiles of query 1999") != std::string::npos);
}

TEST_CASE("a shard that is gone or damaged is named") {
  const TemporaryFolder folder;
  const std::string maps = export_sample(folder, "maps.h5", {"--heads", "1", "--compress", "gzip"});
  const std::filesystem::path shard = std::filesystem::directory_iterator(maps + ".d")->path();
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
  for (const bool gone : {false, true}) {
    if (gone) std::filesystem::remove(shard);
    const auto failed = run_attnscope({"query", maps, "--index", "20"});
    INFO(failed.err);
    CHECK(failed.exit_code == 1);
    CHECK(failed.err.find(shard.filename().string()) != std::string::npos);
  }
}

TEST_CASE("words of an export that were changed are not told") {
  const TemporaryFolder folder;
  const auto damaged = [&](const std::string& name, const std::string& out,
                           const std::string& words) {
    std::string bytes = read_file(out);
    const size_t at = bytes.find(words);
    REQUIRE(at != std::string::npos);
    bytes[at + words.size() / 2] ^= 1;
    const std::string path = folder / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  };
  const std::string maps = export_sample(folder, "maps.h5", {"--heads", "1"});
  const std::string blocks =
      export_sample(folder, "blocks.h5", {"--heads", "1", "--product", "pooled", "--block", "64"});
  const std::string lse = export_sample(folder, "lse.h5", {"--heads", "1", "--product", "lse"});
  for (const std::string& out : {maps, blocks, lse}) {
    const auto info = run_attnscope({"info", out, "--json"});
    REQUIRE(info.exit_code == 0);
    const auto about = Json::parse(info.out)["export"];
    CHECK_FALSE(about.contains("checked"));
    for (const std::string& words :
         {about["capture_hash"].get<std::string>(), std::string("\"layers\":")}) {
      const std::string changed = damaged("changed.h5", out, words);
      const auto told = run_attnscope({"info", changed, "--json"});
      CHECK(told.exit_code == 1);
      CHECK(is_error_answer(told.out));
      CHECK(told.err.find(changed + ": its attributes or coordinates are not what was written") !=
            std::string::npos);
    }
  }
  // A --resume does not take it for complete, and leaves it as it is.
  const std::string changed = damaged("whole.h5", maps, "\"layers\":");
  const auto resumed = run_attnscope({"export", sample("moving-shapes"), "-o", changed, "--layers",
                                      "2", "--heads", "1", "--quiet", "--resume"});
  CHECK(resumed.exit_code == 1);
  CHECK(resumed.err.find("are not what was written") != std::string::npos);
}

TEST_CASE("an LSE of an export that was changed is not told") {
  const TemporaryFolder folder;
  const std::string out = export_sample(folder, "maps.h5", {"--heads", "1", "--dtype", "f32"});
  const auto query = [&] {
    return run_attnscope({"query", out, "--query", "3,8,7", "--json", "--quiet"});
  };
  const auto sound = query();
  REQUIRE(sound.exit_code == 0);
  const auto lse = Json::parse(sound.out)["heads"][0]["lse"].get<double>();
  const auto stored = static_cast<float>(lse);
  std::string bytes = read_file(out);
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&stored), 4));
  REQUIRE(at != std::string::npos);
  bytes[at] ^= 1;
  std::ofstream(out, std::ios::binary | std::ios::trunc) << bytes;
  const auto told = query();
  CHECK(told.exit_code == 1);
  CHECK(is_error_answer(told.out));
  CHECK(told.err.find(out + ": lse of step 10 layer 2 cond joint batch 0 head 1: is not what was "
                            "written") != std::string::npos);
}

TEST_CASE("what an export cannot show is said") {
  const TemporaryFolder folder;
  const std::string maps = export_sample(folder, "maps.h5", {"--heads", "1,3", "--cols", "16:"});
  const std::string rows = export_sample(folder, "rows.h5", {"--queries", "5,9"});
  const std::string lse = export_sample(folder, "lse.h5", {"--product", "lse"});
  const std::string logits = export_sample(folder, "logits.h5", {"--product", "logits"});
  const std::string topk = export_sample(folder, "topk.h5", {"--product", "topk", "--topk", "4"});
  const std::string stats = folder / "stats.h5";
  REQUIRE(run_attnscope({"stats", sample("moving-shapes"), "--layers", "2", "--quiet", "-o", stats})
              .exit_code == 0);
  const std::string pooled = export_sample(folder, "pooled.h5", {"--block", "64"});
  const std::string png = folder / "x.png";
  const auto render = [&](const std::string& file, const std::string& picture,
                          std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"render", file, "--picture", picture, "-o", png});
    return more;
  };
  struct Case {
    std::vector<std::string> arguments;
    std::string words;
  };
  const std::vector<Case> cases{
      {render(maps, "matrix"), "draws one head, and 2 are selected"},
      {render(maps, "matrix", {"--heads", "2"}), "--heads 2"},
      {render(maps, "matrix", {"--heads", "1", "--cols", "0:100"}), "the export has 16:1024"},
      {render(maps, "matrix", {"--heads", "1", "--grid", "1x2x3"}), "--grid"},
      {render(maps, "matrix", {"--heads", "1", "--rope", "wan"}), "--rope"},
      {render(maps, "matrix", {"--heads", "1", "--cu-seqlens", "0,9"}), "--cu-seqlens"},
      {render(maps, "matrix", {"--heads", "1", "--branch", "uncond"}),
       "--branch uncond: not in the export"},
      {render(maps, "heatmap", {"--metric", "entropy"}), "not of numbers (expected stats)"},
      {render(maps, "frames"), "of one matrix, mosaic and heatmap are drawn"},
      {render(stats, "heatmap", {"--metric", "entropi"}), "did you mean entropy?"},
      {render(stats, "heatmap", {"--metric", "class"}), "does not hold it"},
      {render(stats, "heatmap"), "needs --metric NAME"},
      {render(rows, "mosaic"), "holds 2 single rows"},
      {render(maps, "filmstrip", {"--query", "0,0,0"}), "attnscope query"},
      {render(rows, "matrix", {"--heads", "0"}), "holds 2 single rows"},
      {render(lse, "matrix"), "is an export of lse, which has no maps"},
      {render(topk, "matrix"), "is an export of topk, which has no maps"},
      {render(stats, "mosaic"), "is an export of stats, which has no maps"},
      {{"query", pooled, "--index", "20"}, "is an export of pooled, which has no maps"},
      {{"query", maps, "--index", "20"}, "has keys 16:1024 of 1024 only"},
      {{"query", rows, "--index", "6"}, "has no row of query 6 (it has 5, 9)"},
      {{"query", rows, "--index", "5", "--reverse"}, "--reverse"},
      {{"query", rows, "--index", "5", "--domain", "video"}, "--domain"},
      {{"query", rows}, "query needs --query"},
      {{"query", logits, "--index", "5"}, "holds logits"}};
  for (const Case& c : cases) {
    const auto result = run_attnscope(c.arguments);
    INFO(c.words << "\n" << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(c.words) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(png));
  }
  const auto drawn = run_attnscope(render(logits, "matrix", {"--heads", "0"}));
  INFO(drawn.err);
  CHECK(drawn.exit_code == 0);
}

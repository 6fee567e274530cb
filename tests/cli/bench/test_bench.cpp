// attnscope bench: the passes that it times and the lines that it prints, never how fast it was.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

struct Timed {
  const char* name;
  double entries;
  bool has_floor;
};

Json bench(const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"bench", "--json", "--quiet", "--repeats", "1"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const ProgramResult result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("bench: every pass has its line, its entries and, where there is one, its floor") {
  const Json json = bench({"--head", "384x16", "--case",
                           "lse,weights,metrics,pyramid,row,tile,masks,threads", "--threads", "3"});
  CHECK(json["format"] == "attnscope-bench/1");
  CHECK(json["machine"]["threads"] == 3);
  for (const char* ceiling : {"fma_gflops", "fma_gflops_one_thread", "exp_gigaelements"}) {
    CHECK(json["machine"][ceiling].get<double>() > 0);
  }
  // Nothing is written, so the disk is left alone.
  CHECK_FALSE(json["machine"].contains("write_bytes_per_second"));
  const double all = 384 * 384;
  const std::vector<Timed> expected{{"S=384 d=16 lse", all, true},
                                    {"S=384 d=16 weights", all, true},
                                    {"S=384 d=16 metrics", all, true},
                                    {"S=384 d=16 pyramid of 16x16 blocks", all, true},
                                    {"S=384 d=16 row", 384, false},
                                    {"S=384 d=16 tile of 384x384", all, false},
                                    {"S=384 d=16 lse, 1 thread", all, true},
                                    {"S=384 d=16 lse, 2 threads", all, true},
                                    {"S=384 d=16 lse, 3 threads", all, true},
                                    {"S=384 d=16 weights mask 10%", -1, true},
                                    {"S=384 d=16 weights mask 90%", -1, true}};
  REQUIRE(json["results"].size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Json& result = json["results"][i];
    INFO(result);
    CHECK(result["name"] == expected[i].name);
    const double seconds = result["seconds"];
    CHECK(seconds > 0);
    CHECK(result["memory_bytes"].get<int64_t>() > 0);
    CHECK(result.contains("ratio_to_floor") == expected[i].has_floor);
    if (expected[i].has_floor) {
      CHECK(result["floor_seconds"].get<double>() * result["ratio_to_floor"].get<double>() ==
            Approx(seconds));
    }
    if (expected[i].entries < 0) continue;
    CHECK(result["entries_per_second"].get<double>() * seconds == Approx(expected[i].entries));
    CHECK(result["gflops"].get<double>() * seconds ==
          Approx(2e-9 * 16 * expected[i].entries).epsilon(1e-6));
  }
}

TEST_CASE("bench: an export is timed beside the disk, whose folder is left as it was") {
  const TemporaryFolder folder;
  const Json json =
      bench({"--head", "384x16", "--case", "export", "--folder", folder.path().string()});
  CHECK(json["machine"]["write_bytes_per_second"].get<double>() > 0);
  CHECK(json["machine"]["durable_write_bytes_per_second"].get<double>() > 0);
  REQUIRE(json["results"].size() == 2);
  for (const Json& result : json["results"]) {
    CHECK(result["bytes_per_second"].get<double>() * result["seconds"].get<double>() ==
          Approx(384 * 384 * 2 + 384 * 4));
    CHECK(result["ratio_to_floor"].get<double>() > 0);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("bench: heads, cases and folders that cannot be are refused before anything is timed") {
  struct Case {
    std::vector<std::string> options;
    int exit_code;
    const char* says;
  };
  for (const Case& c :
       {Case{{"--head", "17776"}, 2, "--head 17776: expected tokens"},
        Case{{"--head", "0x64"}, 2, "--head 0x64: expected tokens"},
        Case{{"--head", "64x5000"}, 2, "--head 64x5000: expected tokens"},
        Case{{"--case", "speed"}, 2, "--case: expected lse, weights, metrics"},
        Case{{"--repeats", "0"}, 2, "--repeats"},
        Case{{"--folder", "/nowhere/at/all"}, 1, "/nowhere/at/all: cannot be written"}}) {
    std::vector<std::string> arguments{"bench", "--quiet"};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const ProgramResult result = run_attnscope(arguments);
    INFO(c.says << " in " << result.err);
    CHECK(result.exit_code == c.exit_code);
    CHECK(result.out.empty());
    CHECK(result.err.find(c.says) != std::string::npos);
  }
}

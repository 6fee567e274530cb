// attnscope diff of tables of numbers: of two captures, and of several runs.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/files/json_types.h"
#include "tests/support/answers.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/reference_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

ProgramResult diff_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "diff");
  arguments.emplace_back("--quiet");
  return run_attnscope(arguments);
}

Json diff_json_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const auto result = diff_of(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

/// A capture of two heads, and its numbers as NAME.json, .csv and .h5.
Json write_stats(const TemporaryFolder& folder, const std::string& name, uint64_t seed) {
  const std::string capture = folder / (name + ".safetensors");
  ReferenceCall({1, 2, 1, 40, 40, 16}, seed).fact("step", "4").fact("layer", "2").write(capture);
  for (const char* const end : {".json", ".csv", ".h5"}) {
    const auto result = run_attnscope({"stats", capture, "-o", folder / (name + end), "--quiet"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
  return Json::parse(read_file(folder / (name + ".json")));
}

/// Three runs of two steps of one head, whose entropy is run + step; its class changes in two.
void write_runs(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << "run,prompt,seed,step,layer,branch,kind,batch,head,class,entropy\r\n";
  for (int run = 0; run < 3; ++run) {
    for (const int step : {0, 8}) {
      file << "r" << run << ",\"a, b\",," << step << ",3,cond,joint,0,1,"
           << (run > 0 && step == 8 ? "sink" : "text") << "," << run + step << "\r\n";
    }
  }
}

}  // namespace

TEST_CASE("two tables of captures are compared number by number, whatever files they are") {
  const TemporaryFolder folder;
  const Json a = write_stats(folder, "a", 1), b = write_stats(folder, "b", 2);
  const Json all = diff_json_of({folder / "a.h5", folder / "b.csv"});
  CHECK(all["format"] == "attnscope-diff-metrics/1");
  CHECK(all["a"] == "a.h5");
  REQUIRE(all["pairs"].size() == 2);
  double changed = 0;
  for (size_t h = 0; h < 2; ++h) {
    const Json &of_a = a["heads"][h], &of_b = b["heads"][h], &found = all["pairs"][h];
    CHECK(found["a"]["head"] == h);
    CHECK(found["a_class"] == of_a["class"]);
    CHECK(found["b_class"] == of_b["class"]);
    // Counts and standard errors are not compared.
    CHECK_FALSE(found.contains("rows_a"));
    CHECK_FALSE(found.contains("keys_for_90_stderr_a"));
    for (const char* const metric : {"entropy", "sink_mass", "keys_for_90", "text_mass"}) {
      const std::string name = metric;
      INFO(name);
      REQUIRE(found.contains(name + "_a"));
      CHECK(found[name + "_a"] == of_a[name]);
      CHECK(found[name + "_b"] == of_b[name]);
      CHECK(found[name + "_ci95"].is_null());
      if (of_a[name].is_null()) {
        CHECK(found[name + "_difference"].is_null());
        continue;
      }
      const double change = of_a[name].get<double>() - of_b[name].get<double>();
      CHECK(found[name + "_difference"].get<double>() == change);
      changed += std::abs(change);
    }
  }
  CHECK(changed > 0.01);
  for (const char* const end_a : {".json", ".csv", ".h5"}) {
    Json other = diff_json_of({folder / (std::string("a") + end_a), folder / "b.json"});
    CHECK(other["pairs"] == all["pairs"]);
  }
  // Heads of one table.
  const Json own = diff_json_of({folder / "a.csv", "--heads", "0", "--b-head", "1"});
  CHECK(own["pairs"][0]["entropy_b"] == a["heads"][1]["entropy"]);
}

TEST_CASE("runs of a table have means, spreads and changes of class along the steps") {
  const TemporaryFolder folder;
  write_runs(folder / "t.csv");
  const Json found = diff_json_of({folder / "t.csv"});
  REQUIRE(found["heads"].size() == 2);
  const Json& last = found["heads"][1];
  CHECK(last["entropy_mean"] == 9);
  CHECK(last["entropy_std"] == 1);
  CHECK(last["entropy_ci95"].get<double>() ==
        Approx(4.30265272975 / std::sqrt(3.0)).epsilon(1e-10));
  CHECK(last["runs"] == 3);
  CHECK(last["class"] == "sink");
  CHECK(last["class_share"].get<double>() == Approx(2.0 / 3));
  REQUIRE(found["class_changes"].size() == 1);
  const Json& change = found["class_changes"][0];
  CHECK(change["step"] == 8);
  CHECK(change["layer"] == 3);
  CHECK(change["head"] == 1);
  CHECK(change["before_step"] == 0);
  CHECK(change["before"] == "text");
  CHECK(change["after"] == "sink");
  const Json sorted = diff_json_of({folder / "t.csv", "--sort", "entropy"});
  CHECK(sorted["heads"][0] == last);
  CHECK(sorted["class_changes"] == found["class_changes"]);
  const std::string printed = diff_of({folder / "t.csv", "--sort", "entropy"}).out;
  CHECK(printed.find("step 8") < printed.find("step 0"));
  const auto unknown = diff_of({folder / "t.csv", "--sort", "entropi"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("did you mean entropy?") != std::string::npos);
  CHECK(diff_of({folder / "t.csv", "--sort", "entropy", "--classes"}).exit_code == 2);
  // The steps against each other: pairs of runs, each 8 apart.
  const Json steps = diff_json_of({folder / "t.csv", "--steps", "8", "--b-step", "0"});
  CHECK(steps["paired"] == true);
  CHECK(steps["pairs"][0]["entropy_difference"] == 8);
  CHECK(steps["pairs"][0]["entropy_ci95"] == 0);
  const std::string text = diff_of({folder / "t.csv"}).out;
  CHECK(text.find("9 ±    2.5") != std::string::npos);
  CHECK(text.find("step 0    step 8") != std::string::npos);
  CHECK(text.find("1 * text      sink") != std::string::npos);
  CHECK(text.find("1 of 1 heads changed class\n") != std::string::npos);
}

TEST_CASE("classes that differ between branches or forwards are no changes along the steps") {
  const TemporaryFolder folder;
  std::ofstream(folder / "forwards.csv", std::ios::binary)
      << "step,layer,branch,kind,batch,head,forward,class,entropy\r\n"
         ",3,cond,joint,0,0,0,text,1\r\n,3,cond,joint,0,0,1,sink,1\r\n";
  std::ofstream(folder / "branches.csv", std::ios::binary)
      << "step,layer,branch,kind,batch,head,class,entropy\r\n"
         "0,3,cond,joint,0,0,text,1\r\n0,3,uncond,joint,0,0,sink,1\r\n"
         "4,3,cond,joint,0,0,text,1\r\n4,3,uncond,joint,0,0,sink,1\r\n";
  for (const char* const name : {"forwards.csv", "branches.csv"}) {
    CHECK(diff_of({folder / name, "--classes"}).out ==
          "0 of 1 heads changed class, 1 differ between branches or forwards\n");
    CHECK(diff_json_of({folder / name})["class_changes"].empty());
  }
}

TEST_CASE("files of tables hold what is printed") {
  const TemporaryFolder folder;
  write_runs(folder / "t.csv");
  REQUIRE(diff_of({folder / "t.csv", "-o", folder / "o.csv"}).exit_code == 0);
  std::istringstream lines(read_file(folder / "o.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line ==
        "step,layer,branch,kind,batch,head,class,class_share,runs,entropy_mean,entropy_std,"
        "entropy_ci95\r");
  std::getline(lines, line);
  CHECK(line.rfind("0,3,cond,joint,0,1,text,1.0,3,1.0,1.0,2.48", 0) == 0);
  REQUIRE(diff_of({folder / "t.csv", "--classes", "-o", folder / "c.csv"}).exit_code == 0);
  CHECK(read_file(folder / "c.csv") ==
        "step,layer,branch,kind,batch,head,before_step,before,after\r\n"
        "8,3,cond,joint,0,1,0,text,sink\r\n");
  // A list without items has its columns all the same.
  REQUIRE(
      diff_of({folder / "t.csv", "--steps", "0", "--classes", "-o", folder / "n.csv"}).exit_code ==
      0);
  CHECK(read_file(folder / "n.csv") ==
        "step,layer,branch,kind,batch,head,before_step,before,after\r\n");
  REQUIRE(diff_of({folder / "t.csv", "-o", folder / "o.json"}).exit_code == 0);
  CHECK(OrderedJson::parse(read_file(folder / "o.json")) ==
        answer_alone(diff_of({folder / "t.csv", "--json"}).out));
  const std::vector<std::vector<std::string>> lists{
      {}, {"--classes"}, {"--classes", "--steps", "0"}};
  for (size_t i = 0; i < lists.size(); ++i) {
    const std::string out = folder / ("o" + std::to_string(i) + ".h5");
    std::vector<std::string> run{folder / "t.csv", "-o", out};
    run.insert(run.end(), lists[i].begin(), lists[i].end());
    REQUIRE(diff_of(run).exit_code == 0);
    CHECK(read_file(out).substr(1, 3) == "HDF");
  }
  // The runs' table is not to be replaced by what is made of it.
  const auto itself = diff_of({folder / "t.csv", "-o", folder / "t.csv", "--force"});
  CHECK(itself.exit_code != 0);
}

TEST_CASE("what tables do not have is one clear line") {
  const TemporaryFolder folder;
  write_runs(folder / "t.csv");
  ReferenceCall({1, 2, 1, 40, 40, 16}, 1).write(folder / "c.safetensors");
  const auto refusal = [&](std::vector<std::string> arguments, const std::string& what) {
    const auto result = diff_of(std::move(arguments));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find(what) != std::string::npos);
  };
  refusal({folder / "t.csv", folder / "c.safetensors"}, "is no table of metrics");
  const auto missing = diff_of({folder / "t.csv", folder / "nowhere.csv"});
  CHECK(missing.exit_code == 1);
  CHECK(missing.err.find("nowhere.csv: there is no such file or folder") != std::string::npos);
  refusal({folder / "t.csv", "--sample", "4"}, "--sample");
  refusal({folder / "t.csv", "--steps", "8", "--b-step", "0", "--classes"}, "--classes");
  refusal({folder / "t.csv", "--backend", "cpu"}, "--backend");
  refusal({folder / "t.csv", "--layers", "9"}, "9");
  refusal({folder / "t.csv", "--b-step", "4"}, "has no step 4 layer 3");
  refusal({folder / "t.csv", "--steps", "0", "--b-step", "0"}, "would be compared with itself");
  refusal({folder / "c.safetensors", "--b-head", "1", "--classes"}, "--classes");
}

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/synthetic.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// A 6x6x8 grid behind 5 text tokens: more tokens than are sampled.
std::string written_call(const TemporaryFolder& folder, bool with_values = true) {
  const AttentionCapture capture(11, 5 + 6 * 48);
  CallFile file = with_values ? capture.file() : CallFile();
  if (!with_values) {
    file.fact("q_state", "final")
        .tensor("q", "F32", {1, capture.heads, capture.tokens, capture.d}, raw(capture.q))
        .tensor("k", "F32", {1, capture.kv_heads, capture.tokens, capture.d}, raw(capture.k));
  }
  file.fact("grid", "6x6x8").fact("text", "5@start");
  std::string path = folder / (with_values ? "call.safetensors" : "without.safetensors");
  file.write(path);
  return path;
}

Json lab_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "lab");
  arguments.emplace_back("--json");
  const ProgramResult result = run_attnscope(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

std::string lab_error(std::vector<std::string> arguments, int exit_code = 2) {
  arguments.insert(arguments.begin(), "lab");
  const ProgramResult result = run_attnscope(arguments);
  CHECK(result.exit_code == exit_code);
  CHECK(result.out.empty());
  return result.err;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("lab measures as mask does, and more") {
  const TemporaryFolder folder;
  const std::string path = written_call(folder);
  const std::vector<std::string> edits{"sla:keep=0.3,block=16", "sol:block=16,tail=none",
                                       "spatial"};
  std::vector<std::string> masks{"mask", path, "--exact", "--json"};
  std::vector<std::string> own{path, "--exact"};
  for (const std::string& edit : edits) {
    masks.insert(masks.end(), {"--mask", edit});
    own.insert(own.end(), {"--edit", edit});
  }
  const Json expected = Json::parse(run_attnscope(masks).out);
  const Json found = lab_json(own);
  CHECK(found["format"] == "attnscope-lab/1");
  REQUIRE(found["heads"].size() == expected["heads"].size());
  for (size_t i = 0; i < found["heads"].size(); ++i) {
    const Json &row = found["heads"][i], &mask = expected["heads"][i];
    CHECK(row["edit"] == mask["mask"]);
    for (const char* same : {"head", "density", "recall", "recall_p05", "output_error",
                             "output_error_mean", "output_error_p95", "sampled_rows"}) {
      INFO(same);
      CHECK(row[same] == mask[same]);
    }
    CHECK(row["entry_oracle_recall"] == mask["oracle_recall"]);
    CHECK(row["recall_stderr"].is_null());
    CHECK(row["output_cosine"].get<double>() <= 1);
    const bool blocks = row["edit"] != "spatial";
    CHECK(row["ties"].is_number() == blocks);
    CHECK(row["block_oracle_recall"].is_number() == blocks);
    if (blocks) {
      CHECK(row["block_oracle_recall"] >= row["recall"]);
      CHECK(row["block_oracle_recall"] <= row["entry_oracle_recall"]);
    }
    CHECK(row["js"].is_null());
    CHECK(row["output_error_by_segment"].contains("video"));
  }
}

TEST_CASE("lab measures every edit that a sweep stands for, once") {
  const TemporaryFolder folder;
  const std::string path = written_call(folder);
  const Json found = lab_json({path, "--heads", "1", "--edit", "sla:keep=0.2/0.4,block=16",
                               "--edit", "sla:keep=0.2..0.6:3,block=16", "--edit", "dense"});
  std::vector<std::string> edits;
  double before = 0;
  for (const Json& row : found["heads"]) {
    edits.push_back(row["edit"]);
    CHECK(row["density"].get<double>() > before);
    before = row["density"];
    CHECK(row["sampled_rows"] == 256);
  }
  CHECK(edits == std::vector<std::string>{"sla:keep=0.2,block=16", "sla:keep=0.4,block=16",
                                          "sla:keep=0.6,block=16", "none"});
  CHECK(found["heads"].back()["recall"].get<double>() > 1 - 1e-6);
  CHECK(found["heads"].back()["output_error"] == 0.0);
  CHECK(found["heads"].front()["recall_stderr"].get<double>() > 0);
  CHECK(found["heads"].front()["output_error_stderr"].get<double>() > 0);
}

TEST_CASE("parts of lab are merged to what one process writes") {
  const TemporaryFolder folder;
  const std::string path = written_call(folder);
  const std::vector<std::string> edits{"--edit", "sol:block=16,tau=0/1", "--edit", "temporal"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"lab", path});
    arguments.insert(arguments.end(), edits.begin(), edits.end());
    const ProgramResult result = run_attnscope(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
  };
  run({"-o", folder / "whole.json"});
  run({"-o", folder / "part-{shard}.json", "--shard", "0/2"});
  run({"-o", folder / "part-{shard}.json", "--shard", "1/2"});
  const auto merge = [&](const std::string& out) {
    const ProgramResult result = run_attnscope(
        {"merge", folder / "part-1-of-2.json", folder / "part-0-of-2.json", "-o", out});
    INFO(result.err);
    CHECK(result.exit_code == 0);
  };
  merge(folder / "merged.json");
  CHECK(read_file(folder / "merged.json") == read_file(folder / "whole.json"));
  run({"-o", folder / "whole.csv"});
  merge(folder / "merged.csv");
  const std::string csv = read_file(folder / "whole.csv");
  CHECK(read_file(folder / "merged.csv") == csv);
  CHECK(holds(csv, "output_error_by_segment.text,output_error_by_segment.video"));
  CHECK_FALSE(holds(csv, "{"));
  // What is complete is not measured again; other edits are another run.
  const auto again = [&](const std::string& edit) {
    return run_attnscope({"lab", path, "--edit", edit, "--edit", "sol:block=16,tau=1", "--edit",
                          "temporal", "-o", folder / "whole.json", "--resume"});
  };
  CHECK(holds(again("sol:block=16,tau=0").err, "complete already"));
  CHECK(again("sol:block=16,tau=0.5").exit_code != 0);
}

TEST_CASE("lab says in a line what it cannot measure") {
  const TemporaryFolder folder;
  const std::string path = written_call(folder);
  CHECK(holds(lab_error({path}), "lab needs --edit"));
  CHECK(holds(lab_error({path, "--edit", "soll"}), "did you mean sol?"));
  CHECK(holds(lab_error({path, "--edit", "sol:tau=0..1"}), "FROM..TO:COUNT"));
  CHECK(holds(lab_error({path, "--edit", "nabla"}), "is not made of whole tiles of 1x8x8"));
  CHECK(holds(lab_error({path, "--edit", "sla:gate=1"}), "gate is of rest=coarse and rest=linear"));
  CHECK(holds(lab_error({path, "--edit", "sol:tail=row,rest=lost"}), "give one"));
  CHECK(holds(lab_error({path, "--edit", "xattention:stride=7"}), "not made of strides of 7"));
  CHECK(holds(lab_error({path, "--edit", "sol", "--block", "64"}), "--edit FILE.npy"));
  CHECK(holds(lab_error({path, "--edit", "sol", "-o", folder / "x.png"}), ".csv"));
  const std::string without = written_call(folder, false);
  const ProgramResult result = run_attnscope({"lab", without, "--edit", "sol:block=16", "--json"});
  CHECK(result.exit_code == 0);
  CHECK(holds(result.err, "no v: there are no numbers of its outputs"));
  const Json row = Json::parse(result.out)["heads"][0];
  CHECK(row["output_error"].is_null());
  CHECK(row["output_error_by_segment"].empty());
  CHECK(row["recall"].get<double>() > 0);
}

TEST_CASE("lab says before it measures why no plan could be made") {
  const TemporaryFolder folder;
  const std::string path = written_call(folder);
  const std::string plan = folder / "plan.json", sta = folder / "sta.json";
  const std::vector<std::string> choice{
      path, "--edit", "sla:keep=0.5,block=16", "--target", "recall>=0.1", "-o", plan};
  const auto refused = [&](std::vector<std::string> more) {
    more.insert(more.begin(), choice.begin(), choice.end());
    const std::string error = lab_error(more);
    CHECK_FALSE(std::filesystem::exists(plan + ".part"));
    return error;
  };
  CHECK(holds(refused({"--config", "sta=" + sta}), "the number of steps of a run is needed"));
  CHECK(holds(refused({"--config", "sta=" + plan}), "names the file of -o"));
  CHECK(holds(refused({"--hold-out", "1"}), "hold out 0 at most"));
  CHECK(holds(lab_error({written_call(folder, false), "--edit", "sol:block=16", "--target",
                         "output_error<=0.1"}),
              "has no v, and so no output: choose by recall"));
  // What an interrupted run left of a plan's numbers is gone on with.
  std::vector<std::string> resumed{"lab"};
  resumed.insert(resumed.end(), choice.begin(), choice.end());
  resumed.emplace_back("--resume");
  CHECK(run_attnscope(resumed).exit_code == 0);
  CHECK(std::filesystem::exists(plan));
}

// Commands on captures with forwards whose step or branch nobody told, and with refused calls.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/cli/merge/parts.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program_heads.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/told_late.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

const char* const kRefused =
    R"(,"refused":[{"forward":1,"step":0,"block":"b.0","slot":"attn","why":"a mask of no kind"},
      {"forward":3,"step":1,"block":"b.0","slot":"attn","why":"a mask of no kind"}])";

Json json_of(std::vector<std::string> arguments, int code = 0) {
  arguments.emplace_back("--json");
  const ProgramResult r = run_attnscope(arguments);
  INFO(r.err);
  REQUIRE(r.exit_code == code);
  return Json::parse(r.out);
}

Json catalogue(const std::string& folder) {
  return Json::parse(read_file(folder + "/capture.json"));
}

}  // namespace

TEST_CASE("forwards select calls and name heads") {
  const TemporaryFolder folder;
  std::vector<UntoldCall> calls = guided_calls();
  calls.push_back({3, 1, 1, 3, 1});
  const std::string path = write_untold(folder, calls);
  const Json heads = heads_of({"stats", path, "--branch", "f1", "--steps", "1", "--layers", "3"});
  REQUIRE(heads.size() == 4);
  CHECK((heads[0]["branch"] == "f1" && heads[0]["forward"] == 3 && heads[0]["of_step"] == 1));
  CHECK(!heads[0].contains("call"));
  CHECK(heads[3]["call"] == 1);
  const Json info = json_of({"info", path, "--no-scan"});
  CHECK((info["calls"][0]["forward"] == 0 && info["calls"][0]["branches"][0] == "f0"));
  CHECK(contains(run_well({"info", path}).out, "branches   f0, f1"));

  const std::string csv = folder / "heads.csv";
  run_well({"stats", path, "-o", csv, "--quiet"});
  CHECK(contains(read_file(csv), "head,forward,of_step,call,class"));
  const std::string maps = folder / "maps.h5";
  run_well({"export", path, "-o", maps, "--quiet", "--layers", "3", "--steps", "1"});
  const Json stored = heads_of({"query", maps, "--index", "1"});
  REQUIRE(stored.size() == 6);
  CHECK((stored[4]["call"] == 1 && stored[4]["forward"] == 3 && !stored[0].contains("call")));
}

TEST_CASE("facts of forwards stay with calls that are copied and merged") {
  const TemporaryFolder folder;
  const std::string path = write_untold(folder, guided_calls(), guided_forwards() + kRefused);
  const std::string out = folder / "copy";
  run_well({"convert", path, "-o", out, "--branch", "f1", "--quiet"});
  const Json copied = json_of({"info", out, "--no-scan"});
  REQUIRE(copied["calls"].size() == 4);
  CHECK((copied["calls"][0]["forward"] == 1 && copied["calls"][0]["of_step"] == 1));
  CHECK(copied["unknown_keys"].empty());
  CHECK(catalogue(out)["forwards"] == catalogue(path)["forwards"]);
  CHECK(catalogue(out)["refused"] == catalogue(path)["refused"]);

  const auto parts = run_parts({"convert", path}, folder / "part-{shard}", 2);
  const std::string whole = folder / "whole";
  REQUIRE(merge(parts, whole).exit_code == 0);
  CHECK(catalogue(whole)["refused"] == catalogue(path)["refused"]);
  CHECK(json_of({"info", whole, "--no-scan"})["calls"].size() == 8);

  const auto single = run_attnscope({"convert", path, "-o", folder / "one.safetensors", "--steps",
                                     "0", "--layers", "1", "--branch", "f1"});
  CHECK(single.exit_code == 0);
  CHECK(contains(single.err, "not carried over: the forwards and refused calls"));
  CHECK(json_of({"info", folder / "one.safetensors"})["calls"][0]["forward"] == 1);
}

TEST_CASE("info tells forwards by their kind") {
  const TemporaryFolder folder;
  const std::string path = write_untold(folder, guided_calls(), guided_forwards() + kRefused);
  const std::string text = run_well({"info", path}).out;
  CHECK(contains(text,
                 "forwards: 2 forwards a step of Wan, steps 0-1 at the same timestep, equal "
                 "latents, other text: two branches; nothing tells which\n"));
  CHECK(contains(text, "refused: 2 calls: a mask of no kind\n"));
  const Json json = json_of({"info", path, "--no-scan"});
  CHECK((json["forwards"].size() == 4 && json["refused"].size() == 2));

  const std::string told =
      R"("forwards":[{"forward":0,"step":0,"branch":"cond","transformer":"Wan","chosen":true},
        {"forward":1,"step":1,"branch":"cond","transformer":"Wan","chosen":false},
        {"forward":2,"transformer":"Wan","context":"refine","chosen":true}])";
  const std::string other =
      run_well({"info", write_untold(folder, guided_calls(), told, "told")}).out;
  CHECK(contains(other, "forwards: 1 forward a step of Wan, step 0: branch cond\n"));
  CHECK(contains(other, "forwards: 1 forward a step of Wan, step 1: branch cond (not chosen)\n"));
  CHECK(contains(other, "forwards: 1 of Wan in refine: nothing tells their steps\n"));
}

TEST_CASE("verify finds a capture with refused calls or partial forwards incomplete") {
  const TemporaryFolder folder;
  const std::string whole = write_untold(folder, guided_calls(), guided_forwards(), "whole");
  CHECK(run_attnscope({"verify", whole}).exit_code == 0);
  CHECK(!json_of({"verify", whole}).contains("refused"));
  const std::string refused =
      write_untold(folder, guided_calls(), guided_forwards() + kRefused, "refused");
  const auto r = run_attnscope({"verify", refused});
  CHECK(r.exit_code == 3);
  CHECK(
      contains(r.out, "refused: 2 calls, first forward 1, step 0, b.0.attn: a mask of no kind\n"));
  const Json json = json_of({"verify", refused}, 3);
  CHECK((json["good"] == false && json["refused"].size() == 2));
  CHECK(json["calls"][0]["forward"] == 0);

  const std::string partial = write_untold(
      folder, guided_calls(), guided_forwards(R"(,"partial":true,"calls":2)"), "partial");
  const auto p = run_attnscope({"verify", partial});
  CHECK(p.exit_code == 3);
  CHECK(contains(p.out, "partial: forward 3 of Wan, step 1, 2 recorded: fewer or other calls"));
  CHECK(json_of({"verify", partial}, 3)["partial_forwards"][0]["forward"] == 3);
}

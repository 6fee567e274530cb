#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"
#include "tests/support/recorded_call.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A capture of two layers, rightly recorded unless `spoil` changes the second.
template <typename Spoil>
std::string write_capture(const TemporaryFolder& folder, const Spoil& spoil) {
  const auto path = folder.path() / "dump";
  std::filesystem::create_directory(path);
  for (int64_t layer : {0, 7}) {
    RecordedCall call(static_cast<uint64_t>(layer) + 1);
    call.layer = layer;
    call.attend();
    if (layer == 7) spoil(call);
    call.file().write(path / ("layer" + std::to_string(layer) + ".safetensors"));
  }
  return path.string();
}

}  // namespace

TEST_CASE("verify of a right capture says so, and nothing warns") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder, [](RecordedCall&) {});
  const ProgramResult r = run_attnscope({"verify", dump});
  CHECK(r.exit_code == 0);
  CHECK(r.err == "");
  CHECK(r.out.rfind("agrees: 2 of 2 calls; 10 output rows of 8 heads each", 0) == 0);
  CHECK(run_attnscope({"info", dump}).err == "");
  const ProgramResult sample_result = run_attnscope({"verify", sample("moving-shapes"), "--json"});
  CHECK(sample_result.exit_code == 0);
  const auto json = Json::parse(sample_result.out);
  CHECK(json["format"] == "attnscope-verify/1");
  CHECK(json["good"] == true);
  CHECK(json["checked"] == 4);
  REQUIRE(json["calls"].size() == 4);
  CHECK(json["calls"][1]["verdict"] == "agrees");
  CHECK(json["calls"][1]["layer"] == 1);
  CHECK(json["calls"][1]["branch"] == "cond");
  CHECK(json["calls"][1]["culprit"].is_null());
}

TEST_CASE("one call that can be checked is enough for verify --strict") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder, [](RecordedCall& call) { call.outputs = false; });
  const ProgramResult r = run_attnscope({"verify", dump, "--strict", "--json"});
  CHECK(r.exit_code == 0);
  const auto json = Json::parse(r.out);
  CHECK(json["good"] == true);
  CHECK(json["checked"] == 1);
  CHECK(run_attnscope({"verify", dump, "--strict", "--layers", "7"}).exit_code == 3);
}

TEST_CASE("verify of a wrong capture names the call and the culprit, with exit code 3") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder, [](RecordedCall& call) { call.scale = 1; });
  const ProgramResult r = run_attnscope({"verify", dump});
  CHECK(r.exit_code == 3);
  CHECK(contains(r.out, "differs: layer 7, uncond+cond, joint: 8 of 8 heads"));
  CHECK(contains(r.out, "scale: with scale 0.125 (1/sqrt(head_dim)) instead of 1"));
  CHECK(contains(r.out, "agrees: 1 of 2 calls"));
  const auto json = Json::parse(run_attnscope({"verify", dump, "--json"}).out);
  CHECK(json["good"] == false);
  CHECK(json["calls"][0]["verdict"] == "agrees");
  CHECK(json["calls"][1]["verdict"] == "differs");
  CHECK(json["calls"][1]["culprit"] == "scale");
  CHECK(json["calls"][1]["error"] > json["calls"][1]["tolerance"]);
  CHECK(run_attnscope({"verify", dump, "--layers", "0"}).exit_code == 0);
  const ProgramResult few =
      run_attnscope({"verify", dump, "--heads", "1,3", "--branch", "cond", "--json"});
  CHECK(Json::parse(few.out)["calls"][1]["heads"] == 2);
  CHECK(Json::parse(few.out)["calls"][1]["worst"]["batch"] == 1);
  CHECK(run_attnscope({"verify", dump, "--scale", "0.125"}).exit_code == 0);
}

TEST_CASE("opening a wrong capture warns, also when quiet, and goes on") {
  const TemporaryFolder folder;
  const std::string dump =
      write_capture(folder, [](RecordedCall& call) { call.mask_fact = "causal"; });
  for (const char* command : {"info", "stats"}) {
    const ProgramResult r = run_attnscope({command, dump, "--quiet"});
    CHECK(r.exit_code == 0);
    CHECK(contains(r.err, "attnscope: warning: " + dump + ": layer 7, head "));
    CHECK(contains(r.err, "do not agree with Q and K"));
  }
  // Another mask or score is a question, not a correction.
  CHECK(!contains(run_attnscope({"info", dump, "--mask", "window:3"}).err, "warning"));
}

TEST_CASE("a layout that does not even open is found") {
  const TemporaryFolder folder;
  const std::string dump = write_capture(folder, [](RecordedCall&) {});
  RecordedCall call(5);
  call.attend();
  CallFile file = call.file();
  file.fact("layout", "bshd");
  file.write(folder.path() / "call.safetensors");
  const std::string path = (folder.path() / "call.safetensors").string();
  CHECK(run_attnscope({"info", path}).exit_code == 1);
  const ProgramResult r = run_attnscope({"verify", path});
  CHECK(r.exit_code == 3);
  CHECK(contains(r.out, "layout: as recorded it does not open"));
  CHECK(contains(r.out, "--layout bhsd"));
}

TEST_CASE("what verify cannot check it says") {
  const TemporaryFolder folder;
  CallFile().pair({1, 2, 6, 8}, {1, 2, 6, 8}).write(folder.path() / "call.safetensors");
  const std::string path = (folder.path() / "call.safetensors").string();
  const ProgramResult r = run_attnscope({"verify", path});
  CHECK(r.exit_code == 0);
  CHECK(r.out.rfind("nothing was checked: nothing recorded to check against: 1 of 1 calls: neither "
                    "out",
                    0) == 0);
  const ProgramResult as_json = run_attnscope({"verify", path, "--json"});
  CHECK(as_json.exit_code == 0);
  const auto json = Json::parse(as_json.out);
  CHECK(json["good"].is_null());
  CHECK(json["checked"] == 0);
  CHECK(run_attnscope({"verify", path, "--strict"}).exit_code == 3);
  CHECK(Json::parse(run_attnscope({"verify", path, "--strict", "--json"}).out) == json);
  CHECK(run_attnscope({"verify", path, "--score", "sigmoid"}).exit_code == 2);
  CHECK(run_attnscope({"verify", (folder.path() / "missing").string()}).exit_code == 1);
  CHECK(run_attnscope({"verify"}).exit_code == 2);
  const std::string maps = (folder.path() / "maps.h5").string();
  REQUIRE(run_attnscope({"export", path, "-o", maps}).exit_code == 0);
  CHECK(run_attnscope({"verify", maps}).exit_code == 0);
  CHECK(run_attnscope({"verify", maps, "--strict"}).exit_code == 0);
  const ProgramResult option = run_attnscope({"verify", maps, "--layers", "0"});
  CHECK(option.exit_code == 2);
  CHECK(contains(option.err, "--layers: " + maps + " is an export"));
}

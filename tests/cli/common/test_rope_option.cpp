#include <cmath>
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

/// A call whose q and k were recorded before rotary embedding with bands of 16, 24, 24 channels.
RecordedCall before_rope(const std::function<double(int64_t, int64_t, int64_t, int64_t)>& angle) {
  RecordedCall call(21);
  const auto q = call.q, k = call.k;
  for (std::vector<float>* tensor : {&call.q, &call.k}) {
    const int64_t heads = static_cast<int64_t>(tensor->size()) /
                          (RecordedCall::kBatch * RecordedCall::kTokens * RecordedCall::kWidth);
    for (int64_t i = 0; i < static_cast<int64_t>(tensor->size()) / RecordedCall::kWidth; ++i) {
      const int64_t token = i % RecordedCall::kTokens - RecordedCall::kText;
      const int64_t head = i / RecordedCall::kTokens % heads;
      if (token < 0) continue;
      float* row = tensor->data() + i * RecordedCall::kWidth;
      for (int64_t pair = 0; pair < 32; ++pair) {
        double sum = 0;
        const int64_t place[] = {token / 12, token / 4 % 3, token % 4};
        for (int64_t axis = 0; axis < 3; ++axis) sum += angle(axis, place[axis], head, pair);
        const double x = row[2 * pair], y = row[2 * pair + 1];
        row[2 * pair] = static_cast<float>(x * std::cos(sum) - y * std::sin(sum));
        row[2 * pair + 1] = static_cast<float>(x * std::sin(sum) + y * std::cos(sum));
      }
    }
  }
  call.attend();
  call.q = q;
  call.k = k;
  return call;
}

double cogvideox_angle(int64_t axis, int64_t position, int64_t, int64_t pair) {
  const int64_t first[] = {0, 8, 20, 32};
  if (pair < first[axis] || pair >= first[axis + 1]) return 0;
  const double width = axis == 0 ? 16 : 24;
  return static_cast<double>(position) *
         std::pow(10000.0, -2.0 * static_cast<double>(pair - first[axis]) / width);
}

}  // namespace

TEST_CASE("q and k before RoPE become what the model had with --rope") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "call.safetensors").string();
  before_rope(cogvideox_angle).file().write(path);
  const ProgramResult plain = run_attnscope({"verify", path});
  CHECK(plain.exit_code == 3);
  CHECK(contains(plain.out, "rope: with RoPE of cogvideox"));
  CHECK(contains(plain.out, "--rope cogvideox"));
  CHECK(run_attnscope({"verify", path, "--rope", "cogvideox"}).exit_code == 0);
  CHECK(run_attnscope({"verify", path, "--rope", "wan"}).exit_code == 3);
  // A capture that convert writes has RoPE applied, and says so.
  const std::string turned = (folder.path() / "turned.safetensors").string();
  REQUIRE(run_attnscope({"convert", path, "--rope", "cogvideox", "-o", turned}).exit_code == 0);
  CHECK(run_attnscope({"verify", turned}).exit_code == 0);
  const auto info = Json::parse(run_attnscope({"info", turned, "--json"}).out);
  CHECK(info["calls"][0]["facts"]["q_state"]["value"] == "qk_norm,rope");
  const ProgramResult twice = run_attnscope({"info", turned, "--rope", "cogvideox"});
  CHECK(twice.exit_code == 2);
  CHECK(contains(twice.err, "was recorded after it"));
}

TEST_CASE("q and k that were taken at the call itself are not turned without a word") {
  const TemporaryFolder folder;
  for (const std::string state : {"as given to attention", "final"}) {
    const std::string path = (folder.path() / (state + ".safetensors")).string();
    RecordedCall call = before_rope(cogvideox_angle);
    call.q_state = state;
    call.file().write(path);
    const ProgramResult turned =
        run_attnscope({"query", path, "--query", "0,1,1", "--rope", "cogvideox", "-o",
                       (folder.path() / (state + ".csv")).string()});
    CHECK(turned.exit_code == 0);
    CHECK(contains(turned.err, "recorded as \"" + state + "\""));
    CHECK_FALSE(contains(run_attnscope({"info", path}).err, "recorded as"));
  }
}

TEST_CASE("RoPE of mochi takes the model's frequencies") {
  const TemporaryFolder folder;
  // One set for two heads; of a model with as many key heads the sets would be one a head.
  std::vector<float> learnt;
  for (int i = 0; i < 3 * 4 * 32; ++i) learnt.push_back(static_cast<float>(i % 32) * 0.01f - 0.1f);
  const double scale = std::sqrt(192.0 * 192.0 / 12);
  RecordedCall call = before_rope([&](int64_t axis, int64_t position, int64_t, int64_t pair) {
    const double place = axis == 0   ? static_cast<double>(position)
                         : axis == 1 ? scale * (static_cast<double>(position) - 1)
                                     : scale * (static_cast<double>(position) - 1.5);
    return place * double{learnt[static_cast<size_t>(pair)]};
  });
  const std::string path = (folder.path() / "call.safetensors").string();
  call.file().write(path);
  const std::string file = (folder.path() / "frequencies.safetensors").string();
  CallFile().tensor("pos_frequencies", "F32", {3, 4, 32}, raw(learnt)).write(file);
  CHECK(run_attnscope({"verify", path}).exit_code == 3);
  const ProgramResult r = run_attnscope({"verify", path, "--rope", "mochi:" + file});
  INFO(r.out + r.err);
  CHECK(r.exit_code == 0);
  const ProgramResult missing = run_attnscope({"info", path, "--rope", "mochi"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "mochi:FILE"));
}

TEST_CASE("RoPE of minimax-h3 takes the positions that a call has, and says where it has none") {
  const TemporaryFolder folder;
  // Words along t; frames 5/3 apart, rows and columns centred.
  std::vector<float> positions;
  for (int64_t token = 0; token < RecordedCall::kTokens; ++token) {
    const auto cell = static_cast<float>(token - RecordedCall::kText);
    const bool text = cell < 0;
    positions.push_back(text ? static_cast<float>(token) : 4 + 5 * std::floor(cell / 12) / 3);
    positions.push_back(text ? 0 : 1.5F * std::fmod(std::floor(cell / 4), 3.0F) - 0.7F);
    positions.push_back(text ? 0 : 1.5F * std::fmod(cell, 4.0F) - 1.9F);
  }
  RecordedCall call(21);
  const auto q = call.q, k = call.k;
  call.change_rows([&](int64_t token, float* row) {
    for (size_t pair = 0; pair < 24; ++pair) {
      const double place = positions[static_cast<size_t>(3 * token) + pair / 8];
      const double angle = place * std::pow(10000.0, -static_cast<double>(pair % 8) / 8);
      const double a = row[pair], b = row[pair + 24];
      row[pair] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
      row[pair + 24] = static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
    }
  });
  call.attend();
  call.q = q;
  call.k = k;
  const std::string path = (folder.path() / "call.safetensors").string();
  CallFile file = call.file();
  file.tensor("position_ids", "F32", {RecordedCall::kTokens, 3}, raw(positions)).write(path);
  CHECK(run_attnscope({"verify", path}).exit_code == 3);
  const ProgramResult told = run_attnscope({"verify", path, "--rope", "minimax-h3"});
  INFO(told.out + told.err);
  CHECK(told.exit_code == 0);
  CHECK_FALSE(contains(told.err, "position_ids"));
  // They travel with a copy of one batch item, which is turned from it as well as from the whole.
  const std::string half = (folder.path() / "half.safetensors").string();
  REQUIRE(run_attnscope({"convert", path, "--branch", "cond", "-o", half}).exit_code == 0);
  CHECK(run_attnscope({"verify", half, "--rope", "minimax-h3"}).exit_code == 0);
  CHECK_FALSE(contains(run_attnscope({"info", half}).out, "position_ids"));
  // Those of other tokens are not understood, and words have no place then.
  const std::string other = (folder.path() / "other.safetensors").string();
  file = call.file();
  file.tensor("position_ids", "F32", {2, 3}, raw(std::vector<float>(6))).write(other);
  CHECK(contains(run_attnscope({"info", other}).out, "position_ids"));
  const ProgramResult untold = run_attnscope({"verify", other, "--rope", "minimax-h3"});
  CHECK(untold.exit_code == 2);
  CHECK(contains(untold.err, "text"));
  const std::string bare = (folder.path() / "bare.safetensors").string();
  CallFile().pair({1, 2, 24, 64}, {1, 2, 24, 64}).fact("grid", "2x3x4").write(bare);
  const ProgramResult counted =
      run_attnscope({"query", bare, "--query", "0,1,1", "--rope", "minimax-h3"});
  CHECK(counted.exit_code == 0);
  CHECK(contains(counted.err, "counts t, y and x of the cells from 0 on"));
  CHECK(contains(counted.err, "not the map of a real dump"));
}

TEST_CASE("info of bare tensors ends with the whole command line") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "it's q.safetensors").string();
  CallFile().tensor("a", "F32", {1, 2, 28, 64}).tensor("b", "F32", {1, 2, 28, 64}).write(path);
  const ProgramResult r =
      run_attnscope({"info", "--q", path + ":a", "--k", path + ":b", "--grid", "2x3x4", "--text",
                     "4@start", "--rope", "cogvideox", "--quiet"});
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  const size_t last = r.out.rfind("\nto open it as told here: attnscope view --q '");
  REQUIRE(last != std::string::npos);
  const std::string line = r.out.substr(last + 1);
  CHECK(contains(line, "it'\\''s q.safetensors:a' --k "));
  CHECK(contains(line, " --layout bhsd --grid 2x3x4 --text 4@start --scale 0.125 --mask none "));
  CHECK(contains(line, " --rope cogvideox\n"));
}

TEST_CASE("what --rope cannot do it says") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "call.safetensors").string();
  CallFile().pair({1, 2, 24, 20}, {1, 2, 24, 20}).fact("grid", "2x3x4").write(path);
  const auto refused = [&](const std::string& rope, const std::string& part) {
    const ProgramResult r = run_attnscope({"info", path, "--rope", rope});
    CHECK(r.exit_code == 2);
    INFO(r.err);
    CHECK(contains(r.err, part));
  };
  refused("hunyan", "did you mean hunyuan?");
  refused("hunyuan", "does not suit");
  refused("hunyuan:3", "takes nothing more");
  refused("ltx:none", "ltx:HEADS");
  refused("ltx:1", "head 1 of 1");
  refused("ltx:heads=1", "head 1 of 1");
  refused("ltx2:fps=0", "above 0");
  refused("ltx2:fps=24,fps=25", "fps is given twice");
  refused("ltx2:24", "ltx2 takes heads=N, fps=N (got 24)");
  refused("cosmos", "rope_scale");
  refused("cosmos:fps=16", "rope_scale");
  refused("cosmos:scale=1x3", "expected scale=TxYxX");
  refused("cosmos:scale=1x3xthree", "got three");
  refused("cosmos:scale=1x3x3,", "(got )");
  refused("llama:base=-1", "above 0");
  refused("llama:theta=1", "llama takes base=N");
  refused("flux2", "cannot be cut into its bands");
  // And info warns where nobody recorded what was applied.
  const ProgramResult warned = run_attnscope({"info", path});
  CHECK(contains(warned.err, "note: 1 of 1 calls do not record what was applied"));
}

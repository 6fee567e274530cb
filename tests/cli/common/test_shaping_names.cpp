// Tensors and facts that shape a map and are not understood: every command that computes refuses
// them, and --ignore makes the map without them, which is told.
#include <nlohmann/json.hpp>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/hdf5_readback.h"
#include "tests/support/program_heads.h"
#include "tests/support/reference_call.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string write_call(const TemporaryFolder& folder, const std::string& name,
                       const std::string& tensor) {
  std::string path = folder / name;
  ReferenceCall call({1, 2, 2, 12, 12, 8}, 3);
  call.version(0).fact("grid", "1x3x4").fact("layout", "bhsd");
  if (!tensor.empty()) call.tensor(tensor, "F32", {2}, std::string(8, '\1'));
  call.write(path);
  return path;
}

std::vector<std::vector<std::string>> commands(const TemporaryFolder& folder,
                                               const std::string& path) {
  return {{"export", path, "-o", folder / "o.h5", "--dtype", "f32"},
          {"stats", path},
          {"query", path, "--index", "3"},
          {"mask", path, "--mask", "window:2"},
          {"render", path, "--picture", "mosaic", "-o", folder / "o.png"},
          {"plot", path, "--what", "entropy", "-o", folder / "plot.png"},
          {"rollout", path, "--index", "3"},
          {"diff", path, "--heads", "0", "--b-head", "1"},
          {"verify", path},
          {"convert", path, "-o", folder / "o"}};
}

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("every command refuses what shapes a map and is not understood, and --ignore says so") {
  const TemporaryFolder folder;
  const std::string path = write_call(folder, "head_mask.safetensors", "head_mask");
  for (const auto& command : commands(folder, path)) {
    INFO(command.front());
    const ProgramResult refused = run_attnscope(with(command, {"--quiet"}));
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err,
                   "head_mask: weights of heads are multiplied by it, which is not "
                   "supported: --ignore head_mask makes the map without it"));
    const ProgramResult ignored = run_well(with(command, {"--ignore", "head_mask"}));
    CHECK(contains(ignored.err, "note: left out as told: head_mask"));
    CHECK_FALSE(contains(ignored.err, "not understood"));
  }
  const Json stats = Json::parse(run_well({"stats", path, "--ignore", "head_mask", "--json"}).out);
  CHECK(stats.at("options").at("ignored") == Json({"head_mask"}));
  const TemporaryFolder others;
  for (const auto& command : commands(others, path)) {
    // Those two have it in their options.
    if (command.front() == "export" || command.front() == "stats") continue;
    INFO(command.front());
    const Json json = Json::parse(run_well(with(command, {"--ignore", "head_mask", "--json"})).out);
    CHECK(json.at("ignored") == Json({"head_mask"}));
  }
  // `info` computes nothing: it tells.
  const ProgramResult info = run_well({"info", path, "--quiet"});
  CHECK(contains(info.err, "warning: no map is computed of "));
  CHECK(contains(info.out, "not understood: metadata key head_mask in head_mask.safetensors"));
  const Json told = Json::parse(run_well({"info", path, "--json", "--as", "head_mask=none"}).out);
  CHECK(told.at("ignored") == Json({"head_mask"}));
  // The copy says that it has them no longer, and is no reason for an error.
  const std::string copy = run_well({"info", folder / "o", "--json"}).out;
  CHECK(Json::parse(copy).at("calls").front().at("unknown_keys").empty());
}

TEST_CASE("every command tells in one line what it did not understand") {
  const TemporaryFolder folder;
  const std::string path = write_call(folder, "freqs.safetensors", "freqs");
  for (const auto& command : commands(folder, path)) {
    INFO(command.front());
    const ProgramResult run = run_well(command);
    CHECK(contains(run.err, "note: not understood: 1 name: tensor freqs\n"));
    std::vector<std::string> again = command;
    if (command.front() != "stats" && command.front() != "query" && command.front() != "mask" &&
        command.front() != "diff" && command.front() != "verify" && command.front() != "rollout") {
      again.emplace_back("--force");
    }
    CHECK_FALSE(contains(run_well(with(again, {"--ignore", "freqs"})).err, "not understood"));
  }
  const ProgramResult nothing = run_well({"stats", path, "--ignore", "froqs", "--quiet"});
  CHECK(contains(nothing.err, "warning: --ignore froqs: " + path + " has nothing of this name"));
}

TEST_CASE("info says at which token causal begins where queries and keys differ in number") {
  const TemporaryFolder folder;
  const auto info_of = [&](int64_t queries, int64_t keys) {
    const std::string path = folder / "causal.safetensors";
    ReferenceCall call({1, 2, 2, queries, keys, 8}, 3);
    call.fact("mask", "causal").write(path);
    return run_well({"info", path}).out;
  };
  CHECK(contains(info_of(2, 5),
                 "  mask       causal: counted from the first token of both, as PyTorch's "
                 "is_causal: query 0 sees key 0; counted from the last, as flash-attention does, "
                 "it would see keys 0 to 3\n"));
  CHECK(contains(info_of(5, 2), "it would see none\n"));
  CHECK(contains(info_of(5, 5), "  mask       causal\n"));
}

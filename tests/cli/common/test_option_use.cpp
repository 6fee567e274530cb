#include <algorithm>

#include "tests/support/attention_capture.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope::test;

namespace {

struct UselessWords {
  std::vector<std::string> arguments;
  std::string complaint;
};

/// Each is refused in one line, and nothing is written.
void check_refused(const TemporaryFolder& folder, const std::vector<UselessWords>& cases) {
  const auto files = [&] {
    const std::filesystem::recursive_directory_iterator all(folder.path());
    return std::distance(begin(all), end(all));
  };
  const auto before = files();
  for (const UselessWords& each : cases) {
    const auto result = run_attnscope(each.arguments);
    INFO(each.complaint << "\n" << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("attnscope: " + each.complaint) == 0);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
  }
  CHECK(files() == before);
}

void write_call(const std::string& path) {
  AttentionCapture(31, 53).file().fact("grid", "2x4x6").fact("text", "5@start").write(path);
}

}  // namespace

TEST_CASE("options that nothing is done with are refused") {
  const TemporaryFolder folder;
  const std::string call = folder / "call.safetensors", maps = folder / "maps.h5";
  write_call(call);
  REQUIRE(run_attnscope({"export", call, "-o", maps, "--quiet"}).exit_code == 0);
  const std::string part = folder / "part.json", volume = folder / "volume.h5";
  const std::string cut = folder / "cut";
  REQUIRE(
      run_attnscope({"mask", call, "--mask", "spatial", "--shard", "0/1", "-o", part, "--quiet"})
          .exit_code == 0);
  REQUIRE(
      run_attnscope({"query", call, "--query", "1,2,3", "--shard", "0/1", "-o", volume, "--quiet"})
          .exit_code == 0);
  REQUIRE(run_attnscope({"convert", call, "--shard", "0/1", "-o", cut, "--quiet"}).exit_code == 0);
  const std::string told = maps + " is an export, and all of it is told";
  const std::string checked = maps + " is an export, and all of it is checked";
  check_refused(
      folder,
      {{{"stats", call, "--force"}, "--force belongs to -o FILE"},
       {{"query", call, "--query", "1,2,3", "--force"}, "--force belongs to -o FILE"},
       {{"rollout", call, "--query", "1,2,3", "--force"}, "--force belongs to -o FILE"},
       {{"mask", call, "--mask", "spatial", "--force"}, "--force belongs to -o FILE"},
       {{"diff", call, call, "--force"}, "--force belongs to -o FILE"},
       {{"stats", call, "--resume"}, "--resume belongs to -o FILE"},
       {{"mask", call, "--mask", "spatial", "--resume"}, "--resume belongs to -o FILE"},
       {{"export", call, "-o", folder / "x.h5", "--verify-all"},
        "--verify-all belongs to --resume"},
       {{"stats", call, "--exact", "--sample", "16"}, "--exact: counts keys on all rows"},
       {{"query", call, "--query", "1,2,3", "-o", folder / "x.npy", "--top", "3"},
        "--top: is of the summary, which -o FILE does not print"},
       {{"rollout", call, "--query", "1,2,3", "-o", folder / "x.npy", "--top", "3"},
        "--top: is of the summary"},
       {{"stats", call, "--sort", "entropy", "-o", folder / "x.h5"},
        "--sort: an .h5 has its heads in the capture's order"},
       {{"diff", call, "--heads", "0", "--b-head", "1", "--top", "3", "-o", folder / "x.csv"},
        "--top: rows are listed in a .json"},
       {{"merge", volume, "-o", folder / "x.h5", "--no-sync"}, "--no-sync is for maps, stats"},
       {{"merge", part, "-o", folder / "x.json", "--resume"}, "--resume is for maps"},
       {{"merge", cut, "-o", folder / "whole", "--no-sync"}, "--no-sync is for maps, stats"},
       {{"merge", cut, "-o", folder / "x.h5"},
        "-o " + (folder / "x.h5") + ": a capture is a folder"},
       {{"info", maps, "--layers", "0"}, "--layers: " + told},
       {{"info", maps, "--scale", "7"}, "--scale: " + told},
       {{"info", maps, "--score", "softmax"}, "--score: " + told},
       {{"info", maps, "--kind", "self"}, "--kind: " + told},
       {{"info", maps, "--scan"}, "--scan: " + told},
       {{"info", maps, "--no-scan"}, "--no-scan: " + told},
       {{"info", maps, "--links", "follow"}, "--links: " + told},
       {{"verify", maps, "--cu-seqlens", "0,53"}, "--cu-seqlens: " + checked},
       {{"verify", maps, "--heads", "0"}, "--heads: " + checked},
       {{"verify", maps, "--threads", "2"}, "--threads: " + checked}});
  // Command lines in which such options do have a use.
  CHECK(run_attnscope({"query", call, "--query", "1,2,3", "-o", folder / "x.npy", "--top", "3",
                       "--json", "--force"})
            .exit_code == 0);
  CHECK(run_attnscope({"mask", call, "--mask", "spatial", "--save", folder / "k.npy", "--force"})
            .exit_code == 0);
  CHECK(run_attnscope({"info", maps, "--json", "--quiet"}).exit_code == 0);
  CHECK(run_attnscope({"info", call, "--layers", "0", "--scan"}).exit_code == 0);
}

TEST_CASE("outputs whose names end as another format are refused") {
  const TemporaryFolder folder;
  const std::string call = folder / "call.safetensors";
  write_call(call);
  const std::vector<std::string> query{"--query", "1,2,3"};
  std::vector<UselessWords> cases;
  const auto refused = [&](const std::string& command, std::vector<std::string> more,
                           const std::string& name, const std::string& complaint) {
    std::vector<std::string> arguments{command};
    if (command != "synth") arguments.push_back(call);
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"-o", folder / name});
    cases.push_back({arguments, "-o " + (folder / name) + ": " + complaint});
  };
  for (const char* const name :
       {"m.npy", "m.png", "m.PNG", "m.json", "m.csv", "m.safetensors", "m.zip", "m.pt", "m.txt"}) {
    refused("export", {}, name, "an export is HDF5: end it in .h5");
  }
  for (const char* const name : {"x.zip", "x.h5", "x.npy", "x.npz", "x.pt", "x.json", "x.tar"}) {
    refused("convert", {}, name, "a capture is a folder, or one call's file, which ends in");
    refused("synth", {"--grid", "5x8x8"}, name, "a capture is a folder, or one call's file");
  }
  const std::string must = "the name must end in ";
  refused("stats", {}, "s.npy", must + ".json, .csv or .h5 (got \".npy\")");
  refused("query", query, "q.safetensors", must);
  refused("rollout", query, "r.jpg", must);
  refused("mask", {"--mask", "spatial"}, "m.h5", must + ".csv or .json (got \".h5\")");
  refused("diff", {call, "--b-head", "1"}, "d.npy", must + ".json, .csv or .h5 (got \".npy\")");
  refused("render", {"--picture", "mosaic"}, "p.h5", must);
  check_refused(folder, cases);
  // Names that say nothing of a format, and other names of this one.
  for (const char* const name : {"m", "m.d", "v1.2", "m.hdf5", "m.nc", "m.H5"}) {
    INFO(name);
    const auto result = run_attnscope({"export", call, "-o", folder / name, "--heads", "0"});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(read_file(folder / name).substr(1, 3) == "HDF");
  }
  for (const char* const name : {"c", "c.d", "run.1", "one.safetensors"}) {
    INFO(name);
    CHECK(run_attnscope({"convert", call, "-o", folder / name, "--quiet"}).exit_code == 0);
  }
}

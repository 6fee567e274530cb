// Numbers, masks, volumes and captures in parts: the whole is what one process writes.
#include <filesystem>
#include <fstream>

#include "tests/cli/merge/parts.h"
#include "tests/support/catch.h"

using namespace attnscope::test;

namespace {

namespace fs = std::filesystem;

Arguments command_of(const std::string& name, const Arguments& more) {
  Arguments arguments{name,     sample("moving-shapes"), "--layers", "0-1", "--heads", "0-1",
                      "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Writes the whole in one run to `out`.
void require_whole(const Arguments& command, const std::string& out) {
  Arguments arguments = command;
  arguments.insert(arguments.end(), {"-o", out});
  require_run(arguments);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Checks that parts in `part` form, merged to `whole` form, are byte for byte one run's file.
void check_parts(const Arguments& command, const std::string& part, const std::string& whole) {
  const TemporaryFolder folder;
  require_whole(command, folder / ("one" + whole));
  for (const int count : {1, 3, 7}) {
    INFO(command.front() << " as " << part << " to " << whole << " in " << count);
    const std::string name = "part" + std::to_string(count) + "-{shard}" + part;
    const auto parts = run_parts(command, folder / name, count);
    const std::string out = folder / ("whole" + std::to_string(count) + whole);
    const auto merged = merge(parts, out);
    INFO(merged.err);
    REQUIRE(merged.exit_code == 0);
    CHECK(read_file(out) == read_file(folder / ("one" + whole)));
  }
}

}  // namespace

TEST_CASE("numbers of heads in parts are those of one process") {
  const Arguments stats = command_of("stats", {"--sample", "32"});
  check_parts(stats, ".json", ".json");
  check_parts(stats, ".json", ".csv");
  const Arguments arrays =
      command_of("stats", {"--sample", "32", "--with", "frame_frame,lse_rows"});
  check_parts(arrays, ".h5", ".h5");
  check_parts(arrays, ".h5", ".json");
}

TEST_CASE("numbers are sorted when they are joined") {
  const TemporaryFolder folder;
  const Arguments stats = command_of("stats", {"--sample", "32"});
  Arguments sorted = stats;
  sorted.insert(sorted.end(), {"--sort", "entropy"});
  require_whole(sorted, folder / "one.csv");
  const auto parts = run_parts(stats, folder / "part-{shard}.json", 2);
  REQUIRE(merge(parts, folder / "whole.csv", {"--sort", "entropy"}).exit_code == 0);
  CHECK(read_file(folder / "whole.csv") == read_file(folder / "one.csv"));
  sorted.insert(sorted.end(), {"-o", folder / "part-{shard}.json", "--shard", "0/2"});
  CHECK(run_attnscope(sorted).exit_code == 2);
}

TEST_CASE("what masks keep in parts is that of one process") {
  const Arguments mask =
      command_of("mask", {"--mask", "spatial:frames=1", "--mask", "topk:keep=0.2,block=32"});
  check_parts(mask, ".json", ".json");
  check_parts(mask, ".json", ".csv");
}

TEST_CASE("volumes in parts are those of one process") {
  const Arguments query = command_of("query", {"--query", "2,3,4"});
  check_parts(query, ".h5", ".h5");
  check_parts(query, ".h5", ".npy");
  check_parts(query, ".h5", ".csv");
  check_parts(command_of("query", {"--text-token", "0", "--reverse", "--cache", "none"}), ".h5",
              ".h5");
}

TEST_CASE("a capture that is converted in parts is the folder of one run") {
  const TemporaryFolder folder;
  const Arguments convert = command_of("convert", {});
  require_whole(convert, folder / "one");
  for (const int count : {1, 2, 3}) {
    const std::string name = "part" + std::to_string(count) + "-{shard}";
    const auto parts = run_parts(convert, folder / name, count);
    for (const bool copy : {false, true}) {
      const std::string out = folder / ("whole" + std::to_string(count) + (copy ? "c" : ""));
      const auto merged = merge(parts, out, copy ? Arguments{"--copy"} : Arguments{});
      INFO(merged.err);
      REQUIRE(merged.exit_code == 0);
      int files = 0;
      for (const auto& entry : fs::directory_iterator(folder / "one")) {
        INFO(entry.path());
        CHECK(read_file(fs::path(out) / entry.path().filename()) == read_file(entry.path()));
        ++files;
      }
      CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == files);
    }
  }
  const auto info = require_run({"info", folder / "part2-1-of-2"});
  CHECK(contains(info.err + info.out, "is part 1/2 of a capture"));
}

TEST_CASE("parts that cannot be what they are asked for are refused with the reason") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const Arguments& more,
                           const std::string& reason) {
    Arguments arguments = command_of(name, more);
    arguments.insert(arguments.end(), {"--shard", "0/2"});
    const auto result = run_attnscope(arguments);
    INFO(name << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, "--shard 0/2: "));
    CHECK(contains(result.err, reason));
  };
  refused("stats", {"-o", folder / "heads-{shard}.csv"}, "a .csv does not say which part it is");
  refused("mask", {"--mask", "causal", "-o", folder / "mask-{shard}.csv"}, "a .csv does not say");
  refused("mask", {"--mask", "causal", "--save", folder / "kept.npy"}, "--save");
  refused("query", {"--query", "2,3,4", "-o", folder / "volume-{shard}.npy"}, "only an .h5 says");
  refused("query", {"--query", "2,3,4", "--mean", "heads"}, "--mean");
  refused("convert", {"-o", folder / "call-{shard}.safetensors"}, "a part is a folder");
  refused("rollout", {"--query", "2,3,4"}, "a rollout is not cut");
  refused("render", {"--picture", "mosaic", "-o", folder / "map.png"}, "a picture is not cut");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("tables of parts that are missing, foreign or damaged are not made") {
  const TemporaryFolder folder;
  const Arguments stats = command_of("stats", {"--sample", "32"});
  const auto parts = run_parts(stats, folder / "part-{shard}.json", 2);
  auto result = merge({parts[0]}, folder / "whole.csv");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "part 1/2 is missing"));
  const auto others =
      run_parts(command_of("stats", {"--sample", "16"}), folder / "other-{shard}.json", 2);
  result = merge({parts[0], others[1]}, folder / "whole.csv");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "of another plan"));
  const std::string sound = read_file(parts[1]);
  std::ofstream(parts[1], std::ios::binary) << sound.substr(0, sound.size() / 2);
  result = merge(parts, folder / "whole.csv");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "part-1-of-2.json"));
  require_whole(stats, folder / "one.json");
  result = merge({parts[0], folder / "one.json"}, folder / "whole.csv");
  CHECK(result.exit_code == 1);
  CHECK_FALSE(fs::exists(folder / "whole.csv"));
}

// `-o -`: a table on standard output, the same to the byte as its .csv.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Arguments = std::vector<std::string>;

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string text_of(const Arguments& arguments) {
  std::string text;
  for (const std::string& word : arguments) text += word + " ";
  return text;
}

/// Parts of numbers in the folder: NAME-0-of-2 and NAME-1-of-2 of each command.
void make_parts(const TemporaryFolder& folder) {
  const Arguments selection{sample("moving-shapes"), "--layers", "0,1", "--heads", "0"};
  const std::vector<std::pair<Arguments, std::string>> commands{
      {{"stats"}, "stats-{shard}.json"},
      {{"mask", "--mask", "temporal"}, "mask-{shard}.json"},
      {{"query", "--query", "1,2,3"}, "query-{shard}.h5"},
      {{"export"}, "maps-{shard}.h5"}};
  for (const auto& [command, out] : commands) {
    for (const std::string shard : {"0/2", "1/2"}) {
      Arguments words = with(command, {"-o", folder / out, "--shard", shard, "--quiet"});
      words.insert(words.begin() + 1, selection.begin(), selection.end());
      REQUIRE(run_attnscope(words).exit_code == 0);
    }
  }
}

Arguments merge_of(const TemporaryFolder& folder, const std::string& name,
                   const std::string& ending) {
  return {"merge", folder / (name + "-0-of-2" + ending), folder / (name + "-1-of-2" + ending)};
}

/// Commands that print a table, without -o.
std::vector<Arguments> printers(const TemporaryFolder& folder) {
  const std::string capture = sample("moving-shapes");
  const Arguments one{capture, "--layers", "0", "--heads", "0"};
  const std::string table = folder / "table.json";
  REQUIRE(run_attnscope({"stats", capture, "--layers", "0", "-o", table}).exit_code == 0);
  const auto of_one = [&](const std::string& command, const Arguments& more) {
    return with(with({command}, one), more);
  };
  return {
      of_one("stats", {}),
      of_one("mask", {"--mask", "temporal"}),
      of_one("query", {"--query", "1,2,3"}),
      of_one("query", {"--query", "1,2,3", "--track"}),
      of_one("query", {"--query", "1,2,3", "--reverse", "--cache", "none"}),
      {"query", capture, "--query", "1,2,3", "--layers", "0", "--mean", "heads"},
      {"query", folder / "maps-0-of-2.h5", "--query", "1,2,3"},
      {"rollout", capture, "--query", "1,2,3"},
      of_one("diff", {"--b-head", "1"}),
      {"diff", table},
      {"diff", table, "--classes"},
      {"diff", table, table},
      merge_of(folder, "stats", ".json"),
      merge_of(folder, "mask", ".json"),
      merge_of(folder, "query", ".h5"),
  };
}

}  // namespace

TEST_CASE("a table on standard output is its .csv to the byte") {
  const TemporaryFolder folder;
  make_parts(folder);
  int number = 0;
  for (const Arguments& command : printers(folder)) {
    INFO(text_of(command));
    const std::string out = folder / ("table-" + std::to_string(number++) + ".csv");
    const ProgramResult written = run_attnscope(with(command, {"-o", out}));
    INFO(written.err);
    REQUIRE(written.exit_code == 0);
    const ProgramResult printed = run_attnscope(with(command, {"-o", "-"}));
    INFO(printed.err);
    REQUIRE(printed.exit_code == 0);
    CHECK(printed.out == read_file(out));
    CHECK_FALSE(printed.out.empty());
    CHECK_FALSE(std::filesystem::exists("-"));
  }
}

TEST_CASE("a table on standard output is JSON with --json") {
  const TemporaryFolder folder;
  make_parts(folder);
  for (const Arguments& command : printers(folder)) {
    INFO(text_of(command));
    const ProgramResult printed = run_attnscope(with(command, {"-o", "-", "--json"}));
    INFO(printed.err);
    const bool is_merge = command.front() == "merge";
    if (is_merge && command[1].ends_with(".h5")) {
      CHECK(printed.exit_code == 2);
      CHECK(printed.err.find("is printed as CSV alone") != std::string::npos);
      continue;
    }
    REQUIRE(printed.exit_code == 0);
    const auto json = OrderedJson::parse(printed.out);
    CHECK(json["out"].is_null());
    if (is_merge) {
      const std::string out = folder / "whole.json";
      REQUIRE(run_attnscope(with(command, {"-o", out, "--force"})).exit_code == 0);
      const auto whole = OrderedJson::parse(read_file(out));
      for (const auto& [name, value] : whole.items()) CHECK(json[name] == value);
    } else {
      CHECK(printed.out == run_attnscope(with(command, {"--json"})).out);
    }
  }
}

TEST_CASE("what belongs to a file is refused of standard output") {
  const TemporaryFolder folder;
  make_parts(folder);
  const std::string capture = sample("moving-shapes");
  const Arguments query{"query", capture, "--query", "1,2,3"};
  const Arguments diff{"diff", capture, "--layers", "0", "--heads", "0", "--b-head", "1"};
  const std::vector<std::pair<Arguments, std::string>> cases{
      {with(query, {"--force"}), "--force: belongs to -o FILE, and - is standard output"},
      {with(query, {"--shard", "0/2"}), "--shard: belongs to -o FILE"},
      {with(query, {"--segment", "all"}), "--segment all: writes a file for each segment"},
      {with(diff, {"--force"}), "--force: belongs to -o FILE"},
      {with(diff, {"--top", "3"}), "--top: rows are listed in a .json, and not in CSV"},
      {with(diff, {"--product", "pooled"}), "-o -: --product pooled is no table"},
      {with(merge_of(folder, "stats", ".json"), {"--resume"}), "--resume: belongs to -o FILE"},
      {merge_of(folder, "maps", ".h5"), "-o -: an export is not for standard output"},
      {{"export", capture}, "-o -: an export is not for standard output"},
      {{"convert", capture}, "-o -: a capture is not for standard output"},
      {{"synth", "--grid", "4x4x4"}, "-o -: a capture is not for standard output"},
      {{"render", capture, "--picture", "mosaic"},
       "-o -: a .png, .svg or .pdf is not for standard output"},
  };
  for (const auto& [command, words] : cases) {
    INFO(text_of(command));
    const ProgramResult result = run_attnscope(with(command, {"-o", "-"}));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.find(words) != std::string::npos);
  }
}

TEST_CASE("a dry run of a merge to standard output prints no table") {
  const TemporaryFolder folder;
  make_parts(folder);
  for (const auto& [name, ending] : {std::pair("stats", ".json"), std::pair("query", ".h5")}) {
    const ProgramResult planned =
        run_attnscope(with(merge_of(folder, name, ending), {"-o", "-", "--dry-run"}));
    INFO(planned.err);
    CHECK(planned.exit_code == 0);
    CHECK(planned.out == std::string(name) + " of 2 parts\n");
  }
}

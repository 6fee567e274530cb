// --dry-run prints a plan with the same fields for every command that streams maps.
#include <nlohmann/json.hpp>
#include <vector>

#include "io/files/json_types.h"
#include "tests/support/catch.h"
#include "tests/support/helpers.h"
#include "tests/support/program.h"
#include "tests/support/project_paths.h"
#include "tests/support/temporary_folder.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

/// Every command that prints a plan, without --dry-run, and what its plan has besides.
struct Case {
  std::vector<std::string> arguments;
  std::string command;
  std::vector<std::string> fields;
};

std::vector<Case> cases(const std::string& sample, const std::string& out) {
  const std::vector<std::string> tiles{"panel_rows", "one_product", "bound_heads", "tiles"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), tiles.begin(), tiles.end());
    return more;
  };
  return {
      {{"export", sample, "-o", out},
       "export",
       with({"payload_bytes", "file_bytes", "at_most", "free_bytes"})},
      {{"export", sample, "-o", out, "--block", "64"},
       "export",
       {"payload_bytes", "free_bytes", "rows"}},
      {{"stats", sample}, "stats", {"rows"}},
      {{"query", sample, "--query", "3,8,7"}, "query", with({"payload_bytes"})},
      {{"query", sample, "--query", "3,8,7", "--reverse", "--cache", "none"},
       "query",
       with({"payload_bytes"})},
      {{"mask", sample, "--mask", "temporal"}, "mask", with({"masks"})},
      {{"rollout", sample, "--query", "3,8,7"}, "rollout", {"layers"}},
      {{"render", sample, "--picture", "mosaic", "-o", out + ".png"}, "render", {"rows"}},
      {{"plot", sample, "--what", "entropy", "-o", out + ".png"}, "plot", {"rows"}},
  };
}

}  // namespace

TEST_CASE("every command's plan has the same fields") {
  const TemporaryFolder folder;
  const std::string sample = project_folder() + "/samples/moving-shapes";
  for (const Case& c : cases(sample, folder / "out.h5")) {
    std::vector<std::string> arguments = c.arguments;
    arguments.insert(arguments.end(), {"--dry-run", "--json"});
    const ProgramResult result = run_attnscope(arguments);
    INFO(c.command << "\n" << result.out << result.err);
    REQUIRE(result.exit_code == 0);
    const auto plan = Json::parse(result.out);
    CHECK(plan["format"] == "attnscope-plan/1");
    CHECK(plan["command"] == c.command);
    CHECK(plan["heads"] == 16);
    CHECK(plan["expected_seconds"] > 0);
    CHECK(plan["entries"] > 0);
    CHECK(plan["entries"].is_number_integer());
    CHECK(plan["flops"] == 2.0 * 64 * plan["entries"].get<double>());
    CHECK(plan["memory_bytes"] > 0);
    CHECK(plan["memory_bytes"] <= plan["budget_bytes"]);
    CHECK(plan["workers"] > 0);
    for (const std::string& field : c.fields) {
      INFO(field);
      CHECK(plan.contains(field));
    }
    CHECK(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("a plan for people has a line for each of its numbers") {
  const TemporaryFolder folder;
  const std::string sample = project_folder() + "/samples/moving-shapes";
  for (const Case& c : cases(sample, folder / "out.h5")) {
    std::vector<std::string> arguments = c.arguments;
    arguments.push_back("--dry-run");
    const ProgramResult result = run_attnscope(arguments);
    INFO(c.command << "\n" << result.out << result.err);
    REQUIRE(result.exit_code == 0);
    for (const char* line :
         {"\nentries        ", "\narithmetic     ", "\nexpected time  ", "\nmemory         "}) {
      CHECK(contains(result.out, line));
    }
  }
}

TEST_CASE("plans count what a mask leaves to compute") {
  const TemporaryFolder folder;
  const std::string sample = project_folder() + "/samples/moving-shapes";
  for (const Case& c : cases(sample, folder / "out.h5")) {
    const bool few_rows = c.command == "query" || c.command == "rollout";
    if (few_rows) continue;
    const auto flops = [&](const std::string& mask) {
      std::vector<std::string> arguments = c.arguments;
      const std::string option = c.command == "mask" ? "--own-mask" : "--mask";
      arguments.insert(arguments.end(), {option, mask, "--dry-run", "--json"});
      const ProgramResult result = run_attnscope(arguments);
      INFO(c.command << "\n" << result.out << result.err);
      REQUIRE(result.exit_code == 0);
      return Json::parse(result.out)["flops"].get<double>();
    };
    INFO(c.command);
    const double all = flops("none"), causal = flops("causal");
    CHECK(causal > all / 2);
    CHECK(causal < 0.85 * all);
  }
}

// --shard auto: what started the process, as its environment tells.
#include <filesystem>
#include <map>

#include "cli/run/shard_option.h"
#include "core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/program.h"

using namespace attnscope;
using namespace attnscope::test;

namespace {

using Variables = std::map<std::string, std::string>;

ShareSource source_of(const Variables& variables) {
  return choose_share_source(share_sources([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }));
}

std::string refusal(const Variables& variables) {
  try {
    source_of(variables);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Variables array_task(int id, int min, int step, int count) {
  return {{"SLURM_ARRAY_TASK_ID", std::to_string(id)},
          {"SLURM_ARRAY_TASK_MIN", std::to_string(min)},
          {"SLURM_ARRAY_TASK_STEP", std::to_string(step)},
          {"SLURM_ARRAY_TASK_COUNT", std::to_string(count)}};
}

}  // namespace

TEST_CASE("each scheduler's variables tell a share") {
  CHECK(source_of(array_task(9, 3, 2, 5)).share == PlanShare{3, 5});
  CHECK(source_of(array_task(0, 0, 1, 16)).share == PlanShare{0, 16});
  CHECK(source_of({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}}).share == PlanShare{2, 4});
  CHECK(source_of({{"RANK", "5"}, {"WORLD_SIZE", "8"}}).share == PlanShare{5, 8});
  CHECK(source_of({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}).share ==
        PlanShare{1, 3});
  CHECK(source_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).share == PlanShare{0, 2});
}

TEST_CASE("a count of 1 tells nothing, unless there is nothing else") {
  Variables both = array_task(4, 1, 1, 6);
  both["SLURM_PROCID"] = "0";
  both["SLURM_NTASKS"] = "1";
  CHECK(source_of(both).share == PlanShare{3, 6});
  CHECK(source_of(both).name == "SLURM_ARRAY_TASK_ID");
  CHECK(source_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).share == PlanShare{0, 1});
}

TEST_CASE("two that remain are refused by name") {
  Variables both = array_task(4, 1, 1, 6);
  both["RANK"] = "1";
  both["WORLD_SIZE"] = "2";
  CHECK(contains(refusal(both), "SLURM_ARRAY_TASK_ID (3/6) and RANK of WORLD_SIZE (1/2) both"));
  CHECK(contains(refusal({{"SLURM_PROCID", "0"},
                          {"SLURM_NTASKS", "8"},
                          {"OMPI_COMM_WORLD_RANK", "3"},
                          {"OMPI_COMM_WORLD_SIZE", "8"}}),
                 "both tell which part this is"));
  // srun sets PMI's as well; the same numbers are the same source, others are not.
  CHECK(source_of(
            {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "8"}})
            .share == PlanShare{3, 8});
  CHECK(contains(
      refusal({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"PMI_RANK", "3"}, {"PMI_SIZE", "8"}}),
      "both tell"));
}

TEST_CASE("what the environment cannot mean is refused") {
  CHECK(contains(refusal({}), "nothing tells which part"));
  CHECK(contains(refusal({{"RANK", "3"}}), "nothing tells which part"));
  CHECK(contains(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), "RANK is \"x\""));
  CHECK(contains(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "is 2 of 2"));
  // --array=1,5,9 has three tasks, MIN 1, STEP 1.
  CHECK(contains(refusal(array_task(9, 1, 1, 3)), "evenly spaced"));
  CHECK(contains(refusal(array_task(4, 1, 2, 3)), "evenly spaced"));
}

TEST_CASE("the place of {shard} in a name is the part's") {
  CHECK(name_of_share("part-{shard}.h5", PlanShare{3, 16}) == "part-03-of-16.h5");
  CHECK(name_of_share("{shard}/{shard}.h5", PlanShare{9, 10}) == "9-of-10/9-of-10.h5");
  CHECK(name_of_share("maps.h5", PlanShare{0, 1}) == "maps.h5");
  CHECK(name_of_share("", PlanShare{3, 16}).empty());
  CHECK(name_of_share("maps.h5", std::nullopt) == "maps.h5");
  CHECK_THROWS_AS(name_of_share("part-{shard}.h5", std::nullopt), Error);
}

TEST_CASE("a name that all parts would have is refused, with one that would do") {
  const auto refused = [](const std::string& out) {
    try {
      return name_of_share(out, PlanShare{3, 16});
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      return std::string(error.what());
    }
  };
  CHECK(refused("maps.h5") ==
        "-o maps.h5: all 16 parts would have this name; {shard} in it becomes 03-of-16 (-o "
        "maps-{shard}.h5)");
  CHECK(contains(refused("dump/"), "(-o dump-{shard})"));
  CHECK(contains(refused("a.d/maps"), "(-o a.d/maps-{shard})"));
  const TemporaryFolder folder;
  const std::string out = folder / "out", call = sample("moving-shapes");
  using Arguments = std::vector<std::string>;
  for (const Arguments& words :
       {Arguments{"export", call, "-o", out + ".h5"}, Arguments{"stats", call, "-o", out + ".json"},
        Arguments{"mask", call, "--mask", "causal", "-o", out + ".json"},
        Arguments{"query", call, "--query", "2,3,4", "-o", out + ".h5"},
        Arguments{"convert", call, "-o", out}}) {
    for (const std::string shard : {"0/2", "auto"}) {
      Arguments arguments = words;
      arguments.insert(arguments.end(), {"--shard", shard, "--force"});
      ProgramSettings settings;
      settings.environment = {"SLURM_ARRAY_TASK_ID=0", "SLURM_ARRAY_TASK_COUNT=2"};
      const auto result = run_attnscope(arguments, settings);
      INFO(words.front() << ": " << result.err);
      CHECK(result.exit_code == 2);
      CHECK(contains(result.err, "all 2 parts would have this name"));
      CHECK(std::filesystem::is_empty(folder.path()));
    }
  }
}

TEST_CASE("the program takes its share of the environment, and says of which") {
  ProgramSettings settings;
  settings.environment = {"RANK=1", "WORLD_SIZE=4", "SLURM_NTASKS=1", "SLURM_PROCID=0"};
  const auto run = run_attnscope(
      {"stats", sample("moving-shapes"), "--shard", "auto", "--dry-run", "--json"}, settings);
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "--shard auto: part 1/4, from RANK of WORLD_SIZE"));
  CHECK(contains(run.out, "\"heads\":4"));
  settings.environment = {"RANK=1", "WORLD_SIZE=4", "SLURM_NTASKS=2", "SLURM_PROCID=0"};
  CHECK(run_attnscope({"stats", sample("moving-shapes"), "--shard", "auto"}, settings).exit_code ==
        2);
  CHECK(run_attnscope({"stats", sample("moving-shapes"), "--shard", "4/4"}).exit_code == 2);
}

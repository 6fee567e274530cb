#include <map>
#include <string>

#include "cluster/launch.h"
#include "tests/support/catch.h"

using namespace attnscope;

namespace {

using Variables = std::map<std::string, std::string>;

std::string launch_of(const Variables& variables) {
  const auto launch = find_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  return launch ? launch->text() : "alone";
}

}  // namespace

TEST_CASE("a launcher tells which of how many a process is") {
  const Variables mpirun{{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}};
  CHECK(launch_of(mpirun) == "task 2 of 4 (OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE)");
  CHECK(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}) == "task 0 of 3 (PMI_RANK of PMI_SIZE)");
  const Variables step{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "8"}};
  CHECK(launch_of(step) == "task 5 of 8 (SLURM_PROCID of SLURM_STEP_NUM_TASKS)");
  // mpirun's processes have what srun told the daemon that started them.
  Variables both = mpirun;
  both.insert({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  CHECK(launch_of(both) == launch_of(mpirun));
  both["OMPI_COMM_WORLD_SIZE"] = "1";
  both["OMPI_COMM_WORLD_RANK"] = "0";
  CHECK(launch_of(both) == "alone");
  const Variables torchrun{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"TORCHELASTIC_RUN_ID", "none"}};
  CHECK(launch_of(torchrun) == "task 1 of 2 (RANK of WORLD_SIZE)");
}

TEST_CASE("what is no launcher's word leaves a process alone") {
  CHECK(launch_of({}) == "alone");
  // A job's script is one process, whatever tasks the job may have; tasks of arrays are jobs.
  CHECK(launch_of({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}) == "alone");
  CHECK(launch_of({{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "8"}}) == "alone");
  // Names that anybody uses.
  CHECK(launch_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}) == "alone");
  for (const char* count : {"", "x", "-4", "4x", "0", "2"}) {
    CHECK(launch_of({{"PMI_RANK", "2"}, {"PMI_SIZE", count}}) == "alone");
  }
}

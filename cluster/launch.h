#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace attnscope {

/// A variable of the environment by its name; null where it is not set.
using Environment = std::function<const char*(const char*)>;
/// That of this process.
const char* environment_variable(const char* name);

/// The rank and number of processes that a launcher tells the process that it started.
struct Launch {
  std::string source;  ///< the variables: "OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE"
  int64_t rank = 0;
  int64_t count = 1;

  /// "task 2 of 4 (OMPI_COMM_WORLD_RANK of OMPI_COMM_WORLD_SIZE)".
  std::string text() const;
};

/// The launcher that started this process as one of several, from its variables: mpirun's own
/// before those of srun, which mpirun's processes may have inherited, then torchrun's. Nothing
/// where the process is alone, and for a Slurm job's script, which is one process whatever tasks
/// the job may have. A Slurm array is no such launcher: its tasks are jobs.
std::optional<Launch> find_launch(const Environment& variable);

}  // namespace attnscope

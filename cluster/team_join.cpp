#include "cluster/team.h"

#include <array>
#include <csignal>

#include "modules/module_file.h"

namespace attnscope {
namespace {

constexpr size_t kReasonBytes = 1024;
constexpr ModuleName kMpiModule{"MPI", kMpiModuleFile, "ATTNSCOPE_MPI_MODULE", "MPI: "};

/// srun's tasks find each other by what its --mpi sets up; where that is nothing, MPI libraries end
/// the process with a page of text.
void require_meeting_place(const Launch& launch) {
  if (!launch.source.starts_with("SLURM_")) return;
  for (const char* name : {"PMIX_RANK", "PMIX_NAMESPACE", "PMI_FD"}) {
    if (environment_variable(name) != nullptr) return;
  }
  throw Error(ErrorCode::unavailable,
              "MPI: srun gave its tasks nothing to find each other by (srun --mpi=pmix; srun "
              "--mpi=list tells what there is)");
}

/// While it lives, threads that are started get none of the signals that end a run.
class QuietThreads {
 public:
  QuietThreads() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
  }
  ~QuietThreads() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  QuietThreads(const QuietThreads&) = delete;
  QuietThreads& operator=(const QuietThreads&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

std::unique_ptr<Team> join_mpi(const Launch& launch, const std::stop_source& stop) {
  const ModuleFile file(kMpiModule, module_path(kMpiModule), kMpiModuleAbiName, mpi_module_abi());
  const auto join = file.entry<decltype(&attnscope_mpi_join)>(kMpiModuleJoinName);
  require_meeting_place(launch);
  const QuietThreads quiet;
  std::array<char, kReasonBytes> reason{};
  std::unique_ptr<TeamLink> link(join(reason.data(), reason.size()));
  if (!link) throw Error(ErrorCode::unavailable, std::string("MPI: ") + reason.data());
  const int size = link->size();
  if (size != launch.count) {
    link->leave();
    throw Error(ErrorCode::unavailable,
                "MPI: this is " + launch.text() + ", but MPI knows of " + std::to_string(size) +
                    " (the MPI library of attnscope_mpi.so and the launcher do not belong "
                    "together; of srun, --mpi=pmix may be missing)");
  }
  return std::make_unique<Team>(std::move(link), stop);
}

}  // namespace attnscope

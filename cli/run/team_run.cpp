#include "cli/run/team_run.h"

#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "cli/common/command.h"
#include "cli/common/report_error.h"
#include "cli/common/system_memory.h"
#include "cli/run/run_steps.h"
#include "core/base/error_kind.h"
#include "core/base/failure_text.h"
#include "kernels/common/host_cores.h"

namespace attnscope {
namespace {

/// This host, and the processors that this process may run on: equal texts, the same processors.
std::string processors_text() {
  std::string text = this_host();
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return text;
  for (int i = 0; i < CPU_SETSIZE; ++i) text += CPU_ISSET(i, &set) ? '1' : '0';
  return text;
}

/// A failure of this process: as others are told of it, and how it is reported.
struct OwnFailure {
  Error error;
  std::string_view kind;
};

/// The failure on its way.
OwnFailure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error, failure_kind(error)};
  } catch (const std::bad_alloc& error) {
    return {{ErrorCode::resource, "out of memory: give a smaller --memory"}, failure_kind(error)};
  } catch (const std::exception& error) {
    return {{ErrorCode::file, failure_text(error)}, failure_kind(error)};
  }
}

/// The message that one process prints for the team; `begun`: its output was begun.
std::string spoken(const TeamFailure& failure, const Team& team, const TeamWork& work, bool begun) {
  if (failure.code == ErrorCode::interrupted) {
    return interrupted_error(work.left(failure.kept)).what();
  }
  std::string text = failure.message;
  if (!team.is_first() && failure.code != ErrorCode::usage) {
    text = fmt::format("process {} on {}: {}", team.rank(), this_host(), text);
  }
  if (failure.code == ErrorCode::value && begun) text += "; nothing was kept";
  return text;
}

/// `own`: of this process, where it failed itself.
int end_failed(Team& team, const TeamFailure& failure, const std::optional<OwnFailure>& own,
               const Console& console, TeamWork& work) {
  const int code = exit_code_of(failure.code);
  const bool worthless = failure.kept == 0 || failure.code == ErrorCode::value;
  const bool begun = work.begun();
  if (worthless && team.is_first() && begun) work.give_up();
  if (!failure.speaks) {
    team.leave();
    return code;
  }
  // Before the others end: a launcher that sees the first of them end so may kill the rest.
  if (!worthless && failure.code != ErrorCode::interrupted) console.warn(work.left(failure.kept));
  report_error(own ? own->kind : error_kind(failure.code), spoken(failure, team, work, begun),
               own ? own->error.place() : Error::Place());
  if (failure.unanswered) {
    console.warn("other processes of the job do not answer: it ends here");
    team.stop_all(code);
  }
  team.leave();
  return code;
}

/// The failure on its way, of a process alone: it goes on when what is left was said.
[[noreturn]] void end_alone(const Team& team, const Console& console, TeamWork& work) {
  const int64_t kept = team.kept();
  try {
    throw;
  } catch (const Error& error) {
    if (work.begun() && error.code() == ErrorCode::value) {
      work.give_up();
      throw Error(error.code(), error.what() + std::string("; nothing was kept"), error.place());
    }
    if (work.begun() && error.code() == ErrorCode::interrupted) {
      throw interrupted_error(work.left(kept));
    }
    if (kept > 0) console.warn(work.left(kept));
    throw;
  } catch (const std::exception&) {
    if (kept > 0) console.warn(work.left(kept));
    throw;
  }
}

}  // namespace

std::string this_host() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "a host without a name";
}

std::unique_ptr<Team> form_team(const std::string& shard, bool alone, const std::string& out,
                                const Console& console) {
  if (!shard.empty() || alone) return nullptr;
  const auto launch = find_launch(environment_variable);
  if (!launch) return nullptr;
  try {
    return join_mpi(*launch, console.stop());
  } catch (const Error& error) {
    if (out.empty()) {
      console.say(fmt::format("note: this is {}, and each task prints all for itself: {}",
                              launch->text(), error.what()));
      return nullptr;
    }
    throw usage_error(
        fmt::format("-o {}: all tasks would write it: this is {}; --shard auto makes a part of "
                    "each, --alone is "
                    "for outputs of their own, and one file of all needs {}",
                    one_line(out), launch->text(), error.what()));
  }
}

RunOptions share_of_host(RunOptions options, Team& team) {
  const std::string mine = processors_text();
  const std::vector<std::string> all = team.exchange(mine);
  const auto sharing = static_cast<int>(std::count(all.begin(), all.end(), mine));
  if (options.threads == 0 && sharing > 1) {
    options.threads = std::max(1, usable_cores() / sharing);
  }
  const int tasks = options.tasks = team.local_size();
  options.task = team.local_rank();
  if (options.memory.empty() && tasks > 1) {
    const int64_t share = std::min(int64_t{2} << 30, available_memory() / 2 / tasks);
    options.memory = std::to_string(share) + "B";
  }
  return options;
}

int run_together(Team& team, const Console& console, TeamWork& work) {
  TeamFailure failure;
  std::optional<OwnFailure> own;
  try {
    const int code = work.run();
    team.leave();
    return code;
  } catch (const TeamFailed& failed) {
    failure = failed.failure();
  } catch (...) {
    if (team.is_alone()) end_alone(team, console, work);
    own = current_failure();
    failure = team.fail(own->error.code(), own->error.what());
  }
  return end_failed(team, failure, own, console, work);
}

int run_shared(const std::string& shard, bool alone, const std::string& out, const Console& console,
               const MakeTeamWork& make) {
  const auto team = form_team(shard, alone, out, console);
  Team nobody;
  Team& own = team ? *team : nobody;
  const Console words = own.is_first() ? console : console.silenced();
  const auto work = make(own, words);
  return run_together(own, console, *work);
}

}  // namespace attnscope

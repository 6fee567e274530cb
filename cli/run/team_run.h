#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cluster/team.h"

namespace attnscope {

/// The name of the machine, for people.
std::string this_host();

/// The team that a run with `out` is one process of, where something started several; null where it
/// is alone, or has to do with no other: with --shard, or --alone. Throws Error(usage), one line,
/// where the processes would write one output without being able to agree on it; those that have no
/// output go on alone then, each for itself, and say so.
std::unique_ptr<Team> form_team(const std::string& shard, bool alone, const std::string& out,
                                const Console& console);

/// How one of several processes of a host computes, unless its options say it: in its share of the
/// memory that is free, on its share of the cores that several may run on, and of the devices. An
/// exchange.
RunOptions share_of_host(RunOptions options, Team& team);

/// One process's part of a run that a team does.
class TeamWork {
 public:
  virtual ~TeamWork() = default;
  /// All of it, with its exchanges, the last one at its end. Returns the exit code.
  virtual int run() = 0;
  /// True once the first process has begun the output.
  virtual bool begun() const = 0;
  /// Line that tells of so many pieces that are kept.
  virtual std::string left(int64_t kept) const = 0;
  /// Of the first process, once the output was begun, where nothing of it is worth keeping.
  virtual void give_up() = 0;
};

/// Does it, in a team or alone. What it throws ends the work of all of a team, and one of them says
/// it; all return the same exit code. Alone, it is thrown on when what is left was said, and with
/// what that is.
int run_together(Team& team, const Console& console, TeamWork& work);

/// Both: forms the team, or is alone, and does what `make` makes. Borrowed arguments live as long
/// as what it makes; the words of all processes but the first are not heard.
using MakeTeamWork = std::function<std::unique_ptr<TeamWork>(Team&, const Console&)>;
int run_shared(const std::string& shard, bool alone, const std::string& out, const Console& console,
               const MakeTeamWork& make);

}  // namespace attnscope

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/console.h"
#include "cli/common/parser.h"
#include "core/base/plan_share.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Adds --shard I/N|auto.
void add_shard_option(CommandParser& command, std::string& shard);
/// Adds --alone.
void add_alone_option(CommandParser& command, bool& alone);
/// Throws Error(usage) where mpirun, srun or torchrun started several processes of a command that
/// is one process's work, and all would write `out` (empty: nothing is written), which `option`
/// named. `advice`: what is done instead. Not with --shard or --alone.
void refuse_tasks(const std::string& shard, bool alone, const std::string& out,
                  std::string_view advice, std::string_view option = "-o");
/// The advice of commands that --shard cuts, and of those that it does not.
inline constexpr std::string_view kPartOfEach = "--shard auto makes a part of each";
inline constexpr std::string_view kOneProcess = "it is the work of one";

/// The share of the plan that --shard gives to this run; nothing without the option. Says which
/// part `auto` took and from which variables. Throws Error(usage) for a value that is neither I/N
/// nor auto, and where the environment does not tell one share.
std::optional<PlanShare> chosen_share(const std::string& shard, const Console& console);

/// Whatever started this process and tells it which of how many it is.
struct ShareSource {
  std::string name;  ///< of the variables: "RANK of WORLD_SIZE"
  PlanShare share;
};
/// Of the environment that `variable` knows (null: not set). Throws Error(usage) where values
/// cannot be meant: no numbers, a rank beyond the count, an array that is not evenly spaced.
std::vector<ShareSource> share_sources(const std::function<const char*(const char*)>& variable);
/// The one of them that --shard auto takes; throws Error(usage) where there is none, or several.
ShareSource choose_share_source(const std::vector<ShareSource>& sources);

/// An output's name, with "I-of-N" for "{shard}" (I with as many digits as N − 1 has). Throws
/// Error(usage) for such a name without a share, and for another one (but an empty one) where there
/// are several parts: each would replace the others.
std::string name_of_share(const std::string& out, const std::optional<PlanShare>& share);

/// The text that PlanPart::plan_hash hashes beside the calls: the command, the options that decide
/// its result (without the backend), the capture's name, and the program's version.
std::string plan_text(const std::string& command, OrderedJson options, const std::string& capture);

/// Throws Error(usage) that says why a command is not cut, where --shard was given.
void refuse_shard(const std::string& shard, const std::string& reason);

}  // namespace attnscope

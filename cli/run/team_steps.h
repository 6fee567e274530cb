#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_plan.h"
#include "cluster/team.h"
#include "core/base/index_range.h"
#include "io/capture/capture.h"
#include "io/capture/selection_share.h"
#include "io/files/json_types.h"

namespace attnscope {

// Steps that the processes of a run do together before its stream. All are exchanges; a process
// alone has no one to exchange with.

/// The run of items that this process looks at, of a list that all share.
IndexRange own_run(const Team& team, int64_t items);

/// Items of a list that this process looks at.
template <typename T>
std::span<const T> own_items(const Team& team, const std::vector<T>& items) {
  const IndexRange own = own_run(team, std::ssize(items));
  return std::span(items).subspan(static_cast<size_t>(own.begin), static_cast<size_t>(own.size()));
}

/// How many of a run's results this process holds in the end: the first one writes them all.
int64_t results_held(const Team& team, int64_t results);

/// The backend of a run: what the first process takes, by its options, is what all compute with.
/// Throws Error(usage), one line, where a process has other options, or cannot compute so: it names
/// the process, its host and the reason.
RunBackend make_team_backend(const RunOptions& options, Team& team, const Console& console);

/// Every process must be about the same run, else its result would depend on who was faster. `run`
/// is what has to be equal, by name; the program, the capture's name and its size, and the facts of
/// the selected calls (scales, masks, grids) are compared beside it. Throws Error(usage) that names
/// what is not.
void agree_on_run(Team& team, const Capture& capture, const std::vector<SelectedCall>& calls,
                  const OrderedJson& run);

/// Says of a plan of all that each process does its share of it, in so many units.
void share_forecast(RunPlan& plan, const Team& team, int64_t units);

/// " by 4 processes" of a plan that several do; nothing of any other.
std::string processes_text(const RunPlan& plan);

/// Digests of what a run's calls are made of.
struct CallDigests {
  std::vector<std::string> of_calls;  ///< one each; empty where a share has nothing of the call
  std::string whole;                  ///< of all of them
};
/// Of the calls, or those that a share has something of, with v where `with_values`: each process
/// of a team reads its run of them, for all. Throws as Capture::call_hashes().
CallDigests digest_calls(Team& team, const Capture& capture, const std::vector<SelectedCall>& calls,
                         const std::optional<SelectionShare>& share, bool with_values,
                         const std::stop_token& stop);

}  // namespace attnscope

#pragma once

#include <optional>
#include <set>

#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/run/run_plan.h"
#include "cli/run/stats_jobs.h"
#include "cli/run/where_question.h"
#include "cluster/team.h"
#include "core/base/memory_budget.h"
#include "core/stream/tile_backend.h"
#include "io/capture/capture.h"

namespace attnscope {

/// The numbers of heads that --where compares are found with these. Borrowed for the call.
struct WhereMeans {
  const Capture& capture;
  const TileBackend& backend;
  MemoryBudget& budget;
  Team& team;
  const Console& console;
  int threads = 0;
  bool dry_run = false;
};

/// The outcome of settle_where().
struct SettledWhere {
  /// Of the heads that it holds for, those whose numbers were compared.
  HeadRecords records;
  std::optional<WherePlan> plan;     ///< of a dry run that has numbers to find
  std::set<HeadName> supposed = {};  ///< the heads of that plan
};

/// Puts into `selection.holding` the heads of the other options' selection that --where holds for.
/// Numbers that it compares come from the folders of --cache (stats-KEY.json, a file a call) or are
/// computed, by all processes of the team together, and kept there. A dry run computes none, and
/// takes every head that may be left. Nothing to do where no number is asked for. Throws what
/// Capture::select() and a run of `stats` throw.
SettledWhere settle_where(SelectionOptions& selection, const StatsChoice& choice,
                          const WhereMeans& means);
/// For a command that is one process and has no backend yet.
SettledWhere settle_where(SelectionOptions& selection, const Capture& capture,
                          const RunOptions& run, const Console& console, bool dry_run = false);

}  // namespace attnscope

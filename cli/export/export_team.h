#pragma once

#include "cli/common/console.h"
#include "cli/export/export_options.h"
#include "cluster/team.h"

namespace attnscope {

/// `export` as one process of a team that writes one file together: of chunks at known places,
/// other products are refused. Returns the exit code, the same in all of them; one says what it
/// failed by.
int export_together(const ExportOptions& options, Team& team, const Console& console);

}  // namespace attnscope

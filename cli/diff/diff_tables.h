#pragma once

#include "cli/common/console.h"
#include "cli/diff/diff_options.h"

namespace attnscope {

/// Whether side A or B is a table of numbers of heads (io/metrics/read_table.h).
bool compares_tables(const DiffOptions& options);

/// One table over its runs, or two against each other. Gives the exit code.
int diff_tables(const DiffOptions& options, const Console& console);

}  // namespace attnscope

#pragma once

#include <span>

#include "cli/stats/stats_options.h"
#include "core/heads/head_record.h"

namespace attnscope {

/// For people on standard output: a line of numbers a head, with `nearest` also those that look
/// most alike; with `curve`, in another table, how many keys hold shares of a row's mass; and,
/// without `top`, the classes where heads were measured at several steps or branches.
void print_stats_tables(std::span<const HeadRecord> records, const StatsOptions& options);

}  // namespace attnscope

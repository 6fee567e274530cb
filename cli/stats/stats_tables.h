#pragma once

#include <span>

#include "core/heads/head_record.h"

namespace attnscope {

/// For people on standard output: a line of numbers a head; with `curve`, in another table, how
/// many keys hold shares of a row's mass; and the classes where heads were measured at several
/// steps or branches.
void print_stats_tables(std::span<const HeadRecord> records, bool curve);

}  // namespace attnscope

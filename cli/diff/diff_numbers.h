#pragma once

#include "cli/diff/diff_report.h"
#include "cli/diff/pair_runner.h"

namespace attnscope {

/// What takes the numbers of a pair's rows.
std::unique_ptr<PairSink> make_number_sink(const ComparedPair& pair);
/// What it has found: one row, or one a part of the queries and of the keys that both maps have.
/// `top`: rows that are listed at most.
std::vector<DiffRow> found_numbers(const ComparedPair& pair, PairSink& sink, int64_t top);

}  // namespace attnscope

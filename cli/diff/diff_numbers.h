#pragma once

#include "cli/diff/diff_report.h"
#include "cli/diff/pair_runner.h"

namespace attnscope {

/// Makes the sink that computes the numbers of a pair's rows.
std::unique_ptr<PairSink> make_number_sink(const ComparedPair& pair);
/// The numbers that it found: one row of the report or, where the tokens differ, one for each query
/// part and key part that both maps have. `top`: rows of the maps that are listed at most.
std::vector<DiffRow> found_numbers(const ComparedPair& pair, PairSink& sink, int64_t top);

}  // namespace attnscope

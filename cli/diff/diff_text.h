#pragma once

#include <string>
#include <vector>

#include "cli/diff/diff_report.h"
#include "core/base/number_order.h"

namespace attnscope {

/// The numbers that pairs can be sorted by.
std::vector<std::string> diff_numbers();
void sort_diff(const NumberOrder& order, std::vector<DiffRow>& rows);

/// All that is told of one pair, as text on standard output.
void print_diff(const DiffRow& row);

/// A line a pair on standard output; with `lists_top` the rows that differ most stand below it. The
/// number `sort` has a column in any case.
void print_diff_table(const std::vector<DiffRow>& rows, const std::string& sort, bool lists_top);

}  // namespace attnscope

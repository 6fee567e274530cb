#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/base/number_order.h"
#include "core/problem/head_name.h"
#include "core/problem/token_grid.h"
#include "core/products/query_volumes.h"
#include "io/files/json_types.h"

namespace attnscope {

/// Sums up a head's values in figures: sums over text, video and each frame of the sequence shown,
/// and its `top` largest tokens by name. `values` has one for every token of `shown`; `lse` may be
/// NaN (not one row's). Where the volumes are reversed the tokens are queries, else keys.
OrderedJson summarise_values(const QueryVolumes& volumes, const QueryVolume& volume,
                             const TokenGrid& shown, std::span<const float> values, double lse,
                             int64_t top);

/// The summary of a head, or of a mean of heads, whose coordinates are then negative.
struct QuerySummary {
  HeadName name;
  OrderedJson json;  ///< of summarise_values()
};

/// The numbers that heads can be sorted by. `shown`: as of QueryVolumes.
std::vector<std::string> query_numbers(const std::string& shown);
void sort_summaries(const NumberOrder& order, const std::string& shown,
                    std::vector<QuerySummary>& heads);

/// The masses of a summary's frames and its largest tokens, as lines of text.
std::string places_text(const OrderedJson& summary);
/// All that is told of one head, as text on standard output.
void print_summary(const QuerySummary& head, bool reverse, const std::string& shown);

/// How a table of several heads is printed.
struct QueryTableForm {
  bool reverse = false;
  std::string shown, sort;  ///< as of QueryVolumes; the number that has a column in any case
  bool lists_top = false;   ///< all largest tokens stand below each head's line
};
/// A line a head, with its largest token; its track below it, where it has one.
void print_summary_table(std::span<const QuerySummary> heads, const QueryTableForm& form);

}  // namespace attnscope

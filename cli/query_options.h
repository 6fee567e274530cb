#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention_problem.h"

namespace attnscope {

/// What the options that say *which query rows* hold.
struct QueryOptions {
  std::vector<std::string> coords;  ///< --query T,Y,X or boxes T,Y0:Y1,X0:X1
  std::vector<int64_t> indices;     ///< --index N
  std::string list;                 ///< --queries LIST

  bool any() const { return !coords.empty() || !indices.empty() || !list.empty(); }
};
/// Adds --query, --index and, where `with_list`, --queries.
void add_query_options(CLI::App& command, QueryOptions& options, bool with_list);

/// The rows asked for in one call, as indices of its sequence, ascending and unique. Throws
/// Error(usage) naming the valid range.
std::vector<int64_t> resolve_queries(const QueryOptions& options, const AttentionProblem& problem);

/// The latent position of a single `--query T,Y,X` (no box), for pictures.
std::optional<std::array<int64_t, 3>> single_query_coord(const QueryOptions& options,
                                                         const AttentionProblem& problem);
/// How titles name the queries: "query 5,10,22", "index 17", "mean of 12 queries".
std::string describe_queries(const QueryOptions& options, int64_t count);

}  // namespace attnscope

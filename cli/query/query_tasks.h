#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/picture_options.h"
#include "cli/common/query_options.h"
#include "cli/run/head_run_options.h"
#include "core/products/query_volumes.h"
#include "core/products/row_collector.h"
#include "core/stream/tile_sink.h"
#include "io/capture/capture.h"
#include "io/capture/selection_share.h"
#include "io/files/json_types.h"

namespace attnscope {

/// The options that a `query` command was given.
struct QueryRequest : HeadRunOptions {
  QueryOptions queries;
  std::string domain = "all";
  std::string segment;  ///< of a token map, instead of its video; empty: the video
  std::string weighting = "none";
  std::vector<std::string> mean;
  bool reverse = false;
  bool track = false;
  /// The largest tokens that are listed of each head; tables of heads list them where it is given.
  std::optional<int64_t> top;
  PictureOptions page;
  std::string sort;  ///< the number that printed heads stand by; empty: in capture order

  int64_t top_count() const { return top.value_or(5); }
};

/// The heads of the selection in capture order, and the tokens that were chosen for each. Tasks
/// borrow from `chosen`: movable, not copyable.
struct QueryTasks {
  std::vector<SelectedCall> calls;
  std::deque<ChosenTokens> chosen;  ///< one a (call, batch item)
  /// The chosen query rows over all keys; all query rows where the chosen tokens are keys.
  std::vector<HeadTask> tasks;
  bool reverse = false;
  std::vector<size_t> call_of_task, chosen_of_task;
  std::vector<TokenGrid> seen;      ///< one a task, where another segment than the video is shown
  std::deque<TokenGrid> seen_keys;  ///< one a call, where the domain is of another segment

  const CallEntry& call_of(size_t task) const { return *calls[call_of_task[task]].call; }
  const ChosenTokens& tokens_of(size_t task) const { return chosen[chosen_of_task[task]]; }
  /// The sequence that a call's domain is of.
  const TokenGrid& domain_keys(size_t call) const {
    return seen_keys.empty() ? calls[call].call->problem->key_tokens() : seen_keys[call];
  }
  /// For each task the domain_keys() of its call.
  std::vector<const TokenGrid*> domain_keys_of_tasks() const;
  /// The sequence that the volumes of a task show.
  const TokenGrid& shown(size_t task) const {
    if (!seen.empty()) return seen[task];
    const AttentionProblem& problem = *tasks[task].problem;
    return reverse ? problem.query_tokens() : problem.key_tokens();
  }
};

/// The sequence of `name` with a segment as its video. Throws Error(usage) where there is none.
TokenGrid seen_segment(const TokenGrid& tokens, const std::string& segment,
                       const std::string& name);

/// Throws Error(usage) where a call does not have what was chosen, or the selected calls' volumes
/// would differ in shape.
QueryTasks make_query_tasks(const QueryRequest& request, std::vector<SelectedCall> calls);

/// Leaves the heads of a share of the calls, of the tasks and of the volumes that describe them.
void keep_share(const SelectionShare& share, QueryTasks& q, QueryVolumes& volumes);

/// The options that decide the values beside the calls, as JSON for plan_text().
OrderedJson query_options_json(const QueryRequest& request);

/// Throws Error(usage) where a call's keys do not have the domain: its zeros would look like an
/// answer.
void check_domain(SoftmaxDomain domain, const QueryTasks& q);

/// The words of --weighting.
std::vector<std::string> weighting_names();
/// Throws Error(usage) where --weighting is no such name, or needs values that were not captured.
void check_weighting(const QueryRequest& request, const QueryTasks& q);

/// The facts that all volumes have in common, and for each of them everything but its values.
QueryVolumes describe_volumes(const QueryRequest& request, const Capture& capture,
                              const QueryTasks& q);

}  // namespace attnscope

#include "cli/query/query_tasks.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest_word.h"
#include "core/problem/head_name.h"
#include "core/problem/signed_weights.h"
#include "core/products/softmax_domain.h"
#include "core/products/tokens/text_token.h"
#include "io/capture/unknown_state.h"
#include "io/files/json_types.h"

namespace attnscope {
namespace {

/// "FILE", or "FILE, batch item 1 (cond)" where the items' prompts can differ.
std::string sequence_name(const CallEntry& call, int64_t batch) {
  const AttentionProblem& problem = *call.problem;
  if (problem.batch() == 1) return problem.name();
  return fmt::format("{}, batch item {} ({})", problem.name(), batch,
                     one_line(branch_of(call.id, batch)));
}

ChosenTokens choose(const QueryRequest& request, const CallEntry& call, int64_t batch) {
  const AttentionProblem& problem = *call.problem;
  const bool text_is_keys =
      problem.query_tokens().text_range().empty() && !problem.key_tokens().text_range().empty();
  if (text_is_keys && !request.reverse && !request.queries.text_tokens.empty()) {
    throw usage_error(fmt::format(
        "--text-token {}: the text tokens of {} ({}) are keys; --reverse shows which video tokens "
        "attend to them",
        one_line(request.queries.text_tokens.front()), problem.name(), kind_name(call.id.kind)));
  }
  return resolve_tokens(request.queries,
                        {request.reverse ? problem.key_tokens() : problem.query_tokens(),
                         call.tokens_of(batch), sequence_name(call, batch)});
}

/// The number of the batch item's token strings among the volumes' lists; a new list where they are
/// new.
size_t token_list_of(QueryVolumes& volumes, const CallEntry& call, int64_t batch) {
  const auto words = call.tokens_of(batch);
  auto& lists = volumes.token_lists;
  const auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& list) {
    return std::equal(list.begin(), list.end(), words.begin(), words.end());
  });
  const auto number = static_cast<size_t>(found - lists.begin());
  if (found == lists.end()) lists.emplace_back(words.begin(), words.end());
  return number;
}

/// Volumes of one file share grid and text.
void check_alike(const QueryTasks& q) {
  const TokenGrid& first = q.shown(0);
  for (size_t i = 1; i < q.tasks.size(); ++i) {
    const TokenGrid& grid = q.shown(i);
    if (grid.same_places(first)) continue;
    throw usage_error(fmt::format(
        "the selected calls have different token grids ({} with text {} in {}, {} with text {} in "
        "{}): select calls of one kind with --kind",
        first.grid_text(), first.text_text(), q.tasks.front().problem->name(), grid.grid_text(),
        grid.text_text(), q.tasks[i].problem->name()));
  }
}

QueryVolume describe_volume(const QueryTasks& q, size_t task) {
  const CallEntry& call = q.call_of(task);
  QueryVolume volume;
  volume.step = call.id.step;
  volume.layer = call.id.layer;
  volume.batch = q.tasks[task].batch;
  volume.head = q.tasks[task].head;
  volume.branch = branch_of(call.id, volume.batch);
  volume.kind = kind_name(call.id.kind);
  volume.place = call.id.place;
  volume.label = head_words(head_name(call.id, volume.batch, volume.head));
  volume.chosen_text = q.tokens_of(task).text;
  // A place in these volumes only where queries and keys are the same tokens.
  if (call.problem->same_tokens()) {
    volume.query = single_coord(q.tokens_of(task), q.shown(task));
  }
  return volume;
}

/// True where --domain video or frame means the segment of --segment, shown instead of the video.
bool is_of_segment(const QueryRequest& request) {
  const SoftmaxDomain domain = parse_domain(request.domain);
  return !request.segment.empty() &&
         (domain == SoftmaxDomain::video || domain == SoftmaxDomain::frame);
}

}  // namespace

std::vector<const TokenGrid*> QueryTasks::domain_keys_of_tasks() const {
  std::vector<const TokenGrid*> keys;
  for (const size_t call : call_of_task) keys.push_back(&domain_keys(call));
  return keys;
}

TokenGrid seen_segment(const TokenGrid& tokens, const std::string& segment,
                       const std::string& name) {
  try {
    return tokens.with_video(segment);
  } catch (const Error& error) {
    throw usage_error(fmt::format("--segment {}: {}: {}", one_line(segment), name, error.what()));
  }
}

QueryTasks make_query_tasks(const QueryRequest& request, std::vector<SelectedCall> calls) {
  QueryTasks q;
  q.reverse = request.reverse;
  q.calls = std::move(calls);
  for (size_t c = 0; c < q.calls.size(); ++c) {
    const CallEntry& call = *q.calls[c].call;
    const AttentionProblem& problem = *call.problem;
    require_one_sign(problem, "a query of weights");
    for (int64_t b : q.calls[c].batch) {
      q.chosen.push_back(choose(request, call, b));
      for (int64_t h : q.calls[c].heads) {
        HeadTask task{&problem, b, h, {0, problem.num_queries()}, {}, {0, problem.num_keys()}};
        if (!q.reverse) task.row_list = q.chosen.back().tokens;
        q.tasks.push_back(task);
        q.call_of_task.push_back(c);
        q.chosen_of_task.push_back(q.chosen.size() - 1);
      }
    }
  }
  if (!request.segment.empty()) {
    std::vector<TokenGrid> seen;
    for (size_t i = 0; i < q.tasks.size(); ++i) {
      seen.push_back(seen_segment(q.shown(i), request.segment, q.tasks[i].problem->name()));
    }
    q.seen = std::move(seen);
  }
  for (size_t c = 0; is_of_segment(request) && c < q.calls.size(); ++c) {
    const AttentionProblem& problem = *q.calls[c].call->problem;
    q.seen_keys.push_back(seen_segment(problem.key_tokens(), request.segment, problem.name()));
  }
  check_alike(q);
  return q;
}

void keep_share(const SelectionShare& share, QueryTasks& q, QueryVolumes& volumes) {
  std::vector<HeadTask> tasks;
  std::vector<size_t> calls, chosen;
  std::vector<TokenGrid> seen;
  std::vector<QueryVolume> described;
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    const std::vector<int64_t>& heads = share.heads[q.call_of_task[i]];
    if (!std::binary_search(heads.begin(), heads.end(), q.tasks[i].head)) continue;
    tasks.push_back(q.tasks[i]);
    calls.push_back(q.call_of_task[i]);
    chosen.push_back(q.chosen_of_task[i]);
    if (!q.seen.empty()) seen.push_back(q.seen[i]);
    described.push_back(std::move(volumes.volumes[i]));
  }
  q.tasks = std::move(tasks);
  q.call_of_task = std::move(calls);
  q.chosen_of_task = std::move(chosen);
  q.seen = std::move(seen);
  volumes.volumes = std::move(described);
}

OrderedJson query_options_json(const QueryRequest& request) {
  return {{"query", request.queries.coords},
          {"index", request.queries.indices},
          {"text_token", request.queries.text_tokens},
          {"domain", request.domain},
          {"segment", request.segment},
          {"weighting", request.weighting},
          {"reverse", request.reverse}};
}

void check_domain(SoftmaxDomain domain, const QueryTasks& q) {
  for (size_t c = 0; c < q.calls.size(); ++c) {
    const AttentionProblem& problem = *q.calls[c].call->problem;
    const TokenGrid& keys = q.domain_keys(c);
    if (domain == SoftmaxDomain::frame && !keys.has_grid()) {
      throw usage_error("--domain frame: the keys of " + problem.name() +
                        (q.seen_keys.empty()
                             ? " have no token grid; give --grid TxHxW"
                             : " have no row-major grid in the segment that is shown"));
    }
    if (domain == SoftmaxDomain::text && keys.text_range().empty()) {
      throw usage_error("--domain text: " + problem.name() + " has no text keys; give --text SPAN");
    }
    if (domain == SoftmaxDomain::video && keys.video_range().empty()) {
      throw usage_error("--domain video: the keys of " + problem.name() +
                        (keys.has_map() ? " have no video" : " are all text"));
    }
  }
}

QueryVolumes describe_volumes(const QueryRequest& request, const Capture& capture,
                              const QueryTasks& q) {
  QueryVolumes volumes;
  const TokenGrid& grid = q.shown(0);
  volumes.grid = {grid.frames(), grid.height(), grid.width()};
  volumes.model = q.calls.front().call->model;
  volumes.capture = capture.path().filename().string();
  volumes.domain = request.domain;
  std::vector<std::string> masks;
  for (const SelectedCall& selected : q.calls) {
    masks.push_back(selected.call->problem->mask().describe());
  }
  volumes.shares = is_normalised(q.calls.front().call->problem->score());
  volumes.sinks = !q.reverse && request.domain == "all" && request.weighting == "none" &&
                  std::all_of(q.calls.begin(), q.calls.end(), [](const SelectedCall& selected) {
                    return !selected.call->problem->sinks().is_none();
                  });
  volumes.domain_text =
      domain_text(q.calls.front().call->problem->score_words(), request.domain, masks);
  volumes.state_text = state_text(q.calls);
  volumes.query_text = describe_chosen(request.queries, q.chosen.front(), q.reverse);
  if (!request.segment.empty()) {
    volumes.query_text += ", segment " + request.segment;
    volumes.shown = request.segment;
  }
  volumes.reverse = q.reverse;
  volumes.weighting = request.weighting;
  volumes.tracked = request.track;
  std::vector<size_t> lists;
  for (const ChosenTokens& chosen : q.chosen) lists.push_back(volumes.list_chosen(chosen.tokens));
  for (size_t i = 0; i < q.tasks.size(); ++i) {
    QueryVolume volume = describe_volume(q, i);
    volume.chosen = lists[q.chosen_of_task[i]];
    // The words stand in the text part, which cross attention's queries do not have.
    if (!q.shown(i).text_range().empty()) {
      volume.tokens = token_list_of(volumes, q.call_of(i), volume.batch);
    }
    volumes.volumes.push_back(std::move(volume));
  }
  return volumes;
}

std::vector<std::string> weighting_names() { return {"none", "value"}; }

void check_weighting(const QueryRequest& o, const QueryTasks& q) {
  const std::vector<std::string> known = weighting_names();
  if (std::find(known.begin(), known.end(), o.weighting) == known.end()) {
    throw unknown_name("--weighting", o.weighting, known);
  }
  if (o.weighting == "none") return;
  for (const SelectedCall& selected : q.calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (!problem.v()) {
      throw usage_error("--weighting value: " + problem.name() +
                        " has no v; capture it, or give --v with bare tensors");
    }
  }
}

}  // namespace attnscope

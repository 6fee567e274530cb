#include "python/native/call_queries.h"

#include <array>
#include <map>
#include <utility>

#include "cli/common/cache_option.h"
#include "cli/common/capture_options.h"
#include "cli/common/console.h"
#include "cli/common/pixel_query.h"
#include "cli/query/query_compute.h"
#include "cli/query/query_tasks.h"
#include "core/base/error.h"
#include "core/products/reverse_query.h"
#include "core/products/row_collector.h"
#include "core/products/softmax_domain.h"
#include "core/products/value_norms.h"
#include "io/capture/lse_cache.h"

namespace attnscope {
namespace {

/// The heads, a batch item after the other.
std::vector<SelectedCall> selected(const CallHandle& call, std::span<const HeadPlace> heads) {
  std::map<int64_t, std::vector<int64_t>> items;
  for (const HeadPlace& place : heads) items[place.batch].push_back(place.head);
  std::vector<SelectedCall> calls;
  for (auto& [batch, numbers] : items) {
    calls.push_back({call.entry.get(), {batch}, std::move(numbers)});
  }
  return calls;
}

std::vector<std::vector<float>> rows_of(const QueryRequest& request, const QueryTasks& tasks,
                                        EngineRun& run) {
  RowCollector rows(tasks.tasks, parse_domain(request.domain), run.workers(), run.budget(),
                    tasks.domain_keys_of_tasks());
  run.run(tasks.tasks, rows);
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < tasks.tasks.size(); ++i) {
    values.push_back(rows.take_mean(static_cast<int64_t>(i)));
  }
  if (request.weighting == "value") weigh_by_values(tasks.tasks, values, run.budget());
  return values;
}

std::vector<std::vector<float>> columns_of(const QueryRequest& request, const QueryTasks& tasks,
                                           const Capture* capture, EngineRun& run) {
  const std::vector<ReverseTask> wanted = reverse_tasks(request, tasks);
  ReverseQuery query(wanted, {parse_domain(request.domain), run.workers()}, run.backend(),
                     run.budget());
  LseCache cache(capture == nullptr ? std::vector<std::filesystem::path>()
                                    : cache_folders(request.selection.cache, *capture),
                 capture == nullptr ? nullptr : capture->inputs());
  const auto steps = static_cast<double>(query.steps());
  return query.run(cache.enabled() ? &cache : nullptr,
                   {run.watch().stop(), [&](double done) { run.watch().progress(done / steps); }});
}

}  // namespace

QueryAnswer answer_query(const CallHandle& call, std::span<const HeadPlace> heads,
                         const QueryWords& words, EngineRun& run) {
  QueryRequest request;
  request.queries = words.tokens;
  request.domain = words.domain;
  request.weighting = words.weighting;
  request.segment = words.segment;
  request.selection.cache = words.cache;
  request.reverse = words.reverse;
  CaptureOptions opened;
  if (!call.preset.empty()) opened.texts.preset = call.preset;
  settle_pixels(std::array{pixel_sequence(*call.entry, words.reverse, opened)}, request.queries,
                Console(true));
  const QueryTasks tasks = make_query_tasks(request, selected(call, heads));
  check_domain(parse_domain(words.domain), tasks);
  check_weighting(request, tasks);
  run.check_values(tasks.tasks);
  std::vector<std::vector<float>> values = words.reverse
                                               ? columns_of(request, tasks, call.capture.get(), run)
                                               : rows_of(request, tasks, run);
  const TokenGrid& grid = tasks.shown(0);
  QueryAnswer answer{{grid.frames(), grid.height(), grid.width()}, {}};
  for (size_t i = 0; i < values.size(); ++i) {
    QueryVolume volume;
    volume.batch = tasks.tasks[i].batch;
    volume.head = tasks.tasks[i].head;
    set_values(volume, tasks.shown(i), std::move(values[i]));
    answer.volumes.push_back(std::move(volume));
  }
  return answer;
}

}  // namespace attnscope

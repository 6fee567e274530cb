#include "cli/stats/near_heads.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <tuple>

#include "core/base/start_thread.h"
#include "core/problem/score.h"
#include "core/products/differences/map_profiles.h"

namespace attnscope {
namespace {

/// Heads that are compared with each other.
struct NearGroup {
  std::vector<HeadTask> tasks;
  std::vector<HeadName> names;
};

/// By step, branch, forward, chunk, batch item, and the numbers of queries and keys.
using GroupKey = std::tuple<int64_t, std::string, CallForward, int64_t, int64_t, int64_t, int64_t>;

/// `rows` keeps the lists that the tasks borrow, by their numbers of queries.
std::vector<NearGroup> near_groups(std::span<const SelectedCall> calls,
                                   std::map<int64_t, std::vector<int64_t>>& rows) {
  std::map<GroupKey, NearGroup> groups;
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    if (!problem.rows_add_up()) continue;
    const int64_t queries = problem.num_queries(), keys = problem.num_keys();
    const auto list = rows.try_emplace(queries, profile_rows(queries)).first;
    for (const int64_t item : selected.batch) {
      for (const int64_t head : selected.heads) {
        HeadName name = head_name(problem.id(), item, head);
        NearGroup& group = groups[{name.step, name.branch, name.place.forward, name.place.chunk,
                                   item, queries, keys}];
        group.tasks.push_back({&problem, item, head, {0, queries}, list->second, {0, keys}});
        group.names.push_back(std::move(name));
      }
    }
  }
  std::vector<NearGroup> list;
  for (auto& [key, group] : groups) {
    if (group.tasks.size() > 1) list.push_back(std::move(group));
  }
  return list;
}

/// The memory of a group's maps, and the stream that makes them beside it.
struct NearStream {
  MemoryReservation held;
  ProfileCollector sink;
  TilePlan plan;

  NearStream(const NearGroup& group, const TileBackend& backend, MemoryBudget& budget, int threads)
      : held(budget.reserve(
            std::ssize(group.tasks) * MapProfile::bytes(group.tasks.front().num_rows()),
            "the maps of --nearest")),
        sink(group.tasks),
        plan(plan_tiles(group.tasks, sink.request(), backend, budget.room(), threads)) {}
};

/// Each head's nearest, by all threads.
std::vector<std::vector<NearMap>> near_maps(std::span<const MapProfile> profiles, size_t most,
                                            int threads, const std::stop_token& stop) {
  std::vector<std::vector<NearMap>> near(profiles.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < near.size() && !stop.stop_requested(); i = next++) {
      near[i] = nearest_maps(profiles, i, most);
    }
  };
  std::vector<std::jthread> helpers;
  start_helpers(helpers, static_cast<size_t>(threads - 1), [&](size_t) { return work; });
  work();
  helpers.clear();
  return near;
}

}  // namespace

void check_near_memory(std::span<const SelectedCall> calls, const TileBackend& backend,
                       MemoryBudget& budget, int threads) {
  std::map<int64_t, std::vector<int64_t>> rows;
  for (const NearGroup& group : near_groups(calls, rows)) {
    const NearStream stream(group, backend, budget, threads);
  }
}

bool find_near_heads(const StreamJob& job, std::span<const SelectedCall> calls, int threads,
                     size_t most, std::vector<HeadRecord>& records) {
  std::map<HeadName, HeadRecord*> by_name;
  for (HeadRecord& record : records) by_name[record.name] = &record;
  std::map<int64_t, std::vector<int64_t>> rows;
  for (const NearGroup& group : near_groups(calls, rows)) {
    NearStream stream(group, job.backend, job.budget, threads);
    if (!run_tiles(job, group.tasks, stream.plan, stream.sink)) return false;
    const int workers = threads > 0 ? threads : job.backend.workers();
    const auto near = near_maps(stream.sink.profiles(), most, workers, job.stop);
    if (job.stop.stop_requested()) return false;
    for (size_t i = 0; i < near.size(); ++i) {
      for (const NearMap& map : near[i]) {
        by_name.at(group.names[i])->nearest.push_back({group.names[map.place], map.divergence});
      }
    }
  }
  return true;
}

}  // namespace attnscope

#include "cli/query/query_team.h"

#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/base/plan_share.h"
#include "core/stream/head_work.h"

namespace attnscope {
namespace {

std::vector<IndexRange> runs_of_heads(const Team& team, const QueryTasks& q) {
  std::vector<int64_t> work;
  for (const HeadTask& task : q.tasks) {
    work.push_back(head_work(*task.problem, task.batch, task.head));
  }
  return share_out(work, team.size());
}

int64_t tokens_of(const QueryTasks& q, IndexRange heads) {
  int64_t tokens = 0;
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    tokens += q.shown(static_cast<size_t>(i)).tokens();
  }
  return tokens;
}

template <typename T>
void append(std::string& bytes, const std::vector<T>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// Takes `count` numbers from what is left.
template <typename T>
std::vector<T> take(std::string_view& bytes, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  const size_t size = values.size() * sizeof(T);
  if (bytes.size() < size) throw Error(ErrorCode::file, "a process has other values than asked");
  std::memcpy(values.data(), bytes.data(), size);
  bytes.remove_prefix(size);
  return values;
}

}  // namespace

IndexRange own_heads(const Team& team, const QueryTasks& q) {
  return runs_of_heads(team, q)[static_cast<size_t>(team.rank())];
}

QueryTasks tasks_of(const QueryTasks& q, IndexRange heads) {
  QueryTasks own;
  own.calls = q.calls;
  own.chosen = q.chosen;
  own.seen_keys = q.seen_keys;
  own.reverse = q.reverse;
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    const auto at = static_cast<size_t>(i);
    own.tasks.push_back(q.tasks[at]);
    own.call_of_task.push_back(q.call_of_task[at]);
    own.chosen_of_task.push_back(q.chosen_of_task[at]);
    if (!q.seen.empty()) own.seen.push_back(q.seen[at]);
  }
  return own;
}

void collect_values(Team& team, const QueryTasks& q, MemoryBudget& budget, QueryValues& computed) {
  if (team.is_alone()) return;
  const std::vector<IndexRange> runs = runs_of_heads(team, q);
  // What the others send, and the values that are made of it.
  const int64_t others =
      tokens_of(q, {0, std::ssize(q.tasks)}) - tokens_of(q, runs[static_cast<size_t>(team.rank())]);
  if (team.is_first()) {
    computed.others = budget.reserve(2 * others * 4, "the other processes' values");
  }
  std::string mine;
  if (!team.is_first()) {
    for (const std::vector<float>& values : computed.values) append(mine, values);
    append(mine, computed.lse);
    computed = {};
  }
  std::vector<std::string> all = team.collect(mine);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    std::string_view left = all[rank];
    for (int64_t i = runs[rank].begin; i < runs[rank].end; ++i) {
      computed.values.push_back(take<float>(left, q.shown(static_cast<size_t>(i)).tokens()));
    }
    const auto lse = take<double>(left, runs[rank].size());
    computed.lse.insert(computed.lse.end(), lse.begin(), lse.end());
    all[rank] = {};
  }
}

}  // namespace attnscope

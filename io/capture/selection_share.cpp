#include "io/capture/selection_share.h"

#include "core/stream/head_work.h"

namespace attnscope {
namespace {

/// A head of a selected call, or the whole of it.
struct Unit {
  size_t call = 0, first_head = 0, heads = 0;
};

/// Of a head with all batch items, in thousands of elements of q, k and v.
int64_t copy_work(const SelectedCall& call) {
  const AttentionProblem& problem = *call.call->problem;
  const int64_t tokens = problem.num_queries() + 2 * problem.num_keys();
  return 1 + std::ssize(call.batch) * (tokens * problem.head_dim() / 1024);
}

int64_t map_work(const SelectedCall& call, size_t head) {
  const AttentionProblem& problem = *call.call->problem;
  // Without a mask all of them take the same.
  if (problem.mask().is_none()) {
    return std::ssize(call.batch) * head_work(problem, call.batch.front(), call.heads[head]);
  }
  int64_t work = 0;
  for (const int64_t item : call.batch) work += head_work(problem, item, call.heads[head]);
  return work;
}

}  // namespace

std::vector<SelectedCall> SelectionShare::of(const std::vector<SelectedCall>& whole) const {
  std::vector<SelectedCall> own = touched(whole);
  const std::vector<int64_t> at = places();
  for (size_t i = 0; i < own.size(); ++i) own[i].heads = heads[static_cast<size_t>(at[i])];
  return own;
}

std::vector<SelectedCall> SelectionShare::touched(const std::vector<SelectedCall>& whole) const {
  std::vector<SelectedCall> calls;
  for (const int64_t place : places()) calls.push_back(whole[static_cast<size_t>(place)]);
  return calls;
}

std::vector<int64_t> SelectionShare::places() const {
  std::vector<int64_t> places;
  for (size_t c = 0; c < heads.size(); ++c) {
    if (!heads[c].empty()) places.push_back(static_cast<int64_t>(c));
  }
  return places;
}

SelectionShare share_selection(const std::vector<SelectedCall>& whole, PlanShare share,
                               ShareUnit unit, const std::string& asked_for) {
  std::vector<Unit> units;
  std::vector<int64_t> work;
  for (size_t c = 0; c < whole.size(); ++c) {
    for (size_t h = 0; h < whole[c].heads.size(); ++h) {
      const int64_t of_head =
          unit == ShareUnit::copies ? copy_work(whole[c]) : map_work(whole[c], h);
      if (unit != ShareUnit::heads && h > 0) {
        ++units.back().heads;
        work.back() += of_head;
        continue;
      }
      units.push_back({c, h, 1});
      work.push_back(of_head);
    }
  }
  SelectionShare result;
  result.part = {share, plan_hash(whole, asked_for),
                 share_out(work, share.count)[static_cast<size_t>(share.index)], std::ssize(units)};
  result.heads.resize(whole.size());
  for (int64_t u = result.part.units.begin; u < result.part.units.end; ++u) {
    const Unit& own = units[static_cast<size_t>(u)];
    const auto first = whole[own.call].heads.begin() + static_cast<int64_t>(own.first_head);
    std::vector<int64_t>& heads = result.heads[own.call];
    heads.insert(heads.end(), first, first + static_cast<int64_t>(own.heads));
  }
  return result;
}

}  // namespace attnscope

#include "cli/diff/diff_pairs.h"

#include <map>
#include <tuple>

#include "cli/common/head_table.h"
#include "core/base/error.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

struct Place {
  const AttentionProblem* problem = nullptr;
  int64_t batch = 0, head = 0;
};

std::map<HeadName, Place> heads_of(const Capture& capture) {
  std::map<HeadName, Place> heads;
  for (const CallEntry& call : capture.calls()) {
    for (int64_t b = 0; b < call.problem->batch(); ++b) {
      for (int64_t h = 0; h < call.problem->num_heads(); ++h) {
        heads[head_name(call.id, b, h)] = {call.problem.get(), b, h};
      }
    }
  }
  return heads;
}

}  // namespace

std::vector<HeadTask> DiffPairs::tasks() const {
  std::vector<HeadTask> all;
  std::map<std::tuple<const AttentionProblem*, int64_t, int64_t>, bool> named;
  for (const NamedPair& pair : pairs) {
    for (const HeadTask* task : {&pair.heads.a, &pair.heads.b}) {
      if (named.emplace(std::tuple(task->problem, task->batch, task->head), true).second) {
        all.push_back(*task);
      }
    }
  }
  return all;
}

DiffPairs make_diff_pairs(const Capture& a, const SelectionOptions& selection, const Capture& b,
                          const OtherValues& other, int64_t sample) {
  const std::map<HeadName, Place> places = heads_of(b);
  std::vector<HeadName> names;
  for (const auto& [name, place] : places) names.push_back(name);
  const OtherHeads others(names, b.path().string());
  const std::vector<SelectedCall> calls = a.select(parse_selection(selection));
  DiffPairs found;
  found.rows.reserve(calls.size());
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t rows = problem.num_queries();
    found.rows.push_back(sample > 0 && sample < rows ? sampled_rows(rows, sample)
                                                     : std::vector<int64_t>());
    std::vector<HeadName> heads;
    for (const int64_t item : selected.batch) {
      for (const int64_t head : selected.heads) {
        heads.push_back(head_name(selected.call->id, item, head));
      }
    }
    for (const auto& [name, met] : pair_heads(heads, others, other, &a == &b)) {
      const Place& place = places.at(met);
      check_comparable(problem, *place.problem);
      const IndexRange keys{0, problem.num_keys()};
      found.pairs.push_back(
          {name,
           met,
           {{&problem, name.batch, name.head, {0, rows}, found.rows.back(), keys},
            {place.problem, place.batch, place.head, {0, rows}, found.rows.back(), keys}}});
    }
  }
  return found;
}

}  // namespace attnscope

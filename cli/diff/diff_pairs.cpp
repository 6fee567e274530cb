#include "cli/diff/diff_pairs.h"

#include <charconv>
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

int64_t whole_number(const std::string& text, const char* option) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return value;
  throw usage_error(std::string(option) + " " + one_line(text) + ": expected a whole number");
}

/// The name of B's head. A branch is that of its batch item, so that naming one leaves the item
/// open.
HeadName name_of_other(HeadName name, const OtherValues& other) {
  const auto number = [](const std::string& text, const char* option, int64_t& value) {
    if (!text.empty()) value = whole_number(text, option);
  };
  number(other.step, "--b-step", name.step);
  number(other.layer, "--b-layer", name.layer);
  number(other.chunk, "--b-chunk", name.place.chunk);
  number(other.batch, "--b-batch", name.batch);
  number(other.head, "--b-head", name.head);
  if (!other.branch.empty()) name.branch = other.branch;
  if (!other.block.empty()) name.place.block = other.block;
  if (!other.slot.empty()) name.place.slot = other.slot;
  return name;
}

/// Whether a head of B is the one that is looked for, as far as that was said: the block of another
/// layer, the item of another branch and the kind of another slot have other names.
bool is_meant(const HeadName& candidate, const HeadName& wanted, const OtherValues& other) {
  const bool free_item = !other.branch.empty() && other.batch.empty();
  const bool free_branch = other.branch.empty() && !other.batch.empty();
  const bool free_block = !other.layer.empty() && other.block.empty();
  const bool free_layer = other.layer.empty() && !other.block.empty();
  const bool free_kind = !other.slot.empty();
  return candidate.step == wanted.step && candidate.head == wanted.head &&
         candidate.place.chunk == wanted.place.chunk && candidate.place.slot == wanted.place.slot &&
         (free_layer || candidate.layer == wanted.layer) &&
         (free_block || candidate.place.block == wanted.place.block) &&
         (free_kind || candidate.kind == wanted.kind) &&
         (free_item || candidate.batch == wanted.batch) &&
         (free_branch || candidate.branch == wanted.branch);
}

}  // namespace

bool OtherValues::any() const {
  for (const std::string* value : {&step, &layer, &chunk, &branch, &block, &slot, &batch, &head}) {
    if (!value->empty()) return true;
  }
  return false;
}

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
  const std::map<HeadName, Place> others = heads_of(b);
  const std::vector<SelectedCall> calls = a.select(parse_selection(selection));
  DiffPairs found;
  found.rows.reserve(calls.size());
  for (const SelectedCall& selected : calls) {
    const AttentionProblem& problem = *selected.call->problem;
    const int64_t rows = problem.num_queries();
    found.rows.push_back(sample > 0 && sample < rows ? sampled_rows(rows, sample)
                                                     : std::vector<int64_t>());
    for (const int64_t item : selected.batch) {
      for (const int64_t head : selected.heads) {
        const HeadName name = head_name(selected.call->id, item, head);
        const HeadName wanted = name_of_other(name, other);
        const Place* place = nullptr;
        HeadName met;
        for (const auto& [candidate, at] : others) {
          if (!is_meant(candidate, wanted, other)) continue;
          place = &at;
          met = candidate;
          break;
        }
        if (place == nullptr) {
          throw usage_error(b.path().string() + ": has no " + head_label(wanted) +
                            " to compare with " + head_label(name) +
                            "; select heads that both have");
        }
        if (place->problem == &problem && place->batch == item && place->head == head) {
          throw usage_error(head_label(name) +
                            " would be compared with itself; give a second capture, or what is "
                            "other of side B: --b-step, --b-layer, --b-branch, --b-head ...");
        }
        check_comparable(problem, *place->problem);
        const IndexRange keys{0, problem.num_keys()};
        found.pairs.push_back(
            {name,
             met,
             {{&problem, item, head, {0, rows}, found.rows.back(), keys},
              {place->problem, place->batch, place->head, {0, rows}, found.rows.back(), keys}}});
      }
    }
  }
  return found;
}

}  // namespace attnscope

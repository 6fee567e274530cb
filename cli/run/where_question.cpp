#include "cli/run/where_question.h"

#include <optional>
#include <utility>

namespace attnscope {

WhereQuestion::WhereQuestion(const SelectionOptions& selection, const Capture& capture)
    : condition_(HeadCondition::parse(selection.where.value(), "--where")) {
  SelectionOptions rest = selection;
  rest.where.reset();
  for (const SelectedCall& selected : capture.select(parse_selection(rest))) {
    for (const int64_t item : selected.batch) {
      SelectedCall open{selected.call, {item}, {}};
      for (const int64_t head : selected.heads) {
        const HeadName name = head_name(selected.call->id, item, head);
        const std::optional<bool> truth = condition_.truth({name});
        if (!truth && condition_.may_hold(name)) open.heads.push_back(head);
        if (truth == std::optional(true)) by_name_.insert(name);
      }
      if (!open.heads.empty()) open_.push_back(std::move(open));
    }
  }
}

std::vector<SelectedCall> WhereQuestion::open_calls() const {
  std::vector<SelectedCall> calls;
  for (const SelectedCall& each : open_) {
    if (calls.empty() || calls.back().call != each.call) calls.push_back({each.call, {}, {}});
  }
  return calls;
}

StatsJobs WhereQuestion::ask(const HeadRecords& known, const StatsChoice& choice) {
  std::vector<SelectedCall> unknown = open_;
  for (SelectedCall& call : unknown) {
    std::erase_if(call.heads, [&](int64_t head) {
      const auto found = known.find(head_name(call.call->id, call.batch.front(), head));
      if (found != known.end()) numbers_.insert(*found);
      return found != known.end();
    });
  }
  std::erase_if(unknown, [](const SelectedCall& call) { return call.heads.empty(); });
  return make_stats_jobs(choice, std::move(unknown));
}

void WhereQuestion::suppose(const StatsJobs& jobs) {
  for (const ReductionJob& job : jobs.jobs) {
    supposed_.insert(head_name(job.task.problem->id(), job.task.batch, job.task.head));
  }
}

bool WhereQuestion::holds(const HeadRecord& record) const {
  return condition_.holds({record.name, record.metrics.head_class, [&](const HeadField& field) {
                             return number_of(record.metrics, field);
                           }});
}

std::set<HeadName> WhereQuestion::holding() const {
  std::set<HeadName> heads = by_name_;
  heads.insert(supposed_.begin(), supposed_.end());
  for (const auto& [name, record] : numbers_) {
    if (holds(record)) heads.insert(name);
  }
  return heads;
}

HeadRecords WhereQuestion::records() const {
  HeadRecords records;
  for (const auto& [name, record] : numbers_) {
    if (holds(record)) records.emplace(name, record);
  }
  return records;
}

}  // namespace attnscope

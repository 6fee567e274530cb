#pragma once

#include <map>
#include <set>
#include <vector>

#include "cli/common/capture_options.h"
#include "cli/run/stats_jobs.h"
#include "core/heads/head_condition.h"
#include "core/heads/head_record.h"
#include "core/problem/head_name.h"
#include "io/capture/capture.h"

namespace attnscope {

using HeadRecords = std::map<HeadName, HeadRecord>;

/// A --where while it is answered: names tell of some heads, numbers of the others. Borrows the
/// capture. One thread's.
class WhereQuestion {
 public:
  /// Looks at the names of all heads of the other options' selection. `where` of the selection is
  /// given. Throws as Capture::select().
  WhereQuestion(const SelectionOptions& selection, const Capture& capture);

  /// The calls, whole, of whose heads numbers are needed: empty where names told of all.
  std::vector<SelectedCall> open_calls() const;
  /// Takes numbers that are known, and gives the jobs that find those of the other heads.
  StatsJobs ask(const HeadRecords& known, const StatsChoice& choice);
  int64_t known() const { return static_cast<int64_t>(numbers_.size()); }
  /// Takes numbers that were found.
  void add(const HeadRecords& records) { numbers_.insert(records.begin(), records.end()); }
  /// Takes the heads of jobs, whose numbers will not be found, as holding.
  void suppose(const StatsJobs& jobs);

  const std::set<HeadName>& supposed() const { return supposed_; }

  /// The heads that it holds for, those of suppose() among them.
  std::set<HeadName> holding() const;
  /// Of these, those whose numbers were compared.
  HeadRecords records() const;

 private:
  bool holds(const HeadRecord& record) const;

  const HeadCondition condition_;
  std::set<HeadName> by_name_;  ///< that hold whatever their numbers
  std::set<HeadName> supposed_;
  std::vector<SelectedCall> open_;  ///< the heads whose names do not tell, a batch item each
  HeadRecords numbers_;
};

}  // namespace attnscope

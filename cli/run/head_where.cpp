#include "cli/run/head_where.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/cache_option.h"
#include "cli/run/forecast.h"
#include "cli/run/kept_numbers.h"
#include "cli/run/run_backend.h"
#include "cli/run/run_steps.h"
#include "cli/run/stream_run.h"
#include "cli/run/team_steps.h"
#include "core/base/error.h"
#include "io/results/head_json.h"

namespace attnscope {
namespace {

constexpr std::string_view kSomeKept =
    "the numbers of --where that were found are kept, and the next run goes on with them";
constexpr int64_t kRecordBytes = 10 << 10;

/// Adds the records in a text of another process.
void add_records(const std::string& text, HeadRecords& records) {
  if (text.empty()) return;
  for (const OrderedJson& row : OrderedJson::parse(text)) {
    std::optional<HeadRecord> record = parse_head_json(row);
    if (!record) continue;
    const HeadName name = record->name;
    records.insert_or_assign(name, std::move(*record));
  }
}

std::string text_of(const HeadRecords& records) {
  auto rows = OrderedJson::array();
  for (const auto& [name, record] : records) rows.push_back(head_json(record));
  return rows.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

/// Finds the numbers that a question asks for.
class NumberSearch {
 public:
  NumberSearch(WhereQuestion& question, KeptNumbers kept, const StatsChoice& choice,
               const WhereMeans& means)
      : question_(question), kept_(std::move(kept)), choice_(choice), means_(means) {}

  /// Of a dry run with numbers to find: what that would take.
  std::optional<WherePlan> run() {
    // One process's files count, since others may lie on another host.
    if (means_.team.is_first()) known_ = kept_.load();
    const std::string text =
        means_.team.exchange(means_.team.is_first() ? text_of(known_) : "").front();
    if (!means_.team.is_first()) add_records(text, known_);
    StatsJobs jobs = question_.ask(known_, choice_);
    if (jobs.jobs.empty()) {
      means_.console.say(
          fmt::format("--where: numbers of {} are kept", heads_text(question_.known())));
      return std::nullopt;
    }
    const RunPlan work =
        forecast_run("stats", jobs.jobs, plan(jobs), means_.backend, means_.budget, means_.dry_run);
    if (!means_.dry_run) {
      measure(jobs, work);
      return std::nullopt;
    }
    means_.console.say(fmt::format(
        "--where: the numbers of {} are not known ({}FLOP{}): what follows is of all that may be "
        "left",
        heads_text(work.heads), format_count(work.flops), about_text(work)));
    question_.suppose(jobs);
    return WherePlan{work.heads, work.flops, work.seconds};
  }

 private:
  ReductionPlan plan(const StatsJobs& jobs) const {
    return plan_stats(choice_, jobs, means_.backend, means_.budget, means_.threads);
  }

  /// Each process measures its part of the heads, and gets the others' numbers.
  void measure(StatsJobs& jobs, const RunPlan& work) {
    means_.console.say(
        fmt::format("--where: numbers of {}{}: {}FLOP{}", heads_text(work.heads),
                    question_.known() > 0 ? fmt::format(" ({} are kept)", question_.known()) : "",
                    format_count(work.flops), about_text(work)));
    const MemoryReservation results = reserve_results(means_.budget, work.heads, kRecordBytes);
    const IndexRange own = own_run(means_.team, std::ssize(jobs.jobs));
    std::vector<int64_t> others;
    for (int64_t i = 0; i < std::ssize(jobs.jobs); ++i) {
      if (i < own.begin || i >= own.end) others.push_back(i);
    }
    drop_jobs(jobs, others);
    HeadRecords mine, all;
    const bool complete = jobs.jobs.empty() || stream(jobs, mine);
    if (!complete) {
      means_.capture.require_unchanged();
      // Processes together would each replace the others' files.
      const bool kept = means_.team.is_alone() && keep(mine);
      throw interrupted_error(kept ? kSomeKept : kNothingKept);
    }
    for (const std::string& text : means_.team.exchange(text_of(mine))) add_records(text, all);
    means_.capture.require_unchanged();
    question_.add(all);
    if (means_.team.is_first()) keep(all);
  }

  bool stream(const StatsJobs& jobs, HeadRecords& mine) {
    const CheckedRun scope(means_.console, jobs.jobs, means_.backend);
    scope.check_logits(jobs.jobs, means_.backend, means_.budget);
    return measure_heads({means_.console, "--where", means_.backend, means_.budget, scope.stop()},
                         choice_, jobs, plan(jobs), [&](HeadRecord record) {
                           const HeadName name = record.name;
                           mine.insert_or_assign(name, std::move(record));
                         });
  }

  /// False where nothing could be kept, or there is nothing.
  bool keep(const HeadRecords& fresh) {
    if (fresh.empty() || !kept_.enabled()) return false;
    const std::string wrong = kept_.store(known_, fresh);
    if (!wrong.empty()) {
      means_.console.say("note: the numbers of --where are not kept: " + wrong);
    }
    return wrong.empty();
  }

  WhereQuestion& question_;
  KeptNumbers kept_;
  const StatsChoice& choice_;
  const WhereMeans& means_;
  HeadRecords known_;
};

}  // namespace

SettledWhere settle_where(SelectionOptions& selection, const StatsChoice& choice,
                          const WhereMeans& means) {
  if (!asks_for_numbers(selection)) return {};
  StatsChoice numbers = choice;
  numbers.arrays.clear();
  WhereQuestion question(selection, means.capture);
  SettledWhere settled;
  if (const std::vector<SelectedCall> calls = question.open_calls(); !calls.empty()) {
    const CallDigests digests = digest_calls(means.team, means.capture, calls, std::nullopt, false,
                                             means.console.stop().get_token());
    settled.plan = NumberSearch(question,
                                KeptNumbers(cache_folders(selection.cache, means.capture), calls,
                                            digests.of_calls, numbers, means.backend),
                                numbers, means)
                       .run();
  }
  settled.records = question.records();
  settled.supposed = question.supposed();
  selection.holding = std::make_shared<const std::set<HeadName>>(question.holding());
  return settled;
}

SettledWhere settle_where(SelectionOptions& selection, const Capture& capture,
                          const RunOptions& run, const Console& console, bool dry_run) {
  if (!asks_for_numbers(selection)) return {};
  const RunBackend backend = make_run_backend(run, console);
  MemoryBudget budget(memory_beside(capture, run));
  Team alone;
  return settle_where(selection, {},
                      {capture, *backend, budget, alone, console, run.threads, dry_run});
}

}  // namespace attnscope

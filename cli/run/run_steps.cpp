#include "cli/run/run_steps.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/stream/logit_check.h"
#include "io/files/json_types.h"
#include "io/results/output_provenance.h"

namespace attnscope {
namespace {

std::vector<HeadTask> tasks_of(std::span<const ReductionJob> jobs) {
  std::vector<HeadTask> tasks;
  for (const ReductionJob& job : jobs) tasks.push_back(job.task);
  return tasks;
}

}  // namespace

std::string heads_text(int64_t heads) {
  return fmt::format("{} head{}", heads, heads == 1 ? "" : "s");
}

std::string about_text(const RunPlan& plan, std::string_view note) {
  return plan.seconds < 0 ? "" : fmt::format(", about {}{}", format_seconds(plan.seconds), note);
}

MemoryReservation reserve_results(MemoryBudget& budget, int64_t results, int64_t bytes_each) {
  constexpr int64_t kFreeBytes = 24 << 20;
  const int64_t bytes = std::max(results * bytes_each - kFreeBytes, int64_t{0});
  return budget.reserve(bytes, fmt::format("{} results", results));
}

CheckedRun::CheckedRun(const Console& console, std::span<const HeadTask> tasks,
                       const TileBackend& backend, bool with_values)
    : CheckedRun(
          console, tasks,
          ValueScan{
              .with_values = with_values, .threads = backend.workers(), .backend = &backend}) {}

CheckedRun::CheckedRun(const Console& console, std::span<const HeadTask> tasks,
                       const ValueScan& scan)
    : interrupts_(console), magnitudes_(check_values(tasks, interrupts_.token(), scan)) {}

CheckedRun CheckedRun::of_rows(const Console& console, std::span<const HeadTask> tasks,
                               const TileBackend& backend) {
  return CheckedRun(
      console, tasks,
      ValueScan{.threads = backend.workers(), .few_rows_of = &backend, .backend = &backend});
}

void CheckedRun::scan_all(std::span<const HeadTask> tasks, const TileBackend& backend) const {
  check_values(tasks, stop(), {.threads = backend.workers()});
}

CheckedRun::CheckedRun(const Console& console, std::span<const ReductionJob> jobs,
                       const TileBackend& backend)
    : CheckedRun(console, tasks_of(jobs), backend) {}

void CheckedRun::check_logits(std::span<const HeadTask> tasks, const TileBackend& backend,
                              MemoryBudget& budget, Quantity quantity) const {
  if (quantity == Quantity::weights) attnscope::check_logits(tasks, backend, budget, stop());
  std::vector<HeadTask> of_logits;
  std::vector<TaskMagnitudes> magnitudes;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (needs_norms(tasks[i].problem->score(), quantity)) continue;
    of_logits.push_back(tasks[i]);
    magnitudes.push_back(magnitudes_[i]);
  }
  check_stored_logits(of_logits, magnitudes, backend, budget, stop());
}

void CheckedRun::check_logits(std::span<const ReductionJob> jobs, const TileBackend& backend,
                              MemoryBudget& budget) const {
  check_logits(tasks_of(jobs), backend, budget);
}

bool is_complete_already(const Console& console, const std::filesystem::path& out,
                         std::string_view product, const OrderedJson& identity) {
  std::error_code none;
  if (!std::filesystem::exists(out, none)) return false;
  expect_same_run(output_provenance(out, product), identity, out);
  say_complete(console, out);
  return true;
}

void say_complete(const Console& console, const std::filesystem::path& out) {
  console.say(out.string() + " is complete already");
}

std::string leftover_text(const KeptParts& kept) {
  if (kept.done == 0) return std::string(kNothingKept);
  return fmt::format("{} of {} {} are in {}; --resume goes on", kept.done, kept.total, kept.what,
                     kept.path.string());
}

std::string resuming_text(const KeptParts& kept) {
  return fmt::format("resuming {}: {} of {} {} are there", kept.path.string(), kept.done,
                     kept.total, kept.what);
}

Error interrupted_error(std::string_view left) {
  return {ErrorCode::interrupted, fmt::format("interrupted: {}", left)};
}

void print_result(bool as_json, bool in_file, const std::function<OrderedJson()>& json,
                  const std::function<void()>& print_text) {
  if (as_json) {
    print_json(json(), true);
  } else if (!in_file) {
    print_text();
  }
}

}  // namespace attnscope

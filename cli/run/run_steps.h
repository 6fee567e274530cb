#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "cli/common/console.h"
#include "cli/common/interrupt.h"
#include "cli/run/run_plan.h"
#include "core/base/error.h"
#include "core/base/memory_budget.h"
#include "core/reduce/reduction_stream.h"
#include "core/stream/tile_backend.h"
#include "core/stream/tile_sink.h"
#include "core/stream/value_check.h"
#include "io/files/json_types.h"

namespace attnscope {

// Steps that commands share before and after their streams (stream_run.h), in the same words.

/// "1 head", "6 heads".
std::string heads_text(int64_t heads);
/// ", about 4 min 10 s", and the note; nothing where the time was not estimated.
std::string about_text(const RunPlan& plan, std::string_view note = {});

/// Reserves memory for results (lines or JSON, `bytes_each`) that wait to be written, beyond the
/// few MiB that nobody counts. Throws Error(resource) where the budget has no room.
MemoryReservation reserve_results(MemoryBudget& budget, int64_t results, int64_t bytes_each);

/// A run whose inputs were found good, while it lives: signals request its stop.
class CheckedRun {
 public:
  /// Scans q and k of the tasks, and v `with_values`, for NaN and Inf, on the backend's number of
  /// threads. Throws Error(value) naming the first, Error(interrupted).
  CheckedRun(const Console& console, std::span<const HeadTask> tasks, const TileBackend& backend,
             bool with_values = false);
  /// For rows that are written when all are there: keys that heads of few rows refuse on their own
  /// are left to them (core/stream/value_check.h); scan_all() is then for what the stream throws.
  static CheckedRun of_rows(const Console& console, std::span<const HeadTask> tasks,
                            const TileBackend& backend);
  /// Throws what the constructor throws.
  void scan_all(std::span<const HeadTask> tasks, const TileBackend& backend) const;
  CheckedRun(const Console& console, std::span<const ReductionJob> jobs,
             const TileBackend& backend);
  /// core/stream/logit_check.h: throws before anything was written. Of the tasks that were scanned.
  void check_logits(std::span<const HeadTask> tasks, const TileBackend& backend,
                    MemoryBudget& budget, Quantity quantity = Quantity::weights) const;
  void check_logits(std::span<const ReductionJob> jobs, const TileBackend& backend,
                    MemoryBudget& budget) const;
  std::stop_token stop() const { return interrupts_.token(); }

 private:
  CheckedRun(const Console& console, std::span<const HeadTask> tasks, const ValueScan& scan);

  InterruptWatch interrupts_;
  std::vector<TaskMagnitudes> magnitudes_;  ///< of each task
};

/// True where --resume finds the output of this very run at `out`; says so, too. `identity` is
/// {"capture_hash", "options"}, `product` as of output_provenance(). Throws Error(file) where the
/// output is of another run, or does not say what it was made of.
bool is_complete_already(const Console& console, const std::filesystem::path& out,
                         std::string_view product, const OrderedJson& identity);
void say_complete(const Console& console, const std::filesystem::path& out);

/// The progress of an output that is not finished.
struct KeptParts {
  int64_t done = 0, total = 0;
  std::string_view what;       ///< "tiles", "heads"
  std::filesystem::path path;  ///< OUT.part
};
/// "3 of 12 tiles are in OUT.part; --resume goes on", or kNothingKept where none is.
std::string leftover_text(const KeptParts& kept);
/// "resuming OUT.part: 3 of 12 tiles are there".
std::string resuming_text(const KeptParts& kept);

/// The error of a run that was stopped: "interrupted: " and what is left of its output, as
/// leftover_text() says it.
inline constexpr std::string_view kNothingKept = "nothing was kept";
inline constexpr std::string_view kNothingWritten = "nothing was written";
Error interrupted_error(std::string_view left);

/// A run's result on standard output: JSON where it was asked for, else text unless the result went
/// into a file.
void print_result(bool as_json, bool in_file, const std::function<OrderedJson()>& json,
                  const std::function<void()>& print_text);

}  // namespace attnscope

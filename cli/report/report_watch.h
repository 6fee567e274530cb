#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "cli/common/interrupt.h"
#include "cli/report/report_options.h"
#include "cli/run/run_steps.h"

namespace attnscope {

/// While it lives, signals stop a report, and the time of --budget-time runs.
class ReportWatch {
 public:
  ReportWatch(const ReportRequest& request, const Console& console) : interrupts_(console) {
    if (request.budget_time.empty()) return;
    end_ = std::chrono::steady_clock::now() + parse_time_span(request.budget_time, "--budget-time");
  }

  std::stop_token stop() const { return interrupts_.token(); }
  /// False once time is over. Throws Error(interrupted) when the report was stopped.
  bool time_left() const {
    require_going();
    return !end_ || std::chrono::steady_clock::now() < *end_;
  }
  void require_going() const {
    if (interrupts_.interrupted()) throw interrupted_error(kNothingWritten);
  }

 private:
  InterruptWatch interrupts_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace attnscope

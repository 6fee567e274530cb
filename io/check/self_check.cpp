#include "io/check/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/problem/sampled_rows.h"
#include "io/check/recorded_rows.h"

namespace attnscope {
namespace {

/// Multiply-adds of a quick check: about a tenth of a second.
constexpr int64_t kGlanceWork = int64_t{1} << 28;
constexpr int64_t kGlanceRows = 4;

void check_stop(std::stop_token stop) {
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
}

/// Why a call has nothing to compare with, and how to have it.
std::string missing_text(const CallEntry& call) {
  if (call.out && !call.problem->v()) {
    return "output rows are recorded, but no v: capture with the values (values=True)";
  }
  return "neither out and out_rows nor lse: samples/capture records them";
}

struct HeadPlace {
  int64_t batch = 0, head = 0;
};

std::vector<HeadPlace> chosen_heads(const AttentionProblem& p, const CheckDepth& depth) {
  const auto all_or = [](const std::vector<int64_t>& chosen, int64_t count) {
    return chosen.empty() ? sampled_rows(count, count) : chosen;
  };
  std::vector<HeadPlace> all;
  for (int64_t item : all_or(depth.batch_items, p.batch())) {
    for (int64_t head : all_or(depth.head_numbers, p.num_heads())) all.push_back({item, head});
  }
  const auto total = static_cast<int64_t>(all.size());
  std::vector<HeadPlace> heads;
  for (int64_t i : sampled_rows(total, depth.heads > 0 ? depth.heads : total)) {
    heads.push_back(all[static_cast<size_t>(i)]);
  }
  return heads;
}

/// Checks heads of one call on several threads.
class CallChecker {
 public:
  CallChecker(CallCheck& check, const CheckDepth& depth, const CheckMeans& means,
              std::stop_token stop)
      : check_(check), depth_(depth), means_(means), stop_(std::move(stop)) {}

  void run(int threads) {
    heads_ = chosen_heads(*check_.call->problem, depth_);
    const int64_t room =
        means_.budget.available() / computed_rows_bytes(*check_.call, means_.backend);
    const auto workers = std::clamp<int64_t>(std::min<int64_t>(threads, room), 1,
                                             static_cast<int64_t>(heads_.size()));
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < workers; ++i) {
      start_thread(others, static_cast<size_t>(workers) - 1, [this] { work(); });
    }
    work();
    others.clear();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    try {
      for (size_t i = next_++; i < heads_.size() && !failed_; i = next_++) check_head(heads_[i]);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  void check_head(const HeadPlace& place) {
    check_stop(stop_);
    const RecordedRows recorded(*check_.call, place.batch, place.head, depth_.rows);
    RecordedRows::Worst worst;
    std::string refusal;
    try {
      worst = recorded.compare(
          computed_rows(*check_.call, place.batch, place.head, recorded.rows(), means_));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::value) throw;
      worst.error = std::numeric_limits<double>::infinity();
      refusal = error.what();
    }
    const std::lock_guard lock(mutex_);
    ++check_.heads_checked;
    check_.rows_checked = static_cast<int64_t>(recorded.rows().size());
    if (worst.error > check_.tolerance) ++check_.heads_differing;
    if (!check_.call->approximation.empty()) {
      check_.head_errors.push_back({place.batch, place.head, worst.mean, worst.error});
    }
    // Of equal errors the first head's, whoever came first.
    const bool earlier = std::pair(place.batch, place.head) < std::pair(check_.batch, check_.head);
    if (check_.heads_checked > 1 && worst.error < check_.error) return;
    if (check_.heads_checked > 1 && worst.error == check_.error && !earlier) return;
    check_.error = worst.error;
    check_.batch = place.batch;
    check_.head = place.head;
    check_.row = recorded.rows()[worst.row];
    check_.refusal = refusal;
  }

  CallCheck& check_;
  const CheckDepth depth_;
  const CheckMeans means_;
  const std::stop_token stop_;
  std::vector<HeadPlace> heads_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// Multiply-adds that one row of one head takes.
int64_t row_work(const CallEntry& call) {
  const AttentionProblem& p = *call.problem;
  return p.num_keys() * (p.head_dim() + (p.v() ? p.v().width() : 0));
}

}  // namespace

std::string_view verdict_name(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::agrees:
      return "agrees";
    case CheckVerdict::differs:
      return "differs";
    case CheckVerdict::approximates:
      return "approximates";
    case CheckVerdict::nothing:
      break;
  }
  return "nothing to check against";
}

CallCheck check_call(const CallEntry& call, const CheckDepth& depth, const CheckMeans& means,
                     int threads, std::stop_token stop) {
  CallCheck check;
  check.call = &call;
  if (!RecordedRows::has_any(call)) {
    check.reason = missing_text(call);
    return check;
  }
  check.against = RecordedRows::has_outputs(call) ? "output rows" : "LSE";
  check.tolerance = check_tolerance(call);
  check.backend = means.backend.name_for(*call.problem);
  CallChecker(check, depth, means, std::move(stop)).run(threads);
  std::ranges::sort(check.head_errors, {},
                    [](const CallCheck::HeadError& e) { return std::pair(e.batch, e.head); });
  double sum = 0;
  for (const CallCheck::HeadError& e : check.head_errors) sum += e.mean;
  const bool approximates =
      !check.head_errors.empty() &&
      sum <= kMostApproximation * static_cast<double>(check.head_errors.size());
  check.verdict = check.error <= check.tolerance ? CheckVerdict::agrees
                  : approximates                 ? CheckVerdict::approximates
                                                 : CheckVerdict::differs;
  return check;
}

std::optional<CallCheck> quick_check(const Capture& capture, const CheckMeans& means,
                                     std::stop_token stop) {
  // First the calls far from each other, in case there is no time for all.
  const auto& calls = capture.calls();
  std::vector<size_t> order;
  for (size_t stride = std::bit_ceil(calls.size()); stride > 0; stride /= 2) {
    for (size_t i = 0; i < calls.size(); i += stride) {
      if (stride == std::bit_ceil(calls.size()) || i % (2 * stride) != 0) order.push_back(i);
    }
  }
  int64_t work = 0;
  for (size_t i : order) {
    const CallEntry& call = calls[i];
    if (!RecordedRows::has_any(call)) continue;
    if (computed_rows_bytes(call, means.backend) > means.budget.available()) continue;
    work += kGlanceRows * row_work(call);
    if (work > kGlanceWork && work > kGlanceRows * row_work(call)) break;
    CallCheck check = check_call(call, {1, kGlanceRows}, means, 1, stop);
    if (check.verdict == CheckVerdict::differs) return check;
  }
  return std::nullopt;
}

std::string quick_check_warning(const CallCheck& check) {
  const CallId& id = check.call->id;
  return fmt::format(
      "{}: the recorded {} not agree with Q and K (error {:.2g}, tolerance {:.2g}); attnscope "
      "verify looks for the cause",
      one_line(
          call_words(id.step, id.layer, "", fmt::format("head {}", check.head), id.place, ", ")),
      check.against == "LSE" ? "LSE does" : "outputs do", check.error, check.tolerance);
}

}  // namespace attnscope

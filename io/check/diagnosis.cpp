#include "io/check/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace attnscope {
namespace {

constexpr int64_t kFewRows = 8;
/// A change that leaves less than this share of the error may be called the nearest miss.
constexpr double kNearMiss = 0.5;
/// A number that was fitted must leave less than this share of the error.
constexpr double kClearlyLess = 0.25;
/// Kernels with products of 8 bits or rounded logits differ by about this much.
constexpr double kLowPrecision = 0.05;

}  // namespace

Diagnosis::Diagnosis(const CallCheck& check, const Capture& capture, std::stop_token stop)
    : check_(check),
      capture_(capture),
      stop_(std::move(stop)),
      call_(*check.call),
      problem_(*check.call->problem),
      batch_(check.batch),
      head_(check.head),
      few_(call_, batch_, head_, kFewRows),
      all_(call_, batch_, head_, 0) {
  nearest_.error = std::numeric_limits<double>::infinity();
}

Suspect Diagnosis::run() {
  if (find_values() || try_plain_loops()) return suspect_;
  using Step = bool (Diagnosis::*)();
  for (Step step : {&Diagnosis::try_scales, &Diagnosis::try_masks, &Diagnosis::try_layouts,
                    &Diagnosis::try_batches, &Diagnosis::try_heads, &Diagnosis::try_token_orders,
                    &Diagnosis::try_positions, &Diagnosis::try_layers, &Diagnosis::find_sink,
                    &Diagnosis::find_cap, &Diagnosis::fit_scale, &Diagnosis::find_same_rows}) {
    if ((this->*step)()) return suspect_;
  }
  return unknown();
}

bool Diagnosis::find_values() {
  try {
    problem_.check_queries_finite(batch_, head_);
    problem_.check_keys_finite(batch_, problem_.kv_head(head_));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::value) throw;
    suspect_ = {"values", error.what(), check_.error};
    return true;
  }
  return false;
}

bool Diagnosis::try_plain_loops() {
  const std::string why = check_.refusal.empty() ? "" : " (" + check_.refusal + ")";
  return attempt({"backend",
                  fmt::format("computed in plain loops instead of by {}{}", check_.backend, why),
                  stated()});
}

double Diagnosis::error_of(const AttendInputs& inputs, const RecordedRows& recorded) const {
  if (stop_.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  return recorded.compare(attend_rows(inputs, recorded.rows())).error;
}

bool Diagnosis::attempt(const Try& attempt) {
  double error = error_of(attempt.inputs, few_);
  if (error <= check_.tolerance) error = error_of(attempt.inputs, all_);
  if (error < nearest_.error) nearest_ = {attempt.culprit, attempt.explanation, error};
  if (error > check_.tolerance || error > attempt.most * check_.error) return false;
  suspect_ = {attempt.culprit, attempt.explanation + " it agrees", error};
  return true;
}

Suspect Diagnosis::unknown() const {
  if (!check_.refusal.empty()) return {"values", check_.refusal, check_.error};
  std::string text = "none of the usual mistakes explains it";
  if (nearest_.error < kNearMiss * check_.error) {
    text += fmt::format("; nearest: {} the error is {:.2g}", nearest_.explanation, nearest_.error);
  } else if (check_.against != "LSE" && check_.error < kLowPrecision) {
    text +=
        "; so small a difference may come from a kernel of lower precision, or from a mask that "
        "hides few keys";
  }
  if (problem_.v() && !RecordedRows::has_outputs(call_)) text += "; only LSEs could be compared";
  return {"unknown", text, std::min(nearest_.error, check_.error)};
}

bool Diagnosis::try_scales() {
  const double d = static_cast<double>(problem_.head_dim());
  const double stated_scale = problem_.scale();
  struct Named {
    double scale;
    const char* name;
  };
  const Named scales[] = {{1, "none"},
                          {1 / std::sqrt(d), "1/sqrt(head_dim)"},
                          {stated_scale * stated_scale, "the recorded one applied twice"},
                          {std::sqrt(stated_scale), "the recorded one's root"},
                          {1 / d, "1/head_dim"},
                          {2 * stated_scale, "twice the recorded one"},
                          {stated_scale / 2, "half the recorded one"},
                          {stated_scale * std::sqrt(d), "sqrt(head_dim) times the recorded one"}};
  for (const Named& named : scales) {
    if (std::abs(named.scale / stated_scale - 1) < 1e-6) continue;
    AttendInputs inputs = stated();
    inputs.scale = named.scale;
    if (attempt({"scale",
                 fmt::format("with scale {:.6g} ({}) instead of {:.6g} (--scale {:.9g})",
                             named.scale, named.name, stated_scale, named.scale),
                 std::move(inputs)})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::find_sink() {
  const auto found = all_.missing_sink(attend_rows(stated(), all_.rows()));
  if (!found) return false;
  // What was learnt is no round number; what a script wrote is one.
  for (const double sink : {std::round(*found * 1e3) / 1e3, *found}) {
    AttendInputs inputs = stated();
    inputs.sink = sink;
    if (attempt({"sinks",
                 fmt::format("with a sink of {:.6g} in the softmax's denominator (--sinks {:.6g}; "
                             "other heads may have others: a tensor sinks [heads] tells them)",
                             sink, sink),
                 std::move(inputs), kClearlyLess})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::find_cap() {
  constexpr int kMostHalves = 24;  // caps from 1/16 to 256
  const auto capped = [&](double cap) {
    AttendInputs inputs = stated();
    inputs.cap = cap;
    return inputs;
  };
  const double found = std::exp2(best_octaves({-8, kMostHalves - 8}, [&](double octaves) {
    return error_of(capped(std::exp2(octaves)), few_);
  }));
  for (const double cap : {std::round(found), std::round(found * 10) / 10, found}) {
    if (cap > 0 &&
        attempt({"softcap",
                 fmt::format("with logits capped at {:.6g} (--score softcap:{:.6g})", cap, cap),
                 capped(cap), kClearlyLess})) {
      return true;
    }
  }
  return false;
}

double Diagnosis::best_octaves(IndexRange halves,
                               const std::function<double(double)>& error_at) const {
  // Coarse, then by golden section around the best.
  double best = 0, best_error = check_.error;
  for (int64_t i = halves.begin; i <= halves.end; ++i) {
    const double octaves = static_cast<double>(i) / 2, error = error_at(octaves);
    if (error < best_error) best = octaves, best_error = error;
  }
  double low = best - 0.5, high = best + 0.5;
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 24; ++i) {
    const double a = high - kGolden * (high - low);
    const double b = low + kGolden * (high - low);
    if (error_at(a) < error_at(b)) {
      high = b;
    } else {
      low = a;
    }
  }
  return (low + high) / 2;
}

bool Diagnosis::fit_scale() {
  constexpr int kSteps = 24;
  AttendInputs inputs = stated();
  inputs.scale *= std::exp2(best_octaves({-kSteps, kSteps}, [&](double octaves) {
    AttendInputs scaled = stated();
    scaled.scale *= std::exp2(octaves);
    return error_of(scaled, few_);
  }));
  const double scale = inputs.scale;
  return attempt({"scale",
                  fmt::format("with scale {:.6g} instead of {:.6g} (--scale {:.9g})", scale,
                              problem_.scale(), scale),
                  std::move(inputs)});
}

AttendInputs Diagnosis::taken_from(const CallEntry& other, int64_t batch, int64_t head,
                                   const std::string& parts) const {
  const AttentionProblem& p = *other.problem;
  AttendInputs inputs = stated();
  const auto wants = [&](char part) { return parts.find(part) != std::string::npos; };
  if (wants('q')) inputs.q = stored_rows(p.q(), batch, head);
  if (wants('k')) inputs.k = stored_rows(p.k(), batch, p.kv_head(head));
  if (wants('v') && inputs.v && p.v()) inputs.v = stored_rows(p.v(), batch, p.kv_head(head));
  return inputs;
}

Suspect find_culprit(const CallCheck& check, const Capture& capture, std::stop_token stop) {
  const AttentionProblem& problem = *check.call->problem;
  if (problem.score() != ScoreFunction::softmax || !problem.sinks().is_none()) {
    return {"unknown",
            fmt::format("mistakes are looked for in plain softmax attention only (score {})",
                        problem.score_words()),
            check.error};
  }
  return Diagnosis(check, capture, std::move(stop)).run();
}

}  // namespace attnscope

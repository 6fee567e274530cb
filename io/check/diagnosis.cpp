#include "io/check/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/error.h"
#include "core/mask/place_bias.h"

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
  for (Step step :
       {&Diagnosis::try_scales, &Diagnosis::try_masks, &Diagnosis::try_without_sinks,
        &Diagnosis::try_lse_forms, &Diagnosis::try_layouts, &Diagnosis::try_batches,
        &Diagnosis::try_heads, &Diagnosis::try_token_orders, &Diagnosis::try_positions,
        &Diagnosis::try_layers, &Diagnosis::find_sink, &Diagnosis::find_cap,
        &Diagnosis::find_place_biases, &Diagnosis::fit_scale, &Diagnosis::find_same_rows}) {
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
  const double stated_scale = problem_.scale(head_);
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
      fit_other_heads(named.scale);
      return true;
    }
  }
  return false;
}

bool Diagnosis::try_without_sinks() {
  if (problem_.sinks().is_none()) return false;
  AttendInputs inputs = stated();
  inputs.sinks = {};
  const bool lse = !all_.are_outputs();
  return attempt({"sinks",
                  lse ? "with LSEs that leave the sink out (a map's own lse counts it)"
                      : "without the sinks that are stated (--sinks none)",
                  std::move(inputs)});
}

bool Diagnosis::try_lse_forms() {
  if (all_.are_outputs()) return false;
  for (const bool counts_sink : {true, false}) {
    if (!counts_sink && problem_.sinks().is_none()) continue;
    AttendInputs inputs = stated();
    if (!counts_sink) inputs.sinks = {};
    const AttendedRows natural = attend_rows(inputs, all_.rows());
    for (const bool base2 : {true, false}) {
      AttendedRows other = natural;
      for (double& lse : other.lse) lse *= base2 ? std::numbers::log2e : std::numbers::ln2;
      const double error = all_.compare(other).error;
      if (error > check_.tolerance) continue;
      suspect_ = {"lse",
                  fmt::format("with LSEs {}{} it agrees: the map is right, `lse` has another unit",
                              base2 ? "in base 2 (log2 of the row's sum)" : "times ln 2",
                              counts_sink ? "" : " that leave the sink out"),
                  error};
      return true;
    }
  }
  return false;
}

bool Diagnosis::find_place_biases() {
  const Mask& alibi = call_.alibi.mask;
  const Mask& relative = call_.relative_bias.mask;
  if (!relative.is_none()) {
    AttendInputs inputs = stated();
    inputs.mask = call_.mask_beside_biases & alibi;
    if (attempt({"relative_bias",
                 "without the relative biases that are stated (--relative-bias none)", inputs})) {
      return true;
    }
  }
  if (!alibi.is_none()) {
    AttendInputs inputs = stated();
    inputs.mask = call_.mask_beside_biases & relative;
    return attempt({"alibi", "without the linear biases that are stated (--alibi none)", inputs});
  }
  const int64_t shift = problem_.num_keys() - problem_.num_queries();
  const auto biased = [&](double slope) {
    AttendInputs inputs = stated();
    inputs.mask = inputs.mask & alibi_mask({{1, 1}, {static_cast<float>(slope)}}, shift);
    return inputs;
  };
  constexpr int64_t kMostHalves = 32;  // slopes from 2^-16 to 1
  const double octaves = best_octaves(
      {-kMostHalves, 0}, [&](double power) { return error_of(biased(std::exp2(power)), few_); });
  // Slopes that nobody learnt are powers of two, or of roots of two.
  for (const double power : {std::round(octaves * 4) / 4, octaves}) {
    const double slope = std::exp2(power);
    if (attempt({"alibi",
                 fmt::format("with linear biases, -{:.6g} times the distance (--alibi FILE: a "
                             "tensor [heads] of slopes, of which this head's is {:.6g})",
                             slope, slope),
                 biased(slope), kClearlyLess})) {
      return true;
    }
  }
  return false;
}

bool Diagnosis::find_row_sinks(const AttendedRows& computed) {
  // Of an LSE any number is a row's own sink; outputs have to be of one direction as well.
  if (!all_.are_outputs() || computed.width < 2) return false;
  const std::vector<double> sinks = all_.missing_sinks(computed);
  if (std::ranges::none_of(sinks, [](double sink) { return std::isfinite(sink); })) return false;
  AttendedRows scaled = computed;
  std::vector<double> parts;
  for (size_t r = 0; r < sinks.size(); ++r) {
    if (!std::isfinite(sinks[r])) continue;
    const double part = 1 / (1 + std::exp(sinks[r] - computed.lse[r]));
    parts.push_back(part);
    const auto row = std::span(scaled.outputs).subspan(r * computed.width, computed.width);
    for (double& value : row) value *= part;
  }
  const double error = all_.compare(scaled).error;
  if (error > check_.tolerance || error > kClearlyLess * check_.error) return false;
  const auto [smallest, largest] = std::minmax_element(parts.begin(), parts.end());
  if (*largest - *smallest <= check_.tolerance) {
    suspect_ = {
        "outputs",
        fmt::format("with outputs {:.6g} times those of q, k and v it agrees (v, or what was "
                    "recorded, was multiplied by a number; the maps are right)",
                    (*smallest + *largest) / 2),
        error};
    return true;
  }
  const auto [least, most] = std::minmax_element(sinks.begin(), sinks.end());
  suspect_ = {
      "sinks",
      fmt::format("with a sink of its own for each row in the softmax's denominator, {:.4g} "
                  "to {:.4g}, it agrees (--sinks FILE: a tensor [batch, heads, queries])",
                  *least, *most),
      error};
  return true;
}

bool Diagnosis::find_sink() {
  if (!problem_.sinks().is_none()) return false;
  const AttendedRows computed = attend_rows(stated(), all_.rows());
  const auto found = all_.missing_sink(computed);
  if (!found) return false;
  // What was learnt is no round number; what a script wrote is one.
  for (const double sink : {std::round(*found * 1e3) / 1e3, *found}) {
    AttendInputs inputs = stated();
    inputs.sinks = Sinks({1, 1, 1}, {static_cast<float>(sink)});
    if (attempt({"sinks",
                 fmt::format("with a sink of {:.6g} in the softmax's denominator (--sinks {:.6g}; "
                             "other heads may have others: a tensor sinks [heads] tells them)",
                             sink, sink),
                 std::move(inputs), kClearlyLess})) {
      return true;
    }
  }
  return find_row_sinks(computed);
}

bool Diagnosis::find_cap() {
  if (problem_.score().cap != 0) return false;
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

double Diagnosis::best_scale_factor(int64_t head, const RecordedRows& recorded) const {
  constexpr int kSteps = 24;
  return std::exp2(best_octaves({-kSteps, kSteps}, [&](double octaves) {
    AttendInputs scaled = stated_inputs(call_, batch_, head);
    scaled.scale *= std::exp2(octaves);
    return error_of(scaled, recorded);
  }));
}

bool Diagnosis::fit_scale() {
  AttendInputs inputs = stated();
  inputs.scale *= best_scale_factor(head_, few_);
  const double scale = inputs.scale;
  if (!attempt({"scale",
                fmt::format("with scale {:.6g} instead of {:.6g} (--scale {:.9g})", scale,
                            problem_.scale(head_), scale),
                std::move(inputs)})) {
    return false;
  }
  fit_other_heads(scale);
  return true;
}

void Diagnosis::fit_other_heads(double scale) {
  // A search of all other heads takes some seconds at most.
  constexpr double kMostProducts = 1e10;
  constexpr double kEvaluations = 75;
  const double products = kEvaluations * kFewRows * static_cast<double>(problem_.num_heads()) *
                          static_cast<double>(problem_.num_keys() * problem_.head_dim());
  if (products > kMostProducts) {
    suspect_.explanation += "; other heads were not looked at";
    return;
  }
  std::vector<double> each;
  for (int64_t head = 0; head < problem_.num_heads(); ++head) {
    const RecordedRows few(call_, batch_, head, kFewRows);
    AttendInputs inputs = stated_inputs(call_, batch_, head);
    const double stated_scale = inputs.scale;
    inputs.scale = scale;
    if (head != head_ && error_of(inputs, few) > check_.tolerance) {
      inputs.scale = stated_scale * best_scale_factor(head, few);
      if (error_of(inputs, few) > check_.tolerance) return;
    }
    each.push_back(inputs.scale);
  }
  if (std::ranges::all_of(each, [&](double other) { return other == scale; })) return;
  suspect_.explanation = fmt::format(
      "with a scale of its own for each head it agrees (--scale {:.9g})", fmt::join(each, ","));
}

AttendInputs Diagnosis::taken_from(const CallEntry& other, int64_t batch, int64_t head,
                                   const std::string& parts) const {
  const AttentionProblem& p = *other.problem;
  AttendInputs inputs = stated();
  const auto wants = [&](char part) { return parts.find(part) != std::string::npos; };
  if (wants('q')) inputs.q = stored_rows(p.q(), batch, head);
  if (wants('k')) inputs.k = stored_rows(p.k(), batch, p.kv_head(head));
  if (wants('q') && wants('k')) inputs.scale = p.scale(head);
  if (wants('v') && inputs.v && p.v()) inputs.v = stored_rows(p.v(), batch, p.kv_head(head));
  return inputs;
}

Suspect find_culprit(const CallCheck& check, const Capture& capture, std::stop_token stop) {
  const AttentionProblem& problem = *check.call->problem;
  if (!is_softmax(problem.score())) {
    return {"unknown",
            fmt::format("mistakes are looked for in softmax attention only (score {})",
                        score_name(problem.score())),
            check.error};
  }
  return Diagnosis(check, capture, std::move(stop)).run();
}

}  // namespace attnscope

#include "io/check/recorded_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/mask/masked_bias.h"
#include "core/problem/sampled_rows.h"

namespace attnscope {
namespace {

/// Logits of TF32 products differ by some 10⁻³, and so may LSEs.
constexpr double kLseTolerance = 1e-2;
/// Four units in the last place of bf16; of f16 and TF32 alike, with room for larger logits.
constexpr double kBf16Tolerance = 0x1p-7;
constexpr double kOtherTolerance = 2e-3;
/// A row without keys has an LSE as low as the biases that mask it.
constexpr double kMaskedLse = double{kMaskedBias} / 2;

}  // namespace

bool RecordedRows::has_outputs(const CallEntry& call) {
  return call.out && call.out_rows && call.problem->v() && call.out_rows->shape()[0] > 0;
}

bool RecordedRows::has_any(const CallEntry& call) {
  const bool lse = call.lse && is_normalised(call.problem->score());
  return has_outputs(call) || (lse && call.problem->num_queries() > 0);
}

int64_t RecordedRows::count(const CallEntry& call) {
  // A whole LSE is many more rows than a check needs.
  return has_outputs(call) ? call.out_rows->shape()[0]
                           : std::min<int64_t>(call.problem->num_queries(), 64);
}

RecordedRows::RecordedRows(const CallEntry& call, int64_t batch, int64_t head, int64_t rows) {
  const int64_t total = count(call);
  if (rows <= 0 || rows > total) rows = total;
  if (!has_outputs(call)) {
    rows_ = sampled_rows(call.problem->num_queries(), rows);
    values_.resize(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      const std::array<int64_t, 3> begin{batch, head, rows_[i]}, one{1, 1, 1};
      call.lse->read(begin, one, reinterpret_cast<std::byte*>(&values_[i]));
    }
    return;
  }
  width_ = call.problem->v().width();
  std::vector<int64_t> index(static_cast<size_t>(total));
  const int64_t zero = 0;
  call.out_rows->read({&zero, 1}, {&total, 1}, reinterpret_cast<std::byte*>(index.data()));
  const DType dtype = call.out->dtype();
  std::vector<std::byte> raw(static_cast<size_t>(width_ * dtype_bytes(dtype)));
  values_.resize(static_cast<size_t>(rows * width_));
  float* values = values_.data();
  for (int64_t place : sampled_rows(total, rows)) {
    rows_.push_back(index[static_cast<size_t>(place)]);
    const std::array<int64_t, 4> begin{batch, head, place, 0}, size{1, 1, 1, width_};
    call.out->read(begin, size, raw.data());
    to_floats(dtype, raw.data(), width_, values);
    values += width_;
  }
}

RecordedRows::Worst RecordedRows::compare(const AttendedRows& computed) const {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  Worst worst;
  double sum = 0;
  size_t compared = 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    double error = 0;
    if (width_ == 0) {
      const double recorded = values_[r];
      const bool both_masked = computed.lse[r] == kNothing && recorded <= kMaskedLse;
      error = both_masked ? 0 : std::abs(recorded - computed.lse[r]);
    } else if (computed.lse[r] == kNothing) {
      // Kernels do not agree about the output of a row without keys: zeros, NaN, the mean of V.
      continue;
    } else {
      const float* recorded = values_.data() + r * static_cast<size_t>(width_);
      const double* outputs = computed.outputs.data() + r * static_cast<size_t>(width_);
      double difference = 0, norm = 0;
      for (int64_t c = 0; c < width_; ++c) {
        difference += (outputs[c] - recorded[c]) * (outputs[c] - recorded[c]);
        norm += outputs[c] * outputs[c];
      }
      const double size = std::sqrt(norm) + computed.spread[r];
      error = difference == 0 ? 0 : std::sqrt(difference) / size;
    }
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > worst.error) {
      worst.error = error;
      worst.row = r;
    }
    sum += error;
    ++compared;
  }
  if (compared > 0) worst.mean = sum / static_cast<double>(compared);
  return worst;
}

std::optional<double> RecordedRows::missing_sink_of(const AttendedRows& computed,
                                                    size_t row) const {
  const double lse = computed.lse[row];
  if (!std::isfinite(lse)) return std::nullopt;
  if (width_ == 0) {
    const double more = values_[row] - lse;
    return more > 0 ? std::optional(lse + std::log(std::expm1(more))) : std::nullopt;
  }
  const float* recorded = values_.data() + row * static_cast<size_t>(width_);
  const double* outputs = computed.outputs.data() + row * static_cast<size_t>(width_);
  double product = 0, norm = 0;
  for (int64_t c = 0; c < width_; ++c) {
    product += outputs[c] * recorded[c];
    norm += outputs[c] * outputs[c];
  }
  const double part = product / norm;
  if (!(part > 0 && part < 1)) return std::nullopt;
  return lse + std::log((1 - part) / part);
}

std::vector<double> RecordedRows::missing_sinks(const AttendedRows& computed) const {
  std::vector<double> sinks;
  for (size_t r = 0; r < rows_.size(); ++r) {
    sinks.push_back(
        missing_sink_of(computed, r).value_or(-std::numeric_limits<double>::infinity()));
  }
  return sinks;
}

std::optional<double> RecordedRows::missing_sink(const AttendedRows& computed) const {
  std::vector<double> sinks = missing_sinks(computed);
  std::erase_if(sinks, [](double sink) { return !std::isfinite(sink); });
  if (sinks.empty()) return std::nullopt;
  const auto middle = sinks.begin() + static_cast<std::ptrdiff_t>(sinks.size() / 2);
  std::nth_element(sinks.begin(), middle, sinks.end());
  return *middle;
}

AttendInputs stated_inputs(const CallEntry& call, int64_t batch, int64_t head) {
  const AttentionProblem& p = *call.problem;
  AttendInputs inputs;
  inputs.q = stored_rows(p.q(), batch, head);
  inputs.k = stored_rows(p.k(), batch, p.kv_head(head));
  if (RecordedRows::has_outputs(call)) inputs.v = stored_rows(p.v(), batch, p.kv_head(head));
  inputs.scale = p.scale(head);
  inputs.cap = p.score().cap;
  inputs.sinks = p.sinks();
  inputs.mask = p.mask();
  inputs.batch = batch;
  inputs.head = head;
  return inputs;
}

double check_tolerance(const CallEntry& call) {
  if (!RecordedRows::has_outputs(call)) return kLseTolerance;
  const AttentionProblem& p = *call.problem;
  for (DType dtype : {p.q().dtype(), p.k().dtype(), p.v().dtype(), call.out->dtype()}) {
    if (dtype == DType::bf16) return kBf16Tolerance;
  }
  return kOtherTolerance;
}

}  // namespace attnscope

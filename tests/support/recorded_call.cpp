#include "tests/support/recorded_call.h"

#include <cmath>
#include <numeric>
#include <random>

namespace attnscope::test {

RecordedCall::RecordedCall(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto fill = [&](std::vector<float>& values, int64_t heads, double size) {
    for (int64_t i = 0; i < kBatch * heads * kTokens * kWidth; ++i) {
      values.push_back(
          static_cast<float>(size * (static_cast<double>(random() % 20001) / 10000 - 1)));
    }
  };
  fill(q, kHeads, 2);
  fill(k, kKvHeads, 2);
  fill(v, kKvHeads, 1);
}

float* RecordedCall::row(std::vector<float>& tensor, int64_t batch, int64_t head,
                         int64_t token) const {
  const int64_t heads = static_cast<int64_t>(tensor.size()) / (kBatch * kTokens * kWidth);
  return tensor.data() + ((batch * heads + head) * kTokens + token) * kWidth;
}

void RecordedCall::attend(const Bias& bias) {
  out.assign(q.size(), 0);
  sums.clear();
  sums_of_keys.clear();
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const int64_t kv = h / (kHeads / kKvHeads);
      for (int64_t i = 0; i < kTokens; ++i) {
        std::array<double, kTokens> weights{};
        double total = sinks.empty() ? 0 : std::exp(sinks[static_cast<size_t>(h)]);
        if (row_sinks) total = std::exp(row_sinks(h, i));
        const double factor = scales.empty() ? scale : scales[static_cast<size_t>(h)];
        for (int64_t j = 0; j < kTokens; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < kWidth; ++c) {
            dot += double{row(q, b, h, i)[c]} * double{row(k, b, kv, j)[c]};
          }
          const double logit = cap == 0 ? factor * dot : cap * std::tanh(factor * dot / cap);
          const double weight = std::exp(logit + (bias ? bias(i, j) : 0));
          weights[static_cast<size_t>(j)] = weight;
          total += weight;
        }
        sums.push_back(total);
        sums_of_keys.push_back(std::accumulate(weights.begin(), weights.end(), 0.0));
        for (int64_t c = 0; c < kWidth; ++c) {
          double sum = 0;
          for (int64_t j = 0; j < kTokens; ++j) {
            sum += weights[static_cast<size_t>(j)] * double{row(v, b, kv, j)[c]};
          }
          row(out, b, h, i)[c] = static_cast<float>(sum / total);
        }
      }
    }
  }
}

std::vector<float> RecordedCall::lse(bool with_sinks) const {
  std::vector<float> values;
  for (const double sum : with_sinks ? sums : sums_of_keys) {
    values.push_back(static_cast<float>(std::log(sum)));
  }
  return values;
}

void RecordedCall::change_rows(const std::function<void(int64_t, float*)>& change) {
  for (std::vector<float>* tensor : {&q, &k}) {
    const auto rows = static_cast<int64_t>(tensor->size()) / kWidth;
    for (int64_t r = 0; r < rows; ++r) change(r % kTokens, tensor->data() + r * kWidth);
  }
}

CallFile RecordedCall::file() const {
  std::vector<int64_t> rows;
  std::vector<float> chosen;
  for (int64_t i = 0; i < kTokens; i += 3) rows.push_back(i);
  for (int64_t head = 0; head < kBatch * kHeads; ++head) {
    for (int64_t i : rows) {
      const auto begin = out.begin() + (head * kTokens + i) * kWidth;
      chosen.insert(chosen.end(), begin, begin + kWidth);
    }
  }
  CallFile file;
  file.tensor("q", "F32", {kBatch, kHeads, kTokens, kWidth}, raw(q))
      .tensor("k", "F32", {kBatch, kKvHeads, kTokens, kWidth}, raw(k))
      .tensor("v", "F32", {kBatch, kKvHeads, kTokens, kWidth}, raw(v));
  if (outputs) {
    file.tensor("out", "F32", {kBatch, kHeads, static_cast<int64_t>(rows.size()), kWidth},
                raw(chosen))
        .tensor("out_rows", "I64", {static_cast<int64_t>(rows.size())}, raw(rows));
  }
  if (!mask.empty()) file.tensor("mask", "BOOL", {kTokens, kTokens}, mask);
  if (!mask_valid.empty()) file.version(2).tensor("mask_valid", "BOOL", {kTokens}, mask_valid);
  file.fact("grid", "2x3x4")
      .fact("text", "4@start")
      .fact("q_state", q_state)
      .fact("branches", R"(["uncond","cond"])");
  file.fact("scale", std::to_string(scale)).fact("layer", std::to_string(layer));
  return file.fact("mask", mask_fact);
}

}  // namespace attnscope::test

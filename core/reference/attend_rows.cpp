#include "core/reference/attend_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attnscope {
namespace {

constexpr int64_t kBlockKeys = 256;
constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// One row's sums so far, relative to exp(reference).
struct RowState {
  double reference = kNothing;
  double sum = 0;
  double squares = 0;  ///< Σ p²·‖v‖²
};

/// Keys of one block: K transposed for loops over keys, V as it is.
struct KeyBlock {
  IndexRange keys;
  std::vector<float> rows, transposed, values;
  std::vector<double> value_squares;

  KeyBlock(const AttendInputs& in)
      : rows(static_cast<size_t>(kBlockKeys * in.k->width())),
        transposed(rows.size()),
        values(in.v ? static_cast<size_t>(kBlockKeys * in.v->width()) : 0),
        value_squares(static_cast<size_t>(kBlockKeys)) {}

  void load(const AttendInputs& in, IndexRange range) {
    keys = range;
    const int64_t d = in.k->width();
    in.k->read(range, rows.data());
    for (int64_t j = 0; j < range.size(); ++j) {
      for (int64_t c = 0; c < d; ++c) {
        transposed[static_cast<size_t>(c * kBlockKeys + j)] = rows[static_cast<size_t>(j * d + c)];
      }
    }
    if (!in.v) return;
    in.v->read(range, values.data());
    const int64_t width = in.v->width();
    for (int64_t j = 0; j < range.size(); ++j) {
      double squares = 0;
      for (int64_t c = 0; c < width; ++c) {
        const double value = values[static_cast<size_t>(j * width + c)];
        squares += value * value;
      }
      value_squares[static_cast<size_t>(j)] = squares;
    }
  }
};

void fill_logits(const KeyBlock& block, const float* query, const AttendInputs& in, float* logits) {
  const int64_t d = in.q->width();
  std::fill(logits, logits + kBlockKeys, 0.0f);
  for (int64_t c = 0; c < d; ++c) {
    const float q = query[c];
    const float* k = block.transposed.data() + c * kBlockKeys;
    for (int64_t j = 0; j < kBlockKeys; ++j) logits[j] += q * k[j];
  }
  for (int64_t j = 0; j < kBlockKeys; ++j) logits[j] *= static_cast<float>(in.scale);
  if (in.cap == 0) return;
  for (int64_t j = 0; j < kBlockKeys; ++j) {
    logits[j] = static_cast<float>(in.cap * std::tanh(double{logits[j]} / in.cap));
  }
}

/// Takes one block's logits into a row; `outputs` [width] doubles.
void add_block(const KeyBlock& block, const float* logits, int64_t width, RowState& row,
               double* outputs, std::vector<float>& sums) {
  const int64_t count = block.keys.size();
  const double largest = double{*std::max_element(logits, logits + count)};
  if (largest == kNothing) return;
  if (!(largest <= row.reference)) {  // NaN too, which then stays
    const double factor = std::exp(row.reference - largest);
    row.reference = largest;
    row.sum *= factor;
    row.squares *= factor * factor;
    for (int64_t c = 0; c < width; ++c) outputs[c] *= factor;
  }
  std::fill(sums.begin(), sums.end(), 0.0f);
  const float* value = block.values.data();
  for (int64_t j = 0; j < count; ++j, value += width) {
    const auto weight = static_cast<float>(std::exp(double{logits[j]} - row.reference));
    if (weight == 0) continue;
    row.sum += double{weight};
    row.squares += double{weight} * double{weight} * block.value_squares[static_cast<size_t>(j)];
    for (int64_t c = 0; c < width; ++c) sums[static_cast<size_t>(c)] += weight * value[c];
  }
  for (int64_t c = 0; c < width; ++c) outputs[c] += double{sums[static_cast<size_t>(c)]};
}

}  // namespace

AttendedRows attend_rows(const AttendInputs& in, std::span<const int64_t> rows) {
  const int64_t d = in.q->width();
  const int64_t width = in.v ? in.v->width() : 0;
  const int64_t keys = in.k->tokens();
  std::vector<float> queries(rows.size() * static_cast<size_t>(d));
  for (size_t r = 0; r < rows.size(); ++r) {
    in.q->read({rows[r], rows[r] + 1}, queries.data() + r * static_cast<size_t>(d));
  }
  AttendedRows result;
  result.width = width;
  result.outputs.resize(rows.size() * static_cast<size_t>(width));
  std::vector<RowState> states(rows.size());
  std::vector<float> logits(static_cast<size_t>(kBlockKeys)), bias(logits.size());
  std::vector<float> sums(static_cast<size_t>(width));
  KeyBlock block(in);
  for (int64_t begin = 0; begin < keys; begin += kBlockKeys) {
    block.load(in, {begin, std::min(begin + kBlockKeys, keys)});
    for (size_t r = 0; r < rows.size(); ++r) {
      fill_logits(block, queries.data() + r * static_cast<size_t>(d), in, logits.data());
      if (!in.mask.is_none()) {
        in.mask.fill_bias(in.batch, in.head, rows.subspan(r, 1), block.keys, bias.data(),
                          kBlockKeys);
        for (int64_t j = 0; j < block.keys.size(); ++j) {
          logits[static_cast<size_t>(j)] += bias[static_cast<size_t>(j)];
        }
      }
      add_block(block, logits.data(), width, states[r],
                result.outputs.data() + r * static_cast<size_t>(width), sums);
    }
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    const RowState& row = states[r];
    // Infinities in Q or K make NaN of all of it; only a row without keys has nothing.
    const bool masked = row.reference == kNothing;
    const double sink = in.sinks.logit(in.batch, in.head, rows[r]);
    const double sum = row.sum + (masked ? 0 : std::exp(sink - row.reference));
    result.lse.push_back(masked ? sink : row.reference + std::log(sum));
    result.spread.push_back(masked ? 0 : std::sqrt(row.squares) / sum);
    for (int64_t c = 0; c < width && !masked; ++c) {
      result.outputs[r * static_cast<size_t>(width) + static_cast<size_t>(c)] /= sum;
    }
  }
  return result;
}

}  // namespace attnscope

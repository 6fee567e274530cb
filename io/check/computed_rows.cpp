#include "io/check/computed_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/stream/panel.h"
#include "io/check/recorded_rows.h"

namespace attnscope {
namespace {

/// Rows and keys at a time.
constexpr int64_t kRows = 16;
constexpr int64_t kKeys = 512;

int64_t value_width(const CallEntry& call) {
  return RecordedRows::has_outputs(call) ? call.problem->v().width() : 0;
}

/// A bound head, and what computing a few of its rows takes.
class HeadRows {
 public:
  HeadRows(const CallEntry& call, int64_t batch, int64_t head, const TileBackend& backend)
      : problem_(*call.problem),
        task_{&problem_, batch, head, {}, {}, {0, problem_.num_keys()}},
        width_(value_width(call)),
        bound_(backend.bind(problem_, batch, head)),
        workspace_(static_cast<size_t>(backend.workspace_bytes(problem_, kRows, kKeys, false))),
        queries_(static_cast<size_t>(kRows * problem_.q().row_bytes())),
        index_(static_cast<size_t>(kRows)),
        weights_(static_cast<size_t>(kRows * kKeys)),
        values_(static_cast<size_t>(kKeys * width_)) {
    if (width_ > 0) v_ = stored_rows(problem_.v(), batch, problem_.kv_head(head));
  }

  /// Appends at most kRows ascending rows to the result.
  void compute(std::span<const int64_t> rows, AttendedRows& result) {
    task_.row_list = rows;
    const auto count = static_cast<int64_t>(rows.size());
    const QueryBlock queries = read_query_rows(task_, {0, count}, index_.data(), queries_.data());
    const bool normalised = is_normalised(problem_.score());
    std::vector<RowNorm> norms(normalised ? rows.size() : 0);
    if (normalised) bound_->row_norms(queries, norms, workspace_);
    for (size_t r = 0; r < rows.size(); ++r) {
      result.lse.push_back(normalised ? norms[r].lse() : 0);
    }
    const Quantity quantity = is_signed(problem_.score()) ? Quantity::logits : Quantity::weights;
    std::vector<double> squares(rows.size());
    const size_t first = result.outputs.size();
    result.outputs.resize(first + rows.size() * static_cast<size_t>(width_));
    for (int64_t key = 0; key < problem_.num_keys() && width_ > 0; key += kKeys) {
      const IndexRange keys{key, std::min(key + kKeys, problem_.num_keys())};
      auto* const tile = reinterpret_cast<std::byte*>(weights_.data());
      bound_->emit(queries, norms, keys, quantity, {{&tile, 1}, kKeys, kKeys}, workspace_);
      v_->read(keys, values_.data());
      add_values(keys.size(), count, result.outputs.data() + first, squares.data());
    }
    for (const double sum : squares) result.spread.push_back(std::sqrt(sum));
  }

 private:
  /// outputs += weights · values and squares += Σ P²·‖v‖² of the keys at hand.
  void add_values(int64_t keys, int64_t rows, double* outputs, double* squares) const {
    for (int64_t j = 0; j < keys; ++j) {
      const float* value = values_.data() + j * width_;
      double length = 0;
      for (int64_t c = 0; c < width_; ++c) length += double{value[c]} * double{value[c]};
      for (int64_t r = 0; r < rows; ++r) {
        const double weight = weights_[static_cast<size_t>(r * kKeys + j)];
        if (weight == 0) continue;
        squares[r] += weight * weight * length;
        for (int64_t c = 0; c < width_; ++c) outputs[r * width_ + c] += weight * double{value[c]};
      }
    }
  }

  const AttentionProblem& problem_;
  HeadTask task_;
  const int64_t width_;
  const std::unique_ptr<BoundHead> bound_;
  RowSourcePtr v_;
  AlignedVector<std::byte> workspace_, queries_;
  std::vector<int64_t> index_;
  AlignedVector<float> weights_;
  std::vector<float> values_;
};

}  // namespace

int64_t computed_rows_bytes(const CallEntry& call, const TileBackend& backend) {
  const AttentionProblem& p = *call.problem;
  const TileBackend::BindCost cost = backend.bind_cost(p);
  return cost.resident + cost.transient + backend.workspace_bytes(p, kRows, kKeys, false) +
         kRows * (p.q().row_bytes() + kKeys * 4 + 64) + kKeys * value_width(call) * 4;
}

AttendedRows computed_rows(const CallEntry& call, int64_t batch, int64_t head,
                           std::span<const int64_t> rows, const CheckMeans& means) {
  const MemoryReservation held =
      means.budget.reserve(computed_rows_bytes(call, means.backend), "the check of a head");
  std::vector<int64_t> ascending(rows.begin(), rows.end());
  std::sort(ascending.begin(), ascending.end());
  ascending.erase(std::unique(ascending.begin(), ascending.end()), ascending.end());
  HeadRows computing(call, batch, head, means.backend);
  AttendedRows computed;
  for (std::span<const int64_t> left = ascending; !left.empty();) {
    const auto some = left.first(std::min<size_t>(left.size(), kRows));
    computing.compute(some, computed);
    left = left.subspan(some.size());
  }
  AttendedRows result;
  result.width = value_width(call);
  const auto width = static_cast<size_t>(result.width);
  for (const int64_t row : rows) {
    const auto at = static_cast<size_t>(std::lower_bound(ascending.begin(), ascending.end(), row) -
                                        ascending.begin());
    result.lse.push_back(computed.lse[at]);
    result.spread.push_back(computed.spread[at]);
    const double* const output = computed.outputs.data() + at * width;
    result.outputs.insert(result.outputs.end(), output, output + width);
  }
  return result;
}

}  // namespace attnscope

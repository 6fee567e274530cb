#include "core/patterns/mask_recall.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/mask/picked_blocks.h"
#include "core/patterns/top_mass.h"

namespace attnscope {
namespace {

/// Keys that are classified, summed in float32 and multiplied with V at once.
constexpr int64_t kBlockKeys = 256;
constexpr size_t kLanes = 16;

double add_lanes(const std::array<float, kLanes>& lanes) {
  double sum = 0;
  for (float lane : lanes) sum += double{lane};
  return sum;
}

/// In lanes of at most 16 terms each.
double sum_of(const float* weights, int64_t count) {
  std::array<float, kLanes> lanes{};
  int64_t j = 0;
  for (; j + int64_t{kLanes} <= count; j += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) lanes[l] += weights[j + static_cast<int64_t>(l)];
  }
  for (size_t l = 0; j < count; ++j, ++l) lanes[l] += weights[j];
  return add_lanes(lanes);
}

/// out += weight row · V, out and V [dv].
void add_outputs(const float* weights, int64_t count, const float* values, size_t width,
                 std::vector<float>& out) {
  std::fill(out.begin(), out.end(), 0.0f);
  for (int64_t j = 0; j < count; ++j, values += width) {
    if (weights[j] == 0) continue;
    for (size_t c = 0; c < width; ++c) out[c] += weights[j] * values[c];
  }
}

void add_to(double* sums, const std::vector<float>& block) {
  for (size_t c = 0; c < block.size(); ++c) sums[c] += double{block[c]};
}

}  // namespace

/// Measures the rows of one tile, in buffers of its own.
class MaskRecall::Worker {
 public:
  Worker(MaskRecall& probe, const Tile& tile)
      : p_(probe),
        tile_(tile),
        problem_(*tile.task->problem),
        rows_(tile.rows.size()),
        own_mask_(!problem_.mask().is_none()),
        kept_(static_cast<size_t>(kBlockKeys)),
        bias_(static_cast<size_t>(rows_ * kBlockKeys)) {
    for (int64_t r = 0; r < rows_; ++r) queries_.push_back(tile.task->row_at(tile.rows.begin + r));
    neighbours_ = queries_.back() - queries_.front() + 1 == rows_;
    if (own_mask_) own_bias_.resize(bias_.size());
    if (p_.wanted_.values) {
      width_ = static_cast<size_t>(problem_.v().width());
      raw_values_.resize(static_cast<size_t>(kBlockKeys * problem_.v().row_bytes()));
      values_.resize(static_cast<size_t>(kBlockKeys) * width_);
      block_outputs_.assign(static_cast<size_t>(rows_), std::vector<float>(width_));
      masked_output_.resize(width_);
      outputs_.resize((p_.masks_.size() + 1) * static_cast<size_t>(rows_) * width_);
    }
  }

  void run() {
    const int64_t keys = problem_.num_keys();
    block_sums_.resize(static_cast<size_t>(rows_));
    totals_.assign(static_cast<size_t>(rows_), 0.0);
    for (int64_t begin = 0; begin < keys; begin += kBlockKeys) {
      const IndexRange block{begin, std::min(begin + kBlockKeys, keys)};
      if (p_.wanted_.values) read_values(block);
      take_block(block);
      for (size_t m = 0; m < p_.masks_.size(); ++m) add_block(m, block);
    }
    if (p_.wanted_.values) finish_outputs();
    if (p_.wanted_.oracle) find_oracles();
    if (!problem_.sinks().is_none()) divide_by_totals();
  }

 private:
  bool has_weights() const { return tile_.chunks.front() != nullptr; }
  const float* row_weights(int64_t r) const {
    return reinterpret_cast<const float*>(tile_.chunks.front()) + r * p_.request_.chunk_cols;
  }
  RowRecall& score(size_t mask, int64_t r) const {
    return p_.scores_[mask * static_cast<size_t>(p_.num_rows_) +
                      static_cast<size_t>(tile_.rows.begin + r)];
  }
  double* output(size_t mask, int64_t r) {
    return outputs_.data() + (mask * static_cast<size_t>(rows_) + static_cast<size_t>(r)) * width_;
  }

  TileClass classify(const Mask& mask, int64_t first, int64_t past, IndexRange keys) const {
    return mask.classify(
        tile_.task->batch, tile_.task->head,
        {queries_[static_cast<size_t>(first)], queries_[static_cast<size_t>(past - 1)] + 1}, keys);
  }

  void fill(const Mask& mask, int64_t first, int64_t past, IndexRange keys, float* out) const {
    mask.fill_bias(
        tile_.task->batch, tile_.task->head,
        std::span(queries_).subspan(static_cast<size_t>(first), static_cast<size_t>(past - first)),
        keys, out, kBlockKeys);
  }

  /// V of the block, as float; NaN and Inf would spread into every row.
  void read_values(IndexRange block) {
    const HeadTensor& v = problem_.v();
    const int64_t head = problem_.kv_head(tile_.task->head);
    v.read_rows(tile_.task->batch, head, block, raw_values_.data());
    const int64_t count = block.size() * v.width();
    to_floats(v.dtype(), raw_values_.data(), count, values_.data());
    for (int64_t i = 0; i < count; ++i) {
      if (std::isfinite(values_[static_cast<size_t>(i)])) continue;
      throw Error(ErrorCode::value,
                  v.source().name() + ": batch " + std::to_string(tile_.task->batch) + ", head " +
                      std::to_string(head) + ", token " +
                      std::to_string(block.begin + i / v.width()) + ", channel " +
                      std::to_string(i % v.width()) + ": is " +
                      std::to_string(values_[static_cast<size_t>(i)]) + " (values must be finite)");
    }
  }

  /// Sums of the block that all masks share.
  void take_block(IndexRange block) {
    if (own_mask_) {
      own_class_ = TileClass::mixed;
      if (neighbours_) own_class_ = classify(problem_.mask(), 0, rows_, block);
      if (own_class_ == TileClass::mixed) {
        fill(problem_.mask(), 0, rows_, block, own_bias_.data());
      }
    }
    for (int64_t r = 0; r < rows_; ++r) {
      const auto row = static_cast<size_t>(r);
      block_sums_[row] = has_weights() ? sum_of(row_weights(r) + block.begin, block.size()) : 0;
      totals_[row] += block_sums_[row];
      if (!p_.wanted_.values || !has_weights()) continue;
      add_outputs(row_weights(r) + block.begin, block.size(), values_.data(), width_,
                  block_outputs_[row]);
      add_to(output(p_.masks_.size(), r), block_outputs_[row]);
    }
  }

  void add_block(size_t m, IndexRange block) {
    // Rows that are no neighbours have nothing in common.
    const int64_t step = neighbours_ ? rows_ : 1;
    for (int64_t first = 0; first < rows_; first += step) {
      const int64_t past = first + step;
      switch (classify(p_.masks_[m], first, past, block)) {
        case TileClass::empty:
          break;
        case TileClass::full:
          for (int64_t r = first; r < past; ++r) add_full(m, r, block);
          break;
        case TileClass::mixed:
          fill(p_.masks_[m], first, past, block, bias_.data());
          for (int64_t r = first; r < past; ++r) {
            add_mixed(m, r, block, bias_.data() + (r - first) * kBlockKeys);
          }
          break;
      }
    }
  }

  void add_full(size_t m, int64_t r, IndexRange block) {
    RowRecall& row = score(m, r);
    row.kept += block.size();
    row.effective += own_kept(r, block, nullptr);
    row.recall += block_sums_[static_cast<size_t>(r)];
    if (p_.wanted_.values && has_weights()) {
      add_to(output(m, r), block_outputs_[static_cast<size_t>(r)]);
    }
  }

  void add_mixed(size_t m, int64_t r, IndexRange block, const float* bias) {
    RowRecall& row = score(m, r);
    int32_t kept = 0;
    for (int64_t j = 0; j < block.size(); ++j) kept += bias[j] > kMasked ? 1 : 0;
    if (kept == 0) return;
    row.kept += kept;
    row.effective += own_mask_ ? own_kept(r, block, bias) : kept;
    if (!has_weights()) return;
    const float* weights = row_weights(r) + block.begin;
    for (int64_t j = 0; j < block.size(); ++j) {
      kept_[static_cast<size_t>(j)] = bias[j] > kMasked ? weights[j] : 0.0f;
    }
    row.recall += sum_of(kept_.data(), block.size());
    if (!p_.wanted_.values) return;
    add_outputs(kept_.data(), block.size(), values_.data(), width_, masked_output_);
    add_to(output(m, r), masked_output_);
  }

  /// Entries of the block that the call's own mask keeps, where `bias` keeps them too.
  int64_t own_kept(int64_t r, IndexRange block, const float* bias) const {
    const bool whole = !own_mask_ || own_class_ == TileClass::full;
    if (whole && bias == nullptr) return block.size();
    if (own_mask_ && own_class_ == TileClass::empty) return 0;
    const float* own = own_bias_.data() + r * kBlockKeys;
    int32_t kept = 0;
    for (int64_t j = 0; j < block.size(); ++j) {
      kept += (whole || own[j] > kMasked) && (bias == nullptr || bias[j] > kMasked) ? 1 : 0;
    }
    return kept;
  }

  /// The part of 1 that a row's sink has, which no mask takes away. Not 1 minus the rest: what a
  /// mask keeps may be smaller than the rounding of that.
  double sink_share(int64_t r) const {
    const double lse = tile_.norms[static_cast<size_t>(r)].lse();
    if (problem_.sinks().is_none() || std::isinf(lse)) return 0;
    return std::exp(problem_.sinks().logit(tile_.task->batch, tile_.task->head,
                                           queries_[static_cast<size_t>(r)]) -
                    lse);
  }

  /// Shares of the mass on keys, where a sink has the rest of it.
  void divide_by_totals() {
    for (int64_t r = 0; r < rows_; ++r) {
      const double total = totals_[static_cast<size_t>(r)];
      if (total <= 0) continue;
      for (size_t m = 0; m < p_.masks_.size(); ++m) {
        RowRecall& row = score(m, r);
        for (double* part : {&row.recall, &row.oracle, &row.effective_oracle}) *part /= total;
      }
    }
  }

  /// Adds to a row's output what stands there for the blocks that the mask drops.
  DroppedTerms::Sum add_dropped_terms(size_t m, int64_t r, std::span<double> out) {
    const DroppedTerms* const terms = p_.masks_[m].dropped();
    const double lse = tile_.norms[static_cast<size_t>(r)].lse();
    if (terms == nullptr || std::isinf(lse)) return {};
    const HeadTensor& q = problem_.q();
    const int64_t index = queries_[static_cast<size_t>(r)];
    std::vector<std::byte> raw(static_cast<size_t>(q.row_bytes()));
    std::vector<float> channels(static_cast<size_t>(q.width()));
    q.read_rows(tile_.task->batch, tile_.task->head, {index, index + 1}, raw.data());
    to_floats(q.dtype(), raw.data(), q.width(), channels.data());
    const std::vector<double> query(channels.begin(), channels.end());
    return terms->add(index, query, lse, out);
  }

  /// Renormalises both outputs, so that a mask that keeps everything has no error at all.
  void finish_outputs() {
    for (int64_t r = 0; r < rows_; ++r) {
      const double* whole = output(p_.masks_.size(), r);
      const double sink = sink_share(r);
      const double total = totals_[static_cast<size_t>(r)] + sink;
      const double factor = total > 0 ? 1 / total : 0;
      double& norm = p_.norms_[static_cast<size_t>(tile_.rows.begin + r)];
      for (size_t c = 0; c < width_; ++c) norm += whole[c] * factor * whole[c] * factor;
      for (size_t m = 0; m < p_.masks_.size(); ++m) {
        RowRecall& row = score(m, r);
        double* const masked = output(m, r);
        const DroppedTerms::Sum terms = add_dropped_terms(m, r, {masked, width_});
        const double mass = row.recall * terms.others + terms.mass;
        const double masked_factor = mass > 0 ? 1 / (mass + sink * terms.others) : 0;
        for (size_t c = 0; c < width_; ++c) {
          const double difference = masked[c] * masked_factor - whole[c] * factor;
          row.error += difference * difference;
        }
      }
    }
  }

  void find_oracles() {
    TopMass top;
    for (int64_t r = 0; r < rows_ && has_weights(); ++r) {
      top.set_row({row_weights(r), static_cast<size_t>(problem_.num_keys())});
      for (size_t m = 0; m < p_.masks_.size(); ++m) {
        RowRecall& row = score(m, r);
        row.oracle = top.largest(row.kept);
        row.effective_oracle = row.effective == row.kept ? row.oracle : top.largest(row.effective);
      }
    }
  }

  MaskRecall& p_;
  const Tile& tile_;
  const AttentionProblem& problem_;
  const int64_t rows_;
  const bool own_mask_;
  bool neighbours_ = false;
  TileClass own_class_ = TileClass::full;
  size_t width_ = 0;
  std::vector<int64_t> queries_;
  std::vector<float> kept_, bias_, own_bias_;
  std::vector<double> block_sums_, totals_;
  std::vector<std::byte> raw_values_;
  std::vector<float> values_, masked_output_;
  std::vector<std::vector<float>> block_outputs_;
  std::vector<double> outputs_;  ///< [mask, and all keys][row][dv]
};

int64_t MaskRecall::bytes(const HeadTask& task, size_t masks, Wanted wanted, int64_t tile_rows,
                          int workers) {
  const auto mask_count = static_cast<int64_t>(masks);
  const int64_t result_row = mask_count * static_cast<int64_t>(sizeof(RowRecall)) + 9;
  int64_t worker = tile_rows * (2 * kBlockKeys * 4 + 24) + kBlockKeys * 4;
  if (wanted.oracle) worker += TopMass::kBytes + task.problem->num_keys() * 4;
  if (wanted.values) {
    const int64_t width = task.problem->v().width();
    worker += kBlockKeys * (task.problem->v().row_bytes() + width * 4);
    worker += (mask_count + 2) * tile_rows * width * 8;
  }
  const auto results = checked_mul(task.num_rows(), result_row);
  const auto under_way = checked_mul(worker, workers);
  const auto total = results && under_way ? checked_add(*results, *under_way) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the rows are too many for any memory");
  return *total;
}

MaskRecall::MaskRecall(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
                       const TileRequest& request, int workers, MemoryBudget& budget)
    : masks_(masks),
      wanted_(wanted),
      request_(request),
      num_rows_(task.num_rows()),
      reservation_(budget.reserve(bytes(task, masks.size(), wanted, request.chunk_rows, workers),
                                  "the scores of masks")),
      scores_(masks.size() * static_cast<size_t>(num_rows_)),
      norms_(wanted.values ? static_cast<size_t>(num_rows_) : 0),
      masked_(static_cast<size_t>(num_rows_)) {}

void MaskRecall::consume(const Tile& tile) {
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const bool masked = !tile.norms.empty() && tile.norms[static_cast<size_t>(r)].sum == 0;
    masked_[static_cast<size_t>(tile.rows.begin + r)] = masked ? 1 : 0;
  }
  Worker(*this, tile).run();
}

}  // namespace attnscope

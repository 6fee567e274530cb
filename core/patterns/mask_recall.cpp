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
constexpr int64_t kBlockKeys = PickedGroup::kKeys;

/// out += weight row · V, out and V [dv].
void add_outputs(const float* weights, int64_t count, const float* values, size_t width,
                 std::vector<float>& out) {
  for (int64_t j = 0; j < count; ++j, values += width) {
    if (weights[j] == 0) continue;
    for (size_t c = 0; c < width; ++c) out[c] += weights[j] * values[c];
  }
}

void add_to(double* sums, const std::vector<float>& block) {
  for (size_t c = 0; c < block.size(); ++c) sums[c] += double{block[c]};
}

/// p·log₂(p / m), of which the limit at 0 is 0.
double information(double p, double m) { return p > 0 ? p * std::log2(p / m) : 0; }

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
    whole_of_.assign(p_.masks_.size(), p_.masks_.size());
    for (PickedGroup& group : p_.groups_) {
      for (const size_t mask : group.members()) {
        whole_of_[mask] = p_.masks_.size() + 1 + groups_.size();
      }
      const auto pairs = static_cast<size_t>(rows_ * group.keys().size());
      groups_.push_back({group, std::vector<double>(pairs), {}});
      if (own_mask_) groups_.back().own.resize(pairs);
    }
    if (p_.wanted_.values) {
      width_ = static_cast<size_t>(problem_.v().width());
      raw_values_.resize(static_cast<size_t>(kBlockKeys * problem_.v().row_bytes()));
      values_.resize(static_cast<size_t>(kBlockKeys) * width_);
      block_outputs_.assign(static_cast<size_t>(rows_), std::vector<float>(width_));
      masked_output_.resize(width_);
      outputs_.resize((p_.masks_.size() + 1 + p_.groups_.size()) * static_cast<size_t>(rows_) *
                      width_);
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
      for (size_t m = 0; m < p_.masks_.size(); ++m) {
        if (p_.masks_[m].dropped() == nullptr) add_block(m, block);
      }
      for (GroupRows& rows : groups_) add_picked(rows, block);
    }
    for (GroupRows& rows : groups_) finish_picked(rows);
    finish_rows();
    if (p_.wanted_.oracle) find_oracles();
    if (!problem_.sinks().is_none()) divide_by_totals();
  }

 private:
  /// True where a mask is not made of picked blocks.
  bool has_others() const {
    return std::find(whole_of_.begin(), whole_of_.end(), p_.masks_.size()) != whole_of_.end();
  }

  /// Sums of the tile's rows over the blocks of a group.
  struct GroupRows {
    PickedGroup& group;
    std::vector<double> masses;  ///< [rows, key blocks]
    std::vector<int32_t> own;    ///< the same: keys that the call's own mask keeps
  };

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
      block_sums_[row] = has_weights() ? weight_sum(row_weights(r) + block.begin, block.size()) : 0;
      totals_[row] += block_sums_[row];
      if (!p_.wanted_.values || !has_weights() || !has_others()) continue;
      std::fill(block_outputs_[row].begin(), block_outputs_[row].end(), 0.0f);
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
    row.recall += weight_sum(kept_.data(), block.size());
    if (!p_.wanted_.values) return;
    std::fill(masked_output_.begin(), masked_output_.end(), 0.0f);
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

  /// The keys of a run that the call's own mask keeps; it lies in `block`.
  int32_t own_kept_of(int64_t r, IndexRange run, IndexRange block) const {
    if (own_class_ == TileClass::full) return static_cast<int32_t>(run.size());
    if (own_class_ == TileClass::empty) return 0;
    const float* const own = own_bias_.data() + r * kBlockKeys + (run.begin - block.begin);
    return static_cast<int32_t>(
        std::count_if(own, own + run.size(), [](float bias) { return bias > kMasked; }));
  }

  int64_t query_block(const PickedGroup& group, int64_t r) const {
    return group.queries().of_token[static_cast<size_t>(queries_[static_cast<size_t>(r)])];
  }

  /// The block's keys, for all masks of a group.
  void add_picked(GroupRows& rows, IndexRange block) {
    const int64_t columns = rows.group.keys().size();
    for (const PickedGroup::Slot& slot : rows.group.slots(block.begin / kBlockKeys)) {
      for (int64_t r = 0; r < rows_; ++r) {
        const auto place = static_cast<size_t>(r * columns + slot.block);
        for (const IndexRange run : slot.tokens) {
          if (own_mask_) rows.own[place] += own_kept_of(r, run, block);
          if (has_weights()) {
            rows.masses[place] += weight_sum(row_weights(r) + run.begin, run.size());
          }
        }
        if (p_.wanted_.values && has_weights()) add_slot_output(rows.group, slot, r, block);
      }
    }
  }

  void add_slot_output(const PickedGroup& group, const PickedGroup::Slot& slot, int64_t r,
                       IndexRange block) {
    const int64_t query = query_block(group, r);
    std::fill(masked_output_.begin(), masked_output_.end(), 0.0f);
    for (const IndexRange run : slot.tokens) {
      const float* const values =
          values_.data() + static_cast<size_t>(run.begin - block.begin) * width_;
      add_outputs(row_weights(r) + run.begin, run.size(), values, width_, masked_output_);
    }
    add_to(output(whole_of_[group.members().front()], r), masked_output_);
    for (size_t n = 0; n < group.members().size(); ++n) {
      if (group.picks(n).row(query)[slot.block] == 0) continue;
      add_to(output(group.members()[n], r), masked_output_);
    }
  }

  void finish_picked(GroupRows& rows) {
    const PickedGroup& group = rows.group;
    const auto columns = static_cast<size_t>(group.keys().size());
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t query = query_block(group, r);
      const std::span<double> masses(rows.masses.data() + static_cast<size_t>(r) * columns,
                                     columns);
      for (size_t n = 0; n < group.members().size(); ++n) {
        RowRecall& row = score(group.members()[n], r);
        const uint8_t* const kept = group.picks(n).row(query);
        for (size_t j = 0; j < columns; ++j) {
          if (kept[j] == 0) continue;
          row.kept += group.keys().lengths[j];
          row.effective +=
              own_mask_ ? rows.own[static_cast<size_t>(r) * columns + j] : group.keys().lengths[j];
          row.recall += masses[j];
          if (kept[j] == BlockPicks::kForced) row.forced += masses[j];
        }
      }
      if (!p_.wanted_.best_blocks) continue;
      const double total = totals_[static_cast<size_t>(r)];
      if (!problem_.sinks().is_none() && total > 0) {
        for (double& mass : masses) mass /= total;
      }
      rows.group.add_masses(query, masses);
    }
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
        for (double* part : {&row.recall, &row.forced, &row.oracle, &row.effective_oracle}) {
          *part /= total;
        }
      }
    }
  }

  /// The channels of a row's query; nothing where no mask wants them.
  std::vector<double> query_channels(int64_t r) const {
    const bool wanted = std::any_of(p_.masks_.begin(), p_.masks_.end(), [](const Mask& mask) {
      return mask.dropped() != nullptr && mask.dropped()->needs_query();
    });
    if (!wanted) return {};
    const HeadTensor& q = problem_.q();
    const int64_t index = queries_[static_cast<size_t>(r)];
    std::vector<std::byte> raw(static_cast<size_t>(q.row_bytes()));
    std::vector<float> channels(static_cast<size_t>(q.width()));
    q.read_rows(tile_.task->batch, tile_.task->head, {index, index + 1}, raw.data());
    to_floats(q.dtype(), raw.data(), q.width(), channels.data());
    return {channels.begin(), channels.end()};
  }

  /// Outputs and divergences of all rows.
  void finish_rows() {
    if (!p_.wanted_.values && !p_.wanted_.oracle) return;
    for (int64_t r = 0; r < rows_; ++r) {
      const std::vector<double> query = query_channels(r);
      const double sink = sink_share(r);
      const double total = totals_[static_cast<size_t>(r)] + sink;
      const RowParts parts{query, sink, total > 0 ? 1 / total : 0};
      if (p_.wanted_.values) divide_whole(r, parts.factor);
      for (size_t m = 0; m < p_.masks_.size(); ++m) finish_row(m, r, parts);
    }
  }

  /// The whole outputs: one for each way in which they are added up, so that a mask that keeps
  /// everything has no error at all.
  void divide_whole(int64_t r, double factor) {
    for (size_t w = p_.masks_.size(); w <= p_.masks_.size() + groups_.size(); ++w) {
      for (size_t c = 0; c < width_; ++c) output(w, r)[c] *= factor;
    }
    const double* const whole = output(p_.masks_.empty() ? 0 : whole_of_.front(), r);
    double& norm = p_.norms_[static_cast<size_t>(tile_.rows.begin + r)];
    for (size_t c = 0; c < width_; ++c) norm += whole[c] * whole[c];
  }

  struct RowParts {
    std::span<const double> query;
    double sink = 0;    ///< of the row's mass
    double factor = 0;  ///< makes all of it 1
  };

  void finish_row(size_t m, int64_t r, const RowParts& parts) {
    RowRecall& row = score(m, r);
    const DroppedTerms* const dropped = p_.masks_[m].dropped();
    const BlockRest rest = dropped == nullptr ? BlockRest::renormalise : dropped->rest;
    const double lse = tile_.norms[static_cast<size_t>(r)].lse();
    const int64_t index = queries_[static_cast<size_t>(r)];
    DroppedTerms::Weights terms;
    const bool has_terms = dropped != nullptr && dropped->has_terms() && !std::isinf(lse);
    if (has_terms) terms = dropped->weights(index, parts.query, lse);
    const double mass = row.recall * terms.sum.others + terms.sum.mass;
    double factor = mass > 0 ? 1 / (mass + parts.sink * terms.sum.others) : 0;
    if (rest == BlockRest::lost) factor = parts.factor;
    if (has_terms && p_.wanted_.oracle && has_weights()) {
      row.divergence = divergence(*dropped, terms, r, parts, factor);
    }
    if (!p_.wanted_.values) return;
    const std::span<double> out(output(m, r), width_);
    if (has_terms) dropped->add(terms, out);
    for (double& value : out) value *= factor;
    if (dropped != nullptr && parts.factor > 0) dropped->add_branch(index, parts.query, out);
    const double* const whole = output(whole_of_[m], r);
    for (size_t c = 0; c < width_; ++c) {
      const double difference = out[c] - whole[c];
      row.error += difference * difference;
      row.product += out[c] * whole[c];
      row.length += out[c] * out[c];
    }
  }

  /// Of the row's distribution from that in which terms share their weight among their keys.
  double divergence(const DroppedTerms& dropped, const DroppedTerms::Weights& terms, int64_t r,
                    const RowParts& parts, double factor) const {
    const BlockPicks& picks = *dropped.picks;
    const int64_t index = queries_[static_cast<size_t>(r)];
    const uint8_t* const kept = picks.row(picks.queries.of_token[static_cast<size_t>(index)]);
    const float* const weights = row_weights(r);
    const double left = terms.sum.others * factor;
    double sum = 0;
    const auto add = [&](double p, double q) {
      const double middle = (p + q) / 2;
      sum += (information(p, middle) + information(q, middle)) / 2;
    };
    for (int64_t j = 0; j < problem_.num_keys(); ++j) {
      const auto block = static_cast<size_t>(picks.keys.of_token[static_cast<size_t>(j)]);
      const double weight = weights[j];
      add(weight * parts.factor, kept[block] != 0 ? weight * left : terms.of_key[block] * factor);
    }
    add(parts.sink * parts.factor, parts.sink * left);
    return sum;
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
  /// Of each mask which of the outputs is that of all keys.
  std::vector<size_t> whole_of_;
  /// [masks, all keys for those that are not made of picked blocks, and for each group][row][dv]
  std::vector<double> outputs_;
  std::vector<GroupRows> groups_;
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
    worker += (2 * mask_count + 2) * tile_rows * width * 8;
  }
  const auto results = checked_mul(task.num_rows(), result_row);
  const auto under_way = checked_mul(worker, workers);
  const auto total = results && under_way ? checked_add(*results, *under_way) : std::nullopt;
  if (!total) throw Error(ErrorCode::resource, "the rows are too many for any memory");
  return *total;
}

int64_t MaskRecall::bytes(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
                          int64_t tile_rows, int workers) {
  return bytes(task, masks.size(), wanted, tile_rows, workers) +
         PickedGroup::bytes(masks, wanted.best_blocks) +
         PickedGroup::row_bytes(masks) * tile_rows * workers;
}

MaskRecall::MaskRecall(const HeadTask& task, std::span<const Mask> masks, Wanted wanted,
                       const TileRequest& request, int workers, MemoryBudget& budget)
    : task_(task),
      masks_(masks),
      wanted_(wanted),
      request_(request),
      num_rows_(task.num_rows()),
      reservation_(budget.reserve(bytes(task, masks, wanted, request.chunk_rows, workers),
                                  "the scores of masks")),
      groups_(PickedGroup::of(masks, wanted.best_blocks)),
      scores_(masks.size() * static_cast<size_t>(num_rows_)),
      norms_(wanted.values ? static_cast<size_t>(num_rows_) : 0),
      masked_(static_cast<size_t>(num_rows_)) {}

std::optional<double> MaskRecall::best_block_recall(size_t mask) const {
  for (const PickedGroup& group : groups_) {
    const std::vector<size_t>& members = group.members();
    const auto found = std::find(members.begin(), members.end(), mask);
    if (found == members.end()) continue;
    const std::optional<double> mass =
        group.best_mass(static_cast<size_t>(found - members.begin()));
    const auto live = std::count(masked_.begin(), masked_.end(), uint8_t{0});
    if (!mass || live == 0) return std::nullopt;
    return *mass / static_cast<double>(live);
  }
  return std::nullopt;
}

void MaskRecall::consume(const Tile& tile) {
  for (int64_t r = 0; r < tile.rows.size(); ++r) {
    const bool masked = !tile.norms.empty() && tile.norms[static_cast<size_t>(r)].sum == 0;
    masked_[static_cast<size_t>(tile.rows.begin + r)] = masked ? 1 : 0;
  }
  Worker(*this, tile).run();
}

}  // namespace attnscope

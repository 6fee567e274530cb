#include "viewer/tiles/jobs/line_job.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/mask/masked_bias.h"
#include "core/products/key_runs.h"
#include "core/products/row_mean.h"
#include "viewer/tiles/jobs/masked_entries.h"

namespace attnscope {
namespace {

/// The cost of a run of keys beside that of its keys, as a number of keys.
constexpr int64_t kRunKeys = 256;
constexpr int64_t kMostSlabRows = 8192;
constexpr int64_t kLineSlabEntries = int64_t{1} << 21;

/// Rows of the map, their mean (the bits of RowCollector) or their sum. A piece is a group of rows.
class RowLineJob : public MapJob {
 public:
  RowLineJob(const LineRequest& request, const HeadCache& head)
      : MapJob(request.head),
        request_(request),
        keys_(head.geometry.cols),
        groups_(RowMean::groups(static_cast<int64_t>(request.tokens.size()))),
        mean_(static_cast<int64_t>(request.tokens.size())) {}

  bool done(const HeadCache&) const override { return mean_.complete(); }
  int64_t pieces_left(const HeadCache&) const override { return mean_.groups_left(); }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    if (next_ == groups_) return std::nullopt;
    const bool logits = request_.quantity == Quantity::logits;
    if (next_ == 0) {
      line_ = tools.reserve(keys_ * 5, "a line of the map");
      // The sum, and groups that wait for an earlier one.
      sums_ = tools.reserve(4 * keys_ * (logits ? 12 : 8), "the sums of a line");
    }
    const int64_t group = next_++;
    const auto first = static_cast<size_t>(group * RowMean::kGroupRows);
    const size_t count =
        std::min(static_cast<size_t>(RowMean::kGroupRows), request_.tokens.size() - first);
    std::vector<int64_t> rows(request_.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                              request_.tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
    std::vector<RowNorm> norms(count);
    const bool divided = needs_norms(head.problem->score(), request_.quantity);
    if (divided) head.norms.prepare(head.geometry.rows, tools.reserve);
    const bool known = divided && head.norms.known(rows);
    for (size_t i = 0; known && i < count; ++i) {
      norms[i] = head.norms.norms()[static_cast<size_t>(rows[i])];
    }
    return [this, group, known, divided, rows,
            norms](WorkerScratch* scratch) mutable -> Completion {
      auto part = std::make_shared<RowSums>(sum_rows(*scratch, rows, norms, known));
      std::vector<uint8_t> masked = masked_in(scratch->problem(), rows);
      return [this, group, divided, rows, norms, part, masked](HeadCache& of, TileStore& store) {
        if (divided) of.norms.set(rows, norms);
        leave_masked(masked);
        return add(group, std::move(*part), store);
      };
    };
  }

 private:
  RowSums sum_rows(WorkerScratch& scratch, const std::vector<int64_t>& rows,
                   std::vector<RowNorm>& norms, bool known) const {
    RowSums sums(keys_, request_.quantity);
    const std::span<const int64_t> all(rows);
    const auto step = static_cast<size_t>(scratch.rows_per_call(std::ssize(rows), keys_, true));
    for (size_t first = 0; first < rows.size(); first += step) {
      const size_t count = std::min(step, rows.size() - first);
      const float* row = scratch.entries(scratch.read(all.subspan(first, count)),
                                         std::span(norms).subspan(first, count), known, {0, keys_},
                                         request_.quantity);
      for (size_t i = 0; i < count; ++i, row += keys_) {
        sums.add({row, static_cast<size_t>(keys_)});
      }
    }
    return sums;
  }

  std::vector<uint8_t> masked_in(const AttentionProblem& problem,
                                 const std::vector<int64_t>& rows) const {
    const MaskedEntries entries(problem, request_.head);
    const bool tells = entries.any() && request_.quantity == Quantity::weights;
    return tells ? entries.keys_masked_in(rows) : std::vector<uint8_t>();
  }

  /// Only what is masked in all rows stays so.
  void leave_masked(const std::vector<uint8_t>& masked) {
    if (masked_.empty()) masked_ = masked;
    std::transform(masked.begin(), masked.end(), masked_.begin(), masked_.begin(),
                   [](uint8_t a, uint8_t b) { return std::min(a, b); });
  }

  bool add(int64_t group, RowSums part, TileStore& store) {
    mean_.add(group, std::move(part));
    if (!mean_.complete()) return false;
    auto line = std::make_shared<MapLine>();
    line->request = request_;
    line->values = request_.sum ? mean_.take_sum() : mean_.take();
    line->masked = std::move(masked_);
    store.put(std::move(line), std::move(line_));
    return true;
  }

  const LineRequest request_;
  const int64_t keys_, groups_;
  int64_t next_ = 0;
  MemoryReservation line_, sums_;
  RowMean mean_;
  std::vector<uint8_t> masked_;  ///< MapLine::masked over the groups so far
};

/// Columns of the map, their mean (of weights the bits of ReverseQuery, of logits over those that
/// are not masked) or their sum.
class ColumnLineJob : public MapJob {
 public:
  ColumnLineJob(const LineRequest& request, const HeadCache& head)
      : MapJob(request.head),
        request_(request),
        rows_(head.geometry.rows),
        runs_(key_runs(request.tokens, 0, request.tokens.size())),
        factors_(request.tokens.size(),
                 request.sum ? 1.0 : 1.0 / static_cast<double>(request.tokens.size())) {
    int64_t most = 1, work = 0;
    for (const KeyRun& run : runs_) {
      most = std::max(most, run.keys.size());
      work += run.keys.size() + kRunKeys;
    }
    slab_rows_ = std::clamp(std::min(piece_rows(*head.problem, work), kLineSlabEntries / most),
                            int64_t{1}, kMostSlabRows);
    slabs_ = ceil_div(rows_, slab_rows_);
  }

  bool done(const HeadCache&) const override { return done_ == slabs_; }
  int64_t pieces_left(const HeadCache&) const override { return slabs_ - done_; }

  std::optional<WorkItem> take(HeadCache& head, const JobTools& tools) override {
    const bool divided = needs_norms(head.problem->score(), request_.quantity);
    if (next_ == slabs_ || (divided && !head.norms.complete())) return std::nullopt;
    if (next_ == 0) {
      memory_ = tools.reserve(rows_ * 5, "a line of the map");
      line_ = std::make_shared<MapLine>();
      line_->request = request_;
      line_->values.resize(static_cast<size_t>(rows_));
      const bool tells =
          MaskedEntries(*head.problem, head.id).any() && request_.quantity == Quantity::weights;
      line_->masked.resize(tells ? static_cast<size_t>(rows_) : 0);
    }
    const IndexRange slab{next_ * slab_rows_, std::min(rows_, (next_ + 1) * slab_rows_)};
    ++next_;
    std::vector<RowNorm> norms;
    if (divided) {
      norms.assign(head.norms.norms().begin() + slab.begin, head.norms.norms().begin() + slab.end);
    }
    return [this, slab, norms](WorkerScratch* scratch) mutable -> Completion {
      fill(*scratch, slab, norms);
      return [this](HeadCache&, TileStore& store) {
        if (++done_ < slabs_) return false;
        store.put(std::move(line_), std::move(memory_));
        return true;
      };
    };
  }

 private:
  void fill(WorkerScratch& scratch, IndexRange slab, std::vector<RowNorm>& norms) {
    const auto rows = static_cast<size_t>(slab.size());
    const bool logits = request_.quantity == Quantity::logits;
    std::vector<double> sums(rows, 0.0);
    std::vector<int64_t> counts(logits ? rows : 0, 0);
    const QueryBlock queries = scratch.read(slab);
    for (const KeyRun& run : runs_) {
      const float* row = scratch.entries(queries, norms, true, run.keys, request_.quantity);
      for (size_t r = 0; r < rows; ++r, row += run.keys.size()) {
        if (logits) {
          add_logits(row, run, sums[r], counts[r]);
        } else {
          sums[r] += weigh_keys(row, run, factors_);
        }
      }
    }
    if (!line_->masked.empty()) {
      const std::vector<uint8_t> masked =
          MaskedEntries(scratch.problem(), request_.head).rows_masked_at(slab, request_.tokens);
      std::copy(masked.begin(), masked.end(), line_->masked.begin() + slab.begin);
    }
    float* const values = line_->values.data() + slab.begin;
    for (size_t r = 0; r < rows; ++r) {
      if (logits && counts[r] == 0) {
        values[r] = kMasked;
      } else {
        values[r] = static_cast<float>(logits ? sums[r] / static_cast<double>(counts[r]) : sums[r]);
      }
    }
  }

  static void add_logits(const float* row, const KeyRun& run, double& sum, int64_t& count) {
    for (const int64_t column : run.columns) {
      if (row[column] == kMasked) continue;
      sum += static_cast<double>(row[column]);
      ++count;
    }
  }

  const LineRequest request_;
  const int64_t rows_;
  const std::vector<KeyRun> runs_;
  const std::vector<double> factors_;  ///< of each token
  int64_t slab_rows_ = 1, slabs_ = 0, next_ = 0, done_ = 0;
  MemoryReservation memory_;
  std::shared_ptr<MapLine> line_;
};

}  // namespace

std::shared_ptr<MapJob> make_line_job(const LineRequest& request, const HeadCache& head) {
  if (request.reverse) return std::make_shared<ColumnLineJob>(request, head);
  return std::make_shared<RowLineJob>(request, head);
}

}  // namespace attnscope

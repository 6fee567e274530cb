#include <algorithm>
#include <limits>
#include <map>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "viewer/tiles/map_job.h"

namespace attnscope {
namespace {

/// Rows of a chunk: sums of chunks are added in order, so that neither memory nor the number of
/// workers shows in a mean.
constexpr int64_t kChunkRows = 24;
/// Chosen keys that lie no further apart are computed together: backends take keys in blocks of
/// this order anyway.
constexpr int64_t kMostGap = 256;
constexpr int64_t kMostRunKeys = 1024;
constexpr int64_t kMostSlabRows = 8192;
constexpr int64_t kSlabEntries = int64_t{1} << 21;

/// Sums of some rows, entry by entry; of logits those that are not masked, and how many they are.
struct LineSum {
  std::vector<double> sum;
  std::vector<int32_t> count;

  void prepare(size_t size, bool counted) {
    sum.assign(size, 0);
    count.assign(counted ? size : 0, 0);
  }
  void add(size_t i, float value) {
    if (!count.empty()) {
      if (value == -std::numeric_limits<float>::infinity()) return;
      ++count[i];
    }
    sum[i] += static_cast<double>(value);
  }
  void add(const LineSum& other) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += other.sum[i];
    for (size_t i = 0; i < count.size(); ++i) count[i] += other.count[i];
  }
  float mean(size_t i, int64_t rows) const {
    if (!count.empty()) rows = count[i];
    if (rows == 0) return -std::numeric_limits<float>::infinity();
    return static_cast<float>(sum[i] / static_cast<double>(rows));
  }
};

/// Rows of the map, or their mean.
class RowLineJob : public MapJob {
 public:
  RowLineJob(const LineRequest& request, const HeadData& head)
      : MapJob(request.head),
        request_(request),
        keys_(head.geometry.cols),
        chunks_(ceil_div(static_cast<int64_t>(request.tokens.size()), kChunkRows)) {}

  bool done(const HeadData&) const override { return added_ == chunks_; }
  int64_t pieces_left(const HeadData&) const override { return chunks_ - added_; }

  std::optional<Piece> take(HeadData& head, const JobTools& tools) override {
    if (next_ == chunks_) return std::nullopt;
    const bool logits = request_.quantity == Quantity::logits;
    if (next_ == 0) {
      line_ = tools.reserve(keys_ * 4, "a line of the map");
      // The sum, and chunks that wait for an earlier one.
      sums_ = tools.reserve(4 * keys_ * (logits ? 12 : 8), "the sums of a line");
      total_.prepare(static_cast<size_t>(keys_), logits);
    }
    const int64_t chunk = next_++;
    const auto first = static_cast<size_t>(chunk * kChunkRows);
    const size_t count = std::min(static_cast<size_t>(kChunkRows), request_.tokens.size() - first);
    std::vector<int64_t> rows(request_.tokens.begin() + static_cast<std::ptrdiff_t>(first),
                              request_.tokens.begin() + static_cast<std::ptrdiff_t>(first + count));
    std::vector<RowNorm> norms(count);
    const bool divided = needs_norms(head.problem->score(), request_.quantity);
    if (divided) head.norms.prepare(head.geometry.rows, tools.reserve);
    const bool known = divided && head.norms.known(rows);
    for (size_t i = 0; known && i < count; ++i) {
      norms[i] = head.norms.norms()[static_cast<size_t>(rows[i])];
    }
    return [this, chunk, known, divided, rows, norms](Workbench& bench) mutable -> TakeIn {
      auto part = std::make_shared<LineSum>(sum_rows(bench, rows, norms, known));
      return [this, chunk, divided, rows, norms, part](HeadData& of, TileStore& store) {
        if (divided) of.norms.set(rows, norms);
        return add(chunk, *part, store);
      };
    };
  }

 private:
  LineSum sum_rows(Workbench& bench, const std::vector<int64_t>& rows, std::vector<RowNorm>& norms,
                   bool known) const {
    LineSum part;
    part.prepare(static_cast<size_t>(keys_), request_.quantity == Quantity::logits);
    const std::span<const int64_t> all(rows);
    const auto step = static_cast<size_t>(bench.rows_per_call(keys_, true));
    for (size_t first = 0; first < rows.size(); first += step) {
      const size_t count = std::min(step, rows.size() - first);
      const float* entries = bench.entries(bench.read(all.subspan(first, count)),
                                           std::span(norms).subspan(first, count), known,
                                           {0, keys_}, request_.quantity);
      for (size_t row = 0; row < count; ++row) {
        for (size_t key = 0; key < part.sum.size(); ++key) part.add(key, *entries++);
      }
    }
    return part;
  }

  bool add(int64_t chunk, LineSum& part, TileStore& store) {
    waiting_.emplace(chunk, std::move(part));
    for (auto it = waiting_.find(added_); it != waiting_.end(); it = waiting_.find(added_)) {
      total_.add(it->second);
      waiting_.erase(it);
      ++added_;
    }
    if (added_ < chunks_) return false;
    auto line = std::make_shared<MapLine>();
    line->request = request_;
    line->values.reserve(total_.sum.size());
    const auto rows = static_cast<int64_t>(request_.tokens.size());
    for (size_t key = 0; key < total_.sum.size(); ++key) {
      line->values.push_back(total_.mean(key, rows));
    }
    store.put(std::move(line), std::move(line_));
    return true;
  }

  const LineRequest request_;
  const int64_t keys_, chunks_;
  int64_t next_ = 0, added_ = 0;
  MemoryReservation line_, sums_;
  LineSum total_;
  std::map<int64_t, LineSum> waiting_;
};

/// Columns of the map, or their mean.
class ColumnLineJob : public MapJob {
 public:
  ColumnLineJob(const LineRequest& request, const HeadData& head)
      : MapJob(request.head), request_(request), rows_(head.geometry.rows) {
    const std::vector<int64_t>& keys = request.tokens;
    int64_t most = 1, work = 0;
    for (size_t first = 0; first < keys.size();) {
      size_t past = first + 1;
      while (past < keys.size() && keys[past] - keys[past - 1] <= kMostGap &&
             keys[past] - keys[first] < kMostRunKeys) {
        ++past;
      }
      runs_.push_back({first, past});
      const int64_t size = keys[past - 1] + 1 - keys[first];
      most = std::max(most, size);
      work += size + kMostGap;
      first = past;
    }
    slab_rows_ = std::clamp(std::min(piece_rows(*head.problem, work), kSlabEntries / most),
                            int64_t{1}, kMostSlabRows);
    slabs_ = ceil_div(rows_, slab_rows_);
  }

  bool done(const HeadData&) const override { return done_ == slabs_; }
  int64_t pieces_left(const HeadData&) const override { return slabs_ - done_; }

  std::optional<Piece> take(HeadData& head, const JobTools& tools) override {
    const bool divided = needs_norms(head.problem->score(), request_.quantity);
    if (next_ == slabs_ || (divided && !head.norms.complete())) return std::nullopt;
    if (next_ == 0) {
      memory_ = tools.reserve(rows_ * 4, "a line of the map");
      line_ = std::make_shared<MapLine>();
      line_->request = request_;
      line_->values.resize(static_cast<size_t>(rows_));
    }
    const IndexRange slab{next_ * slab_rows_, std::min(rows_, (next_ + 1) * slab_rows_)};
    ++next_;
    std::vector<RowNorm> norms;
    if (divided) {
      norms.assign(head.norms.norms().begin() + slab.begin, head.norms.norms().begin() + slab.end);
    }
    return [this, slab, norms](Workbench& bench) mutable -> TakeIn {
      fill(bench, slab, norms);
      return [this](HeadData&, TileStore& store) {
        if (++done_ < slabs_) return false;
        store.put(std::move(line_), std::move(memory_));
        return true;
      };
    };
  }

 private:
  void fill(Workbench& bench, IndexRange slab, std::vector<RowNorm>& norms) {
    LineSum sums;
    sums.prepare(static_cast<size_t>(slab.size()), request_.quantity == Quantity::logits);
    const QueryBlock queries = bench.read(slab);
    for (const auto& [first, past] : runs_) {
      const IndexRange keys{request_.tokens[first], request_.tokens[past - 1] + 1};
      const float* row = bench.entries(queries, norms, true, keys, request_.quantity);
      for (size_t r = 0; r < sums.sum.size(); ++r, row += keys.size()) {
        for (size_t i = first; i < past; ++i) sums.add(r, row[request_.tokens[i] - keys.begin]);
      }
    }
    const auto count = static_cast<int64_t>(request_.tokens.size());
    for (size_t r = 0; r < sums.sum.size(); ++r) {
      line_->values[static_cast<size_t>(slab.begin) + r] = sums.mean(r, count);
    }
  }

  const LineRequest request_;
  const int64_t rows_;
  std::vector<std::pair<size_t, size_t>> runs_;  ///< of request_.tokens
  int64_t slab_rows_ = 1, slabs_ = 0, next_ = 0, done_ = 0;
  MemoryReservation memory_;
  std::shared_ptr<MapLine> line_;
};

}  // namespace

std::shared_ptr<MapJob> make_line_job(const LineRequest& request, const HeadData& head) {
  if (request.reverse) return std::make_shared<ColumnLineJob>(request, head);
  return std::make_shared<RowLineJob>(request, head);
}

}  // namespace attnscope

#include "core/mask/same_segment.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/mask/masked_bias.h"
#include "core/mask/token_tensor.h"

namespace attnscope {
namespace {

/// Tokens next to each other with one segment's number.
struct SegmentRun {
  IndexRange tokens;
  int64_t segment = 0;
};

/// The segment of every token of one batch item. A sequence whose segments lie in one piece has
/// few runs; one whose segments alternate has as many as tokens.
class SegmentRuns {
 public:
  explicit SegmentRuns(const std::vector<int64_t>& segments) {
    for (int64_t token = 0; token < static_cast<int64_t>(segments.size()); ++token) {
      const int64_t segment = segments[static_cast<size_t>(token)];
      if (runs_.empty() || runs_.back().segment != segment) {
        runs_.push_back({{token, token}, segment});
      }
      runs_.back().tokens.end = token + 1;
    }
    by_segment_.resize(runs_.size());
    std::iota(by_segment_.begin(), by_segment_.end(), size_t{0});
    std::stable_sort(by_segment_.begin(), by_segment_.end(),
                     [this](size_t a, size_t b) { return runs_[a].segment < runs_[b].segment; });
  }

  /// The runs that hold some of `tokens`, in order.
  std::span<const SegmentRun> runs_in(IndexRange tokens) const {
    const auto first =
        std::upper_bound(runs_.begin(), runs_.end(), tokens.begin,
                         [](int64_t token, const SegmentRun& r) { return token < r.tokens.end; });
    const auto past =
        std::lower_bound(first, runs_.end(), tokens.end,
                         [](const SegmentRun& r, int64_t token) { return r.tokens.begin < token; });
    return std::span(runs_).subspan(static_cast<size_t>(first - runs_.begin()),
                                    static_cast<size_t>(past - first));
  }

  /// True where one of `tokens` is in the segment.
  bool has(int64_t segment, IndexRange tokens) const {
    // The last run of the segment that begins before the end of `tokens`.
    const auto past = std::partition_point(by_segment_.begin(), by_segment_.end(), [&](size_t i) {
      return std::tie(runs_[i].segment, runs_[i].tokens.begin) < std::tie(segment, tokens.end);
    });
    if (past == by_segment_.begin()) return false;
    const SegmentRun& run = runs_[*(past - 1)];
    return run.segment == segment && run.tokens.end > tokens.begin;
  }

 private:
  std::vector<SegmentRun> runs_;
  std::vector<size_t> by_segment_;  ///< places in runs_, ascending by (segment, first token)
};

bool is_one_segment(std::span<const SegmentRun> runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const SegmentRun& run) { return run.segment == runs.front().segment; });
}

class SameSegmentTerm : public MaskTerm {
 public:
  explicit SameSegmentTerm(std::shared_ptr<const TensorSource> source)
      : tensor_(std::move(source), DType::i64) {}

  TileClass classify(int64_t batch, int64_t, IndexRange queries, IndexRange keys) const override {
    const SegmentRuns& item = runs_of(batch);
    std::span<const SegmentRun> few = item.runs_in(queries), many = item.runs_in(keys);
    IndexRange others = keys;
    if (few.size() > many.size()) {
      std::swap(few, many);
      others = queries;
    }
    const bool any = std::any_of(few.begin(), few.end(), [&](const SegmentRun& run) {
      return item.has(run.segment, others);
    });
    if (!any) return TileClass::empty;
    return is_one_segment(few) && is_one_segment(many) ? TileClass::full : TileClass::mixed;
  }

  void add_bias(int64_t batch, int64_t, std::span<const int64_t> queries, IndexRange keys,
                float* out, int64_t row_stride) const override {
    const SegmentRuns& item = runs_of(batch);
    // Spread over the keys once for all rows. Called for many small rectangles, where an allocation
    // each would show.
    thread_local std::vector<int64_t> of_keys;
    of_keys.clear();
    for (const SegmentRun& run : item.runs_in(keys)) {
      of_keys.resize(static_cast<size_t>(intersect(run.tokens, keys).end - keys.begin),
                     run.segment);
    }
    for (const int64_t query : queries) {
      const int64_t segment = item.runs_in({query, query + 1}).front().segment;
      std::transform(of_keys.begin(), of_keys.end(), out, out,
                     [=](int64_t key, float bias) { return key == segment ? bias : kMasked; });
      out += row_stride;
    }
  }

  std::string describe() const override { return "segments"; }

  void check_shape(int64_t batch, int64_t, int64_t queries, int64_t keys) const override {
    tensor_.check_shape(batch, keys);
    tensor_.check_shape(batch, queries);
  }

 private:
  const SegmentRuns& runs_of(int64_t batch) const {
    std::call_once(once_, [this] {
      std::vector<SegmentRuns> items;
      for (int64_t item = 0; item < tensor_.items(); ++item) {
        items.emplace_back(tensor_.read<int64_t>(item));
      }
      items_ = std::move(items);
    });
    return items_[static_cast<size_t>(tensor_.item_of(batch))];
  }

  const TokenTensor tensor_;
  mutable std::once_flag once_;
  mutable std::vector<SegmentRuns> items_;
};

}  // namespace

Mask same_segment_mask(std::shared_ptr<const TensorSource> segments) {
  return Mask::term(std::make_shared<SameSegmentTerm>(std::move(segments)));
}

}  // namespace attnscope

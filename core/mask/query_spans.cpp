#include "core/mask/query_spans.h"

#include <array>
#include <cassert>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "core/mask/mask_runs.h"
#include "core/mask/token_tensor.h"

namespace attnscope {
namespace {

constexpr int64_t kColumns = 5;

/// Queries with the same spans: those from `first` on, `count` of them.
struct Band {
  IndexRange queries;
  size_t first = 0, count = 0;
};

/// A mask's spans and their bands, both ascending.
struct SpanList {
  std::vector<QuerySpan> spans;
  std::vector<Band> bands;
};

std::string row_text(std::span<const int64_t> row) {
  std::string text;
  for (const int64_t value : row) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

/// The fault of a row of the tensor; empty: none.
std::string fault_of(std::span<const int64_t> row, int64_t queries, int64_t keys) {
  const auto within = [](int64_t begin, int64_t end, int64_t most) {
    return begin >= 0 && begin < end && end <= most;
  };
  if (!within(row[0], row[1], queries)) {
    return "its queries are no range within 0 to " + std::to_string(queries);
  }
  if (!within(row[2], row[3], keys)) {
    return "its keys are no range within 0 to " + std::to_string(keys);
  }
  return row[4] == 0 || row[4] == 1 ? "" : "the last number is neither 0 nor 1";
}

/// The fault in the order of a span and the one before it; empty: none.
std::string order_fault(const QuerySpan& before, const QuerySpan& span) {
  if (span.queries == before.queries) {
    return span.keys.begin >= before.keys.end
               ? ""
               : "its keys do not follow those of the row before it, which has the same queries";
  }
  return span.queries.begin >= before.queries.end
             ? ""
             : "its queries neither follow those of the row before it nor are the same";
}

SpanList read_spans(const TensorSource& source, int64_t queries, int64_t keys) {
  const int64_t rows = source.shape()[0];
  std::vector<int64_t> values(static_cast<size_t>(rows * kColumns));
  const std::array<int64_t, 2> begin{0, 0}, count{rows, kColumns};
  source.read(begin, count, reinterpret_cast<std::byte*>(values.data()));
  SpanList list;
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<const int64_t> row(values.data() + r * kColumns, size_t{kColumns});
    std::string fault = fault_of(row, queries, keys);
    const QuerySpan span{{row[0], row[1]}, {row[2], row[3]}, row[4] == 1};
    if (fault.empty() && !list.spans.empty()) fault = order_fault(list.spans.back(), span);
    if (!fault.empty()) {
      throw usage_error(source.name() + ": row " + std::to_string(r) + ": " + fault + " (got " +
                        row_text(row) + ")");
    }
    if (list.bands.empty() || list.bands.back().queries != span.queries) {
      list.bands.push_back({span.queries, list.spans.size(), 0});
    }
    ++list.bands.back().count;
    list.spans.push_back(span);
  }
  return list;
}

class QuerySpansTerm : public RunsTerm {
 public:
  explicit QuerySpansTerm(std::shared_ptr<const TensorSource> source) : source_(std::move(source)) {
    const auto shape = source_->shape();
    const bool fits = source_->dtype() == DType::i64 && shape.size() == 2 && shape[0] >= 1 &&
                      shape[0] <= kMostQuerySpans && shape[1] == kColumns;
    if (!fits) {
      throw usage_error(source_->name() + ": expected i64 [n, 5], n from 1 to " +
                        std::to_string(kMostQuerySpans) + " (got " +
                        tensor_text(source_->dtype(), shape) + ")");
    }
  }

  /// Told by the corners of spans, however many rows there are.
  TileClass classify(int64_t, int64_t, IndexRange queries, IndexRange keys) const override {
    bool any_kept = false, any_masked = false;
    int64_t past = queries.begin;
    for (const Band& band : bands_in(queries)) {
      any_masked |= band.queries.begin > past;
      past = band.queries.end;
      const IndexRange rows = intersect(band.queries, queries);
      int64_t covered = 0;
      for (const QuerySpan& span : spans_of(band)) {
        // Later queries of a span see what earlier ones do.
        const int64_t first = intersect(span.keys_of(rows.begin), keys).size();
        if (first != intersect(span.keys_of(rows.end - 1), keys).size()) return TileClass::mixed;
        covered += first;
      }
      any_kept |= covered > 0;
      any_masked |= covered < keys.size();
      if (any_kept && any_masked) return TileClass::mixed;
    }
    any_masked |= past < queries.end;
    if (any_kept && any_masked) return TileClass::mixed;
    return any_kept ? TileClass::full : TileClass::empty;
  }

  std::string describe() const override { return "spans"; }

  void check_shape(int64_t, int64_t, int64_t queries, int64_t keys) const override {
    read(queries, keys);
    if (shape_ == std::array{queries, keys}) return;
    throw usage_error(source_->name() + ": was read for " + std::to_string(shape_[0]) +
                      " queries and " + std::to_string(shape_[1]) + " keys, not for " +
                      std::to_string(queries) + " and " + std::to_string(keys));
  }

 protected:
  void append_runs(int64_t query, IndexRange keys, std::vector<IndexRange>& runs) const override {
    for (const Band& band : bands_in({query, query + 1})) {
      for (const QuerySpan& span : spans_of(band)) {
        const IndexRange seen = intersect(span.keys_of(query), keys);
        if (!seen.empty()) runs.push_back(seen);
      }
    }
  }

 private:
  void read(int64_t queries, int64_t keys) const {
    std::call_once(once_, [&] {
      list_ = read_spans(*source_, queries, keys);
      shape_ = {queries, keys};
    });
  }

  std::span<const Band> bands_in(IndexRange queries) const {
    assert(shape_[0] > 0);  // check_shape() came first, as AttentionProblem::make has it
    const auto& bands = list_.bands;
    const auto first =
        std::upper_bound(bands.begin(), bands.end(), queries.begin,
                         [](int64_t query, const Band& b) { return query < b.queries.end; });
    const auto past =
        std::lower_bound(first, bands.end(), queries.end,
                         [](const Band& b, int64_t query) { return b.queries.begin < query; });
    return std::span(bands).subspan(static_cast<size_t>(first - bands.begin()),
                                    static_cast<size_t>(past - first));
  }
  std::span<const QuerySpan> spans_of(const Band& band) const {
    return std::span(list_.spans).subspan(band.first, band.count);
  }

  const std::shared_ptr<const TensorSource> source_;
  mutable std::once_flag once_;
  mutable SpanList list_;
  mutable std::array<int64_t, 2> shape_{};
};

}  // namespace

Mask query_spans_mask(std::shared_ptr<const TensorSource> spans) {
  return Mask::term(std::make_shared<QuerySpansTerm>(std::move(spans)));
}

std::vector<QuerySpan> read_query_spans(const TensorSource& spans, int64_t queries, int64_t keys) {
  return read_spans(spans, queries, keys).spans;
}

std::vector<int64_t> query_span_rows(std::span<const QuerySpan> spans) {
  std::vector<int64_t> rows;
  for (const QuerySpan& s : spans) {
    rows.insert(rows.end(), {s.queries.begin, s.queries.end, s.keys.begin, s.keys.end,
                             s.causal ? int64_t{1} : int64_t{0}});
  }
  return rows;
}

}  // namespace attnscope

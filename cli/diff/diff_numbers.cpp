#include "cli/diff/diff_numbers.h"

#include <limits>
#include <numeric>
#include <vector>

#include "core/products/differences/difference_sinks.h"

namespace attnscope {
namespace {

/// The numbers of the rows of some parts of the queries over some parts of the keys. Rows of
/// distributions are divided by their sums over the part first.
class SegmentNumbers final : public PairSink {
 public:
  /// Parts are places among the compared rows and keys, and follow each other.
  SegmentNumbers(const std::vector<SequencePart>& query_parts,
                 const std::vector<SequencePart>& key_parts, bool distributions)
      : query_parts_(query_parts), key_parts_(key_parts), distributions_(distributions) {}

  std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const override;
  int64_t bytes(int64_t rows, int64_t keys) const override;
  int64_t worker_bytes(int64_t) const override { return 0; }
  void begin(std::span<const IndexRange> runs, int64_t keys) override;
  void add(int64_t run, int64_t row, const RowPair& pair) override;

  /// The differences of a query part's rows over the keys of a key part.
  struct Found {
    std::vector<RowDifference> rows;
    double mass_a = 0, mass_b = 0;  ///< mean over the rows of what lies on the key part
  };
  Found take(size_t query_part, size_t key_part) const;

 private:
  struct Cell {
    RowDifference row;
    double mass_a = 0, mass_b = 0;
  };
  const std::vector<SequencePart> query_parts_, key_parts_;
  const bool distributions_;
  std::vector<Cell> cells_;  ///< [rows, key parts]
};

double sum_of(std::span<const float> row) { return std::accumulate(row.begin(), row.end(), 0.0); }

/// A row without weight stays as it is.
void divide_by(double sum, std::span<float> row) {
  if (sum == 0) return;
  for (float& weight : row) weight = static_cast<float>(weight / sum);
}

std::vector<IndexRange> SegmentNumbers::runs(int64_t rows, int64_t panel_rows) const {
  return equal_runs(rows, panel_rows);
}

int64_t SegmentNumbers::bytes(int64_t rows, int64_t) const {
  // And what take() gives of a part of the rows.
  return rows * (std::ssize(key_parts_) + 1) * static_cast<int64_t>(sizeof(Cell));
}

void SegmentNumbers::begin(std::span<const IndexRange> runs, int64_t) {
  const int64_t rows = runs.empty() ? 0 : runs.back().end;
  cells_.assign(static_cast<size_t>(rows) * key_parts_.size(), {});
}

void SegmentNumbers::add(int64_t, int64_t row, const RowPair& pair) {
  Cell* cell = cells_.data() + static_cast<size_t>(row) * key_parts_.size();
  for (const SequencePart& part : key_parts_) {
    const auto first = static_cast<size_t>(part.tokens.begin);
    const auto size = static_cast<size_t>(part.tokens.size());
    const std::span a = pair.a.subspan(first, size), b = pair.b.subspan(first, size);
    cell->mass_a = sum_of(a);
    cell->mass_b = sum_of(b);
    if (distributions_) {
      divide_by(cell->mass_a, a);
      divide_by(cell->mass_b, b);
    }
    cell->row = compare_rows(a, b, distributions_);
    // An LSE is over all keys.
    cell->row.lse = std::numeric_limits<double>::quiet_NaN();
    ++cell;
  }
}

SegmentNumbers::Found SegmentNumbers::take(size_t query_part, size_t key_part) const {
  Found found;
  const IndexRange rows = query_parts_[query_part].tokens;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const Cell& cell = cells_[static_cast<size_t>(row) * key_parts_.size() + key_part];
    found.rows.push_back(cell.row);
    found.mass_a += cell.mass_a;
    found.mass_b += cell.mass_b;
  }
  found.mass_a /= static_cast<double>(rows.size());
  found.mass_b /= static_cast<double>(rows.size());
  return found;
}

/// The queries of A at these places among the compared rows.
std::vector<int64_t> queries_in(const ComparedPair& pair, IndexRange rows) {
  std::vector<int64_t> queries;
  for (int64_t row = rows.begin; row < rows.end; ++row) queries.push_back(pair.query_at(row));
  return queries;
}

DiffRow named_row(const ComparedPair& pair) {
  DiffRow row{pair.a.name, pair.b.name, {}};
  row.of_exports = pair.of_exports();
  row.dtype_a = pair.a.dtype;
  row.dtype_b = pair.b.dtype;
  return row;
}

}  // namespace

std::unique_ptr<PairSink> make_number_sink(const ComparedPair& pair) {
  if (pair.same_tokens()) {
    return std::make_unique<RowNumbers>(RowKinds{pair.normalised, pair.whole});
  }
  return std::make_unique<SegmentNumbers>(pair.query_parts, pair.key_parts, pair.normalised);
}

std::vector<DiffRow> found_numbers(const ComparedPair& pair, PairSink& sink, int64_t top) {
  if (pair.same_tokens()) {
    DiffRow row = named_row(pair);
    const std::vector<int64_t> queries = queries_in(pair, {0, pair.rows});
    const std::vector<RowDifference> rows = dynamic_cast<RowNumbers&>(sink).take();
    row.found = summarise_rows(ComparedRows{pair.map_queries, pair.map_keys, pair.normalised,
                                            !pair.logits, queries, pair.keys.begin, pair.sinks},
                               rows, top);
    return {row};
  }
  const auto& segments = dynamic_cast<const SegmentNumbers&>(sink);
  std::vector<DiffRow> rows;
  for (size_t q = 0; q < pair.query_parts.size(); ++q) {
    const IndexRange of = pair.query_parts[q].tokens;
    const std::vector<int64_t> queries = queries_in(pair, of);
    for (size_t k = 0; k < pair.key_parts.size(); ++k) {
      const SegmentNumbers::Found found = segments.take(q, k);
      DiffRow row = named_row(pair);
      row.found =
          summarise_rows(ComparedRows{of.size(), pair.key_parts[k].tokens.size(), pair.normalised,
                                      true, queries, pair.cut_a.keys[k].begin, pair.sinks},
                         found.rows, top);
      row.segments = {pair.query_parts[q].name, pair.key_parts[k].name, found.mass_a, found.mass_b,
                      pair.normalised};
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace attnscope

#include "cli/diff/diff_numbers.h"

#include "cli/diff/segment_numbers.h"

namespace attnscope {
namespace {

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
                                            !pair.logits, queries, pair.keys.begin},
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
                                      true, queries, pair.cut_a.keys[k].begin},
                         found.rows, top);
      row.segments = {pair.query_parts[q].name, pair.key_parts[k].name, found.mass_a, found.mass_b,
                      pair.normalised};
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace attnscope

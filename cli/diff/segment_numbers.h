#pragma once

#include <vector>

#include "core/products/differences/difference_sinks.h"

namespace attnscope {

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

  /// What the rows of a query part are on a key part.
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

}  // namespace attnscope

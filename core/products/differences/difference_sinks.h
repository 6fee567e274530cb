#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/products/differences/map_difference.h"
#include "core/products/differences/pair_stream.h"
#include "core/products/pooled_map.h"
#include "core/products/tokens/sequence_parts.h"

namespace attnscope {

// Sinks that reduce the rows of two maps. All differences are taken entry by entry, A − B, before
// anything is added up; sums are in double. Entries that either side lacks have no difference.

/// The properties of all compared rows that RowNumbers may count on.
struct RowKinds {
  bool distributions = true;  ///< rows add up to 1 over the compared keys, or to 0
  bool whole = true;          ///< the compared keys are all that there are
};

/// The numbers of each row.
class RowNumbers final : public PairSink {
 public:
  explicit RowNumbers(RowKinds kinds) : kinds_(kinds) {}

  std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const override;
  int64_t bytes(int64_t rows, int64_t keys) const override;
  int64_t worker_bytes(int64_t) const override { return 0; }
  void begin(std::span<const IndexRange> runs, int64_t keys) override;
  void add(int64_t run, int64_t row, const RowPair& pair) override;

  std::vector<RowDifference> take() { return std::move(rows_); }

 private:
  const RowKinds kinds_;
  std::vector<RowDifference> rows_;
};

/// Differences in blocks of block × block entries from the first compared row and key on: `max` the
/// one of the largest size, with its sign (of equal ones the first by rows, then keys), `mean` over
/// the entries that have one. NaN where none has.
class PooledDifference final : public PairSink {
 public:
  explicit PooledDifference(int64_t block) : block_(block) {}

  std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const override;
  int64_t bytes(int64_t rows, int64_t keys) const override;
  int64_t worker_bytes(int64_t) const override { return 0; }
  void begin(std::span<const IndexRange> runs, int64_t keys) override;
  void add(int64_t run, int64_t row, const RowPair& pair) override;

  /// With first_row and first_col 0.
  PooledMap take();

 private:
  const int64_t block_;
  int64_t rows_ = 0, cols_ = 0;  ///< blocks
  std::vector<float> max_;
  std::vector<double> sums_;
  std::vector<int64_t> counts_;
};

/// How differences lie between the parts of the sequences. Means are over the rows of a query part
/// that have weight in both maps; NaN where there is none.
struct PartDifference {
  std::vector<SequencePart> query_parts, key_parts;
  std::vector<int64_t> rows;       ///< [query parts] that were counted
  std::vector<double> difference;  ///< [query parts, key parts]: mean of Σ_j (A − B)
  std::vector<double> absolute;    ///< the same of Σ_j |A − B|
};

/// Sums over parts of sequences of which all rows and keys are compared.
class PartSums final : public PairSink {
 public:
  PartSums(std::vector<SequencePart> query_parts, std::vector<SequencePart> key_parts)
      : query_parts_(std::move(query_parts)), key_parts_(std::move(key_parts)) {}

  std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const override;
  int64_t bytes(int64_t rows, int64_t keys) const override;
  int64_t worker_bytes(int64_t) const override { return 0; }
  void begin(std::span<const IndexRange> runs, int64_t keys) override;
  void add(int64_t run, int64_t row, const RowPair& pair) override;

  PartDifference take() const;

 private:
  const std::vector<SequencePart> query_parts_, key_parts_;
  std::vector<int64_t> first_rows_;   ///< [runs]
  std::vector<int64_t> counts_;       ///< [runs]
  std::vector<double> sums_, sizes_;  ///< [runs, key parts]
};

/// The mean row of differences, over the rows that have weight in both maps.
class MeanDifference final : public PairSink {
 public:
  std::vector<IndexRange> runs(int64_t rows, int64_t panel_rows) const override;
  int64_t bytes(int64_t rows, int64_t keys) const override;
  int64_t worker_bytes(int64_t) const override { return 0; }
  void begin(std::span<const IndexRange> runs, int64_t keys) override;
  void add(int64_t run, int64_t row, const RowPair& pair) override;

  /// Rows that were counted.
  int64_t counted() const;
  /// [keys]; NaN where no row was counted.
  std::vector<float> take() const;

 private:
  size_t keys_ = 0;
  std::vector<int64_t> counts_;  ///< [runs]
  std::vector<double> sums_;     ///< [runs, keys]
};

}  // namespace attnscope

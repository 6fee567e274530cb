#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/index_range.h"
#include "core/mask/mask_term.h"

namespace attnscope {

/// Rows of bits, one bit an entry, so that 64 of them are classified at once. Filled row by row;
/// immutable and thread-safe from then on.
class BitRows {
 public:
  /// All bits 0. Rows and columns are at least 1.
  BitRows(int64_t rows, int64_t columns);

  /// Sets the row's bits where `values` (one a column) are not 0. Once a row.
  void fill_row(int64_t row, std::span<const uint8_t> values);
  bool at(int64_t row, int64_t column) const {
    return (words_of(row)[column / kWordBits] >> (column % kWordBits) & 1) != 0;
  }
  /// Bits that are 1 may be attended to. Neither range is empty.
  TileClass classify(IndexRange rows, IndexRange columns) const;

 private:
  static constexpr int64_t kWordBits = 64;

  const uint64_t* words_of(int64_t row) const { return words_.data() + row * row_words_; }

  int64_t row_words_;
  std::vector<uint64_t> words_;
};

}  // namespace attnscope

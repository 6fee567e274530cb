#include "core/mask/bit_rows.h"

#include "core/base/checked_math.h"

namespace attnscope {

BitRows::BitRows(int64_t rows, int64_t columns)
    : row_words_(ceil_div(columns, kWordBits)), words_(static_cast<size_t>(rows * row_words_)) {}

void BitRows::fill_row(int64_t row, std::span<const uint8_t> values) {
  uint64_t* const words = words_.data() + row * row_words_;
  for (size_t column = 0; column < values.size(); ++column) {
    words[column / kWordBits] |= uint64_t{values[column] != 0} << (column % kWordBits);
  }
}

TileClass BitRows::classify(IndexRange rows, IndexRange columns) const {
  const int64_t first = columns.begin;
  const int64_t last = columns.end - 1;
  bool any_kept = false, any_masked = false;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const uint64_t* words = words_of(row);
    for (int64_t w = first / kWordBits; w <= last / kWordBits; ++w) {
      uint64_t wanted = ~uint64_t{0};
      if (w == first / kWordBits) wanted &= ~uint64_t{0} << (first % kWordBits);
      if (w == last / kWordBits) wanted &= ~uint64_t{0} >> (kWordBits - 1 - last % kWordBits);
      any_kept |= (words[w] & wanted) != 0;
      any_masked |= (~words[w] & wanted) != 0;
    }
    if (any_kept && any_masked) return TileClass::mixed;
  }
  return any_kept ? TileClass::full : TileClass::empty;
}

}  // namespace attnscope

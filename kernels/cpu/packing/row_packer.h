#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/packing/packed_format.h"

namespace attnscope {

/// Turns rows as they are stored, [head_dim] numbers of format.dtype at any address, into elements,
/// one after the other: [steps]. Borrows both arguments; not thread-safe.
class RowPacker {
 public:
  /// `floats` holds head_dim numbers.
  RowPacker(const PackedFormat& format, float* floats) : format_(format), floats_(floats) {}

  /// True where a row's elements are the bytes of the row as it is stored.
  bool stored_as_elements() const;

  /// The row's exponent; 0 for all scores but linear:elu1.
  int exponent(const std::byte* row) const;

  /// Returns the row's length for tiles, else 0.
  float pack(const std::byte* row, int exponent, float* elements) const;

 private:
  void copy_pairs(const std::byte* row, float* elements) const;
  void split(float* elements) const;

  const PackedFormat& format_;
  float* floats_;
};

/// packed[step · rows + row] = the element `step` of `row`, for a multiple of 4 rows that begin
/// row_bytes apart at any address: a panel of keys, or a group of query rows.
void transpose_elements(const std::byte* first_row, int64_t row_bytes, int64_t rows, int64_t steps,
                        float* packed);

}  // namespace attnscope

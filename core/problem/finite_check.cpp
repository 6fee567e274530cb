#include "core/problem/finite_check.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The position of the first value whose exponent bits are all ones (NaN or Inf), or −1.
template <typename Bits, Bits kExponent>
int64_t first_not_finite(const std::byte* data, int64_t count) {
  constexpr int64_t kStep = 4096;
  std::array<Bits, kStep> values;
  for (int64_t begin = 0; begin < count; begin += kStep) {
    const int64_t length = std::min(kStep, count - begin);
    std::memcpy(values.data(), data + begin * static_cast<int64_t>(sizeof(Bits)),
                static_cast<size_t>(length) * sizeof(Bits));
    // No early exit inside: this loop is what the compiler makes vector code of.
    Bits bad = 0;
    for (int64_t i = 0; i < length; ++i) {
      const Bits exponent = static_cast<Bits>(values[static_cast<size_t>(i)] & kExponent);
      bad = static_cast<Bits>(bad | static_cast<Bits>(exponent == kExponent));
    }
    if (bad == 0) continue;
    for (int64_t i = 0; i < length; ++i) {
      if ((values[static_cast<size_t>(i)] & kExponent) == kExponent) return begin + i;
    }
  }
  return -1;
}

int64_t first_not_finite(DType dtype, const std::byte* data, int64_t count) {
  switch (dtype) {
    case DType::f16:
      return first_not_finite<uint16_t, 0x7c00>(data, count);
    case DType::bf16:
      return first_not_finite<uint16_t, 0x7f80>(data, count);
    default:
      return first_not_finite<uint32_t, 0x7f800000>(data, count);
  }
}

}  // namespace

void check_rows_finite(const HeadTensor& tensor, int64_t batch, int64_t head, IndexRange tokens,
                       const std::stop_token& stop) {
  if (tokens.empty()) return;
  constexpr int64_t kPieceBytes = int64_t{128} << 10;
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / tensor.row_bytes(), 1, tokens.size());
  std::vector<std::byte> rows(static_cast<size_t>(piece * tensor.row_bytes()));
  for (int64_t begin = tokens.begin; begin < tokens.end; begin += piece) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange part{begin, std::min(begin + piece, tokens.end)};
    tensor.read_rows(batch, head, part, rows.data());
    const int64_t count = part.size() * tensor.width();
    const int64_t bad = first_not_finite(tensor.dtype(), rows.data(), count);
    if (bad < 0) continue;
    float value = 0;
    to_floats(tensor.dtype(), rows.data() + bad * dtype_bytes(tensor.dtype()), 1, &value);
    throw Error(ErrorCode::value, tensor.source().name() + ": batch " + std::to_string(batch) +
                                      ", head " + std::to_string(head) + ", token " +
                                      std::to_string(begin + bad / tensor.width()) + ", channel " +
                                      std::to_string(bad % tensor.width()) + " is " +
                                      (std::isnan(value) ? "NaN"
                                       : value > 0       ? "+inf"
                                                         : "-inf") +
                                      (tensor.source().dtype() == DType::f64 ? " as f32" : "") +
                                      " (expected finite numbers)");
  }
}

}  // namespace attnscope

#include "core/problem/finite_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace attnscope {
namespace {

/// The largest of the bits without their signs: infinities and NaN lie above all numbers.
template <typename Bits>
Bits largest_magnitude(const std::byte* data, int64_t count) {
  // Signed, as processors without newer instructions find the larger of two 16-bit integers.
  Bits largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    const auto magnitude = static_cast<Bits>(bits & std::numeric_limits<Bits>::max());
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

/// The position of the first value whose exponent bits are all ones (NaN or Inf), or −1.
template <typename Bits, Bits kExponent>
int64_t first_not_finite(const std::byte* data, int64_t count) {
  if (largest_magnitude<Bits>(data, count) < kExponent) return -1;
  for (int64_t i = 0; i < count; ++i) {
    const std::byte* const at = data + i * static_cast<int64_t>(sizeof(Bits));
    if (largest_magnitude<Bits>(at, 1) >= kExponent) return i;
  }
  return -1;
}

int64_t first_not_finite(DType dtype, const std::byte* data, int64_t count) {
  switch (dtype) {
    case DType::f16:
      return first_not_finite<int16_t, 0x7c00>(data, count);
    case DType::bf16:
      return first_not_finite<int16_t, 0x7f80>(data, count);
    default:
      return first_not_finite<int32_t, 0x7f800000>(data, count);
  }
}

}  // namespace

void FiniteCheck::check(const HeadTensor& tensor, int64_t batch, int64_t head, IndexRange tokens,
                        const std::stop_token& stop) {
  const auto rows = tensor.device_rows(batch, head);
  if (!rows) return check_on_host(tensor, batch, head, tokens, stop);
  if (tokens.empty()) return;
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  const int64_t bad = rows->reader->first_not_finite(rows->part(tokens));
  if (bad < 0) return;
  // The host says what it is.
  const int64_t token = tokens.begin + bad;
  check_on_host(tensor, batch, head, {token, token + 1}, stop);
  throw Error(ErrorCode::unavailable,
              tensor.source().name() + ": batch " + std::to_string(batch) + ", head " +
                  std::to_string(head) + ", token " + std::to_string(token) +
                  ": the device saw a number that is not finite, the host does not (is the " +
                  "tensor being written to?)");
}

void FiniteCheck::check_on_host(const HeadTensor& tensor, int64_t batch, int64_t head,
                                IndexRange tokens, const std::stop_token& stop) {
  if (tokens.empty()) return;
  constexpr int64_t kPieceBytes = int64_t{256} << 10;
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / tensor.row_bytes(), 1, tokens.size());
  const auto bytes = static_cast<size_t>(piece * tensor.row_bytes());
  if (rows_.size() < bytes) rows_.resize(bytes);
  for (int64_t begin = tokens.begin; begin < tokens.end; begin += piece) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange part{begin, std::min(begin + piece, tokens.end)};
    tensor.read_rows(batch, head, part, rows_.data());
    const int64_t count = part.size() * tensor.width();
    const int64_t bad = first_not_finite(tensor.dtype(), rows_.data(), count);
    if (bad < 0) continue;
    float value = 0;
    to_floats(tensor.dtype(), rows_.data() + bad * dtype_bytes(tensor.dtype()), 1, &value);
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

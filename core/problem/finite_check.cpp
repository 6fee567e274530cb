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

/// The largest magnitude among numbers, infinite or NaN where one of them is.
float largest_number(DType dtype, const std::byte* data, int64_t count) {
  const auto number = [&](auto bits) {
    float value = 0;
    to_floats(dtype, reinterpret_cast<const std::byte*>(&bits), 1, &value);
    return value;
  };
  if (dtype == DType::f16 || dtype == DType::bf16) {
    return number(largest_magnitude<int16_t>(data, count));
  }
  return number(largest_magnitude<int32_t>(data, count));
}

/// The position of the first value that is NaN or Inf, of which there is one.
int64_t first_not_finite(DType dtype, const std::byte* data) {
  const int64_t bytes = dtype_bytes(dtype);
  int64_t i = 0;
  while (std::isfinite(largest_number(dtype, data + i * bytes, 1))) ++i;
  return i;
}

}  // namespace

std::optional<float> FiniteCheck::check(const HeadTensor& tensor, int64_t batch, int64_t head,
                                        IndexRange tokens, const std::stop_token& stop) {
  const auto rows = tensor.device_rows(batch, head);
  if (!rows) return check_on_host(tensor, batch, head, tokens, stop);
  if (tokens.empty()) return std::nullopt;
  if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
  const int64_t bad = rows->reader->first_not_finite(rows->part(tokens));
  if (bad < 0) return std::nullopt;
  // The host says what it is.
  const int64_t token = tokens.begin + bad;
  check_on_host(tensor, batch, head, {token, token + 1}, stop);
  throw Error(ErrorCode::unavailable,
              tensor.source().name() + ": batch " + std::to_string(batch) + ", head " +
                  std::to_string(head) + ", token " + std::to_string(token) +
                  ": the device saw a number that is not finite, the host does not (is the " +
                  "tensor being written to?)");
}

float FiniteCheck::check_on_host(const HeadTensor& tensor, int64_t batch, int64_t head,
                                 IndexRange tokens, const std::stop_token& stop) {
  float largest = 0;
  if (tokens.empty()) return largest;
  constexpr int64_t kPieceBytes = int64_t{256} << 10;
  const int64_t piece = std::clamp<int64_t>(kPieceBytes / tensor.row_bytes(), 1, tokens.size());
  const auto bytes = static_cast<size_t>(piece * tensor.row_bytes());
  if (rows_.size() < bytes) rows_.resize(bytes);
  for (int64_t begin = tokens.begin; begin < tokens.end; begin += piece) {
    if (stop.stop_requested()) throw Error(ErrorCode::interrupted, "interrupted");
    const IndexRange part{begin, std::min(begin + piece, tokens.end)};
    tensor.read_rows(batch, head, part, rows_.data());
    const int64_t count = part.size() * tensor.width();
    const float of_part = largest_number(tensor.dtype(), rows_.data(), count);
    if (std::isfinite(of_part)) {
      largest = std::max(largest, of_part);
      continue;
    }
    const int64_t bad = first_not_finite(tensor.dtype(), rows_.data());
    float value = 0;
    to_floats(tensor.dtype(), rows_.data() + bad * dtype_bytes(tensor.dtype()), 1, &value);
    const std::string place = "batch " + std::to_string(batch) + ", head " + std::to_string(head) +
                              ", token " + std::to_string(begin + bad / tensor.width()) +
                              ", channel " + std::to_string(bad % tensor.width());
    throw Error(ErrorCode::value,
                tensor.source().name() + ": " + place + " is " +
                    (std::isnan(value) ? "NaN"
                     : value > 0       ? "+inf"
                                       : "-inf") +
                    (tensor.source().dtype() == DType::f64 ? " as f32" : "") +
                    " (expected finite numbers)",
                {tensor.source().name(), place});
  }
  return largest;
}

}  // namespace attnscope

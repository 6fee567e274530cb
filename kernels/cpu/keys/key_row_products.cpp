#include "kernels/cpu/keys/key_row_products.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "core/problem/finite_check.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/packing/key_packer.h"
#include "kernels/cpu/packing/piece_queue.h"
#include "kernels/cpu/packing/row_packer.h"
#include "kernels/cpu/simd/key_rows.h"

namespace attnscope {
namespace {

/// Stored bytes of a piece: it is read into a core's own cache and leaves room there.
constexpr int64_t kRowPieceBytes = int64_t{256} << 10;
/// Pieces that a thread more is started for.
constexpr int64_t kRowPiecesPerThread = 4;
/// Keys that are split at a time.
constexpr int64_t kSplitKeys = 64;
/// Numbers up to this have squares that float32 can add up.
constexpr float kSafeNumber = 0x1p50f;

int64_t row_bytes_of(const PackedFormat& format) {
  return format.head_dim * dtype_bytes(format.dtype);
}

int64_t keys_of_piece(const PackedFormat& format, int64_t num_keys) {
  const int64_t tiles = std::max<int64_t>(1, kRowPieceBytes / (row_bytes_of(format) * kKeyRowTile));
  return std::min(tiles * kKeyRowTile, round_up(num_keys, kKeyRowTile));
}

int64_t threads_for(const PackedFormat& format, const HeadTensor& k, int threads) {
  const int64_t pieces = ceil_div(k.tokens(), keys_of_piece(format, k.tokens()));
  return std::clamp<int64_t>(pieces / kRowPiecesPerThread, 1, reading_threads(k, threads));
}

/// True where rows, as they are stored, are the tile unit's operands.
bool stored_as_operands(const PackedFormat& format) {
  return format.parts() == 1 && format.head_dim == 2 * format.steps();
}

float number_of(DType dtype, uint32_t bits) {
  switch (dtype) {
    case DType::f16:
      return to_float(f16{static_cast<uint16_t>(bits)});
    case DType::bf16:
      return to_float(bf16{static_cast<uint16_t>(bits)});
    default:
      return std::bit_cast<float>(bits);
  }
}

/// Reads keys piece by piece and multiplies them, for one thread.
class Worker {
 public:
  Worker(const KeyRowSource& source, const KeyRowQueries& queries)
      : source_(source),
        queries_(queries),
        row_bytes_(row_bytes_of(source.format)),
        stored_(static_cast<size_t>(row_bytes_ * keys_of_piece(source.format, source.k.tokens()))) {
    if (stored_as_operands(source.format)) return;
    split_.resize(static_cast<size_t>(kSplitKeys * source.format.steps()));
  }

  static int64_t bytes(const PackedFormat& format, int64_t num_keys) {
    const int64_t stored = row_bytes_of(format) * keys_of_piece(format, num_keys);
    const int64_t split = stored_as_operands(format) ? 0 : kSplitKeys * format.steps() * 4;
    // The last term is for the buffers of longest_key().
    return stored + split + (format.head_dim + format.steps()) * 4;
  }

  /// Reads keys of a piece, and multiplies them. Returns a length that none exceeds.
  float multiply(IndexRange keys, float* products, int64_t stride) {
    source_.k.read_rows(source_.batch, source_.head, keys, stored_.data());
    const float length = bounded_length(keys);
    const int64_t pairs = source_.format.steps() / source_.format.parts();
    KeyRows rows{.keys = stored_.data(),
                 .key_stride = row_bytes_,
                 .count = keys.size(),
                 .queries = queries_.columns,
                 .rows = queries_.rows,
                 .parts = source_.format.parts(),
                 .pairs = pairs,
                 .out = products + keys.begin,
                 .out_stride = stride};
    if (stored_as_operands(source_.format)) {
      multiply_operands(rows);
      return length;
    }
    rows.keys = reinterpret_cast<const std::byte*>(split_.data());
    rows.key_stride = source_.format.steps() * 4;
    for (int64_t first = 0; first < keys.size(); first += kSplitKeys) {
      rows.count = std::min(kSplitKeys, keys.size() - first);
      rows.out = products + keys.begin + first;
      source_.kernels.split_rows({.dtype = source_.format.dtype,
                                  .source = stored_.data() + first * row_bytes_,
                                  .head_dim = source_.format.head_dim,
                                  .count = rows.count,
                                  .parts = source_.format.parts(),
                                  .pairs = pairs,
                                  .out = reinterpret_cast<std::byte*>(split_.data())});
      multiply_operands(rows);
    }
    return length;
  }

 private:
  /// Keys are read and split without flushing, as they are for a packed head.
  void multiply_operands(const KeyRows& rows) const {
    const FlushDenormals flush;
    source_.multiply(rows);
  }

  float bounded_length(IndexRange keys) const {
    const DType dtype = source_.format.dtype;
    const int64_t head_dim = source_.format.head_dim;
    const float largest = number_of(
        dtype, source_.kernels.largest_bits(dtype, stored_.data(), keys.size() * head_dim));
    if (!std::isfinite(largest)) refuse(keys);
    const double longest = 1.001 * double{largest} * std::sqrt(static_cast<double>(head_dim));
    if (largest <= kSafeNumber && longest <= queries_.long_key) return static_cast<float>(longest);
    return longest_key(keys.size());
  }

  /// As packing measures it.
  float longest_key(int64_t keys) const {
    std::vector<float> floats(static_cast<size_t>(source_.format.head_dim));
    std::vector<float> elements(static_cast<size_t>(source_.format.steps()));
    const RowPacker packer(source_.format, floats.data());
    float longest = 0;
    for (int64_t key = 0; key < keys; ++key) {
      longest =
          std::max(longest, packer.pack(stored_.data() + key * row_bytes_, 0, elements.data()));
    }
    return longest;
  }

  [[noreturn]] void refuse(IndexRange keys) const {
    FiniteCheck().check(source_.k, source_.batch, source_.head, keys);
    throw Error(ErrorCode::value,
                source_.k.source().name() + ": was changed while it was read (tokens " +
                    std::to_string(keys.begin) + " to " + std::to_string(keys.end - 1) + ")");
  }

  const KeyRowSource& source_;
  const KeyRowQueries& queries_;
  const int64_t row_bytes_;
  AlignedVector<std::byte> stored_;  ///< of a piece: whole tiles of rows
  AlignedVector<float> split_;       ///< [kSplitKeys, parts, pairs], unless rows are operands
};

}  // namespace

int64_t key_row_stride(int64_t num_keys) { return round_up(num_keys, kBlockKeys); }

int64_t key_row_bytes(const PackedFormat& format, const HeadTensor& k, int threads) {
  return threads_for(format, k, threads) * (Worker::bytes(format, k.tokens()) + kReaderBytes);
}

float multiply_key_rows(const KeyRowSource& source, const KeyRowQueries& queries, float* products,
                        int64_t stride) {
  const int64_t keys = source.k.tokens();
  PieceQueue queue(keys, keys_of_piece(source.format, keys));
  const auto work = [&] {
    IndexRange piece;
    try {
      Worker worker(source, queries);
      float largest = 0;
      while (!(piece = queue.next()).empty()) {
        largest = std::max(largest, worker.multiply(piece, products, stride));
      }
      queue.done(largest);
    } catch (...) {
      queue.fail(piece, std::current_exception());
    }
  };
  {
    std::vector<std::jthread> others;
    const auto all = static_cast<size_t>(threads_for(source.format, source.k, source.threads));
    start_helpers(others, all - 1, [&](size_t) { return work; });
    work();
  }
  return queue.finish();
}

}  // namespace attnscope

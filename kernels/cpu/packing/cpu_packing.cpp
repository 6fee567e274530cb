#include "kernels/cpu/packing/cpu_packing.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/start_thread.h"
#include "kernels/cpu/packing/key_packer.h"
#include "kernels/cpu/packing/piece_queue.h"
#include "kernels/cpu/packing/row_packer.h"

namespace attnscope {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;
/// Pieces of K that a thread more is started for, so that what threads hold stays below what is
/// packed.
constexpr int64_t kPiecesPerThread = 2;

/// Keys read at a time: whole panels. The widest row, 4096 float32, still gives two.
int64_t keys_per_read(const PackedFormat& format, int64_t num_keys) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const int64_t panels = std::max<int64_t>(1, kReadBytes / (row_bytes * kPanelKeys));
  return std::min(panels * kPanelKeys, round_up(num_keys, kPanelKeys));
}

}  // namespace

int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys) {
  return round_up(num_keys, kPanelKeys) * format.steps();
}

int64_t packing_threads(const PackedFormat& format, const HeadTensor& k, int threads) {
  const int64_t pieces = ceil_div(k.tokens(), keys_per_read(format, k.tokens()));
  return std::clamp<int64_t>(pieces / kPiecesPerThread, 1, reading_threads(k, threads));
}

int64_t pack_keys_transient_bytes(const PackedFormat& format, const HeadTensor& k, int threads) {
  const int64_t of_thread = KeyPacker::bytes(format, keys_per_read(format, k.tokens()));
  return packing_threads(format, k, threads) * of_thread;
}

PackedKeys pack_keys(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                     int threads, float* panels) {
  const int64_t piece = keys_per_read(format, k.tokens());
  PackedKeys result;
  if (format.score == ScoreFunction::linear_elu1) {
    result.exponent = KeyPacker(format, k, batch, head, piece).key_exponent();
  }
  PieceQueue queue(k.tokens(), piece);
  const auto work = [&] {
    IndexRange keys;
    try {
      KeyPacker packer(format, k, batch, head, piece);
      float largest = 0;
      while (!(keys = queue.next()).empty()) {
        float* const to = panels + keys.begin * format.steps();
        largest = std::max(largest, packer.pack(keys, result.exponent, to));
      }
      queue.done(largest);
    } catch (...) {
      queue.fail(keys, std::current_exception());
    }
  };
  {
    std::vector<std::jthread> others;
    const auto all = static_cast<size_t>(packing_threads(format, k, threads));
    start_helpers(others, all - 1, [&](size_t) { return work; });
    work();
  }
  result.largest_key = queue.finish();
  return result;
}

int64_t pack_scratch_floats(const PackedFormat& format) {
  return round_up(format.head_dim, 16) + kRegisterRows * format.steps();
}

void pack_queries(const PackedFormat& format, const QueryRows& queries, const PackedQueries& packed,
                  float* scratch) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const int64_t rows = format.computed_rows(queries.count);
  const int64_t steps = format.steps();
  const bool tiles = format.products == PackedProducts::tiles;
  const int64_t pairs = steps / format.parts();
  const RowPacker packer(format, scratch);
  float* const elements = scratch + round_up(format.head_dim, 16);
  std::fill_n(packed.exponents, rows, 0.0f);
  std::fill_n(packed.lengths, rows, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    float* const own = tiles ? elements : elements + row * steps;
    if (row < queries.count) {
      const std::byte* source = queries.rows + row * row_bytes;
      const int exponent = packer.exponent(source);
      packed.lengths[row] = packer.pack(source, exponent, own);
      packed.exponents[row] = static_cast<float>(exponent);
    } else {
      std::fill_n(own, steps, 0.0f);
    }
    for (int64_t part = 0; tiles && part < format.parts(); ++part) {
      const int64_t at = row / kTileUnitRows * kTileUnitRows * steps +
                         (part * kTileUnitRows + row % kTileUnitRows) * pairs;
      std::memcpy(packed.group + at, own + part * pairs, static_cast<size_t>(pairs) * 4);
    }
  }
  if (tiles) return;
  transpose_elements(reinterpret_cast<const std::byte*>(elements), steps * 4, kRegisterRows, steps,
                     packed.group);
}

}  // namespace attnscope

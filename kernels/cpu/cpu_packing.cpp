#include "kernels/cpu/cpu_packing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "kernels/common/feature_map.h"

namespace attnscope {
namespace {

constexpr int64_t kReadBytes = int64_t{1} << 20;
/// Pieces of K that a thread more is started for, so that what threads hold stays below what is
/// packed.
constexpr int64_t kPiecesPerThread = 2;
constexpr int64_t kMostPackingThreads = 8;

/// Keys read at a time: whole panels. The widest row, 4096 float32, still gives two.
int64_t keys_per_read(const PackedFormat& format, int64_t num_keys) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const int64_t panels = std::max<int64_t>(1, kReadBytes / (row_bytes * kPanelKeys));
  return std::min(panels * kPanelKeys, round_up(num_keys, kPanelKeys));
}

/// The bf16 number nearest to x; where that is infinite and x is not, the one below.
bf16 to_finite_bf16(float x) {
  constexpr uint16_t kExponent = 0x7f80;
  const bf16 nearest = to_bf16(x);
  if ((nearest.bits & kExponent) != kExponent) return nearest;
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
}

/// √Σx², in eight sums that a processor can form at once. Not less than the true length by more
/// than 1e-5 of it.
float length_of(const float* row, int64_t count) {
  float sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) sums[lane] += row[i + lane] * row[i + lane];
  }
  for (; i < count; ++i) sums[0] += row[i] * row[i];
  float sum = 0;
  for (const float lane : sums) sum += lane;
  return std::sqrt(sum);
}

/// Turns rows as they are stored into elements, one after the other: [steps].
class RowPacker {
 public:
  /// `floats` holds head_dim numbers.
  RowPacker(const PackedFormat& format, float* floats) : format_(format), floats_(floats) {}

  /// The row's exponent; 0 for all scores but linear:elu1.
  int exponent(const std::byte* row) const {
    if (format_.score != ScoreFunction::linear_elu1) return 0;
    to_floats(format_.dtype, row, format_.head_dim, floats_);
    return feature_exponent(format_.score, *std::max_element(floats_, floats_ + format_.head_dim));
  }

  /// Returns the row's length for tiles, else 0.
  float pack(const std::byte* row, int exponent, float* elements) const {
    switch (format_.products) {
      case PackedProducts::floats:
        to_floats(format_.dtype, row, format_.head_dim, elements);
        apply_feature_map(format_.score, elements, format_.head_dim, exponent);
        return 0;
      case PackedProducts::bf16_pairs:
        copy_pairs(row, elements);
        return 0;
      case PackedProducts::tiles:
        to_floats(format_.dtype, row, format_.head_dim, floats_);
        const float length = length_of(floats_, format_.head_dim);
        if (format_.dtype == DType::bf16) {
          copy_pairs(row, elements);
        } else {
          split(elements);
        }
        return length;
    }
    return 0;
  }

 private:
  /// Bits of bf16 numbers may be those of a signalling NaN once taken for a float: they are copied
  /// as bytes.
  void copy_pairs(const std::byte* row, float* elements) const {
    const auto bytes = static_cast<size_t>(format_.head_dim * 2);
    std::memcpy(elements, row, bytes);
    std::memset(reinterpret_cast<std::byte*>(elements) + bytes, 0,
                static_cast<size_t>(format_.steps() * 4) - bytes);
  }

  /// Spoils floats_.
  void split(float* elements) const {
    auto* const out = reinterpret_cast<std::byte*>(elements);
    const int64_t part_bytes = format_.steps() / format_.parts() * 4;
    std::memset(out, 0, static_cast<size_t>(format_.steps() * 4));
    for (int64_t part = 0; part < format_.parts(); ++part) {
      for (int64_t i = 0; i < format_.head_dim; ++i) {
        const bf16 number = to_finite_bf16(floats_[i]);
        floats_[i] -= to_float(number);
        std::memcpy(out + part * part_bytes + i * 2, &number, sizeof(number));
      }
    }
  }

  const PackedFormat& format_;
  float* floats_;
};

/// packed[step · columns + row] = elements[row · steps + step] for `columns` rows, a few steps of
/// all rows at a time so that both sides stay in the nearest cache.
template <int64_t kColumns>
void transpose(const float* elements, int64_t steps, float* packed) {
  constexpr int64_t kTogether = 16;
  for (int64_t begin = 0; begin < steps; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, steps);
    for (int64_t row = 0; row < kColumns; ++row) {
      // As bytes: see copy_pairs.
      for (int64_t step = begin; step < end; ++step) {
        std::memcpy(packed + step * kColumns + row, elements + row * steps + step, sizeof(float));
      }
    }
  }
}

/// A thread's work on K.
class KeyPacker {
 public:
  KeyPacker(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head)
      : format_(format),
        k_(k),
        batch_(batch),
        head_(head),
        rows_(uninitialised<std::byte>(keys_per_read(format, k.tokens()) * k.row_bytes())),
        floats_(uninitialised<float>(format.head_dim)),
        elements_(uninitialised<float>(kPanelKeys * format.steps())),
        packer_(format, floats_.get()) {}

  /// The largest exponent of the piece's keys.
  int exponent(IndexRange keys) {
    k_.read_rows(batch_, head_, keys, rows_.get());
    int largest = std::numeric_limits<int>::min();
    for (int64_t key = 0; key < keys.size(); ++key) {
      largest = std::max(largest, packer_.exponent(rows_.get() + key * k_.row_bytes()));
    }
    return largest;
  }

  /// Whole panels from keys.begin on; returns the largest length of a key.
  float pack(IndexRange keys, int exponent, float* panels) {
    k_.read_rows(batch_, head_, keys, rows_.get());
    float largest = 0;
    const int64_t steps = format_.steps();
    for (int64_t panel = 0; panel < keys.size(); panel += kPanelKeys) {
      for (int64_t key = 0; key < kPanelKeys; ++key) {
        float* const elements = elements_.get() + key * steps;
        if (panel + key >= keys.size()) {
          std::fill_n(elements, steps, 0.0f);
          continue;
        }
        const float length =
            packer_.pack(rows_.get() + (panel + key) * k_.row_bytes(), exponent, elements);
        largest = std::max(largest, length);
      }
      transpose<kPanelKeys>(elements_.get(), steps, panels + (keys.begin + panel) * steps);
    }
    return largest;
  }

 private:
  const PackedFormat& format_;
  const HeadTensor& k_;
  int64_t batch_, head_;
  template <typename T>
  static std::unique_ptr<T[]> uninitialised(int64_t count) {
    return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count));
  }

  const std::unique_ptr<std::byte[]> rows_;
  const std::unique_ptr<float[]> floats_;
  const std::unique_ptr<float[]> elements_;
  const RowPacker packer_;
};

/// Pieces of K that threads take one after the other.
class PieceQueue {
 public:
  PieceQueue(int64_t keys, int64_t piece) : keys_(keys), piece_(piece) {}

  /// Empty when there are no more, or a piece failed.
  IndexRange next() {
    const std::lock_guard lock(mutex_);
    if (error_) return {};
    const int64_t begin = next_;
    next_ = std::min(begin + piece_, keys_);
    return {begin, next_};
  }
  void fail(IndexRange piece, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && failed_ < piece.begin) return;
    error_ = std::move(error);
    failed_ = piece.begin;
  }
  void done(float largest) {
    const std::lock_guard lock(mutex_);
    largest_ = std::max(largest_, largest);
  }
  /// After all threads have ended.
  float finish() const {
    if (error_) std::rethrow_exception(error_);
    return largest_;
  }

 private:
  const int64_t keys_;
  const int64_t piece_;
  std::mutex mutex_;
  int64_t next_ = 0;
  int64_t failed_ = 0;
  float largest_ = 0;
  std::exception_ptr error_;
};

}  // namespace

int64_t PackedFormat::parts() const {
  if (products != PackedProducts::tiles) return 1;
  return dtype == DType::bf16 ? 1 : dtype == DType::f16 ? 2 : 3;
}

int64_t PackedFormat::steps() const {
  // Pairs of channels that fill a tile's row.
  constexpr int64_t kTilePairs = 16;
  const int64_t pairs = (head_dim + 1) / 2;
  switch (products) {
    case PackedProducts::floats:
      return head_dim;
    case PackedProducts::bf16_pairs:
      return pairs;
    case PackedProducts::tiles:
      return parts() * round_up(pairs, kTilePairs);
  }
  return head_dim;
}

int64_t packed_key_elements(const PackedFormat& format, int64_t num_keys) {
  return round_up(num_keys, kPanelKeys) * format.steps();
}

int64_t packing_threads(const PackedFormat& format, const HeadTensor& k, int threads) {
  // Threads that read pieces in turns would have what lies between unpacked again and again.
  if (k.source().prefers_order()) return 1;
  const int64_t pieces = ceil_div(k.tokens(), keys_per_read(format, k.tokens()));
  const int64_t most = std::clamp<int64_t>(threads, 1, kMostPackingThreads);
  return std::clamp<int64_t>(pieces / kPiecesPerThread, 1, most);
}

int64_t pack_keys_transient_bytes(const PackedFormat& format, const HeadTensor& k, int threads) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  const int64_t piece = keys_per_read(format, k.tokens());
  const int64_t of_thread = piece * row_bytes + (format.head_dim + kPanelKeys * format.steps()) *
                                                    static_cast<int64_t>(sizeof(float));
  return packing_threads(format, k, threads) * of_thread;
}

PackedKeys pack_keys(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                     int threads, float* panels) {
  const int64_t piece = keys_per_read(format, k.tokens());
  PackedKeys result;
  if (format.score == ScoreFunction::linear_elu1) {
    // Of the whole head's largest number.
    KeyPacker packer(format, k, batch, head);
    result.exponent = std::numeric_limits<int>::min();
    for (int64_t begin = 0; begin < k.tokens() && result.exponent != 0; begin += piece) {
      const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
      result.exponent = std::max(result.exponent, packer.exponent(keys));
    }
  }
  PieceQueue queue(k.tokens(), piece);
  const auto work = [&] {
    IndexRange keys;
    try {
      KeyPacker packer(format, k, batch, head);
      float largest = 0;
      while (!(keys = queue.next()).empty()) {
        largest = std::max(largest, packer.pack(keys, result.exponent, panels));
      }
      queue.done(largest);
    } catch (...) {
      queue.fail(keys, std::current_exception());
    }
  };
  {
    std::vector<std::jthread> others;
    const int64_t all = packing_threads(format, k, threads);
    try {
      for (int64_t other = 1; other < all; ++other) {
        start_thread(others, static_cast<size_t>(all - 1), work);
      }
    } catch (const Error&) {
      // Where the system starts no more threads, those that there are pack all.
    }
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
  if (!tiles) transpose<kRegisterRows>(elements, steps, packed.group);
}

}  // namespace attnscope

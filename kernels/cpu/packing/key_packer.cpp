#include "kernels/cpu/packing/key_packer.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"

namespace attnscope {
namespace {

constexpr int64_t kMostReadingThreads = 8;

template <typename T>
std::unique_ptr<T[]> uninitialised(int64_t count) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(count));
}

int64_t stored_row_bytes(const PackedFormat& format) {
  return format.head_dim * dtype_bytes(format.dtype);
}

}  // namespace

int64_t reading_threads(const HeadTensor& k, int threads) {
  // Threads that read in turns would have what lies between unpacked again and again.
  if (k.source().prefers_order()) return 1;
  return std::clamp<int64_t>(threads, 1, kMostReadingThreads);
}

KeyPacker::KeyPacker(const PackedFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                     int64_t read_keys)
    : format_(format),
      k_(k),
      batch_(batch),
      head_(head),
      read_keys_(read_keys),
      rows_(uninitialised<std::byte>(read_keys * stored_row_bytes(format))),
      floats_(uninitialised<float>(format.head_dim)),
      elements_(uninitialised<float>(kPanelKeys * format.steps())),
      packer_(format, floats_.get()) {}

int64_t KeyPacker::bytes(const PackedFormat& format, int64_t read_keys) {
  const int64_t floats = format.head_dim + kPanelKeys * format.steps();
  return read_keys * stored_row_bytes(format) + floats * static_cast<int64_t>(sizeof(float));
}

int KeyPacker::key_exponent() {
  if (format_.score != ScoreFunction::linear_elu1) return 0;
  int largest = std::numeric_limits<int>::min();
  for (int64_t begin = 0; begin < k_.tokens() && largest != 0; begin += read_keys_) {
    const IndexRange keys{begin, std::min(begin + read_keys_, k_.tokens())};
    k_.read_rows(batch_, head_, keys, rows_.get());
    for (int64_t key = 0; key < keys.size(); ++key) {
      largest = std::max(largest, packer_.exponent(rows_.get() + key * stored_row_bytes(format_)));
    }
  }
  return largest;
}

float KeyPacker::pack(IndexRange keys, int exponent, float* panels) {
  float largest = 0;
  for (int64_t begin = keys.begin; begin < keys.end; begin += read_keys_) {
    const IndexRange read{begin, std::min(begin + read_keys_, keys.end)};
    float* const to = panels + (begin - keys.begin) * format_.steps();
    largest = std::max(largest, pack_read(read, exponent, to));
  }
  return largest;
}

float KeyPacker::pack_read(IndexRange keys, int exponent, float* panels) {
  k_.read_rows(batch_, head_, keys, rows_.get());
  const int64_t steps = format_.steps();
  const int64_t row_bytes = stored_row_bytes(format_);
  float largest = 0;
  for (int64_t panel = 0; panel < keys.size(); panel += kPanelKeys) {
    const std::byte* const first = rows_.get() + panel * row_bytes;
    float* const packed = panels + panel * steps;
    const int64_t count = std::min(kPanelKeys, keys.size() - panel);
    if (count == kPanelKeys && packer_.stored_as_elements()) {
      transpose_elements(first, row_bytes, kPanelKeys, steps, packed);
      continue;
    }
    for (int64_t key = 0; key < count; ++key) {
      const float length =
          packer_.pack(first + key * row_bytes, exponent, elements_.get() + key * steps);
      largest = std::max(largest, length);
    }
    std::fill_n(elements_.get() + count * steps, (kPanelKeys - count) * steps, 0.0f);
    transpose_elements(reinterpret_cast<const std::byte*>(elements_.get()), steps * 4, kPanelKeys,
                       steps, packed);
  }
  return largest;
}

}  // namespace attnscope

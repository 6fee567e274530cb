#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/checked_math.h"
#include "kernels/cuda/host/device_keys.h"

namespace attnscope::cuda {
namespace {

/// Rows that are read and packed at a time.
int64_t rows_at_once(const HeadFormat& format) {
  const int64_t rows =
      KeyUploader::kBufferBytes / std::max(format.row_bytes(), format.source_row_bytes());
  return std::max<int64_t>(1, rows / format.row_unit()) * format.row_unit();
}

}  // namespace

KeyUploader::KeyUploader(Device& device, LaunchTotals* totals)
    : device_(device),
      stream_((device.make_current(), Stream())),
      log_(stream_, totals),
      buffers_{PinnedMemory(kBufferBytes), PinnedMemory(kBufferBytes)} {}

int64_t KeyUploader::transient_bytes(const HeadFormat& format) {
  // HeadTensor::read_rows may take up to 1 MiB of its own.
  constexpr int64_t kReaderBytes = int64_t{1} << 20;
  return kReaderBytes + rows_at_once(format) * format.source_row_bytes() + format.head_dim * 4;
}

int KeyUploader::exponent_of(const HeadFormat& format, const HeadTensor& k, int64_t batch,
                             int64_t head) {
  if (format.score != ScoreFunction::linear_elu1) return 0;
  const int64_t piece = rows_at_once(format);
  std::vector<std::byte> rows(static_cast<size_t>(piece * format.source_row_bytes()));
  std::vector<float> scratch(static_cast<size_t>(format.head_dim));
  int largest = std::numeric_limits<int>::min();
  for (int64_t begin = 0; begin < k.tokens() && largest != 0; begin += piece) {
    const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
    k.read_rows(batch, head, keys, rows.data());
    for (int64_t key = 0; key < keys.size(); ++key) {
      largest = std::max(
          largest, row_exponent(format, rows.data() + key * format.source_row_bytes(), scratch));
    }
  }
  return largest;
}

int KeyUploader::upload(const HeadFormat& format, const HeadTensor& k, int64_t batch, int64_t head,
                        int64_t padded_rows, std::byte* to) {
  const std::lock_guard lock(mutex_);
  device_.make_current();
  const int exponent = exponent_of(format, k, batch, head);
  const int64_t piece = rows_at_once(format);
  std::vector<std::byte> rows(static_cast<size_t>(piece * format.source_row_bytes()));
  std::vector<float> scratch(static_cast<size_t>(format.head_dim));
  int turn = 0;
  int64_t packed_rows = 0;
  for (int64_t begin = 0; begin < k.tokens(); begin += piece, turn = 1 - turn) {
    const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
    k.read_rows(batch, head, keys, rows.data());
    // An event that was never recorded is waited for in no time.
    copied_[turn].wait();
    std::byte* const packed = buffers_[turn].data();
    packed_rows = begin + round_up(keys.size(), format.row_unit());
    for (int64_t key = begin; key < packed_rows; ++key) {
      const std::byte* const row =
          key < keys.end ? rows.data() + (key - begin) * format.source_row_bytes() : nullptr;
      pack_row(format, Operand::keys, row, exponent, scratch, key - begin, packed);
    }
    const int64_t bytes = (packed_rows - begin) * format.row_bytes();
    log_.time_copy("copy to the device", bytes, [&] {
      check(cudaMemcpyAsync(to + begin * format.row_bytes(), packed, static_cast<size_t>(bytes),
                            cudaMemcpyHostToDevice, stream_),
            "copying keys to the device");
    });
    copied_[turn].record(stream_);
  }
  const int64_t padding = (padded_rows - packed_rows) * format.row_bytes();
  if (padding > 0) {
    log_.time_copy("clear", padding, [&] {
      check(cudaMemsetAsync(to + packed_rows * format.row_bytes(), 0, static_cast<size_t>(padding),
                            stream_),
            "clearing device memory");
    });
  }
  stream_.finish();
  log_.collect();
  return exponent;
}

}  // namespace attnscope::cuda

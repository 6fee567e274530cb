#include "kernels/cuda/host/tensors/device_keys.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/checked_math.h"
#include "kernels/cuda/host/tensors/fetched_rows.h"
#include "kernels/cuda/host/tensors/row_layout.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {
namespace {

/// The fewest rows that memory of the device must have room for: whole units of any format.
constexpr int64_t kLeastPieceRows = kTileRows;
/// Room for the longest key's length before a piece, which stays aligned.
constexpr int64_t kLongestBytes = kUnitBytes;

/// Rows that are read and packed at a time.
int64_t rows_at_once(const HeadFormat& format) {
  const int64_t rows =
      KeyUploader::kBufferBytes / std::max(format.row_bytes(), format.source_row_bytes());
  return std::max<int64_t>(1, rows / format.row_unit()) * format.row_unit();
}

void pack(const HeadFormat& format, int exponent, const std::byte* rows, int64_t count,
          std::byte* packed) {
  std::vector<float> scratch(static_cast<size_t>(format.head_dim));
  for (int64_t row = 0; row < count; ++row) {
    pack_features(format, rows + row * format.source_row_bytes(), exponent, scratch,
                  packed + row * format.row_bytes());
  }
}

}  // namespace

KeyUploader::KeyUploader(Device& device, KeyMemory& memory, LaunchTotals* totals)
    : device_(device),
      memory_(memory),
      stream_((device.make_current(), Stream())),
      log_(stream_, totals),
      buffers_{PinnedMemory(kBufferBytes), PinnedMemory(kBufferBytes)} {}

int64_t KeyUploader::transient_bytes(const HeadFormat& format) {
  // HeadTensor::read_rows may take up to 1 MiB of its own.
  constexpr int64_t kReaderBytes = int64_t{1} << 20;
  if (!format.has_features()) return kReaderBytes;
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

/// For a length and `rows` rows as the tensor has them, or fewer where memory is short.
KeyMemory::Held KeyUploader::source_memory(const HeadFormat& format, int64_t& rows) {
  while (true) {
    try {
      return memory_.take(kLongestBytes + rows * format.source_row_bytes());
    } catch (const OutOfDeviceMemory&) {
      if (rows <= kLeastPieceRows) throw;
      rows = round_up(rows / 2, kLeastPieceRows);
    }
  }
}

void KeyUploader::copy(std::byte* to, const std::byte* pinned, int64_t bytes) {
  log_.time_copy("copy to the device", bytes, [&] {
    check(cudaMemcpyAsync(to, pinned, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_),
          "copying keys to the device");
  });
}

void KeyUploader::clear(std::byte* memory, int64_t bytes) {
  log_.time_copy("clear", bytes, [&] {
    check(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), stream_),
          "clearing device memory");
  });
}

/// One head's keys, and how they come.
struct KeyUploader::Source {
  const HeadTensor& k;
  int64_t batch, head;
  int exponent;  ///< of their features
  std::optional<DeviceRows> rows;
  RowsWay way;
  std::vector<std::byte> features_of;  ///< room for a piece of what features are made of
};

/// Queues what brings some keys to `to`: packed as the tensor has them, or as features.
void KeyUploader::bring(const HeadFormat& format, Source& source, IndexRange keys, std::byte* to) {
  if (source.way != RowsWay::host) {
    return fetch_rows(source.way, source.rows->part(keys), to, stream_, log_);
  }
  const bool features = format.has_features();
  std::byte* const pinned = buffers_[turn_].data();
  // An event that was never recorded is waited for in no time.
  copied_[turn_].wait();
  source.k.read_rows(source.batch, source.head, keys,
                     features ? source.features_of.data() : pinned);
  if (features) pack(format, source.exponent, source.features_of.data(), keys.size(), pinned);
  copy(to, pinned, keys.size() * (features ? format.row_bytes() : format.source_row_bytes()));
  copied_[turn_].record(stream_);
  turn_ = 1 - turn_;
}

KeyUploader::Uploaded KeyUploader::upload(const HeadFormat& format, const HeadTensor& k,
                                          int64_t batch, int64_t head, int64_t padded_rows,
                                          std::byte* to) {
  const std::lock_guard lock(mutex_);
  device_.make_current();
  Uploaded uploaded;
  uploaded.exponent = exponent_of(format, k, batch, head);
  int64_t piece = std::min(rows_at_once(format), round_up(k.tokens(), format.row_unit()));
  const bool features = format.has_features();
  const KeyMemory::Held raw = features ? KeyMemory::Held() : source_memory(format, piece);
  auto* const longest = static_cast<int32_t*>(features ? nullptr : raw->data());
  std::byte* const source =
      features ? nullptr : static_cast<std::byte*>(raw->data()) + kLongestBytes;
  if (format.tiled) clear(reinterpret_cast<std::byte*>(longest), kLongestBytes);
  const auto rows = k.device_rows(batch, head);
  Source from{k, batch, head, uploaded.exponent, rows, way_of(rows, format, device_), {}};
  if (features) from.features_of.resize(static_cast<size_t>(piece * format.source_row_bytes()));
  const DrainedStream drained(from.way == RowsWay::host ? nullptr : cudaStream_t(stream_));
  int64_t placed = 0;
  for (int64_t begin = 0; begin < k.tokens(); begin += piece) {
    const IndexRange keys{begin, std::min(begin + piece, k.tokens())};
    std::byte* const target = to + begin * format.row_bytes();
    bring(format, from, keys, features ? target : source);
    placed = begin + round_up(keys.size(), format.row_unit());
    if (features) continue;
    place_rows(format, Operand::keys, source, keys.size(), placed - begin, target, stream_, log_);
    if (format.tiled) measure_keys(format, source, keys.size(), longest, stream_, log_);
  }
  const int64_t padding = (padded_rows - placed) * format.row_bytes();
  if (padding > 0) clear(to + placed * format.row_bytes(), padding);
  if (format.tiled) {
    // The copies that use this buffer are queued before this one.
    log_.time_copy("copy to the host", sizeof(float), [&] {
      check(cudaMemcpyAsync(buffers_[0].data(), longest, sizeof(float), cudaMemcpyDeviceToHost,
                            stream_),
            "copying from the device");
    });
  }
  stream_.finish();
  log_.collect();
  if (format.tiled) std::memcpy(&uploaded.longest, buffers_[0].data(), sizeof(float));
  return uploaded;
}

}  // namespace attnscope::cuda

#pragma once

#include <cublas_v2.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/profile/launch_log.h"
#include "kernels/cuda/kernel/tile_args.h"

namespace attnscope::cuda {

/// One worker's share of a device: a queue, memory on both sides, and how large its steps are. Used
/// by one thread at a time; every call leaves the queue empty.
class Lane {
 public:
  /// Query rows and key tiles of one step, before memory proves too small.
  static constexpr int kMostRows = 2048;
  static constexpr int kStoredRows = 512;  ///< products in float32 shall stay in the device's L2
  static constexpr int kStoredTiles = 32;
  static constexpr int64_t kUploadBytes = int64_t{2} << 20;
  static constexpr int64_t kSlotBytes = int64_t{2} << 20;
  /// Page-locked host memory of a lane.
  static constexpr int64_t kPinnedBytes = kUploadBytes + 2 * kSlotBytes;

  /// `profile`, where not null, gets what the lane's launches take, and must outlive it.
  Lane(Device& device, LaunchTotals* profile);
  ~Lane();

  Device& device() { return device_; }
  cudaStream_t stream() const { return stream_; }
  void finish() { stream_.finish(); }
  /// Whatever is queued goes through this.
  LaunchLog& log() { return log_; }

  /// Steps are this many rows and output bytes at most.
  int most_rows() const { return most_rows_; }
  /// True where memory has proved too small for steps of kMostRows.
  bool is_halved() const { return most_rows_ < kMostRows; }
  int64_t slot_bytes() const { return slot_bytes_; }
  /// Gives all device memory back and makes the steps half as large; false: they are the smallest
  /// already.
  bool halve();

  /// Before a call: nothing that was uploaded is in use any more.
  void begin_call();
  /// After a call: what was timed of it is counted.
  void end_call();
  /// Queues a copy of `bytes` bytes that fill() writes to page-locked memory, in pieces of up to
  /// kUploadBytes (multiples of `unit`): fill(piece, offset).
  template <typename Fill>
  void upload(void* to, int64_t bytes, int64_t unit, Fill fill) {
    const int64_t most = std::max(unit, kUploadBytes / unit * unit);
    for (int64_t at = 0; at < bytes; at += most) {
      const auto piece = upload_space(std::min(most, bytes - at));
      fill(piece, at);
      queue_upload(static_cast<std::byte*>(to) + at, piece);
    }
  }
  /// Queues a copy of the array `from`, through page-locked memory as well.
  template <typename T>
  void upload(T* to, std::span<const T> from) {
    const auto bytes = std::as_bytes(from);
    upload(to, static_cast<int64_t>(bytes.size()), 1, [&](std::span<std::byte> piece, int64_t at) {
      std::copy_n(bytes.begin() + at, piece.size(), piece.begin());
    });
  }
  /// Queues a copy to page-locked memory.
  void fetch(std::byte* pinned, const void* from, int64_t bytes);
  /// Queues zeros.
  void clear(void* memory, int64_t bytes);
  /// Waits for the queue, and copies.
  void download(void* to, const void* from, int64_t bytes);
  template <typename T>
  void download(std::span<T> to, const T* from) {
    download(to.data(), from, static_cast<int64_t>(to.size_bytes()));
  }

  /// cuBLAS chooses its algorithm, and with it the order of every sum, by the shape of a product.
  /// So the shape depends on the head alone, not on how many rows a call has: each tile of rows is
  /// a product of its own.
  ///
  /// Queues products = queries · keysᵀ of row tiles with key tiles [first, first + tiles), float32,
  /// [row_tiles · kTileRows, tiles · kTileKeys], see CallArgs. The inputs are of this type; with
  /// `tf32`, float32 ones are rounded to TF32's 10 bits.
  void multiply(const CallArgs& call, cudaDataType type, bool tf32, int first, int tiles,
                float* products);

  /// Queues out = weights · values, block by block of kValueKeys keys: out[block] is [row_tiles ·
  /// kTileRows, channels] of the block's keys alone. `weights` [row_tiles · kTileRows, stride],
  /// `values` [keys, channels]. The number of keys must not depend on that of rows.
  static constexpr int kValueKeys = 256;
  void multiply_values(const float* weights, int64_t stride, int row_tiles, const float* values,
                       int64_t keys, int channels, float* out);

  /// One half of the double buffer through which results leave the device.
  struct Slot {
    explicit Slot(Device& device) : memory(device), pinned(kSlotBytes) {}
    DeviceBuffer memory;
    PinnedMemory pinned;
    Event ready;
  };
  Slot& slot(int i) { return *slots_[i]; }

  DeviceBuffer queries, query_source, query_places, scales, mask_tiles, mask_bits, mask_biases,
      products, parts, row_parts;
  DeviceBuffer row_facts, held_rows, row_sums, masses, totals, row_masses, columns, diagonals,
      offsets;
  DeviceBuffer block_sums, block_maxima, runs, tile_runs, key_places;
  DeviceBuffer weights, values, value_blocks, value_totals;

 private:
  void open_blas();
  std::span<std::byte> upload_space(int64_t bytes);
  void queue_upload(std::byte* to, std::span<const std::byte> from);
  std::vector<DeviceBuffer*> buffers();

  Device& device_;
  const Stream stream_;
  LaunchLog log_;
  PinnedMemory upload_;
  int64_t uploaded_ = 0;
  std::unique_ptr<Slot> slots_[2];
  DeviceBuffer blas_workspace_;
  cublasHandle_t blas_ = nullptr;
  int most_rows_ = kMostRows;
  int64_t slot_bytes_ = kSlotBytes;
};

/// The lanes of a device, lent to one thread at a time. Thread-safe.
class LanePool {
 public:
  /// Lanes are made when they are first needed.
  LanePool(Device& device, int lanes, LaunchTotals* totals);

  class Lease {
   public:
    Lease(LanePool& pool, Lane* lane) : pool_(pool), lane_(lane) {}
    ~Lease() { pool_.give_back(lane_); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Lane& operator*() const { return *lane_; }
    Lane* operator->() const { return lane_; }

   private:
    LanePool& pool_;
    Lane* const lane_;
  };
  /// Waits for a lane that is free, or makes one: throws OutOfDeviceMemory where that fails.
  Lease take();

 private:
  void give_back(Lane* lane);

  Device& device_;
  LaunchTotals* const totals_;
  std::mutex mutex_;
  std::condition_variable freed_;
  int unmade_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> free_;
};

}  // namespace attnscope::cuda

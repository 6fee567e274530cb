#include "kernels/cuda/host/tensors/device_reader.h"

#include <algorithm>
#include <cassert>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/base/error.h"
#include "kernels/cuda/host/devices/device.h"
#include "kernels/cuda/host/tensors/fetched_rows.h"
#include "kernels/cuda/kernel/tensor_rows.h"

namespace attnscope::cuda {
namespace {

/// Packed rows on their way to the host.
constexpr int64_t kPassingBytes = int64_t{1} << 20;
constexpr int64_t kFoundBytes = 256;
/// Rows of one launch, which counts them in 32 bits.
constexpr int64_t kMostSearchedRows = int64_t{1} << 24;

uint32_t exponent_bits(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x7c00;
    case DType::bf16:
      return 0x7f80;
    default:
      assert(dtype == DType::f32);
      return 0x7f800000;
  }
}

/// Reads one device's memory, for one thread at a time.
class Desk {
 public:
  explicit Desk(int device)
      : device_(device, kPassingBytes + kFoundBytes, 0),
        log_(stream_, nullptr),
        passing_(device_),
        found_(device_),
        pinned_(kPassingBytes) {}

  void read(const DeviceRows& rows, std::byte* to) {
    const std::lock_guard lock(mutex_);
    device_.make_current();
    assert(rows.row_bytes() <= kPassingBytes);
    const int64_t most =
        std::max<int64_t>(1, kPassingBytes / std::max<int64_t>(1, rows.row_bytes()));
    for (int64_t begin = 0; begin < rows.rows; begin += most) {
      const DeviceRows piece = rows.part({begin, std::min(begin + most, rows.rows)});
      const int64_t bytes = piece.rows * piece.row_bytes();
      std::byte* const packed = passing_.get<std::byte>(kPassingBytes);
      fetch_rows(RowsWay::gather, piece, packed, stream_, log_);
      fetch(packed, bytes);
      to = std::copy_n(pinned_.data(), bytes, to);
    }
  }

  int64_t first_not_finite(const DeviceRows& rows) {
    const std::lock_guard lock(mutex_);
    device_.make_current();
    for (int64_t begin = 0; begin < rows.rows; begin += kMostSearchedRows) {
      FindRowArgs args;
      args.source = tensor_rows(rows.part({begin, std::min(begin + kMostSearchedRows, rows.rows)}));
      args.exponent = exponent_bits(rows.dtype);
      args.found = found_.get<int32_t>(1);
      check(cudaMemsetAsync(args.found, 0, sizeof(int32_t), stream_), "clearing device memory");
      check(launch_find_not_finite(args, stream_), "looking for numbers that are not finite");
      fetch(args.found, sizeof(int32_t));
      int32_t found = 0;
      std::memcpy(&found, pinned_.data(), sizeof(found));
      if (found != 0) return begin + INT_MAX - found;
    }
    return -1;
  }

 private:
  /// To the page-locked memory. Nothing is queued when it returns.
  void fetch(const void* from, int64_t bytes) {
    check(cudaMemcpyAsync(pinned_.data(), from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                          stream_),
          "copying from the device");
    stream_.finish();
  }

  std::mutex mutex_;
  Device device_;  ///< current while the others are made
  const Stream stream_;
  LaunchLog log_;
  DeviceBuffer passing_, found_;
  PinnedMemory pinned_;
};

class DeskReader : public DeviceReader {
 public:
  void wait(int device) const override {
    at_device(device, [&] {
      check(cudaSetDevice(device), "choosing the device");
      check(cudaStreamSynchronize(nullptr), "waiting for the device's default stream");
    });
  }
  void read(const DeviceRows& rows, std::byte* to) const override {
    at_device(rows.device, [&] { desk(rows.device).read(rows, to); });
  }
  int64_t first_not_finite(const DeviceRows& rows) const override {
    int64_t row = -1;
    at_device(rows.device, [&] { row = desk(rows.device).first_not_finite(rows); });
    return row;
  }

 private:
  /// The caller's thread keeps its device, and never hears of our words for memory that is short.
  template <typename Work>
  void at_device(int device, Work work) const {
    const KeptDevice kept;
    try {
      work();
    } catch (const OutOfDeviceMemory&) {
      throw Error(ErrorCode::resource, "cuda: no memory is left on device " +
                                           std::to_string(device) + " to read tensors by way of");
    }
  }
  Desk& desk(int device) const {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Desk>& found = desks_[device];
    if (found == nullptr) found = std::make_unique<Desk>(device);
    return *found;
  }

  mutable std::mutex mutex_;
  mutable std::map<int, std::unique_ptr<Desk>> desks_;
};

}  // namespace

std::unique_ptr<DeviceReader> make_device_reader() { return std::make_unique<DeskReader>(); }

}  // namespace attnscope::cuda

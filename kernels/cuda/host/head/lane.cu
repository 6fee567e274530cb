#include "kernels/cuda/host/head/lane.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "kernels/cuda/host/devices/blas_library.h"

namespace attnscope::cuda {
namespace {

constexpr int64_t kBlasWorkspaceBytes = int64_t{4} << 20;
constexpr int kLeastRows = kTileRows;
constexpr int64_t kLeastSlotBytes = int64_t{256} << 10;

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw OutOfDeviceMemory();
  throw Error(ErrorCode::unavailable,
              std::string("cuda: ") + what + ": " + blas_library().status_text(status));
}

}  // namespace

Lane::Lane(Device& device, LaunchTotals* profile)
    : queries(device),
      query_source(device),
      query_places(device),
      scales(device),
      mask_tiles(device),
      mask_bits(device),
      mask_biases(device),
      products(device),
      parts(device),
      row_parts(device),
      row_facts(device),
      held_rows(device),
      row_sums(device),
      masses(device),
      totals(device),
      row_masses(device),
      columns(device),
      diagonals(device),
      offsets(device),
      block_sums(device),
      block_maxima(device),
      runs(device),
      tile_runs(device),
      key_places(device),
      weights(device),
      values(device),
      value_blocks(device),
      value_totals(device),
      device_(device),
      log_(stream_, profile),
      upload_(kUploadBytes),
      blas_workspace_(device) {
  for (auto& slot : slots_) slot = std::make_unique<Slot>(device);
}

Lane::~Lane() {
  // After an error that sticks this fails, and so may what follows: what can be freed is.
  cudaSetDevice(device_.index());
  if (blas_ != nullptr) blas_library().destroy(blas_);
}

std::vector<DeviceBuffer*> Lane::buffers() {
  return {&queries,
          &query_source,
          &query_places,
          &scales,
          &mask_tiles,
          &mask_bits,
          &mask_biases,
          &products,
          &parts,
          &row_parts,
          &row_facts,
          &held_rows,
          &row_sums,
          &masses,
          &totals,
          &row_masses,
          &columns,
          &diagonals,
          &offsets,
          &block_sums,
          &block_maxima,
          &runs,
          &tile_runs,
          &key_places,
          &weights,
          &values,
          &value_blocks,
          &value_totals,
          &slots_[0]->memory,
          &slots_[1]->memory};
}

bool Lane::halve() {
  stream_.finish();
  for (DeviceBuffer* buffer : buffers()) buffer->clear();
  if (most_rows_ <= kLeastRows && slot_bytes_ <= kLeastSlotBytes) return false;
  most_rows_ = std::max(kLeastRows, most_rows_ / 2);
  slot_bytes_ = std::max(kLeastSlotBytes, slot_bytes_ / 2);
  return true;
}

void Lane::begin_call() {
  device_.make_current();
  // A call that ended by an exception may have left work behind.
  stream_.finish();
  log_.collect();
  uploaded_ = 0;
}

void Lane::end_call() {
  if (!log_.is_on()) return;
  stream_.finish();
  log_.collect();
}

std::span<std::byte> Lane::upload_space(int64_t bytes) {
  if (uploaded_ + bytes > upload_.bytes()) {
    stream_.finish();
    uploaded_ = 0;
  }
  const std::span space(upload_.data() + uploaded_, static_cast<size_t>(bytes));
  uploaded_ += bytes;
  return space;
}

void Lane::queue_upload(std::byte* to, std::span<const std::byte> from) {
  log_.time_copy("copy to the device", static_cast<int64_t>(from.size()), [&] {
    check(cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, stream_),
          "copying to the device");
  });
}

void Lane::download(void* to, const void* from, int64_t bytes) {
  PinnedMemory& pinned = slots_[0]->pinned;
  for (int64_t at = 0; at < bytes; at += pinned.bytes()) {
    const int64_t piece = std::min(pinned.bytes(), bytes - at);
    fetch(pinned.data(), static_cast<const std::byte*>(from) + at, piece);
    stream_.finish();
    std::memcpy(static_cast<std::byte*>(to) + at, pinned.data(), static_cast<size_t>(piece));
  }
}

void Lane::fetch(std::byte* pinned, const void* from, int64_t bytes) {
  log_.time_copy("copy to the host", bytes, [&] {
    check(
        cudaMemcpyAsync(pinned, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
        "copying from the device");
  });
}

void Lane::clear(void* memory, int64_t bytes) {
  log_.time_copy("clear", bytes, [&] {
    check(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes), stream_),
          "clearing device memory");
  });
}

void Lane::open_blas() {
  if (blas_ != nullptr) return;
  const BlasLibrary& library = blas_library();
  check_blas(library.create(&blas_), "cuBLAS");
  check_blas(library.set_stream(blas_, stream_), "cuBLAS");
  // A workspace of its own: otherwise results could depend on what other streams do. Products are
  // float32 throughout: no TF32 unless a call asks for it, and no sums rounded to the inputs' type.
  check_blas(library.set_workspace(blas_, blas_workspace_.get<std::byte>(kBlasWorkspaceBytes),
                                   kBlasWorkspaceBytes),
             "cuBLAS");
  check_blas(library.set_math_mode(blas_, static_cast<cublasMath_t>(
                                              CUBLAS_DEFAULT_MATH |
                                              CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
             "cuBLAS");
}

void Lane::multiply_values(const float* weights_in, int64_t stride, int row_tiles,
                           const float* values_in, int64_t keys, int channels, float* out) {
  open_blas();
  const float one = 1;
  const float zero = 0;
  const int64_t block_elements = int64_t{row_tiles} * kTileRows * channels;
  const auto multiply = [&](int row_tile, int64_t first_block, int64_t blocks, int64_t block_keys) {
    if (blocks == 0 || block_keys == 0) return;
    const int64_t first_key = first_block * kValueKeys;
    const int64_t first_row = int64_t{row_tile} * kTileRows;
    const GemmShape shape{kTileRows, channels, block_keys, blocks, blocks, blocks};
    log_.time([&] { return gemm_work("weights times values", shape); },
              [&] {
                check_blas(blas_library().multiply(
                               blas_, CUBLAS_OP_N, CUBLAS_OP_N, channels, kTileRows,
                               static_cast<int>(block_keys), &one, values_in + first_key * channels,
                               CUDA_R_32F, channels, int64_t{kValueKeys} * channels,
                               weights_in + first_row * stride + first_key, CUDA_R_32F,
                               static_cast<int>(stride), kValueKeys, &zero,
                               out + first_block * block_elements + first_row * channels,
                               CUDA_R_32F, channels, block_elements, static_cast<int>(blocks),
                               CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                           "cublasGemmStridedBatchedEx");
              });
  };
  const int64_t whole = keys / kValueKeys;
  for (int row_tile = 0; row_tile < row_tiles; ++row_tile) {
    multiply(row_tile, 0, whole, kValueKeys);
    multiply(row_tile, whole, 1, keys % kValueKeys);
  }
}

void Lane::multiply(const CallArgs& call, cudaDataType type, bool tf32, int first, int tiles,
                    float* products_out) {
  open_blas();
  const bool rounded = tf32 && type == CUDA_R_32F;
  const cublasComputeType_t compute = rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  const int64_t element = type == CUDA_R_32F ? 4 : 2;
  const int64_t row_bytes = call.padded_dim * element;
  const auto* keys = static_cast<const std::byte*>(call.keys) + first * kTileKeys * row_bytes;
  const float one = 1;
  const float zero = 0;
  const int columns_out = tiles * kTileKeys;
  const GemmShape shape{kTileRows, columns_out, call.padded_dim, 1, 1, 1, element};
  for (int64_t row_tile = 0; row_tile < call.row_tiles; ++row_tile) {
    const auto* rows =
        static_cast<const std::byte*>(call.queries) + row_tile * kTileRows * row_bytes;
    float* const out = products_out + row_tile * kTileRows * columns_out;
    log_.time(
        [&] {
          return gemm_work(rounded ? "queries times keys in TF32" : "queries times keys", shape);
        },
        [&] {
          // Row-major products are column-major products of the transposes.
          check_blas(blas_library().multiply(
                         blas_, CUBLAS_OP_T, CUBLAS_OP_N, columns_out, kTileRows, call.padded_dim,
                         &one, keys, type, call.padded_dim, 0, rows, type, call.padded_dim, 0,
                         &zero, out, CUDA_R_32F, columns_out, 0, 1, compute, CUBLAS_GEMM_DEFAULT),
                     "cublasGemmStridedBatchedEx");
        });
  }
}

LanePool::LanePool(Device& device, int lanes, LaunchTotals* totals)
    : device_(device), totals_(totals), unmade_(lanes) {}

LanePool::Lease LanePool::take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return !free_.empty() || unmade_ > 0; });
  if (!free_.empty()) {
    Lane* const lane = free_.back();
    free_.pop_back();
    return Lease(*this, lane);
  }
  --unmade_;
  lock.unlock();
  // Page-locking memory takes the driver a while.
  std::unique_ptr<Lane> made;
  try {
    device_.make_current();
    made = std::make_unique<Lane>(device_, totals_);
  } catch (...) {
    lock.lock();
    ++unmade_;
    freed_.notify_one();
    throw;
  }
  lock.lock();
  lanes_.push_back(std::move(made));
  return Lease(*this, lanes_.back().get());
}

void LanePool::give_back(Lane* lane) {
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(lane);
  }
  freed_.notify_one();
}

}  // namespace attnscope::cuda

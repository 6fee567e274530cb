#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/base/aligned_vector.h"
#include "core/base/index_range.h"
#include "core/tensor/layout.h"
#include "kernels/cpu/packing/packed_format.h"
#include "kernels/cpu/simd/cpu_kernels.h"

namespace attnscope {

class KeyPacker;

/// Which rows meet which keys. Borrowed but for its numbers.
struct StreamedProduct {
  const PackedFormat& format;  ///< not for tiles
  const HeadTensor& k;
  int64_t batch = 0;
  int64_t head = 0;                                  ///< of K
  int key_exponent = 0;                              ///< see KeyPacker::key_exponent
  const float* q = nullptr;                          ///< a packed row group
  void (*raw)(const ProductBlock& block) = nullptr;  ///< CpuKernels::Products::raw
};

/// The raw products of a row group with key blocks, for a group that meets each key once: keys are
/// read, packed block by block into memory that stays in a core's cache, multiplied and thrown
/// away, so that of K nothing is kept and nothing but products passes between threads. They are
/// the products of a packed head, bit for bit. Threads of its own compute pieces of some blocks
/// ahead of whoever takes them, who computes as well where nothing is ready. To be used by one
/// thread.
class ProductStream {
 public:
  /// Key blocks [blocks.begin, blocks.end) in their order, by up to `threads` threads, the caller's
  /// included.
  ProductStream(const StreamedProduct& product, IndexRange blocks, int threads);
  ~ProductStream();
  ProductStream(const ProductStream&) = delete;
  ProductStream& operator=(const ProductStream&) = delete;

  /// Bytes that one holds for a head of K, those of the tensor's readers included.
  static int64_t bytes(const PackedFormat& format, const HeadTensor& k, int threads);

  /// Products with a block, rows [kRegisterRows] that lie stride() floats apart; those of panels
  /// without keys are not set. Valid until another block is asked for. Blocks may be left out but
  /// not asked for after a later one. Throws what reading throws, at the earliest keys that fail.
  const float* block(int64_t block);
  int64_t stride() const { return stride_; }

 private:
  /// Memory for a piece.
  struct Slot {
    enum class State : uint8_t { free, computing, ready };
    State state = State::free;
    int64_t piece = 0;
    AlignedVector<float> products;  ///< [kRegisterRows, stride_]
    std::exception_ptr error;
  };
  /// A thread's packer, and the panels that it multiplies.
  struct Worker {
    std::unique_ptr<KeyPacker> packer;
    AlignedVector<float> panels;  ///< of a block
  };

  /// Computes pieces ahead of the caller, on another thread, as long as slots are free.
  void work_ahead(const std::stop_token& stop, Worker& worker);
  /// Waits for the piece, or computes it and others meanwhile.
  const Slot& take(int64_t piece);
  Slot* slot_of(int64_t piece);
  Slot* free_slot();
  /// The next piece into a free slot; the lock is given up meanwhile.
  void compute_next(Slot& slot, Worker& worker, std::unique_lock<std::mutex>& lock);
  void compute(int64_t piece, Worker& worker, float* products) const;

  const StreamedProduct product_;
  const IndexRange blocks_;
  const int64_t piece_blocks_;
  const int64_t pieces_;
  const int64_t stride_;
  std::vector<Worker> workers_;  ///< the caller's first
  const Slot* held_ = nullptr;   ///< the caller's

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;
  int64_t wanted_ = 0;                 ///< pieces before it are not asked for any more
  int64_t next_ = 0;                   ///< the first piece that nobody computes or has computed
  std::vector<std::jthread> helpers_;  ///< end first
};

}  // namespace attnscope

#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/base/index_range.h"
#include "core/tensor/layout.h"
#include "kernels/cpu/packed_format.h"

namespace attnscope {

class KeyPacker;

/// Which keys are streamed, and how they are packed. Borrowed but for its numbers.
struct StreamedKeys {
  const PackedFormat& format;
  const HeadTensor& k;
  int64_t batch = 0;
  int64_t head = 0;      ///< of K
  int key_exponent = 0;  ///< see KeyPacker::key_exponent
};

/// The panels of K for somebody who meets each key once: a piece of some key blocks is read, packed
/// into memory that stays in a core's cache, and thrown away after its last block. The panels are
/// those of pack_keys, bit for bit. Threads of its own read and pack ahead of whoever multiplies,
/// who packs as well where nothing is ready. To be used by one thread.
class KeyStream {
 public:
  /// Key blocks [blocks.begin, blocks.end) in their order, by up to `threads` threads and
  /// reading_threads, the caller's included, or by as many as the system starts.
  KeyStream(const StreamedKeys& keys, IndexRange blocks, int threads);
  ~KeyStream();
  KeyStream(const KeyStream&) = delete;
  KeyStream& operator=(const KeyStream&) = delete;

  /// Bytes that one holds for a head of K, those of the tensor's readers included.
  static int64_t bytes(const PackedFormat& format, const HeadTensor& k, int threads);

  /// The packed panels of a block, valid until another one is asked for. Blocks may be left out but
  /// not asked for after a later one. Throws what reading throws, at the earliest keys that fail.
  const float* block(int64_t block);

 private:
  /// Memory for a piece.
  struct Slot {
    enum class State : uint8_t { free, packing, ready };
    State state = State::free;
    int64_t piece = 0;
    std::unique_ptr<float[]> memory;
    float* panels = nullptr;  ///< in it, 64-byte aligned
    std::exception_ptr error;
  };

  /// What another thread does.
  void work_ahead(const std::stop_token& stop, KeyPacker& packer);
  /// Waits for the piece, or packs it and others meanwhile.
  const Slot& take(int64_t piece);
  Slot* slot_of(int64_t piece);
  Slot* free_slot();
  /// The next piece into a free slot; the lock is given up meanwhile.
  void pack_next(Slot& slot, KeyPacker& packer, std::unique_lock<std::mutex>& lock);
  IndexRange keys_of(int64_t piece) const;

  const StreamedKeys keys_;
  const IndexRange blocks_;
  const int64_t piece_blocks_;
  const int64_t pieces_;
  std::vector<std::unique_ptr<KeyPacker>> packers_;  ///< one a thread, the caller's first
  const Slot* held_ = nullptr;                       ///< the caller's

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;
  int64_t wanted_ = 0;                 ///< pieces before it are not asked for any more
  int64_t next_ = 0;                   ///< the first piece that nobody packs or has packed
  std::vector<std::jthread> helpers_;  ///< end first
};

}  // namespace attnscope

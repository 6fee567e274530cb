#include "kernels/cpu/key_stream.h"

#include <algorithm>
#include <cassert>

#include "core/base/checked_math.h"
#include "core/base/error.h"
#include "core/base/start_thread.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/cpu/key_packer.h"

namespace attnscope {
namespace {

/// Stored bytes of a piece: so few that they and what they are packed into stay in a core's cache,
/// so many that taking a piece costs nothing beside them.
constexpr int64_t kPieceBytes = int64_t{256} << 10;
/// HeadTensor::read_rows may take so much of its own.
constexpr int64_t kReaderBytes = int64_t{1} << 20;
constexpr int64_t kAlignedFloats = 64 / sizeof(float);

int64_t blocks_of_piece(const PackedFormat& format) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  return std::max<int64_t>(1, kPieceBytes / (row_bytes * kBlockKeys));
}

/// How many of what is used for so many pieces: a thread more from two pieces on, and memory for a
/// piece that is being multiplied and one that waits.
struct Means {
  int64_t threads, slots;

  Means(int64_t pieces, int64_t most_threads)
      : threads(std::clamp<int64_t>(pieces / 2, 1, most_threads)),
        slots(std::min(threads + 2, pieces)) {}
};

}  // namespace

KeyStream::KeyStream(const StreamedKeys& keys, IndexRange blocks, int threads)
    : keys_(keys),
      blocks_(blocks),
      piece_blocks_(blocks_of_piece(keys.format)),
      pieces_(ceil_div(blocks.size(), piece_blocks_)) {
  const Means means(pieces_, reading_threads(keys.k, threads));
  for (int64_t thread = 0; thread < means.threads; ++thread) {
    packers_.push_back(
        std::make_unique<KeyPacker>(keys.format, keys.k, keys.batch, keys.head, kBlockKeys));
  }
  slots_.resize(static_cast<size_t>(means.slots));
  const int64_t elements =
      std::min(piece_blocks_, blocks.size()) * kBlockKeys * keys.format.steps();
  for (Slot& slot : slots_) {
    slot.memory =
        std::make_unique_for_overwrite<float[]>(static_cast<size_t>(elements + kAlignedFloats));
    const auto address = reinterpret_cast<uintptr_t>(slot.memory.get());
    slot.panels = slot.memory.get() +
                  (round_up(static_cast<int64_t>(address), 64) - static_cast<int64_t>(address)) /
                      static_cast<int64_t>(sizeof(float));
  }
  try {
    for (int64_t helper = 1; helper < means.threads; ++helper) {
      KeyPacker& packer = *packers_[static_cast<size_t>(helper)];
      start_thread(helpers_, static_cast<size_t>(means.threads - 1),
                   [this, &packer](const std::stop_token& stop) { work_ahead(stop, packer); });
    }
  } catch (const Error&) {
    // Where the system starts no more threads, those that there are pack all.
  }
}

KeyStream::~KeyStream() = default;

int64_t KeyStream::bytes(const PackedFormat& format, const HeadTensor& k, int threads) {
  const int64_t blocks = ceil_div(k.tokens(), kBlockKeys);
  const int64_t piece_blocks = blocks_of_piece(format);
  const Means means(ceil_div(blocks, piece_blocks), reading_threads(k, threads));
  const int64_t floats =
      std::min(piece_blocks, blocks) * kBlockKeys * format.steps() + kAlignedFloats;
  return means.slots * floats * static_cast<int64_t>(sizeof(float)) +
         means.threads * (KeyPacker::bytes(format, kBlockKeys) + kReaderBytes);
}

const float* KeyStream::block(int64_t block) {
  assert(blocks_.contains(block));
  const int64_t piece = (block - blocks_.begin) / piece_blocks_;
  if (held_ == nullptr || held_->piece != piece) held_ = &take(piece);
  const int64_t first = blocks_.begin + piece * piece_blocks_;
  return held_->panels + (block - first) * kBlockKeys * keys_.format.steps();
}

const KeyStream::Slot& KeyStream::take(int64_t piece) {
  std::unique_lock lock(mutex_);
  assert(piece >= wanted_ && "a stream goes forward only");
  wanted_ = piece;
  next_ = std::max(next_, piece);
  for (Slot& slot : slots_) {
    if (slot.state == Slot::State::ready && slot.piece < piece) slot.state = Slot::State::free;
  }
  changed_.notify_all();
  while (true) {
    Slot* const own = slot_of(piece);
    if (own != nullptr && own->state == Slot::State::ready) {
      if (own->error) std::rethrow_exception(own->error);
      return *own;
    }
    Slot* const place = next_ < pieces_ ? free_slot() : nullptr;
    if (place != nullptr) {
      pack_next(*place, *packers_.front(), lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void KeyStream::work_ahead(const std::stop_token& stop, KeyPacker& packer) {
  std::unique_lock lock(mutex_);
  while (next_ < pieces_ && !stop.stop_requested()) {
    Slot* const place = free_slot();
    if (place != nullptr) {
      pack_next(*place, packer, lock);
    } else {
      changed_.wait(lock, stop, [&] { return next_ == pieces_ || free_slot() != nullptr; });
    }
  }
}

KeyStream::Slot* KeyStream::slot_of(int64_t piece) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.state != Slot::State::free && slot.piece == piece;
  });
  return found == slots_.end() ? nullptr : &*found;
}

KeyStream::Slot* KeyStream::free_slot() {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [](const Slot& slot) { return slot.state == Slot::State::free; });
  return found == slots_.end() ? nullptr : &*found;
}

void KeyStream::pack_next(Slot& slot, KeyPacker& packer, std::unique_lock<std::mutex>& lock) {
  slot.state = Slot::State::packing;
  slot.piece = next_++;
  slot.error = nullptr;
  lock.unlock();
  try {
    // As keys are packed outside of a call.
    const KeepDenormals keep;
    packer.pack(keys_of(slot.piece), keys_.key_exponent, slot.panels);
  } catch (...) {
    slot.error = std::current_exception();
  }
  lock.lock();
  slot.state = slot.piece < wanted_ ? Slot::State::free : Slot::State::ready;
  changed_.notify_all();
}

IndexRange KeyStream::keys_of(int64_t piece) const {
  const int64_t begin = blocks_.begin + piece * piece_blocks_;
  const int64_t end = std::min(begin + piece_blocks_, blocks_.end);
  return {begin * kBlockKeys, std::min(end * kBlockKeys, keys_.k.tokens())};
}

}  // namespace attnscope

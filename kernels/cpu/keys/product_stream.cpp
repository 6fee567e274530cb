#include "kernels/cpu/keys/product_stream.h"

#include <algorithm>
#include <cassert>

#include "core/base/checked_math.h"
#include "core/base/start_thread.h"
#include "kernels/common/flush_denormals.h"
#include "kernels/cpu/packing/cpu_packing.h"
#include "kernels/cpu/packing/key_packer.h"

namespace attnscope {
namespace {

/// Stored bytes of a piece: so many that taking one costs nothing beside it.
constexpr int64_t kPieceBytes = int64_t{256} << 10;

int64_t blocks_of_piece(const PackedFormat& format) {
  const int64_t row_bytes = format.head_dim * dtype_bytes(format.dtype);
  return std::max<int64_t>(1, kPieceBytes / (row_bytes * kBlockKeys));
}

/// How many of what is used for so many pieces: a thread more for every two of them, and memory for
/// a piece that is being taken and one that waits.
struct Means {
  int64_t threads, slots;

  Means(int64_t pieces, int64_t most_threads)
      : threads(std::clamp<int64_t>(pieces / 2, 1, most_threads)),
        slots(std::min(threads + 2, pieces)) {}
};

}  // namespace

ProductStream::ProductStream(const StreamedProduct& product, IndexRange blocks, int threads)
    : product_(product),
      blocks_(blocks),
      piece_blocks_(std::min(blocks_of_piece(product.format), blocks.size())),
      pieces_(ceil_div(blocks.size(), piece_blocks_)),
      stride_(piece_blocks_ * kBlockKeys) {
  const Means means(pieces_, reading_threads(product.k, threads));
  slots_.resize(static_cast<size_t>(means.slots));
  for (Slot& slot : slots_) slot.products.resize(static_cast<size_t>(kRegisterRows * stride_));
  workers_.resize(static_cast<size_t>(means.threads));
  for (Worker& worker : workers_) {
    worker.packer = std::make_unique<KeyPacker>(product.format, product.k, product.batch,
                                                product.head, kBlockKeys);
    worker.panels.resize(static_cast<size_t>(kBlockKeys * product.format.steps()));
  }
  start_helpers(helpers_, workers_.size() - 1, [this](size_t helper) {
    return [this, helper](const std::stop_token& stop) { work_ahead(stop, workers_[helper + 1]); };
  });
}

ProductStream::~ProductStream() = default;

int64_t ProductStream::bytes(const PackedFormat& format, const HeadTensor& k, int threads) {
  constexpr int64_t kFloatBytes = sizeof(float);
  const int64_t blocks = ceil_div(k.tokens(), kBlockKeys);
  const int64_t piece_blocks = std::min(blocks_of_piece(format), blocks);
  const Means means(ceil_div(blocks, piece_blocks), reading_threads(k, threads));
  const int64_t of_thread = KeyPacker::bytes(format, kBlockKeys) +
                            kBlockKeys * format.steps() * kFloatBytes + kReaderBytes;
  return means.threads * of_thread +
         means.slots * kRegisterRows * piece_blocks * kBlockKeys * kFloatBytes;
}

const float* ProductStream::block(int64_t block) {
  assert(blocks_.contains(block));
  const int64_t piece = (block - blocks_.begin) / piece_blocks_;
  if (held_ == nullptr || held_->piece != piece) held_ = &take(piece);
  const int64_t first = blocks_.begin + piece * piece_blocks_;
  return held_->products.data() + (block - first) * kBlockKeys;
}

const ProductStream::Slot& ProductStream::take(int64_t piece) {
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
      compute_next(*place, workers_.front(), lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void ProductStream::work_ahead(const std::stop_token& stop, Worker& worker) {
  std::unique_lock lock(mutex_);
  while (next_ < pieces_ && !stop.stop_requested()) {
    Slot* const place = free_slot();
    if (place != nullptr) {
      compute_next(*place, worker, lock);
    } else {
      changed_.wait(lock, stop, [&] { return next_ == pieces_ || free_slot() != nullptr; });
    }
  }
}

ProductStream::Slot* ProductStream::slot_of(int64_t piece) {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.state != Slot::State::free && slot.piece == piece;
  });
  return found == slots_.end() ? nullptr : &*found;
}

ProductStream::Slot* ProductStream::free_slot() {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [](const Slot& slot) { return slot.state == Slot::State::free; });
  return found == slots_.end() ? nullptr : &*found;
}

void ProductStream::compute_next(Slot& slot, Worker& worker, std::unique_lock<std::mutex>& lock) {
  const int64_t piece = next_++;
  slot.state = Slot::State::computing;
  slot.piece = piece;
  slot.error = nullptr;
  lock.unlock();
  try {
    compute(piece, worker, slot.products.data());
  } catch (...) {
    slot.error = std::current_exception();
  }
  lock.lock();
  slot.state = piece < wanted_ ? Slot::State::free : Slot::State::ready;
  changed_.notify_all();
}

void ProductStream::compute(int64_t piece, Worker& worker, float* products) const {
  // A packed head's keys are packed without it: a feature that is a denormal number then counts for
  // nothing in the product, where it is 0 now.
  const FlushDenormals flush;
  const int64_t first = blocks_.begin + piece * piece_blocks_;
  const int64_t end = std::min(first + piece_blocks_, blocks_.end);
  for (int64_t block = first; block < end; ++block) {
    const IndexRange keys{block * kBlockKeys,
                          std::min((block + 1) * kBlockKeys, product_.k.tokens())};
    worker.packer->pack(keys, product_.key_exponent, worker.panels.data());
    product_.raw({.q = product_.q,
                  .k = worker.panels.data(),
                  .steps = product_.format.steps(),
                  .panels = (1u << ceil_div(keys.size(), kPanelKeys)) - 1,
                  .out = products + (block - first) * kBlockKeys,
                  .out_stride = stride_});
  }
}

}  // namespace attnscope

// Barriers in shared memory and the bulk copies that arrive at them.
#include <cstring>

#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/guarded_memory.h"
#include "warpgroup.h"

namespace attnscope::cuda::emulation {

BlockRunner::SharedBarrier& BlockRunner::barrier_at(std::uint64_t* barrier, const char* operation) {
  const auto found = barriers_.find(barrier);
  if (found == barriers_.end()) {
    fail(std::string(operation) + ": there is no barrier at this address");
  }
  return found->second;
}

void BlockRunner::init_barrier(std::uint64_t* barrier, unsigned arrivals) {
  const auto* const bytes = reinterpret_cast<unsigned char*>(barrier);
  if (bytes < shared_ || bytes + sizeof(*barrier) > shared_ + grid_->shared_bytes ||
      reinterpret_cast<std::uintptr_t>(barrier) % sizeof(*barrier) != 0) {
    fail("barrier_init: not eight aligned bytes of the block's shared memory");
  }
  if (arrivals == 0 || arrivals >= 1u << 20) {
    fail("barrier_init: a phase of " + std::to_string(arrivals) + " arrivals");
  }
  if (!barriers_.emplace(barrier, SharedBarrier{arrivals, arrivals, 0, 0}).second) {
    fail("barrier_init: there is a barrier at this address already");
  }
  *barrier = arrivals;
}

void BlockRunner::end_phase(SharedBarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.arrivals;
  ++barrier.phases;
  idle_polls_ = 0;
}

void BlockRunner::arrive_at_barrier(std::uint64_t* barrier, unsigned expected_bytes) {
  SharedBarrier& state = barrier_at(barrier, "barrier_arrive");
  if (state.pending == 0) {
    fail("barrier_arrive: all arrivals of the phase have been, its bytes are awaited");
  }
  state.bytes += expected_bytes;
  if (state.bytes >= 1 << 20) fail("barrier_arrive_expect: 1 MiB or more are awaited");
  --state.pending;
  idle_polls_ = 0;
  const std::uint64_t before = state.phases;
  end_phase(state);
  if (state.phases == before) return;
  // Whoever waits goes on at once: it may overwrite what this thread has left too early.
  for (unsigned i = 1; i < num_threads_; ++i) {
    const unsigned other = (current_ + i) % num_threads_;
    if (threads_[other].polls == nullptr) continue;
    switch_to_thread(other);
    return;
  }
}

void BlockRunner::wait_for_barrier(std::uint64_t* barrier, unsigned parity) {
  SharedBarrier& state = barrier_at(barrier, "barrier_wait");
  if (parity > 1) fail("barrier_wait: a parity of " + std::to_string(parity));
  // The phase that runs has the parity of how many have ended; the other one is the last that did.
  while (state.phases % 2 == parity) {
    land_copies(barrier);
    if (state.phases % 2 != parity) break;
    poll("a barrier in shared memory");
  }
}

void BlockRunner::copy_bulk(void* target, const void* source, unsigned bytes,
                            std::uint64_t* barrier) {
  barrier_at(barrier, "copy_bulk");
  check_shared(target, bytes, "copy_bulk");
  if (bytes == 0 || bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(source) % 16 != 0) {
    fail("copy_bulk: the bytes or their address in global memory are no multiple of 16");
  }
  // The old bytes may be overwritten already, and the new ones may be missing still.
  std::memset(target, kPoison, bytes);
  bulk_copies_.push_back({target, source, bytes, barrier});
  idle_polls_ = 0;
}

/// As late as can be: when somebody waits.
void BlockRunner::land_copies(const std::uint64_t* barrier) {
  for (std::size_t i = 0; i < bulk_copies_.size();) {
    const BulkCopy copy = bulk_copies_[i];
    if (copy.barrier != barrier) {
      ++i;
      continue;
    }
    SharedBarrier& state = barriers_.at(barrier);
    if (state.bytes < copy.bytes) {
      fail("copy_bulk: more bytes arrive than the barrier was told to expect");
    }
    std::memcpy(copy.target, copy.source, copy.bytes);
    state.bytes -= copy.bytes;
    bulk_copies_.erase(bulk_copies_.begin() + static_cast<std::ptrdiff_t>(i));
    end_phase(state);
  }
}

void BlockRunner::check_block_end() {
  if (!bulk_copies_.empty()) fail("the block ended with bulk copies that nobody had waited for");
}

void init_barrier(std::uint64_t* barrier, unsigned arrivals) {
  BlockRunner::running().init_barrier(barrier, arrivals);
}

void arrive_at_barrier(std::uint64_t* barrier, unsigned expected_bytes) {
  BlockRunner::running().arrive_at_barrier(barrier, expected_bytes);
}

void wait_for_barrier(std::uint64_t* barrier, unsigned parity) {
  BlockRunner::running().wait_for_barrier(barrier, parity);
}

void start_bulk_copy(void* shared, const void* global, unsigned bytes, std::uint64_t* barrier) {
  BlockRunner::running().copy_bulk(shared, global, bytes, barrier);
}

}  // namespace attnscope::cuda::emulation

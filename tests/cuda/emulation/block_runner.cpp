#include "tests/cuda/emulation/block_runner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "tests/cuda/emulation/guarded_memory.h"

constinit thread_local uint3 threadIdx = {0, 0, 0};
constinit thread_local uint3 blockIdx = {0, 0, 0};
constinit thread_local dim3 blockDim;
constinit thread_local dim3 gridDim;

namespace attnscope::cuda::emulation {
namespace {

constexpr unsigned kBlockRegisters = 65536;

// The mixing function of splitmix64 (Steele, Lea and Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<std::uint64_t> scrambled_order(std::uint64_t count) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::uint64_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[mix(i) % i]);
  }
  return order;
}

uint3 index_in(const dim3& shape, std::uint64_t linear) {
  return {static_cast<unsigned>(linear % shape.x),
          static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

}  // namespace

constinit thread_local BlockRunner* BlockRunner::running_ = nullptr;

BlockRunner& BlockRunner::of_thread() {
  thread_local BlockRunner runner;
  return runner;
}

BlockRunner::BlockRunner() = default;

BlockRunner::~BlockRunner() { release_guarded(shared_); }

void BlockRunner::run(const Grid& grid) {
  grid_ = &grid;
  running_ = this;
  num_threads_ = grid.threads.x * grid.threads.y * grid.threads.z;
  num_warps_ = (num_threads_ + kWarpSize - 1) / kWarpSize;
  while (threads_.size() < num_threads_) {
    Thread thread;
    thread.fiber = std::make_unique<Fiber>(&BlockRunner::thread_main, threads_.size());
    threads_.push_back(std::move(thread));
  }
  for (unsigned t = 0; t < num_threads_; ++t) {
    threads_[t].index = index_in(grid.threads, t);
  }
  warps_.resize(num_warps_);
  // Of exactly this size, so that the first byte beyond it is a guard.
  shared_ = allocate_guarded(grid.shared_bytes);
  blockDim = grid.threads;
  gridDim = grid.blocks;
  const std::uint64_t num_blocks = std::uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
  for (const std::uint64_t block : scrambled_order(num_blocks)) {
    blockIdx = index_in(grid.blocks, block);
    std::memset(shared_, kPoison, grid.shared_bytes);
    run_block(static_cast<unsigned>(mix(block) % num_threads_));
    if (!guards_intact(shared_)) {
      fail("bytes next to the block's shared memory were written");
    }
  }
  release_guarded(shared_);
  shared_ = nullptr;
  running_ = nullptr;
  grid_ = nullptr;
}

void BlockRunner::run_block(unsigned first) {
  for (unsigned w = 0; w < num_warps_; ++w) {
    const unsigned lanes = std::min(kWarpSize, num_threads_ - w * kWarpSize);
    Warp& warp = warps_[w];
    warp.existing = lanes == kWarpSize ? ~0u : (1u << lanes) - 1;
    warp.ready = warp.existing;
    warp.at_operation = warp.at_barrier = warp.ended = 0;
  }
  at_barrier_ = 0;
  ended_ = 0;
  idle_polls_ = 0;
  barriers_.clear();
  registers_.assign(num_warps_, kBlockRegisters / num_threads_ / 8 * 8);
  enter_thread(first);
  Fiber::switch_to(host_, *threads_[first].fiber);
  check_block_end();
}

void BlockRunner::thread_main() {
  BlockRunner& runner = running();
  for (;;) {
    (*runner.grid_->body)();
    runner.end_thread();
  }
}

void BlockRunner::end_thread() {
  if (!threads_[current_].copies.empty()) {
    fail("the thread ended with asynchronous copies that it had not waited for");
  }
  threads_[current_].group_ends.clear();
  if (!threads_[current_].products.started.empty()) {
    fail("the thread ended with products that it had not waited for");
  }
  idle_polls_ = 0;
  Warp& warp = warps_[current_ / kWarpSize];
  const std::uint32_t bit = 1u << current_ % kWarpSize;
  warp.ended |= bit;
  warp.ready &= ~bit;
  if (++ended_ == num_threads_) {
    Fiber::switch_to(*threads_[current_].fiber, host_);
  } else {
    yield();
  }
}

void BlockRunner::enter_thread(unsigned thread) {
  current_ = thread;
  threadIdx = threads_[thread].index;
}

void BlockRunner::yield() {
  const unsigned lane = current_ % kWarpSize;
  unsigned w = current_ / kWarpSize;
  // The lanes after this one, then the rest of the warp, then the warps after it.
  std::uint32_t ready = warps_[w].ready & ~((2u << lane) - 1);
  for (unsigned tried = 0; ready == 0; ++tried) {
    if (tried > num_warps_) {
      fail_stuck();
    }
    if (tried > 0 && ++w == num_warps_) {
      w = 0;
    }
    ready = warps_[w].ready;
  }
  switch_to_thread(w * kWarpSize + static_cast<unsigned>(std::countr_zero(ready)));
}

void BlockRunner::switch_to_thread(unsigned next) {
  if (next == current_) return;
  const unsigned previous = current_;
  enter_thread(next);
  Fiber::switch_to(*threads_[previous].fiber, *threads_[next].fiber);
}

void BlockRunner::poll(const char* what) {
  constexpr unsigned kRounds = 4;
  threads_[current_].polls = what;
  if (++idle_polls_ > kRounds * num_threads_) {
    fail_stuck();
  }
  // The next one in the block, of whichever warp: those of the caller's may all be waiting too.
  unsigned next = current_;
  do {
    next = next + 1 == num_threads_ ? 0 : next + 1;
  } while ((warps_[next / kWarpSize].ready >> next % kWarpSize & 1) == 0);
  switch_to_thread(next);
  threads_[current_].polls = nullptr;
}

void BlockRunner::block_barrier() {
  idle_polls_ = 0;
  Warp& warp = warps_[current_ / kWarpSize];
  const std::uint32_t bit = 1u << current_ % kWarpSize;
  warp.at_barrier |= bit;
  if (++at_barrier_ == num_threads_) {
    for (Warp& each : warps_) {
      each.at_barrier = 0;
      each.ready = each.existing;
    }
    at_barrier_ = 0;
    return;
  }
  warp.ready &= ~bit;
  yield();
}

void BlockRunner::warp_operation(WarpOperation kind, void* lane, void (*compute)(void* const*)) {
  idle_polls_ = 0;
  Warp& warp = warps_[current_ / kWarpSize];
  const unsigned index = current_ % kWarpSize;
  if (warp.at_operation != 0 && warp.operation != kind) {
    fail_mixed(kind);
  }
  warp.operation = kind;
  warp.lanes[index] = lane;
  warp.at_operation |= 1u << index;
  if (warp.at_operation == ~0u) {
    warp.at_operation = 0;
    warp.ready = ~0u;
    if (compute != nullptr) {
      compute(warp.lanes.data());
    }
    return;
  }
  warp.ready &= ~(1u << index);
  yield();
}

}  // namespace attnscope::cuda::emulation

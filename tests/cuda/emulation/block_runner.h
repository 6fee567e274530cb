#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "tests/cuda/emulation/fiber.h"

namespace attnscope::cuda::emulation {

constexpr unsigned kWarpSize = 32;

/// Operations that the lanes of a warp do together: all that meet must be of one kind.
enum class WarpOperation : unsigned char {
  kBarrier,
  kShuffle,
  kAny,
  kProduct,
  kLoadMatrix,
  kRegisters,
  kGroupProducts
};

/// A grid to run: its shape, one thread's work, and what messages call it.
struct Grid {
  const void* kernel;
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes;
  const std::function<void()>* body;
};

/// Products of a warpgroup that one of its threads has started. They are made when the thread
/// waits, from what shared memory holds then; until then the accumulators are NaN.
struct GroupProducts {
  struct Product {
    float* d;
    const unsigned char* a;
    const unsigned char* b;
    bool add, half;
    friend bool operator==(const Product&, const Product&) = default;
  };
  std::vector<Product> started;
  std::vector<float> accumulators;  // as they were
  const float* begun = nullptr;
  std::size_t committed = 0;
};

/// Runs grids on one host thread, a block at a time, each thread of the block as a fiber. Errors of
/// kernels end the program with a message that names the kernel, the block and the threads.
class BlockRunner {
 public:
  /// The calling host thread's.
  static BlockRunner& of_thread();
  /// The one that runs on this thread now: it is asked for at every operation of a kernel.
  static BlockRunner& running() { return *running_; }

  BlockRunner();
  ~BlockRunner();

  void run(const Grid& grid);

  // For the thread that runs now:

  /// Returns once every thread of the block is here.
  void block_barrier();
  /// Returns once all 32 lanes of the warp are here and compute(lanes) was called, once, with what
  /// each lane gave.
  void warp_operation(WarpOperation kind, void* lane, void (*compute)(void* const* lanes));
  /// Lets the other threads run before the caller looks again at what it waits for. Fails when all
  /// threads have looked a few times and nothing has changed.
  void poll(const char* what);
  unsigned char* shared() { return shared_; }
  unsigned lane() const { return current_ % kWarpSize; }
  void copy_async(void* target, const void* source, bool valid);
  void commit_copies();
  void wait_for_copies(unsigned left);
  // Of warpgroups, see kernels/cuda/kernel/nvcc/warpgroup.h.
  void change_registers(unsigned count, bool up);
  void init_barrier(std::uint64_t* barrier, unsigned arrivals);
  void arrive_at_barrier(std::uint64_t* barrier, unsigned expected_bytes);
  void wait_for_barrier(std::uint64_t* barrier, unsigned parity);
  void copy_bulk(void* target, const void* source, unsigned bytes, std::uint64_t* barrier);
  void begin_products(float* d, unsigned count);
  void start_product(float* d, const void* a, const void* b, bool add, bool half);
  void commit_products();
  void wait_for_products(float* d, unsigned count);
  /// Fails unless the bytes lie in the block's shared memory, aligned to 16.
  void check_shared(const void* begin, std::size_t bytes, const char* operation);
  [[noreturn]] void fail(const std::string& what);

 private:
  struct Warp {
    std::uint32_t existing, ready, at_operation, at_barrier, ended;
    WarpOperation operation;
    std::array<void*, kWarpSize> lanes;
  };
  struct AsyncCopy {
    void* target;
    const void* source;
    bool valid;
  };
  struct SharedBarrier {
    unsigned arrivals;     // of every phase
    unsigned pending;      // of this one
    std::int64_t bytes;    // expected and not there yet
    std::uint64_t phases;  // that have ended
  };
  struct BulkCopy {
    void* target;
    const void* source;
    unsigned bytes;
    std::uint64_t* barrier;
  };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    uint3 index{};
    std::vector<AsyncCopy> copies;        // in the order of their start
    std::vector<std::size_t> group_ends;  // how many of the copies each committed group ends at
    GroupProducts products;
    const char* polls = nullptr;  // what it waits for, if it does
  };

  static void thread_main();
  void run_block(unsigned first);
  void end_thread();
  void enter_thread(unsigned thread);
  void yield();
  void switch_to_thread(unsigned next);
  std::string where_threads_are() const;
  SharedBarrier& barrier_at(std::uint64_t* barrier, const char* operation);
  void end_phase(SharedBarrier& barrier);
  void land_copies(const std::uint64_t* barrier);
  void check_block_end();
  [[noreturn]] void fail_stuck();
  [[noreturn]] void fail_mixed(WarpOperation kind);

  static constinit thread_local BlockRunner* running_;

  const Grid* grid_ = nullptr;
  Fiber host_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  unsigned num_threads_ = 0;
  unsigned num_warps_ = 0;
  unsigned current_ = 0;
  unsigned at_barrier_ = 0;
  unsigned ended_ = 0;
  unsigned char* shared_ = nullptr;
  unsigned idle_polls_ = 0;
  std::map<const std::uint64_t*, SharedBarrier> barriers_;
  std::vector<BulkCopy> bulk_copies_;  // in flight
  std::vector<unsigned> registers_;    // of a thread of each warp
};

}  // namespace attnscope::cuda::emulation

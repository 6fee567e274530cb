#include "kernels/cpu/cpu_ceilings.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/common/host_cores.h"
#include "kernels/cpu/simd/cpu_dispatch.h"

namespace attnscope {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;
constexpr int64_t kBufferCount = 2048;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct alignas(64) Buffers {
  float source[kBufferCount];
  float destination[kBufferCount];

  Buffers() {
    // Products that stay within 2^±20, and dot operands whose sums stay finite.
    for (int64_t i = 0; i < kBufferCount; ++i) {
      source[i] = static_cast<float>(i % 401 - 200) * 0.05f;
      destination[i] = 0.001f;
    }
  }
};

/// The operations of one thread, and when it did them.
struct ThreadRun {
  Clock::time_point begin, end;
  double operations = 0;
};

/// `work(iterations, buffers)` returns the operations done; the rate of `threads` threads that do
/// it at once, best of kRounds.
template <typename Work>
double measure(int threads, int64_t iterations, Work work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::barrier start(threads);
    std::vector<ThreadRun> runs(static_cast<size_t>(threads));
    std::vector<std::jthread> pool;
    for (ThreadRun& run : runs) {
      pool.emplace_back([&] {
        Buffers buffers;
        start.arrive_and_wait();
        run.begin = Clock::now();
        run.operations = work(iterations, buffers);
        run.end = Clock::now();
      });
    }
    pool.clear();
    // The threads' own clocks: this one may have been woken long after they began.
    ThreadRun whole = runs.front();
    whole.operations = 0;
    for (const ThreadRun& run : runs) {
      whole.begin = std::min(whole.begin, run.begin);
      whole.end = std::max(whole.end, run.end);
      whole.operations += run.operations;
    }
    best = std::max(
        best, whole.operations / std::chrono::duration<double>(whole.end - whole.begin).count());
  }
  return best;
}

/// Iterations of `work` that take about `seconds` on one thread.
template <typename Work>
int64_t calibrate(double seconds, Work work) {
  Buffers buffers;
  int64_t iterations = 64;
  while (true) {
    const auto begin = Clock::now();
    work(iterations, buffers);
    const double taken = seconds_since(begin);
    if (taken > 1e-3) {
      return std::max<int64_t>(
          1, static_cast<int64_t>(static_cast<double>(iterations) * seconds / taken));
    }
    iterations *= 4;
  }
}

template <typename Work>
void measure_both(int threads, double seconds, Work work, double& one, double& all) {
  const int64_t iterations = calibrate(seconds / (2 * kRounds), work);
  one = measure(1, iterations, work) * 1e-9;
  all = threads == 1 ? one : measure(threads, iterations, work) * 1e-9;
}

}  // namespace

CpuCeilings measure_cpu_ceilings(int threads, double seconds) {
  const CpuKernels& kernels = best_cpu_kernels();
  CpuCeilings result;
  result.isa = kernels.isa;
  result.threads = threads > 0 ? threads : usable_cores();
  const bool bf16 = kernels.bf16.spin != nullptr;
  const bool tiles = kernels.tiles.spin != nullptr;
  const double share = seconds / (2 + (bf16 ? 1 : 0) + (tiles ? 2 : 0));
  measure_both(
      result.threads, share,
      [&](int64_t n, Buffers& b) { return kernels.f32.spin(n, b.destination); },
      result.fma_gflops_one_thread, result.fma_gflops);
  measure_both(
      result.threads, share,
      [&](int64_t n, Buffers& b) { return kernels.spin_exp2(n, b.source, b.destination); },
      result.exp_gigaelements_one_thread, result.exp_gigaelements);
  if (bf16) {
    measure_both(
        result.threads, share,
        [&](int64_t n, Buffers& b) { return kernels.bf16.spin(n, b.destination); },
        result.bf16_gflops_one_thread, result.bf16_gflops);
  }
  if (tiles) {
    measure_both(
        result.threads, share,
        [&](int64_t n, Buffers& b) { return kernels.tiles.spin(n, b.destination); },
        result.tile_gflops_one_thread, result.tile_gflops);
    double one_thread = 0;
    measure_both(
        result.threads, share,
        [&](int64_t n, Buffers& b) { return kernels.spin_table_exp2(n, b.source, b.destination); },
        one_thread, result.table_exp_gigaelements);
  }
  return result;
}

}  // namespace attnscope

#include <cstdio>
#include <cstdlib>

#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/kernel_names.h"

namespace attnscope::cuda::emulation {
namespace {

const char* name_of(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::kBarrier:
      return "warp_barrier";
    case WarpOperation::kShuffle:
      return "shuffle";
    case WarpOperation::kAny:
      return "warp_any";
    case WarpOperation::kProduct:
      return "mma_16x8x16";
    case WarpOperation::kLoadMatrix:
      return "load_matrix_x4";
    case WarpOperation::kRegisters:
      return "registers_down or registers_up";
    case WarpOperation::kGroupProducts:
      return "wgmma_wait";
  }
  return "?";
}

std::string text_of(const uint3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

}  // namespace

void BlockRunner::fail(const std::string& what) {
  std::fprintf(stderr, "cuda emulation: kernel %s, block %s, thread %s: %s\n",
               kernel_name(grid_->kernel).c_str(), text_of(blockIdx).c_str(),
               text_of(threadIdx).c_str(), what.c_str());
  std::fflush(stderr);
  std::abort();
}

std::string BlockRunner::where_threads_are() const {
  std::string text;
  std::string previous;
  unsigned begin = 0;
  for (unsigned thread = 0; thread <= num_threads_; ++thread) {
    std::string state;
    if (thread < num_threads_) {
      const Warp& warp = warps_[thread / kWarpSize];
      const std::uint32_t bit = 1u << thread % kWarpSize;
      state = (warp.ended & bit) != 0          ? "have ended"
              : (warp.at_barrier & bit) != 0   ? "wait at block_barrier"
              : (warp.at_operation & bit) != 0 ? std::string("wait at ") + name_of(warp.operation)
              : threads_[thread].polls != nullptr
                  ? std::string("wait for ") + threads_[thread].polls
                  : "run";
    }
    if (thread > 0 && state != previous) {
      text += (text.empty() ? "" : ", ") + ("threads " + std::to_string(begin)) + "-" +
              std::to_string(thread - 1) + " " + previous;
      begin = thread;
    }
    previous = state;
  }
  return text;
}

void BlockRunner::fail_stuck() {
  fail("not all threads reach the same barrier or warp operation: " + where_threads_are());
}

void BlockRunner::fail_mixed(WarpOperation kind) {
  fail(std::string("the thread is at ") + name_of(kind) +
       " while other lanes of its warp are at another operation: " + where_threads_are());
}

}  // namespace attnscope::cuda::emulation

#include <cstring>

#include "tests/cuda/emulation/block_runner.h"
#include "tests/cuda/emulation/guarded_memory.h"

namespace attnscope::cuda::emulation {
namespace {

constexpr std::size_t kCopyBytes = 16;

}  // namespace

void BlockRunner::check_shared(const void* begin, std::size_t bytes, const char* operation) {
  const auto* first = static_cast<const unsigned char*>(begin);
  if (first < shared_ || first + bytes > shared_ + grid_->shared_bytes) {
    fail(std::string(operation) + ": the address is not in the block's shared memory");
  }
  if (reinterpret_cast<std::uintptr_t>(begin) % 16 != 0) {
    fail(std::string(operation) + ": the address in shared memory is not a multiple of 16");
  }
}

void BlockRunner::copy_async(void* target, const void* source, bool valid) {
  check_shared(target, kCopyBytes, "copy_async_16");
  if (reinterpret_cast<std::uintptr_t>(source) % kCopyBytes != 0) {
    fail("copy_async_16: the address in global memory is not a multiple of 16");
  }
  // Until the wait, what was there may be overwritten already and what comes may be missing still.
  std::memset(target, kPoison, kCopyBytes);
  threads_[current_].copies.push_back({target, source, valid});
}

void BlockRunner::commit_copies() {
  Thread& thread = threads_[current_];
  thread.group_ends.push_back(thread.copies.size());
}

void BlockRunner::wait_for_copies(unsigned left) {
  Thread& thread = threads_[current_];
  const std::size_t before = thread.group_ends.size();
  if (left == 0 && thread.copies.size() != (before == 0 ? 0 : thread.group_ends.back())) {
    fail("copy_async_wait<0> with copies that were not committed");
  }
  if (before <= left) {
    return;
  }
  const std::size_t num_groups = before - left;
  const std::size_t num_copies = thread.group_ends[num_groups - 1];
  for (std::size_t i = 0; i < num_copies; ++i) {
    const AsyncCopy& copy = thread.copies[i];
    if (copy.valid) {
      std::memcpy(copy.target, copy.source, kCopyBytes);
    } else {
      std::memset(copy.target, 0, kCopyBytes);
    }
  }
  thread.copies.erase(thread.copies.begin(),
                      thread.copies.begin() + static_cast<std::ptrdiff_t>(num_copies));
  thread.group_ends.erase(thread.group_ends.begin(),
                          thread.group_ends.begin() + static_cast<std::ptrdiff_t>(num_groups));
  for (std::size_t& end : thread.group_ends) {
    end -= num_copies;
  }
}

}  // namespace attnscope::cuda::emulation

#pragma once

#include <cstddef>

namespace attnscope::cuda::emulation {

/// A stack of its own to run on, or the stack of a host thread. Fibers belong to the host thread
/// that made them.
class Fiber {
 public:
  /// The calling host thread's own stack.
  Fiber();
  /// A new stack on which entry runs when the fiber is first switched to; it must never return.
  /// number: staggers stacks, so that those of a block do not compete for the same cache lines.
  Fiber(void (*entry)(), std::size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Leaves from, which must be the running fiber, for to; returns when something switches back.
  static void switch_to(Fiber& from, Fiber& to);

 private:
  static void enter();

  void (*entry_)() = nullptr;
  void* context_ = nullptr;  // the saved stack pointer, or a ucontext_t
  void* mapping_ = nullptr;  // null for a host thread's own stack
  void* stack_ = nullptr;
  std::size_t stack_size_ = 0;
  [[maybe_unused]] void* fake_stack_ = nullptr;
};

}  // namespace attnscope::cuda::emulation

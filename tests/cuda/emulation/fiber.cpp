#include "tests/cuda/emulation/fiber.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#include "tests/cuda/emulation/address_sanitizer.h"

// ATTNSCOPE_FIBER_UCONTEXT: what other processors take, to be tried on this one.
#if defined(__x86_64__) && !defined(ATTNSCOPE_FIBER_UCONTEXT)
#define ATTNSCOPE_FIBER_ASSEMBLY 1
#else
#define ATTNSCOPE_FIBER_ASSEMBLY 0
#include <ucontext.h>
#endif

#if ATTNSCOPE_FIBER_ASSEMBLY
// swapcontext() saves the signal mask, which takes two system calls; a switch at every warp
// operation saves what a function call preserves and nothing else.
asm(R"(
.text
.globl attnscope_switch_stack
.type attnscope_switch_stack, @function
attnscope_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size attnscope_switch_stack, .-attnscope_switch_stack
)");
extern "C" void attnscope_switch_stack(void** saved, void* next);
#endif

namespace attnscope::cuda::emulation {
namespace {

constexpr std::size_t kStackSize = 128 << 10;
constexpr std::size_t kGuardSize = 4 << 10;
constexpr std::size_t kCacheLine = 64;

thread_local Fiber* entering = nullptr;

}  // namespace

Fiber::Fiber() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &stack_, &stack_size_);
    pthread_attr_destroy(&attributes);
  }
#if !ATTNSCOPE_FIBER_ASSEMBLY
  context_ = new ucontext_t;
#endif
}

Fiber::Fiber(void (*entry)(), std::size_t number) : entry_(entry) {
  // Not a power of two apart, for the same reason as the staggering.
  mapping_ = mmap(nullptr, kGuardSize + kStackSize, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    throw std::bad_alloc();
  }
  mprotect(mapping_, kGuardSize, PROT_NONE);
  stack_ = static_cast<char*>(mapping_) + kGuardSize;
  stack_size_ = kStackSize - (number * 5 % 64) * kCacheLine;
#if ATTNSCOPE_FIBER_ASSEMBLY
  // As if a call had led here: six saved registers, the address to return to, and the stack 8 bytes
  // off the 16 that the caller aligned it to.
  auto* top = reinterpret_cast<void**>(static_cast<char*>(stack_) + stack_size_);
  top[-2] = reinterpret_cast<void*>(&Fiber::enter);
  context_ = top - 8;
#else
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack_;
  context->uc_stack.ss_size = stack_size_;
  context->uc_link = nullptr;
  makecontext(context, &Fiber::enter, 0);
  context_ = context;
#endif
}

Fiber::~Fiber() {
#if !ATTNSCOPE_FIBER_ASSEMBLY
  delete static_cast<ucontext_t*>(context_);
#endif
  if (mapping_ != nullptr) {
    // Frames that never returned leave their red zones behind.
    ASAN_UNPOISON_MEMORY_REGION(mapping_, kGuardSize + kStackSize);
    munmap(mapping_, kGuardSize + kStackSize);
  }
}

void Fiber::enter() {
#if ATTNSCOPE_EMULATION_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  entering->entry_();
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  entering = &to;
#if ATTNSCOPE_EMULATION_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_, to.stack_size_);
#endif
#if ATTNSCOPE_FIBER_ASSEMBLY
  attnscope_switch_stack(&from.context_, to.context_);
#else
  swapcontext(static_cast<ucontext_t*>(from.context_), static_cast<ucontext_t*>(to.context_));
#endif
#if ATTNSCOPE_EMULATION_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}

}  // namespace attnscope::cuda::emulation

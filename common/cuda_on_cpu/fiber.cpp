#include "cuda_on_cpu/fiber.hpp"

#include <sys/mman.h>

#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef T2T_RACE_DETECTOR
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void __tsan_read_range(void* address, std::size_t bytes);
void __tsan_write_range(void* address, std::size_t bytes);
}
#endif

#ifndef T2T_UCONTEXT
// Saves the registers that a call must preserve, switches stacks, and returns on the other one.
#ifdef __x86_64__
extern "C" __attribute__((naked, noinline)) void t2t_switch_stack(void** /*from*/, void* /*to*/) {
  asm volatile(
      "pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
      "movq %rsp, (%rdi); movq %rsi, %rsp\n"
      "popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp; ret");
}
#else
extern "C" void t2t_switch_stack(void** from, void* to) asm("t2t_switch_stack");
asm(R"(
  .text
  .p2align 2
t2t_switch_stack:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
)");
#endif
#endif

namespace t2t::stand_in {
namespace {

constexpr std::size_t kStackBytes = 256 * 1024, kGuardBytes = 4096;

#ifdef T2T_UCONTEXT
ucontext_t outside;
#else
void* outside = nullptr;  // the stack pointer of the caller that resumed the running fiber
#endif

#ifdef __SANITIZE_ADDRESS__
void* outside_state = nullptr;
const void* outside_stack = nullptr;
std::size_t outside_bytes = 0;
#endif
#ifdef T2T_RACE_DETECTOR
void* outside_race_state = nullptr;
#endif

}  // namespace

Fiber::Fiber(Entry entry) : entry_(entry) {
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<char*>(memory) + kGuardBytes;
  mprotect(memory, kGuardBytes, PROT_NONE);  // a stack overflow ends the program here
  restart();
}

Fiber::~Fiber() {
#ifdef T2T_RACE_DETECTOR
  __tsan_destroy_fiber(race_state_);
#endif
  munmap(stack_ - kGuardBytes, kStackBytes + kGuardBytes);
}

void Fiber::restart() {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(stack_, kStackBytes);  // frames of calls that never returned
  sanitizer_state_ = nullptr;
#endif
#ifdef T2T_RACE_DETECTOR
  if (race_state_ != nullptr) __tsan_destroy_fiber(race_state_);
  race_state_ = __tsan_create_fiber(0);
#endif
#ifdef T2T_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  makecontext(&context_, entry_, 0);
#elif defined(__aarch64__)
  // A stack as t2t_switch_stack leaves it: 20 registers, of which the second is the return address.
  void** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 20;
  top[1] = reinterpret_cast<void*>(entry_);
  stopped_at_ = top;
#else
  // A stack as t2t_switch_stack leaves it: six registers and a return address, whose place is a
  // multiple of 16, as the calling convention requires.
  void** top = reinterpret_cast<void**>(stack_ + kStackBytes) - 2;
  *top = reinterpret_cast<void*>(entry_);
  stopped_at_ = top - 6;
#endif
}

void Fiber::resume() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&outside_state, stack_, kStackBytes);
#endif
#ifdef T2T_RACE_DETECTOR
  outside_race_state = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(race_state_, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef T2T_UCONTEXT
  swapcontext(&outside, &context_);
#else
  t2t_switch_stack(&outside, stopped_at_);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(outside_state, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(&sanitizer_state_, outside_stack, outside_bytes);
#endif
#ifdef T2T_RACE_DETECTOR
  __tsan_switch_to_fiber(outside_race_state, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef T2T_UCONTEXT
  swapcontext(&context_, &outside);
#else
  t2t_switch_stack(&stopped_at_, outside);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(sanitizer_state_, &outside_stack, &outside_bytes);
#endif
}

void Fiber::entered() {
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &outside_stack, &outside_bytes);
#endif
}

#ifdef T2T_RACE_DETECTOR
void release(void* address) { __tsan_release(address); }
void acquire(void* address) { __tsan_acquire(address); }
Unwatched::Unwatched() {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
Agent::Agent() : fiber_(__tsan_create_fiber(0)) {}
Agent::~Agent() { __tsan_destroy_fiber(fiber_); }
AsAgent::AsAgent(const Agent& agent) : before_(__tsan_get_current_fiber()) {
  __tsan_switch_to_fiber(agent.fiber_, __tsan_switch_to_fiber_no_sync);
}
AsAgent::~AsAgent() { __tsan_switch_to_fiber(before_, __tsan_switch_to_fiber_no_sync); }
void watch_read(const void* address, std::size_t bytes) {
  __tsan_read_range(const_cast<void*>(address), bytes);
}
void watch_write(const void* address, std::size_t bytes) {
  __tsan_write_range(const_cast<void*>(address), bytes);
}
void Unwatched::end() {
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#endif

}  // namespace t2t::stand_in

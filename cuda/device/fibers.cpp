// Switches stacks in nine instructions on x86-64, and with ucontext elsewhere.
#include "cuda/device/fibers.hpp"

#include <cstdint>
#include <new>

#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PW_ASAN_FIBERS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PW_ASAN_FIBERS 1
#endif
#ifdef PW_ASAN_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves the callee-saved registers, stores the stack pointer in *from, and resumes on the other
// stack.
extern "C" void pw_switch_stacks(void** from, void* to);
asm(R"(
.text
.p2align 4
.type pw_switch_stacks, @function
pw_switch_stacks:
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
  ret
.size pw_switch_stacks, .-pw_switch_stacks
)");
#endif

namespace pw::cuda {
namespace {

constexpr std::size_t kStack = std::size_t{1} << 18;  // touched pages alone take memory
thread_local Fibers* running = nullptr;

}  // namespace

struct Fibers::Fiber {
  void* stack = nullptr;
  bool done = false;
#if defined(__x86_64__)
  void* top = nullptr;
#else
  ucontext_t context{};
#endif
#ifdef PW_ASAN_FIBERS
  void* fake = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
#endif
  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    forget();
    if (stack) munmap(stack, kStack);
  }
  /// Makes stack memory usable again that functions which never returned have marked as out of
  /// bounds.
  void forget() {
#ifdef PW_ASAN_FIBERS
    if (stack) __asan_unpoison_memory_region(stack, kStack);
#endif
  }
  void make_stack() {
    if (stack) return;
    stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) {
      stack = nullptr;
      throw std::bad_alloc();
    }
#ifdef PW_ASAN_FIBERS
    bottom = stack, size = kStack;
#endif
  }
  static void change(Fiber& from, Fiber& to, [[maybe_unused]] bool leaves) {
#ifdef PW_ASAN_FIBERS
    __sanitizer_start_switch_fiber(leaves ? nullptr : &from.fake, to.bottom, to.size);
#endif
#if defined(__x86_64__)
    pw_switch_stacks(&from.top, to.top);
#else
    swapcontext(&from.context, &to.context);
#endif
#ifdef PW_ASAN_FIBERS
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(from.fake, &bottom, &size);
    to.bottom = bottom, to.size = size;
#endif
  }
};

Fibers::Fibers() : main_(std::make_unique<Fiber>()) {}
Fibers::~Fibers() = default;

void Fibers::enter() {
  Fibers& self = *running;
  Fiber& own = *self.fibers_[self.current_];
#ifdef PW_ASAN_FIBERS
  const void* bottom = nullptr;
  std::size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  self.main_->bottom = bottom, self.main_->size = size;
#endif
  self.body_(self.current_);
  own.done = true;
  Fiber::change(own, *self.main_, true);
}

void Fibers::start(std::size_t count, std::function<void(std::size_t)> body) {
  body_ = std::move(body);
  while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
  for (std::size_t i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_[i];
    fiber.make_stack();
    fiber.forget();
    fiber.done = false;
#if defined(__x86_64__)
    // Prepares a return to `enter` with the alignment of a call.
    auto* top = reinterpret_cast<void**>(static_cast<char*>(fiber.stack) + kStack);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&Fibers::enter);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
    fiber.top = top;
#else
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &Fibers::enter, 0);
#endif
  }
}

void Fibers::resume(std::size_t i) {
  Fibers* const before = running;
  running = this;
  current_ = i;
  inside_ = true;
  Fiber::change(*main_, *fibers_[i], false);
  inside_ = false;
  running = before;
}

void Fibers::pause() { Fiber::change(*fibers_[current_], *main_, false); }

bool Fibers::ended(std::size_t i) const { return fibers_[i]->done; }

}  // namespace pw::cuda

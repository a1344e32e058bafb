// Fibers: coroutines with separate stacks, scheduled cooperatively on one thread. In the emulator a
// fiber is a thread of a block.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace pw::cuda {

class Fibers {
 public:
  Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers();

  /// Creates `count` fibers that will call `body` with their number. The stacks of earlier fibers
  /// are discarded without unwinding.
  void start(std::size_t count, std::function<void(std::size_t)> body);
  /// Runs fiber i until it pauses or ends. Must not be called from a fiber.
  void resume(std::size_t i);
  /// Returns from the running fiber to its caller.
  void pause();
  [[nodiscard]] std::size_t current() const { return current_; }
  /// Returns true while a fiber runs.
  [[nodiscard]] bool inside() const { return inside_; }
  [[nodiscard]] bool ended(std::size_t i) const;

 private:
  struct Fiber;
  static void enter();
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Fiber> main_;
  std::function<void(std::size_t)> body_;
  std::size_t current_ = 0;
  bool inside_ = false;
};

}  // namespace pw::cuda

// Fibers: coroutines on stacks of their own, scheduled cooperatively on one thread. In the
// emulation of kernels a fiber is a thread of a block.
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

  /// Makes `count` fibers that will call `body` with their number. What earlier ones left on their
  /// stacks is forgotten, not unwound.
  void start(std::size_t count, std::function<void(std::size_t)> body);
  /// Runs fiber i until it pauses or ends. Not from a fiber.
  void resume(std::size_t i);
  /// From the running fiber, back to who resumed it.
  void pause();
  [[nodiscard]] std::size_t current() const { return current_; }
  /// Whether a fiber runs.
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

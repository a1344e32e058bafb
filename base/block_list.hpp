// A stack that does not move its elements when it grows.
#pragma once

#include <cstddef>
#include <vector>

namespace pw {

/// Stack stored in blocks of about 64 KiB. Unlike a vector, a push never moves existing elements;
/// unlike a deque, whose blocks hold half a KiB, it allocates once in thousands of pushes.
template <class T>
class BlockList {
 public:
  [[nodiscard]] bool empty() const { return blocks_.empty(); }
  [[nodiscard]] std::size_t size() const {
    return empty() ? 0 : (blocks_.size() - 1) * kBlock + blocks_.back().size();
  }
  /// Returns the last element. The list must not be empty.
  [[nodiscard]] const T& back() const { return blocks_.back().back(); }
  void push_back(const T& element) {
    if (empty() || blocks_.back().size() == kBlock) blocks_.emplace_back().reserve(kBlock);
    blocks_.back().push_back(element);
  }
  /// Removes the last element. The list must not be empty.
  void pop_back() {
    blocks_.back().pop_back();
    if (blocks_.back().empty()) blocks_.pop_back();
  }
  void clear() { blocks_.clear(); }

 private:
  static constexpr std::size_t kBlock = std::size_t{64} * 1024 / sizeof(T);

  std::vector<std::vector<T>> blocks_;  // none of them empty
};

}  // namespace pw

// A vector of trivially copyable elements that grows and shrinks in place where possible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace pw {

/// Vector of trivially copyable elements that resizes its block with realloc, where a std::vector
/// allocates a new one and touches all of it. For a large block Linux then moves pages instead of
/// copying them (mremap(2)). References stay valid as a vector's do.
template <class T>
class TrivialArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  TrivialArray() = default;
  /// Copies the elements into a block of exactly their size.
  TrivialArray(const TrivialArray& other) {
    set_capacity(other.size_);
    size_ = other.size_;
    std::copy_n(other.data(), size_, data());
  }
  TrivialArray(TrivialArray&& other) noexcept { swap(other); }
  TrivialArray& operator=(const TrivialArray& other) {
    if (this != &other) *this = TrivialArray(other);
    return *this;
  }
  TrivialArray& operator=(TrivialArray&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TrivialArray() = default;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] T* data() { return block_.get(); }
  [[nodiscard]] const T* data() const { return block_.get(); }
  [[nodiscard]] T& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data()[i]; }

  void push_back(const T& element) {
    const T copy = element;  // it may be one of this array's
    std::construct_at(room_for(1), copy);
    ++size_;
  }
  /// Returns space for `count` further elements; the caller writes some and then states how many.
  [[nodiscard]] T* room_for(std::size_t count) {
    if (size_ + count > capacity_)
      set_capacity(std::max<std::size_t>({16, size_ + count, capacity_ + capacity_ / 2}));
    return data() + size_;
  }
  void add(std::size_t count) { size_ += count; }
  void reserve(std::size_t capacity) {
    if (capacity > capacity_) set_capacity(capacity);
  }
  /// Shrinks to fewer elements.
  void cut(std::size_t size) { size_ = std::min(size_, size); }
  /// Sets the capacity, at least to the number of elements.
  void fit(std::size_t capacity) { set_capacity(std::max(capacity, size_)); }

 private:
  struct Free {
    void operator()(T* block) const { std::free(block); }
  };

  void swap(TrivialArray& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  void set_capacity(std::size_t capacity) {
    if (capacity == capacity_) return;
    constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T);
    if (capacity > kMost) throw std::bad_alloc();
    void* const block =
        capacity == 0 ? nullptr : std::realloc(static_cast<void*>(data()), capacity * sizeof(T));
    if (capacity != 0) {
      if (block == nullptr) throw std::bad_alloc();
      (void)block_.release();  // realloc has freed it, or made it larger
    }
    block_.reset(static_cast<T*>(block));
    capacity_ = capacity;
  }

  std::unique_ptr<T, Free> block_;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace pw

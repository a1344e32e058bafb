// Strong 32-bit ids and vectors indexed by them. A container owns; everybody else holds ids.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace pw {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t index = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}

  [[nodiscard]] constexpr bool valid() const { return index != kNone; }
  constexpr explicit operator bool() const { return valid(); }
  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// Vector indexed by an id, so that indices of different kinds cannot be mixed up.
template <class I, class T>
class IdVec {
 public:
  IdVec() = default;
  explicit IdVec(std::size_t n, const T& value = T()) : items_(n, value) {}

  [[nodiscard]] decltype(auto) operator[](I id) { return items_[id.index]; }
  [[nodiscard]] decltype(auto) operator[](I id) const { return items_[id.index]; }
  I push_back(T value) {
    items_.push_back(std::move(value));
    return I(items_.size() - 1);
  }
  void resize(std::size_t n, const T& value = T()) { items_.resize(n, value); }
  void reserve(std::size_t n) { items_.reserve(n); }
  void shrink() { items_.shrink_to_fit(); }
  void pop_back() { items_.pop_back(); }
  [[nodiscard]] decltype(auto) back() { return items_.back(); }
  [[nodiscard]] decltype(auto) back() const { return items_.back(); }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] std::size_t capacity() const { return items_.capacity(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] bool contains(I id) const { return id.index < items_.size(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }
  [[nodiscard]] const std::vector<T>& raw() const { return items_; }

 private:
  std::vector<T> items_;
};

}  // namespace pw

template <class Tag>
struct std::hash<pw::Id<Tag>> {
  std::size_t operator()(pw::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>{}(id.index);
  }
};

// Table of bindings, in the order in which names were first bound.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "base/hash_index.hpp"

namespace pw::fx {

/// Table of values by name. A bound value stays in place for the life of the table.
template <class T>
class BoundNames {
 public:
  struct Bound {
    std::string name;
    T value;
  };

  /// Returns the value, or null if the name is not bound.
  [[nodiscard]] T* find(std::string_view name) {
    const std::uint32_t at = place(name);
    return at == HashIndex::kNone ? nullptr : &bound_[at].value;
  }
  [[nodiscard]] const T* find(std::string_view name) const {
    const std::uint32_t at = place(name);
    return at == HashIndex::kNone ? nullptr : &bound_[at].value;
  }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  T& operator[](std::string_view name) {
    if (T* found = find(name)) return *found;
    index_.insert(hash(name), static_cast<std::uint32_t>(bound_.size()));
    return bound_.emplace_back(Bound{std::string(name), T()}).value;
  }
  [[nodiscard]] auto begin() { return bound_.begin(); }
  [[nodiscard]] auto end() { return bound_.end(); }
  [[nodiscard]] auto begin() const { return bound_.begin(); }
  [[nodiscard]] auto end() const { return bound_.end(); }

 private:
  static std::uint64_t hash(std::string_view name) { return std::hash<std::string_view>()(name); }
  [[nodiscard]] std::uint32_t place(std::string_view name) const {
    return index_.find(hash(name), [&](std::uint32_t i) { return bound_[i].name == name; });
  }

  std::deque<Bound> bound_;
  HashIndex index_;
};

}  // namespace pw::fx

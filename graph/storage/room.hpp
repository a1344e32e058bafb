// Capacity of the arrays of a graph.
#pragma once

#include <cstddef>
#include <utility>

namespace pw {

/// Returns the capacity for an array of this size, with space for what rewriting adds. Untouched
/// memory is not resident, and arrays that do not move are not copied.
[[nodiscard]] inline std::size_t with_room(std::size_t size) { return size + size / 2; }

/// Gives an array exactly that capacity.
template <class Array>
void fit_with_room(Array& array) {
  if (array.capacity() == with_room(array.size())) return;
  Array exact;
  exact.reserve(with_room(array.size()));
  for (auto& item : array) exact.push_back(std::move(item));
  array = std::move(exact);
}

}  // namespace pw

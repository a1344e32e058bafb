// Disjoint sets of numbers, by trees with path halving (Tarjan & van Leeuwen 1984).
#pragma once

#include <algorithm>
#include <vector>

namespace pw {

template <class Index>
class UnionFind {
 public:
  /// Creates the sets {0}, {1}, …
  explicit UnionFind(std::size_t size = 0) { grow(size); }

  void grow(std::size_t size) {
    for (std::size_t i = parent_.size(); i < size; ++i) parent_.push_back(static_cast<Index>(i));
  }
  [[nodiscard]] std::size_t size() const { return parent_.size(); }
  /// Returns the least member of the set.
  [[nodiscard]] Index root(Index i) const {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(Index a, Index b) {
    a = root(a), b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  mutable std::vector<Index> parent_;
};

}  // namespace pw

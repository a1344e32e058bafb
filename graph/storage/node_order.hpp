// The order list of a graph's nodes: two of them are compared in constant time.
//
// Order maintenance (Dietz & Sleator 1987), by the simplified algorithm of Bender et al. (2002):
// nodes form a linked list, and each has a 64-bit tag that rises along it. An insertion takes a tag
// between its neighbours' tags. If there is none, the tags of the smallest aligned range that is
// sparse enough are spread evenly, amortised O(log n).
#pragma once

#include <cstdint>

#include "base/id.hpp"

namespace pw {

using NodeId = Id<struct NodeTag>;

class NodeOrder {
 public:
  [[nodiscard]] NodeId first() const { return head_; }
  [[nodiscard]] NodeId last() const { return tail_; }
  [[nodiscard]] NodeId next(NodeId n) const { return places_[n].next; }
  [[nodiscard]] NodeId previous(NodeId n) const { return places_[n].previous; }
  [[nodiscard]] std::uint64_t label(NodeId n) const { return places_[n].label; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Returns how often labels other than that of a linked node changed.
  [[nodiscard]] std::uint64_t renumberings() const { return renumberings_; }

  /// Adds a node, which is not linked yet.
  void add() { places_.push_back({}); }
  /// Links a node before another; an invalid one is the end. A node keeps its label if that is
  /// still between those of its neighbours.
  void link(NodeId n, NodeId before);
  /// Unlinks a node, which keeps its label and neighbours.
  void unlink(NodeId n);

  void reserve(std::size_t nodes) { places_.reserve(nodes); }
  void expect(std::size_t more);  ///< nodes, with room
  void fit();
  [[nodiscard]] std::size_t bytes() const { return places_.size() * sizeof(Place); }

 private:
  struct Place {
    NodeId previous, next;
    std::uint64_t label = 0;
  };
  static_assert(sizeof(Place) == 16);

  void relabel_around(NodeId n);
  void relabel(NodeId first, std::size_t count, std::uint64_t base, std::uint64_t step);

  IdVec<NodeId, Place> places_;
  NodeId head_, tail_;
  std::size_t size_ = 0;  // linked nodes
  std::uint64_t renumberings_ = 0;
};

}  // namespace pw

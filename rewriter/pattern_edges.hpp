// Which ops the patterns of a pass connect: a node that reads another, or two that read one value.
// A match that holds a node is found from it along such edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

class PatternEdges {
 public:
  PatternEdges() : PatternEdges(std::span<const Rule* const>()) {}
  explicit PatternEdges(std::span<const Rule* const> rules);
  /// Whether some pattern has a `user` that reads a `producer`.
  [[nodiscard]] bool reads(OpId producer, OpId user) const {
    return (edges_[place(producer) * width_ + place(user)] & kReads) != 0;
  }
  /// Whether some pattern has two such nodes that read one value.
  [[nodiscard]] bool share(OpId a, OpId b) const {
    return (edges_[place(a) * width_ + place(b)] & kShare) != 0;
  }
  [[nodiscard]] bool is_read(OpId op) const { return (any_[place(op)] & kReads) != 0; }
  [[nodiscard]] bool shares(OpId op) const { return (any_[place(op)] & kShare) != 0; }
  /// Edges between the two nodes of a match that are farthest apart, at most.
  [[nodiscard]] std::size_t reach() const { return reach_; }

 private:
  static constexpr std::uint8_t kReads = 1, kShare = 2;
  [[nodiscard]] std::size_t place(OpId op) const {
    return op.index < places_.size() ? places_[op.index] : 0;
  }
  void set(OpId from, OpId to, std::uint8_t edge);
  std::vector<std::uint32_t> places_;      // by op; 0: in no pattern
  std::size_t width_ = 1;                  // places
  std::vector<std::uint8_t> edges_, any_;  // by two places; by place: of its edges to others
  std::size_t reach_ = 0;
};

}  // namespace pw

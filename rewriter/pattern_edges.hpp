// Which ops the patterns of a pass connect: a node that reads another, or two that read one value.
// A match that holds a node is found from it along such edges.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

class PatternEdges {
 public:
  void add(const Rule& rule);
  /// Whether some pattern has a `user` that reads a `producer`.
  [[nodiscard]] bool reads(OpId producer, OpId user) const {
    return reads_.contains(key(producer, user));
  }
  /// Whether some pattern has two such nodes that read one value.
  [[nodiscard]] bool share(OpId a, OpId b) const { return share_.contains(key(a, b)); }
  [[nodiscard]] bool is_read(OpId op) const { return is(read_, op); }
  [[nodiscard]] bool shares(OpId op) const { return is(shares_, op); }
  /// Edges between the two nodes of a match that are farthest apart, at most.
  [[nodiscard]] std::size_t reach() const { return reach_; }

 private:
  static std::uint64_t key(OpId a, OpId b) { return std::uint64_t{a.index} << 32 | b.index; }
  [[nodiscard]] static bool is(const std::vector<char>& list, OpId op) {
    return op.index < list.size() && list[op.index] != 0;
  }
  static void set(std::vector<char>& list, OpId op);
  std::unordered_set<std::uint64_t> reads_, share_;
  std::vector<char> read_, shares_;  // by op
  std::size_t reach_ = 0;
};

}  // namespace pw

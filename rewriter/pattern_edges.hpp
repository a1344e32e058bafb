// Which ops the patterns of a pass connect: a node that reads another, or two that read one value.
// A match that holds a node is found from it along such edges.
#pragma once

#include <cstdint>
#include <vector>

#include "dsl/ruleset.hpp"

namespace pw {

class PatternEdges {
 public:
  void add(const Rule& rule);
  /// Whether some pattern has a `user` that reads a `producer`.
  [[nodiscard]] bool reads(OpId producer, OpId user) const {
    return is(reads_, place(producer), place(user));
  }
  /// Whether some pattern has two such nodes that read one value.
  [[nodiscard]] bool share(OpId a, OpId b) const { return is(share_, place(a), place(b)); }
  [[nodiscard]] bool is_read(OpId op) const { return !reads_[place(op)].empty(); }
  [[nodiscard]] bool shares(OpId op) const { return !share_[place(op)].empty(); }
  /// Edges between the two nodes of a match that are farthest apart, at most.
  [[nodiscard]] std::size_t reach() const { return reach_; }

 private:
  using Rows = std::vector<std::vector<char>>;
  [[nodiscard]] std::size_t place(OpId op) const {
    return op.index < places_.size() ? places_[op.index] : 0;
  }
  [[nodiscard]] static bool is(const Rows& rows, std::size_t row, std::size_t column) {
    return column < rows[row].size() && rows[row][column] != 0;
  }
  std::size_t add_place(OpId op);
  static void set(Rows& rows, std::size_t row, std::size_t column);
  std::vector<std::uint32_t> places_;       // by op; 0: in no pattern
  Rows reads_ = Rows(1), share_ = Rows(1);  // by place; a row is as long as it has to be
  std::size_t reach_ = 0;
};

}  // namespace pw

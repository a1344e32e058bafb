// Equality of a graph's values: a union-find closed under congruence (equal ops of equal operands
// have equal results; Nelson & Oppen 1980). The graph itself holds all forms found so far.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

class EGraph {
 public:
  explicit EGraph(const Graph& graph) : graph_(graph) {}

  /// Returns the representative of all values equal to it.
  [[nodiscard]] ValueId find(ValueId v) const;
  [[nodiscard]] bool same(ValueId a, ValueId b) const { return a == b || find(a) == find(b); }
  /// Merges two classes. Returns false if they are equal already, or of different types.
  bool merge(ValueId a, ValueId b);
  /// Closes under congruence, and chooses the oldest node as the representative of each form.
  void close();
  /// Returns one node of each form, in order, as of the last close().
  [[nodiscard]] const std::vector<NodeId>& forms() const { return forms_; }
  [[nodiscard]] bool is_form(NodeId n) const {
    return n.index < is_form_.size() && is_form_[n.index];
  }
  /// Returns a node that applies the same op to equal operands, as far as the last close() and
  /// add() have recorded it.
  [[nodiscard]] std::optional<NodeId> known(NodeId n) const;
  /// Adds a form that was not known(). It counts as one from now on, and is in forms() after
  /// close().
  void add(NodeId n);
  [[nodiscard]] std::size_t size() const { return known_.size(); }
  /// Returns the values equal to it, itself included, in the order of their ids.
  [[nodiscard]] std::vector<ValueId> members(ValueId v) const;
  /// Returns the nodes that compute it, one of each form.
  [[nodiscard]] std::vector<NodeId> producers(ValueId v) const;
  /// Returns the values that were merged with another since the last call, and clears the list.
  std::vector<ValueId> take_merged() { return std::exchange(merged_, {}); }

 private:
  using Form = std::vector<std::uint32_t>;
  struct Hash {
    std::size_t operator()(const Form& form) const;
  };
  [[nodiscard]] Form form_of(NodeId n) const;

  const Graph& graph_;
  mutable std::vector<std::uint32_t> parent_;  // by value; grows with the graph
  std::unordered_map<std::uint32_t, std::vector<ValueId>> members_;  // looked up only
  std::vector<NodeId> forms_;
  std::vector<bool> is_form_;
  std::unordered_map<Form, NodeId, Hash> known_;  // looked up only
  std::vector<ValueId> merged_;
};

}  // namespace pw

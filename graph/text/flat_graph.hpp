// Flat form of a graph for comparing two graphs: inputs, then nodes in order, numbered from 0, with
// the edges in both directions in arrays. A snapshot: the graph must not change meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

inline constexpr std::uint32_t kNoItem = 0xffffffffu;

/// One result of an item; kNoItem for an absent operand.
struct ItemResult {
  std::uint32_t item = kNoItem, result = 0;
  friend bool operator==(const ItemResult&, const ItemResult&) = default;
};
/// Reader of a result: an operand slot of an item, or, with kNoItem, an output of the graph.
struct ItemUse {
  std::uint32_t user = kNoItem, slot = 0, result = 0;
};

class FlatGraph {
 public:
  explicit FlatGraph(const Graph& graph);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(names_.size()); }
  [[nodiscard]] std::uint32_t inputs() const { return inputs_; }
  [[nodiscard]] bool is_input(std::uint32_t item) const { return item < inputs_; }
  [[nodiscard]] ValueId input(std::uint32_t item) const { return graph_.inputs()[item]; }
  [[nodiscard]] NodeId node(std::uint32_t item) const { return nodes_[item - inputs_]; }
  [[nodiscard]] std::string_view name(std::uint32_t item) const { return names_[item]; }
  [[nodiscard]] ItemResult of(ValueId value) const;
  [[nodiscard]] std::span<const ItemResult> operands(std::uint32_t item) const {
    return {operands_.data() + first_operand_[item], operands_.data() + first_operand_[item + 1]};
  }
  [[nodiscard]] std::span<const ItemUse> uses(std::uint32_t item) const {
    return {uses_.data() + first_use_[item], uses_.data() + first_use_[item + 1]};
  }
  /// Returns a hash of op, attributes and types; for an input of its declaration. Comparable
  /// between graphs of one context.
  [[nodiscard]] std::uint64_t label(std::uint32_t item) const;
  /// Returns a hash of the op alone.
  [[nodiscard]] std::uint64_t weak_label(std::uint32_t item) const;

 private:
  void number();
  void link();

  const Graph& graph_;
  std::uint32_t inputs_ = 0;
  std::vector<NodeId> nodes_;
  std::vector<std::string_view> names_;
  std::vector<std::uint32_t> item_of_node_, item_of_input_;  ///< by node id, by value id
  std::vector<std::uint32_t> first_operand_, first_use_;
  std::vector<ItemResult> operands_;
  std::vector<ItemUse> uses_;
};

}  // namespace pw

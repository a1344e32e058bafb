// Extraction: the cheapest graph among equal forms, and how far it may be from the best.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "rewriter/egraph/egraph.hpp"
#include "rewriter/extract/egraph_file.hpp"

namespace pw {

struct Extraction {
  std::map<ValueId, ValueId> chosen;  ///< representative → the value computed for it
  std::vector<NodeId> nodes;          ///< all that are needed, operands before users
  std::int64_t cost = 0;
  std::int64_t bound = 0;  ///< no graph among the forms costs less
  bool exact = false;      ///< nor has one of the same cost fewer nodes
  double ways = 0;         ///< decimal logarithm of the number of ways to choose
  std::size_t parts = 0, like_parts = 0;
};

/// The forms of a graph as an extraction problem; a node that is needed twice counts once.
class Extracting {
 public:
  Extracting(const Graph& graph, const EGraph& equal,
             const std::function<std::int64_t(NodeId)>& cost);
  /// Extracts the cheapest graph. Nothing if some output can only be computed from itself. Never
  /// costs more than any of the graphs in `known`, given by their nodes.
  std::optional<Extraction> run(const std::vector<std::vector<NodeId>>& known);
  /// Returns the problem with names and its original costs.
  [[nodiscard]] extract::NamedProblem named() const;

 private:
  extract::ClassIndex class_of(ValueId v);
  void add(NodeId n);
  void add_value(ValueId value, double cost, std::vector<extract::ClassIndex> children);
  [[nodiscard]] extract::Choice choice_of(const std::vector<NodeId>& nodes) const;
  [[nodiscard]] std::int64_t least_cost(double bound) const;

  const Graph& graph_;
  const EGraph& equal_;
  double least_;           // what a unit of cost counts, in nodes
  std::int64_t unit_ = 0;  // all costs are multiples of it
  std::map<NodeId, std::int64_t> costs_;
  extract::Problem problem_;
  std::vector<ValueId> values_;  // by node of the problem; invalid: of several results
  std::vector<NodeId> origins_;  // by node of the problem; invalid: an input
  std::map<ValueId, extract::ClassIndex> classes_;
  std::map<ValueId, extract::NodeIndex> indices_;
  std::map<NodeId, extract::NodeIndex> whole_;
};

}  // namespace pw

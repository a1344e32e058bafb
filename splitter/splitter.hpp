// Cuts a graph at splitting ops into pieces, and folds structurally equal pieces into classes. It
// has no side effects and no device code.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"

namespace pw {

using PieceId = Id<struct PieceTag>;
using PieceClassId = Id<struct PieceClassTag>;

struct Piece {
  std::string name;             ///< "piece_0"
  bool splitting = false;       ///< contains splitting ops: runs eagerly and is never captured
  std::vector<NodeId> nodes;    ///< of the source graph, in order
  std::vector<ValueId> inputs;  ///< source-graph values read from outside, in first-use order
  std::vector<ValueId>
      outputs;  ///< source-graph values used outside or returned, in definition order
  PieceClassId piece_class;
  Graph graph;  ///< the piece as a graph of its own; inputs and outputs in the orders above
  /// The op that makes a non-splitting piece eager: it has no kernel, or must not be captured.
  std::string host_op = {};
  [[nodiscard]] bool capturable() const { return !splitting && host_op.empty(); }
};

struct PieceClass {
  std::string name;        ///< "class_0"
  std::uint64_t hash = 0;  ///< canonical: layer names, weights and value names abstracted
  bool splitting = false;
  std::vector<PieceId> members;  ///< in order; the first represents all
  std::string host_op = {};      ///< see Piece
  [[nodiscard]] bool capturable() const { return !splitting && host_op.empty(); }
};

struct StitchedGraph {
  Graph stitch;  ///< calls piece_0, piece_1, … as opaque ops in order
  IdVec<PieceId, Piece> pieces;
  IdVec<PieceClassId, PieceClass> classes;
  [[nodiscard]] std::size_t capturable() const;  ///< pieces
  [[nodiscard]] std::size_t capturable_classes() const;
};

struct SplitOptions {
  std::vector<std::string>
      at;  ///< op names in addition to the ops with trait `splitting` and the rules' `split`
  bool fold = true;  ///< --fold none: every piece its own class
  /// Returns true if the backend has a kernel for an op without a body. Empty: true for all ops but
  /// imported ones.
  std::function<bool(const Op&)> has_kernel = {};
};

/// Returns the splitting ops: those with the trait `splitting`, the rule set's `split` items whose
/// `when` holds, and options.at.
Result<std::vector<OpId>> splitting_ops(const ContextPtr& context, const RuleSet* rules,
                                        const Env& params, const SplitOptions& options);
Result<StitchedGraph> split(const Graph& graph, const std::vector<OpId>& splitting,
                            const SplitOptions& options = {});

}  // namespace pw

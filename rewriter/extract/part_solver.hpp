// Solves one part: prices give a bound and initial choices, then branch and bound runs on the open
// nodes, in windows around the best choice if the whole is too large.
#pragma once

#include "rewriter/extract/branch.hpp"
#include "rewriter/extract/solve.hpp"

namespace pw::extract {

struct PartAnswer {
  Choice choice;
  double cost = 0, bound = 0;
};

class PartSolver {
 public:
  /// Creates a solver. `known` may have classes without a node; those get the node by which they
  /// were derived.
  PartSolver(const Problem& problem, const std::vector<Choice>& known, const Limits& limits);

  /// Returns true if the best choice is proved optimal.
  [[nodiscard]] bool closed() const;
  /// Returns the problem without the nodes that no better choice contains; nothing if none can be
  /// excluded.
  [[nodiscard]] std::optional<Problem> narrowed() const;
  /// Searches until the best choice is proved optimal or the steps are spent.
  void search(std::uint64_t& steps);
  /// Adds a choice, or a bound, found elsewhere.
  void learn(const Choice& choice);
  void learn_bound(double bound);
  [[nodiscard]] const PartAnswer& answer() const { return best_; }

 private:
  [[nodiscard]] bool may_be_better(NodeIndex n) const;
  void search_windows(std::uint64_t& steps, std::uint64_t keep);
  std::vector<ClassIndex> window_at(ClassIndex first, std::size_t size) const;
  [[nodiscard]] Search in_window(const std::vector<ClassIndex>& window) const;
  [[nodiscard]] std::vector<NodeIndex> open_nodes(ClassIndex c) const;

  const Problem& problem_;
  Network network_;
  Prices prices_;
  PartAnswer best_;
  std::vector<bool> needed_;         ///< by class: needed by the best choice
  std::vector<NodeIndex> cheapest_;  ///< by class: by price, among those in order of derivation
};

}  // namespace pw::extract

// One part at a time: prices for a bound and for choices to begin with, then branch and bound on
// what they leave open, in windows around the best choice where the whole is too large.
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
  /// `known` may have classes without a node; those get the node by which they were derived.
  PartSolver(const Problem& problem, const std::vector<Choice>& known, const Limits& limits);

  /// Whether the best choice is known to be optimal.
  [[nodiscard]] bool closed() const;
  /// The problem without the nodes that no better choice has; nothing where all might be.
  [[nodiscard]] std::optional<Problem> narrowed() const;
  /// Searches until it is closed or the steps are spent.
  void search(std::uint64_t& steps);
  /// A choice, or a bound, from elsewhere.
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
  std::vector<bool> needed_;         ///< by class: by the best choice
  std::vector<NodeIndex> cheapest_;  ///< by class: by price, among those in order of derivation
};

}  // namespace pw::extract

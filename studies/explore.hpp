// Which order of the passes is best, and why: all orders on one graph, what they cost, and which
// rule took the nodes of which.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/table.hpp"
#include "studies/explore_space.hpp"

namespace pw {

/// All orders under one setting.
struct ExploredSetting {
  std::string name;  ///< empty: as written
  OrderResults results;
  std::vector<Theft> thefts;
  std::vector<std::vector<double>> costs;  ///< by end, in the order of the objectives
  std::vector<std::size_t> ranked;         ///< ends, the best first
  std::vector<std::size_t> front;          ///< ends that no other beats in all objectives
};

struct Exploration {
  std::vector<std::string> passes;  ///< as they are called
  std::vector<Objective> by;
  std::vector<ExploredSetting> settings;
  std::vector<std::string> left_out;  ///< settings that would be a circle of precedence
  /// A pipeline in the best order, and the precedence that it needs; empty where the written ones
  /// are the best.
  std::string suggestion;
  [[nodiscard]] std::uint64_t orders() const;
  [[nodiscard]] std::size_t graphs() const;  ///< that orders end with, each setting's by itself
  [[nodiscard]] std::size_t runs() const;    ///< of a pass
  /// Returns true if passes were left out of the orders, or run as one: there are more than 16.
  [[nodiscard]] bool grouped() const;
};

/// PW1114 for more than can be looked at, and for a sample, which is a study's.
Result<Exploration> explore(const Graph& graph, const LoadedRules& rules,
                            const ExploreRequest& request, const Log& log);

/// Values that none other beats in every one.
[[nodiscard]] std::vector<std::size_t> pareto_of(const std::vector<std::vector<double>>& costs);
/// `pipeline best_order { … }`.
[[nodiscard]] std::string pipeline_text(const std::vector<std::string>& passes);
/// A cost as tables show it.
[[nodiscard]] Cell cost_cell(Objective objective, double value);

/// `ends`: a row an end graph, the best first, at most so many of a setting; `thefts`: a row for
/// each rule that takes nodes of another's matches; `pairs`: a row for each two passes whose order
/// makes a difference; `groups`, where passes were grouped; `settings`, where there are several;
/// `orders`, `graphs`, `runs`, `suggestion`.
[[nodiscard]] Answer explore_answer(const Exploration& found, std::size_t most);

}  // namespace pw

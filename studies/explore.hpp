// Explores all orders of a graph's passes: their costs, and which rules consume nodes of others'
// matches.
#pragma once

#include <string>
#include <vector>

#include "pipeline/report/table.hpp"
#include "studies/explore_space.hpp"

namespace pw {

/// The results of all orders under one setting.
struct ExploredSetting {
  std::string name;  ///< empty for the written rules
  OrderResults results;
  std::vector<Theft> thefts;
  std::vector<std::vector<double>> costs;  ///< by end graph, in the order of the objectives
  std::vector<std::size_t> ranked;         ///< end graphs, best first
  std::vector<std::size_t> front;          ///< Pareto-optimal end graphs
};

struct Exploration {
  std::vector<std::string> passes;  ///< display names
  std::vector<Objective> by;
  std::vector<ExploredSetting> settings;
  std::vector<std::string> left_out;  ///< settings with cyclic precedence
  /// A pipeline in the best order with the precedence that it needs; empty if the written order is
  /// the best.
  std::string suggestion;
  [[nodiscard]] std::uint64_t orders() const;
  [[nodiscard]] std::size_t graphs() const;  ///< number of end graphs, over all settings
  [[nodiscard]] std::size_t runs() const;    ///< number of pass runs
  /// Returns true if passes were left out of the orders, or run as one: there are more than 16.
  [[nodiscard]] bool grouped() const;
};

/// Fails with PW1114 if the space is too large, or for a sample, which requires a study.
Result<Exploration> explore(const Graph& graph, const LoadedRules& rules,
                            const ExploreRequest& request, const Log& log);

/// Returns the indices of the Pareto-optimal vectors.
[[nodiscard]] std::vector<std::size_t> pareto_of(const std::vector<std::vector<double>>& costs);
/// Returns `pipeline best_order { … }`.
[[nodiscard]] std::string pipeline_text(const std::vector<std::string>& passes);
/// Formats a cost for tables.
[[nodiscard]] Cell cost_cell(Objective objective, double value);

/// Returns the tables `ends` (one row for each end graph, best first, at most `most` for each
/// setting), `thefts` (rules that consume nodes of another's matches), and `pairs` (pairs of passes
/// whose order matters). Also `groups` if passes were grouped, `settings` if there are several,
/// `orders`, `graphs`, `runs`, and `suggestion`.
[[nodiscard]] Answer explore_answer(const Exploration& found, std::size_t most);

}  // namespace pw

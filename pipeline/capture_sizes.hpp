// Chooses capture sizes from a histogram of token counts, a cost model, and a budget.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/plan.hpp"
#include "pipeline/report/table.hpp"
#include "splitter/histogram.hpp"
#include "splitter/step_cost.hpp"
#include "viz/frontier.hpp"

namespace pw {

struct SizesRequest {
  PlanRequest plan;
  std::string times;  ///< file with measured seconds of captured steps; a roofline model if empty
  std::size_t graphs = 24;   ///< maximum number of captured graphs
  double graph_seconds = 0;  ///< seconds that a captured size must save over all steps
};

/// Step times of a planned graph.
class StepTimes {
 public:
  StepTimes(StepCost model, std::vector<std::pair<std::int64_t, double>> measured)
      : model_(std::move(model)), measured_(std::move(measured)) {}
  [[nodiscard]] double captured(std::int64_t tokens) const;
  /// Returns the seconds of an eager step. Savings from capture always come from the model, even
  /// with measured times.
  [[nodiscard]] double eager(std::int64_t tokens) const;

 private:
  StepCost model_;
  std::vector<std::pair<std::int64_t, double>> measured_;
};

/// A graph with the plan from which sizes are chosen.
struct SizedGraph {
  Plan plan;
  StepTimes times;
};
/// Fails with PW1432 for a static graph, PW1433 if nothing is captured.
Result<SizedGraph> size_graph(const CutGraph& cut, const SizesRequest& request, const Log& log);

/// A set of sizes, and the cost of serving the histogram with it.
struct SizeSet {
  std::vector<std::int64_t> sizes;
  std::string mark;         ///< chosen, default or empty
  double step_seconds = 0;  ///< average
  /// Percentages: time above that of one graph for every occurring count, rows that are padding,
  /// steps that are not captured.
  double above_least = 0, padding = 0, uncaptured = 0;
  double drawn_above =
      0;  ///< above_least if larger steps are assumed to be at least as slow as smaller ones
};
struct SizeChoice {
  std::string traffic;
  std::vector<SizeSet> sets;  ///< the Pareto front by number of graphs, then the default sizes
  [[nodiscard]] std::vector<std::int64_t> chosen() const;
  [[nodiscard]] FrontierCurve curve() const;
};
/// Chooses sizes. `traffic` is a file or a generated histogram (see histogram_named).
Result<SizeChoice> choose_sizes(const SizedGraph& graph, const std::string& traffic,
                                const SizesRequest& request);

/// Returns one row for each set; without `all`, only sets that differ by more than a few graphs.
/// The chosen sizes of each.
[[nodiscard]] Table chosen_table(const std::vector<SizeChoice>& choices);
[[nodiscard]] Table size_table(const std::vector<SizeChoice>& choices, bool all);

}  // namespace pw

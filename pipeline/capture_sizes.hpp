// Capture sizes chosen for a histogram of token counts, a cost and a budget.
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
  std::string times;         ///< a file of measured seconds of captured steps; empty: a roofline
  std::size_t graphs = 24;   ///< captured at most
  double graph_seconds = 0;  ///< what a captured size must save over all steps
};

/// What steps of a planned graph take.
class StepTimes {
 public:
  StepTimes(StepCost model, std::vector<std::pair<std::int64_t, double>> measured)
      : model_(std::move(model)), measured_(std::move(measured)) {}
  [[nodiscard]] double captured(std::int64_t tokens) const;
  /// What capturing saves is the model's, whatever the times are.
  [[nodiscard]] double eager(std::int64_t tokens) const;

 private:
  StepCost model_;
  std::vector<std::pair<std::int64_t, double>> measured_;
};

/// A graph's plan, by which sizes are chosen.
struct SizedGraph {
  Plan plan;
  StepTimes times;
};
/// PW1432 for a static graph, PW1433 where nothing is captured.
Result<SizedGraph> size_graph(const CutGraph& cut, const SizesRequest& request, const Log& log);

/// A set of sizes, and what serving the histogram with it takes.
struct SizeSet {
  std::vector<std::int64_t> sizes;
  std::string mark;         ///< chosen, default or empty
  double step_seconds = 0;  ///< on average
  /// In percent: time above that of a graph for every count that occurs, rows that only pad, steps
  /// that are not captured.
  double above_least = 0, padding = 0, uncaptured = 0;
  double drawn_above =
      0;  ///< above_least where a larger step counts as no faster than a smaller one
};
struct SizeChoice {
  std::string traffic;
  std::vector<SizeSet> sets;  ///< the frontier by the number of graphs, then the default sizes
  [[nodiscard]] std::vector<std::int64_t> chosen() const;
  [[nodiscard]] FrontierCurve curve() const;
};
/// `traffic`: a file, or a made histogram (see histogram_named).
Result<SizeChoice> choose_sizes(const SizedGraph& graph, const std::string& traffic,
                                const SizesRequest& request);

/// A row a set; `all`: else those that differ in more than a few graphs.
/// The chosen sizes of each.
[[nodiscard]] Table chosen_table(const std::vector<SizeChoice>& choices);
[[nodiscard]] Table size_table(const std::vector<SizeChoice>& choices, bool all);

}  // namespace pw

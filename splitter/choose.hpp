// Selects the capture sizes that serve a histogram of token counts best. Dynamic programming over
// candidate sizes: f_k[j] = min_i f_{k-1}[i] + (P[j] - P[i]) · T[j] + λ · c[j]. P counts the steps
// up to a candidate, T is the time of a step of that size, and c is the cost of its graph. If T
// never decreases, the optimal i never decreases either, so a row costs O(C log C) for C
// candidates.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "splitter/histogram.hpp"
#include "splitter/sizes.hpp"

namespace pw {

/// Vectors of equal length in the order of `sizes`. Entry i describes sizes[i] and the steps with
/// more than sizes[i - 1] and at most sizes[i] tokens.
struct SizeProblem {
  std::vector<std::int64_t> sizes;  ///< candidates, ascending
  std::vector<double> steps;        ///< number of steps
  std::vector<double> seconds;      ///< seconds of one step of exactly this size
  std::vector<double> graph_cost;   ///< cost of its capture, in any unit
  std::vector<double> eager;  ///< seconds of all these steps without capture; infinity: not allowed
  double beyond = 0;          ///< seconds of steps above the last candidate
};

/// Returns the candidates: the occurring token counts, rounded up to a multiple and at most
/// `largest`. If a larger step never takes less time, no other set is better.
SizeProblem size_problem(const Histogram& histogram, std::int64_t multiple, std::int64_t largest,
                         const std::function<double(std::int64_t)>& captured,
                         const std::function<double(std::int64_t)>& eager);
/// Drops candidates that never pay (a larger one is as fast and costs no more), and raises a larger
/// size's time to that of any smaller size.
SizeProblem monotone(const SizeProblem& problem);

struct ChosenSizes {
  std::vector<std::int64_t> sizes;  ///< ascending
  double seconds = 0;               ///< seconds of all steps
  double graph_cost = 0;
};
/// Returns the best set for each number of graphs from 0: the least seconds + λ · graph cost.
/// Entries for more graphs than candidates are missing. Seconds are infinite if a step may not run
/// uncaptured and no graph holds it. The problem must be monotone.
std::vector<ChosenSizes> best_sets(const SizeProblem& problem, std::size_t most_graphs,
                                   double lambda = 0);
/// Returns the same sets in O(K · C²) by trying every i. It is the test oracle of best_sets.
std::vector<ChosenSizes> best_sets_slowly(const SizeProblem& problem, std::size_t most_graphs,
                                          double lambda = 0);
/// Returns the Pareto frontier in seconds and graph cost, by rising cost: the sets of best_sets at
/// λ = 0 and, if graphs differ in cost, at each λ where the choice changes.
std::vector<ChosenSizes> frontier(const SizeProblem& problem, std::size_t most_graphs);

/// Returns the total time with given sizes, each step in the smallest size that holds it. The sizes
/// must be candidates.
ChosenSizes with_sizes(const SizeProblem& problem, const std::vector<std::int64_t>& sizes);

struct Served {
  double seconds = 0;           ///< seconds of all steps
  double rows = 0, tokens = 0;  ///< totals with padding, and without
  double uncaptured = 0;        ///< number of steps
};
/// Evaluates any sizes, step by step.
Served serve(const Histogram& histogram, const CaptureSizes& sizes,
             const std::function<double(std::int64_t)>& captured,
             const std::function<double(std::int64_t)>& eager);

}  // namespace pw

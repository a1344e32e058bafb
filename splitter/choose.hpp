// The capture sizes that serve a histogram of token counts best: dynamic programming over candidate
// sizes, f_k[j] = min_i f_{k-1}[i] + (P[j] - P[i]) · T[j] + λ · c[j], where P counts the steps up
// to a candidate, T is the time of a step of that size, and c what its graph costs. Where T never
// falls the least i never falls either, so that a row costs O(C log C).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "splitter/histogram.hpp"
#include "splitter/sizes.hpp"

namespace pw {

/// All of one length but for `sizes`' order: entry i is of sizes[i], with the steps that have more
/// tokens than sizes[i - 1] and at most sizes[i].
struct SizeProblem {
  std::vector<std::int64_t> sizes;  ///< candidates, ascending
  std::vector<double> steps;        ///< how many
  std::vector<double> seconds;      ///< of one step of exactly this size
  std::vector<double> graph_cost;   ///< of capturing it, in any unit
  std::vector<double> eager;        ///< seconds of all these steps uncaptured; infinity: never
  double beyond = 0;                ///< seconds of the steps above the last candidate
};

/// Candidates are the token counts that occur, each rounded up to a multiple and at most `largest`:
/// where a larger step never takes less time, no other set is better.
SizeProblem size_problem(const Histogram& histogram, std::int64_t multiple, std::int64_t largest,
                         const std::function<double(std::int64_t)>& captured,
                         const std::function<double(std::int64_t)>& eager);
/// Candidates that never pay (a larger one is as fast, and costs no more) are dropped, and a larger
/// size counts as no faster than a smaller one.
SizeProblem monotone(const SizeProblem& problem);

struct ChosenSizes {
  std::vector<std::int64_t> sizes;  ///< ascending
  double seconds = 0;               ///< of all steps
  double graph_cost = 0;
};
/// The best set of each number of graphs, from none: it has the least seconds + λ · graph cost.
/// Entries that no more graphs than there are candidates can reach are missing. Infinite seconds
/// where some step may not run eagerly and no graph holds it. The problem must be monotone.
std::vector<ChosenSizes> best_sets(const SizeProblem& problem, std::size_t most_graphs,
                                   double lambda = 0);
/// The same in O(K · C²), by trying every i: the oracle of best_sets.
std::vector<ChosenSizes> best_sets_slowly(const SizeProblem& problem, std::size_t most_graphs,
                                          double lambda = 0);
/// The sets that no other one beats in both seconds and graph cost, by rising cost: those of
/// best_sets at λ = 0, and, where graphs differ in cost, at each λ at which the choice changes.
std::vector<ChosenSizes> frontier(const SizeProblem& problem, std::size_t most_graphs);

/// What the steps take with given sizes, each step in the smallest that holds it. The sizes must be
/// candidates.
ChosenSizes with_sizes(const SizeProblem& problem, const std::vector<std::int64_t>& sizes);

struct Served {
  double seconds = 0;           ///< of all steps
  double rows = 0, tokens = 0;  ///< that run with padding, and without
  double uncaptured = 0;        ///< steps
};
/// The same of any sizes, step by step.
Served serve(const Histogram& histogram, const CaptureSizes& sizes,
             const std::function<double(std::int64_t)>& captured,
             const std::function<double(std::int64_t)>& eager);

}  // namespace pw

// Fills a row of the dynamic program of choose.hpp by divide and conquer: the middle entry by a
// scan, whose argmin then bounds the scans of both halves. This is exact because the least argmins
// rise with j, by the quadrangle inequality if T never decreases, which monotone() ensures. Cost:
// O(C log C) for a row and O(K C log C) in total; the oracle best_sets_slowly takes O(K C²).
//
// The Pareto front of time against graph cost is found from the slopes of its convex hull: between
// two neighbours there is another hull point exactly if it is optimal for the λ of their line. A
// bounded number of λs is tried.
#include "splitter/choose.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pw {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kMostLambdas = 64;  // for a frontier

/// Rows of the recurrence. Entry j belongs to candidate j - 1, entry 0 to no graph yet.
class Program {
 public:
  Program(const SizeProblem& problem, double lambda) : p_(problem), lambda_(lambda) {
    before_.push_back(0);
    for (const double steps : p_.steps) before_.push_back(before_.back() + steps);
    eager_after_.assign(p_.sizes.size() + 1, p_.beyond);
    for (std::size_t j = p_.sizes.size(); j > 0; --j)
      eager_after_[j - 1] = eager_after_[j] + p_.eager[j - 1];
    value_.assign(p_.sizes.size() + 1, kInfinity);
    value_[0] = 0;
  }

  template <class FillRow>
  std::vector<ChosenSizes> run(std::size_t most_graphs, FillRow fill_row) {
    const std::size_t candidates = p_.sizes.size();
    std::vector<ChosenSizes> out{chosen()};
    for (std::size_t k = 1; k <= std::min(most_graphs, candidates); ++k) {
      next_.assign(candidates + 1, kInfinity);
      from_.emplace_back(candidates + 1, 0);
      fill_row(*this, k, candidates);
      std::swap(value_, next_);
      out.push_back(chosen());
    }
    return out;
  }

  /// Computes entries [first, last] of row k, whose best i are in [low, high].
  void divide(std::size_t first, std::size_t last, std::size_t low, std::size_t high) {
    if (first > last) return;
    const std::size_t middle = first + (last - first) / 2;
    const std::size_t best = settle(middle, low, std::min(high, middle - 1));
    if (middle > first) divide(first, middle - 1, low, best);
    divide(middle + 1, last, best, high);
  }

  /// Computes entry j of row k from each i in [low, high]; returns the least optimal i.
  std::size_t settle(std::size_t j, std::size_t low, std::size_t high) {
    std::size_t best = low;
    for (std::size_t i = low; i <= high; ++i) {
      const double value = value_[i] + (before_[j] - before_[i]) * p_.seconds[j - 1];
      if (value < next_[j]) {
        next_[j] = value;
        best = i;
      }
    }
    next_[j] += lambda_ * p_.graph_cost[j - 1];
    from_.back()[j] = best;
    return best;
  }

 private:
  /// Returns the best last candidate and its chain of predecessors.
  [[nodiscard]] ChosenSizes chosen() const {
    std::size_t last = from_.size();
    double least = kInfinity;
    for (std::size_t j = from_.size(); j < value_.size(); ++j)
      if (const double value = value_[j] + eager_after_[j]; value < least) {
        least = value;
        last = j;
      }
    std::vector<std::int64_t> sizes;
    for (std::size_t k = from_.size(), j = last; k > 0; --k) {
      sizes.push_back(p_.sizes[j - 1]);
      j = from_[k - 1][j];
    }
    std::reverse(sizes.begin(), sizes.end());
    return with_sizes(p_, sizes);
  }

  const SizeProblem& p_;
  double lambda_;
  std::vector<double> before_, eager_after_, value_, next_;
  std::vector<std::vector<std::size_t>> from_;  // [row - 1][j]
};

bool beats(const ChosenSizes& a, const ChosenSizes& b) {
  return a.seconds <= b.seconds && a.graph_cost <= b.graph_cost;
}

/// Returns the entries sorted by cost, each faster than the previous one.
std::vector<ChosenSizes> unbeaten(std::vector<ChosenSizes> sets) {
  std::stable_sort(sets.begin(), sets.end(), [](const ChosenSizes& a, const ChosenSizes& b) {
    if (a.graph_cost != b.graph_cost) return a.graph_cost < b.graph_cost;
    return a.seconds < b.seconds;
  });
  std::vector<ChosenSizes> out;
  for (ChosenSizes& set : sets) {
    if (!std::isfinite(set.seconds) || (!out.empty() && beats(out.back(), set))) continue;
    out.push_back(std::move(set));
  }
  return out;
}

bool equal_costs(const SizeProblem& problem) {
  return std::all_of(problem.graph_cost.begin(), problem.graph_cost.end(),
                     [&](double c) { return c == problem.graph_cost.front(); });
}

}  // namespace

SizeProblem size_problem(const Histogram& histogram, std::int64_t multiple, std::int64_t largest,
                         const std::function<double(std::int64_t)>& captured,
                         const std::function<double(std::int64_t)>& eager) {
  SizeProblem out;
  for (const auto& [tokens, count] : histogram.steps) {
    const std::int64_t size = round_up(tokens, multiple);
    const double steps = static_cast<double>(count);
    if (size > largest) {
      out.beyond += steps * eager(tokens);
      continue;
    }
    if (out.sizes.empty() || out.sizes.back() != size) {
      out.sizes.push_back(size);
      out.steps.push_back(0);
      out.seconds.push_back(captured(size));
      out.graph_cost.push_back(1);
      out.eager.push_back(0);
    }
    out.steps.back() += steps;
    out.eager.back() += steps * eager(tokens);
  }
  return out;
}

SizeProblem monotone(const SizeProblem& problem) {
  SizeProblem out;
  out.beyond = problem.beyond;
  std::vector<std::size_t> kept;
  for (std::size_t j = 0; j < problem.sizes.size(); ++j) {
    bool pays = true;
    for (std::size_t i = j + 1; i < problem.sizes.size() && pays; ++i)
      pays =
          problem.seconds[i] > problem.seconds[j] || problem.graph_cost[i] > problem.graph_cost[j];
    if (pays) kept.push_back(j);
  }
  double steps = 0, eager = 0, seconds = 0;
  std::size_t at = 0;
  for (const std::size_t j : kept) {
    for (steps = 0, eager = 0; at <= j; ++at) {
      steps += problem.steps[at];
      eager += problem.eager[at];
    }
    seconds = std::max(seconds, problem.seconds[j]);
    out.sizes.push_back(problem.sizes[j]);
    out.steps.push_back(steps);
    out.seconds.push_back(seconds);
    out.graph_cost.push_back(problem.graph_cost[j]);
    out.eager.push_back(eager);
  }
  return out;
}

std::vector<ChosenSizes> best_sets(const SizeProblem& problem, std::size_t most_graphs,
                                   double lambda) {
  return Program(problem, lambda)
      .run(most_graphs, [](Program& program, std::size_t k, std::size_t candidates) {
        program.divide(k, candidates, k - 1, k == 1 ? 0 : candidates - 1);
      });
}

std::vector<ChosenSizes> best_sets_slowly(const SizeProblem& problem, std::size_t most_graphs,
                                          double lambda) {
  return Program(problem, lambda)
      .run(most_graphs, [](Program& program, std::size_t k, std::size_t candidates) {
        for (std::size_t j = k; j <= candidates; ++j) program.settle(j, k - 1, k == 1 ? 0 : j - 1);
      });
}

std::vector<ChosenSizes> frontier(const SizeProblem& problem, std::size_t most_graphs) {
  std::vector<ChosenSizes> sets = unbeaten(best_sets(problem, most_graphs));
  if (problem.sizes.empty() || equal_costs(problem)) return sets;
  // Between two neighbours on the hull there is another exactly if it is best at the slope of their
  // line.
  std::vector<std::pair<ChosenSizes, ChosenSizes>> gaps;
  for (std::size_t i = 0; i + 1 < sets.size(); ++i) gaps.emplace_back(sets[i], sets[i + 1]);
  for (int tries = 0; tries < kMostLambdas && !gaps.empty(); ++tries) {
    const auto [low, high] = gaps.back();
    gaps.pop_back();
    const double lambda = (low.seconds - high.seconds) / (high.graph_cost - low.graph_cost);
    const auto weighed = [&](const ChosenSizes& set) {
      return set.seconds + lambda * set.graph_cost;
    };
    for (ChosenSizes& set : best_sets(problem, most_graphs, lambda)) {
      const bool between = set.graph_cost > low.graph_cost && set.graph_cost < high.graph_cost;
      if (between && weighed(set) < weighed(low) * (1 - 1e-12)) {
        gaps.emplace_back(low, set);
        gaps.emplace_back(set, high);
      }
      sets.push_back(std::move(set));
    }
  }
  return unbeaten(std::move(sets));
}

ChosenSizes with_sizes(const SizeProblem& problem, const std::vector<std::int64_t>& sizes) {
  ChosenSizes out{sizes, problem.beyond, 0};
  double waiting = 0;  // steps assigned to the next chosen size
  std::size_t next = 0;
  for (std::size_t j = 0; j < problem.sizes.size(); ++j) {
    if (next == sizes.size()) {
      out.seconds += problem.eager[j];
      continue;
    }
    waiting += problem.steps[j];
    if (problem.sizes[j] != sizes[next]) continue;
    out.seconds += waiting * problem.seconds[j];
    out.graph_cost += problem.graph_cost[j];
    waiting = 0;
    ++next;
  }
  return out;
}

Served serve(const Histogram& histogram, const CaptureSizes& sizes,
             const std::function<double(std::int64_t)>& captured,
             const std::function<double(std::int64_t)>& eager) {
  Served out;
  for (const auto& [tokens, count] : histogram.steps) {
    const double steps = static_cast<double>(count);
    const std::int64_t size = sizes.pad(tokens);
    out.seconds += steps * (size < 0 ? eager(tokens) : captured(size));
    out.rows += steps * static_cast<double>(size < 0 ? tokens : size);
    out.tokens += steps * static_cast<double>(tokens);
    if (size < 0) out.uncaptured += steps;
  }
  return out;
}

}  // namespace pw

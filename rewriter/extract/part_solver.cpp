// Alternates between exact search and local search on one part. Prices give a bound and rule nodes
// out. Branch and bound runs on the whole part with an eighth of the steps, then repair (large
// neighbourhood search), then branch and bound on growing windows of related classes, and on the
// whole part again. Stops when the cost meets the bound or the steps are spent.
#include "rewriter/extract/part_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "rewriter/extract/repair.hpp"

namespace pw::extract {
namespace {

constexpr double kNear = 1e-9;
constexpr std::size_t kWindow = 24;          // classes with a choice, in the first windows
constexpr std::size_t kLargestWindow = 400;  // in the last
constexpr std::uint64_t kWindowSteps = 60'000;

}  // namespace

PartSolver::PartSolver(const Problem& problem, const std::vector<Choice>& known,
                       const Limits& limits)
    : problem_(problem), network_(problem) {
  best_.cost = std::numeric_limits<double>::infinity();
  needed_.assign(problem.classes.size(), false);
  learn(network_.derivation.choice);
  for (Choice choice : known) {
    for (ClassIndex c = 0; c < choice.size(); ++c)
      if (choice[c] == kNone) choice[c] = network_.derivation.choice[c];
    learn(choice);
  }
  prices_ = find_prices(network_, limits.price_rounds, [&](const Choice& c) { learn(c); });
  best_.bound = std::min(prices_.bound, best_.cost);
  cheapest_ = network_.derivation.choice;
  for (ClassIndex c = 0; c < problem.classes.size(); ++c)
    for (NodeIndex n : problem.classes[c]) {
      const std::vector<std::uint32_t>& edges = network_.node_edges[n];
      const bool forward = std::all_of(edges.begin(), edges.end(),
                                       [&](std::uint32_t e) { return network_.forward(e); });
      if (forward && prices_.excess[n] < prices_.excess[cheapest_[c]]) cheapest_[c] = n;
    }
}

void PartSolver::learn(const Choice& choice) {
  const auto needed = needed_classes(problem_, choice);
  if (!needed) return;
  const double cost = cost_of(problem_, *needed, choice);
  if (cost >= best_.cost - kNear * std::abs(cost)) return;
  best_.cost = cost;
  best_.choice = choice;
  std::fill(needed_.begin(), needed_.end(), false);
  for (ClassIndex c : *needed) needed_[c] = true;
}

void PartSolver::learn_bound(double bound) {
  best_.bound = std::min(best_.cost, std::max(best_.bound, bound));
}

bool PartSolver::closed() const {
  return best_.bound >= best_.cost - kNear * std::max(1.0, std::abs(best_.cost));
}

bool PartSolver::may_be_better(NodeIndex n) const {
  return prices_.bound + prices_.excess[n] < best_.cost - kNear * std::max(1.0, best_.cost);
}

std::vector<NodeIndex> PartSolver::open_nodes(ClassIndex c) const {
  std::vector<NodeIndex> out;
  for (NodeIndex n : problem_.classes[c])
    if (n == best_.choice[c] || n == network_.derivation.choice[c] || may_be_better(n))
      out.push_back(n);
  return out;
}

std::optional<Problem> PartSolver::narrowed() const {
  Problem out = problem_;
  bool smaller = false;
  for (ClassIndex c = 0; c < out.classes.size(); ++c) {
    std::vector<NodeIndex> nodes = open_nodes(c);
    smaller = smaller || nodes.size() < out.classes[c].size();
    out.classes[c] = std::move(nodes);
  }
  return smaller ? std::optional(std::move(out)) : std::nullopt;
}

void PartSolver::search(std::uint64_t& steps) {
  const auto everywhere = [&](std::uint64_t most) {
    Search all{{}, best_.cost, most, best_.choice};
    for (ClassIndex c = 0; c < problem_.classes.size(); ++c) all.allowed.push_back(open_nodes(c));
    const Found found = branch_and_bound(network_, prices_, all);
    steps -= most - all.steps;
    if (!found.choice.empty()) learn(found.choice);
    if (found.complete) best_.bound = best_.cost;
  };
  everywhere(steps / 8);
  if (closed()) return;
  std::vector<std::vector<NodeIndex>> open;
  for (ClassIndex c = 0; c < problem_.classes.size(); ++c) open.push_back(open_nodes(c));
  std::uint64_t own = steps - steps / 4;
  steps -= own;
  learn(repair(network_, open, best_.choice, own));
  steps += own;
  search_windows(steps, steps / 4);
  if (!closed()) everywhere(steps);
}

/// Searches windows, which grow when smaller ones stop improving.
void PartSolver::search_windows(std::uint64_t& steps, std::uint64_t keep) {
  std::mt19937_64 random(1);
  std::size_t size = kWindow, vain = 0;
  while (steps > keep && size <= kLargestWindow) {
    std::vector<ClassIndex> centres;
    for (ClassIndex c = 0; c < problem_.classes.size(); ++c)
      if (needed_[c] && problem_.classes[c].size() > 1) centres.push_back(c);
    if (centres.empty()) return;
    Search search = in_window(window_at(centres[random() % centres.size()], size));
    const std::uint64_t most = std::min(kWindowSteps * (size / kWindow), steps - keep);
    search.steps = most;
    const Found found = branch_and_bound(network_, prices_, search);
    steps -= std::min(steps, most - search.steps + problem_.classes.size() / 4);
    const double before = best_.cost;
    if (!found.choice.empty()) learn(found.choice);
    vain = best_.cost < before ? 0 : vain + 1;
    if (closed()) return;
    if (vain > 4 + 4 * centres.size() / size) size *= 2, vain = 0;
  }
}

std::vector<ClassIndex> PartSolver::window_at(ClassIndex first, std::size_t size) const {
  std::vector<ClassIndex> out{first};
  std::vector<bool> seen(problem_.classes.size(), false);
  seen[first] = true;
  std::size_t open = 1;
  for (std::size_t i = 0; i < out.size() && open < size; ++i) {
    const auto visit = [&](ClassIndex c) {
      if (seen[c] || open >= size) return;
      seen[c] = true;
      out.push_back(c);
      open += problem_.classes[c].size() > 1 ? 1 : 0;
    };
    for (std::uint32_t e : network_.in_edges[out[i]]) visit(network_.edges[e].from);
    for (std::uint32_t e : network_.out_edges[out[i]]) visit(network_.edges[e].to);
  }
  return out;
}

Search PartSolver::in_window(const std::vector<ClassIndex>& window) const {
  Search out{{}, best_.cost, 0, best_.choice};
  out.allowed.resize(problem_.classes.size());
  for (ClassIndex c = 0; c < problem_.classes.size(); ++c)
    if (!problem_.classes[c].empty())
      out.allowed[c] = {needed_[c] ? best_.choice[c] : cheapest_[c]};
  for (ClassIndex c : window) out.allowed[c] = open_nodes(c);
  return out;
}

}  // namespace pw::extract

// Reduces the problem, splits it into independent parts, and solves each part once: equal parts
// share an answer. If a bound rules nodes out, the rest is reduced and split again.
#include "rewriter/extract/solve.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "rewriter/extract/part_solver.hpp"
#include "rewriter/extract/reduce.hpp"

namespace pw::extract {
namespace {

constexpr int kDeepest = 5;

/// Returns the text of a part; equal for parts that differ only in the names of classes, as for
/// repeated layers of a model.
std::vector<std::uint64_t> key_of(const Problem& problem) {
  std::vector<std::uint64_t> key{problem.classes.size()};
  key.insert(key.end(), problem.roots.begin(), problem.roots.end());
  for (const std::vector<NodeIndex>& nodes : problem.classes) {
    key.push_back(nodes.size());
    for (NodeIndex n : nodes) {
      key.push_back(std::bit_cast<std::uint64_t>(problem.nodes[n].cost));
      key.push_back(problem.nodes[n].children.size());
      key.insert(key.end(), problem.nodes[n].children.begin(), problem.nodes[n].children.end());
    }
  }
  return key;
}

class Solver {
 public:
  explicit Solver(const Limits& limits) : limits_(limits), steps_(limits.steps) {}

  struct Whole {
    Choice choice;
    double bound = 0;
  };

  std::optional<Whole> run(const Problem& problem, const std::vector<Choice>& known, int depth,
                           std::uint64_t& steps) {
    std::optional<Reduced> reduced = reduce(problem);
    if (!reduced) return std::nullopt;
    Whole out{reduced->free, 0};
    std::vector<Part> parts = parts_of(*reduced);
    if (depth == 0) parts_ = parts.size();
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto size = [&](std::size_t i) {
      return parts[i].nodes.size() - parts[i].classes.size();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return size(a) < size(b); });
    std::uint64_t rest = 0;
    for (std::size_t i : order) rest += size(i);
    for (std::size_t i : order) {
      std::uint64_t own = rest == 0 ? 0 : share(steps, size(i), rest);
      steps -= own;
      rest -= size(i);
      const PartAnswer& answer = solve_part(parts[i], known, depth, own);
      steps += own;
      out.bound += answer.bound;
      for (ClassIndex c = 0; c < parts[i].classes.size(); ++c)
        if (answer.choice[c] != kNone)
          out.choice[parts[i].classes[c]] = parts[i].nodes[answer.choice[c]];
    }
    return out;
  }

  std::uint64_t& steps() { return steps_; }
  [[nodiscard]] std::size_t parts() const { return parts_; }
  [[nodiscard]] std::size_t like_parts() const { return like_; }

 private:
  static std::uint64_t share(std::uint64_t steps, std::uint64_t size, std::uint64_t rest) {
    return static_cast<std::uint64_t>(static_cast<double>(steps) * static_cast<double>(size) /
                                      static_cast<double>(rest));
  }

  /// Solves a part. Its nodes are numbered in the order in which its classes list them, so that the
  /// answer fits every part with the same key.
  const PartAnswer& solve_part(const Part& part, const std::vector<Choice>& known, int depth,
                               std::uint64_t& steps) {
    const auto [at, fresh] = solved_.try_emplace(key_of(part.problem));
    if (!fresh) {
      like_ += depth == 0 ? 1 : 0;
      return at->second;
    }
    std::vector<Choice> local;
    for (const Choice& choice : known) local.push_back(localize(part, choice));
    return at->second = solve_alone(part.problem, local, depth, steps);
  }

  static Choice localize(const Part& part, const Choice& choice) {
    Choice out(part.classes.size(), kNone);
    for (NodeIndex n = 0; n < part.nodes.size(); ++n) {
      const ClassIndex owner = part.problem.nodes[n].owner;
      if (choice[part.classes[owner]] == part.nodes[n]) out[owner] = n;
    }
    return out;
  }

  PartAnswer solve_alone(const Problem& problem, const std::vector<Choice>& known, int depth,
                         std::uint64_t& steps) {
    PartSolver solver(problem, known, limits_);
    if (solver.closed()) return solver.answer();
    if (depth < kDeepest) {
      if (const std::optional<Problem> narrower = solver.narrowed()) {
        const auto inner = run(*narrower, {solver.answer().choice}, depth + 1, steps);
        if (inner) {
          solver.learn(inner->choice);
          solver.learn_bound(inner->bound);
          return solver.answer();
        }
      }
    }
    solver.search(steps);
    return solver.answer();
  }

  const Limits& limits_;
  std::uint64_t steps_;
  std::map<std::vector<std::uint64_t>, PartAnswer> solved_;
  std::size_t parts_ = 0, like_ = 0;
};

}  // namespace

std::optional<Answer> solve(const Problem& problem, const std::vector<Choice>& known,
                            const Limits& limits) {
  Solver solver(limits);
  auto whole = solver.run(problem, known, 0, solver.steps());
  if (!whole) return std::nullopt;
  Answer out;
  out.parts = solver.parts();
  out.like_parts = solver.like_parts();
  const auto offer = [&](const Choice& choice) {
    auto needed = needed_classes(problem, choice);
    if (!needed) return;
    const double cost = cost_of(problem, *needed, choice);
    if (!out.choice.empty() && cost >= out.cost) return;
    out = {choice, std::move(*needed), cost, 0, false, out.parts, out.like_parts};
  };
  offer(whole->choice);
  for (const Choice& choice : known) offer(choice);
  if (out.choice.empty()) return std::nullopt;
  out.bound = std::min(whole->bound, out.cost);
  out.exact = out.bound >= out.cost - 1e-9 * std::max(1.0, std::abs(out.cost));
  if (out.exact) out.bound = out.cost;
  return out;
}

}  // namespace pw::extract

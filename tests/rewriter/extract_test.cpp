// DAG extraction against the brute force of all choices, and what must hold of every answer.
#include <functional>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "rewriter/extract/repair.hpp"
#include "rewriter/extract/solve.hpp"
#include "tests/catch.hpp"

using namespace pw::extract;

namespace {

struct Shape {
  std::size_t classes = 7, nodes = 3, children = 3;
  bool circles = false;
  int largest = 9;
};

/// Without circles a node needs classes of lower numbers only; the last class is a root.
Problem random_problem(std::mt19937_64& random, const Shape& shape) {
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
  Problem problem;
  for (std::size_t c = 0; c < shape.classes; ++c) problem.add_class();
  for (ClassIndex c = 0; c < shape.classes; ++c) {
    const std::uint32_t nodes = 1 + below(shape.nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const std::size_t others = shape.circles ? shape.classes : c;
      const bool leaf = others == 0 || below(6) == 0;
      std::vector<ClassIndex> children;
      for (std::uint32_t k = leaf ? 0 : 1 + below(shape.children); k > 0; --k)
        children.push_back(below(others));
      problem.add_node(c, below(static_cast<std::size_t>(shape.largest)), std::move(children));
    }
  }
  problem.roots = {static_cast<ClassIndex>(shape.classes - 1)};
  if (below(2) == 0) problem.roots.push_back(static_cast<ClassIndex>(shape.classes / 2));
  return problem;
}

std::optional<double> brute_force(const Problem& problem) {
  std::optional<double> best;
  Choice choice(problem.classes.size(), kNone);
  const std::function<void(ClassIndex)> from = [&](ClassIndex c) {
    if (c == choice.size()) {
      const auto needed = needed_classes(problem, choice);
      if (!needed) return;
      const double cost = cost_of(problem, *needed, choice);
      if (!best || cost < *best) best = cost;
      return;
    }
    for (NodeIndex n : problem.classes[c]) {
      choice[c] = n;
      from(c + 1);
    }
  };
  from(0);
  return best;
}

void check_answer(const Problem& problem, const Answer& answer) {
  const auto needed = needed_classes(problem, answer.choice);
  REQUIRE(needed);
  CHECK(cost_of(problem, *needed, answer.choice) == Approx(answer.cost));
  CHECK(answer.bound <= answer.cost + 1e-9);
  CHECK(answer.exact == (answer.bound == answer.cost));
}

}  // namespace

TEST_CASE("extract: what is found is what brute force finds", "[extract]") {
  std::size_t solved = 0, impossible = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Shape shape;
    shape.circles = seed % 2 == 0;
    shape.classes = 4 + seed % 6;
    const Problem problem = random_problem(random, shape);
    const std::optional<double> best = brute_force(problem);
    const std::optional<Answer> answer = solve(problem);
    REQUIRE(answer.has_value() == best.has_value());
    if (!best) {
      ++impossible;
      continue;
    }
    ++solved;
    check_answer(problem, *answer);
    CHECK(answer->exact);
    CHECK(answer->cost == Approx(*best));
  }
  CHECK(solved > 200);
  CHECK(impossible > 0);
}

TEST_CASE("extract: the bound holds where steps are few, and known choices are not lost",
          "[extract]") {
  std::size_t open = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    Shape shape{60, 4, 4, seed % 3 == 0, 30};
    const Problem problem = random_problem(random, shape);
    Limits few;
    few.steps = 50;
    few.price_rounds = 2;
    const auto quick = solve(problem, {}, few);
    const auto best = solve(problem);
    REQUIRE(quick.has_value() == best.has_value());
    if (!best) continue;
    check_answer(problem, *quick);
    check_answer(problem, *best);
    CHECK(best->exact);
    CHECK(quick->bound <= best->cost + 1e-6);
    CHECK(quick->cost >= best->cost - 1e-6);
    CHECK(solve(problem, {best->choice}, few)->cost == Approx(best->cost));
    open += quick->exact ? 0 : 1;
  }
  CHECK(open > 0);
}

TEST_CASE("extract: equal parts are solved once", "[extract]") {
  // Eight copies of a problem below a root that needs all of them.
  std::mt19937_64 random(7);
  const Shape shape{24, 4, 3, false, 30};
  const Problem one = random_problem(random, shape);
  const auto alone = solve(one);
  REQUIRE(alone);
  Problem all;
  std::vector<ClassIndex> tops;
  for (int copy = 0; copy < 8; ++copy) {
    const auto first = static_cast<ClassIndex>(all.classes.size());
    for (std::size_t c = 0; c < one.classes.size(); ++c) all.add_class();
    for (const Node& node : one.nodes) {
      std::vector<ClassIndex> children = node.children;
      for (ClassIndex& child : children) child += first;
      all.add_node(node.owner + first, node.cost, std::move(children));
    }
    for (ClassIndex root : one.roots) tops.push_back(root + first);
  }
  all.roots = {all.add_class()};
  all.add_node(all.roots[0], 1, tops);
  const auto answer = solve(all);
  REQUIRE(answer);
  CHECK(answer->exact);
  CHECK(answer->cost == Approx(1 + 8 * alone->cost));
  CHECK(answer->parts >= 8);
  CHECK(answer->parts - answer->like_parts <= alone->parts + 1);
}

TEST_CASE("extract: thousands of classes above each other need no stack", "[extract]") {
  Problem deep;
  ClassIndex below = deep.add_class();
  deep.add_node(below, 1, {});
  for (int i = 0; i < 200'000; ++i) {
    const ClassIndex c = deep.add_class();
    deep.add_node(c, 2, {below});
    deep.add_node(c, 1 + i % 3, {below});
    below = c;
  }
  deep.roots = {below};
  const auto answer = solve(deep);
  REQUIRE(answer);
  CHECK(answer->exact);
  CHECK(answer->cost == Approx(1 + 66667 + 2 * 66667 + 2 * 66666));
}

TEST_CASE("extract: what is forgotten is decided anew, several classes together", "[extract]") {
  // Each step of a chain has a sum, a norm of it that leads to the next step, and an op with both
  // results that is cheaper than the two, but costs more than either: no single class gains by it.
  constexpr std::size_t kSteps = 12;
  Problem problem;
  ClassIndex sum = problem.add_class(), way = problem.add_class();
  problem.add_node(sum, 0, {});
  problem.add_node(way, 0, {});
  Choice apart{0, 1};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const ClassIndex next = problem.add_class(), norm = problem.add_class();
    const ClassIndex both = problem.add_class(), after = problem.add_class();
    apart.push_back(problem.add_node(next, 4, {sum, way}));
    apart.push_back(problem.add_node(norm, 2, {next}));
    apart.push_back(problem.add_node(both, 5, {sum, way}));
    apart.push_back(problem.add_node(after, 1, {norm}));
    problem.add_node(next, 0, {both});
    problem.add_node(norm, 0, {both});
    sum = next;
    way = after;
  }
  problem.roots = {sum, way};
  const Network network(problem);
  std::uint64_t steps = 2'000'000;
  const Choice found = repair(network, problem.classes, apart, steps);
  const auto needed = needed_classes(problem, found);
  REQUIRE(needed);
  CHECK(cost_of(problem, *needed, found) == 6 * kSteps);
  CHECK(steps == 0);
}

TEST_CASE("extract: a repaired choice is one, and never dearer", "[extract]") {
  std::size_t best = 0, runs = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const Problem problem = random_problem(random, {8, 3, 3, seed % 2 == 0, 9});
    const Derivation derivation = derive(problem);
    const auto before = needed_classes(problem, derivation.choice);
    if (!before) continue;
    INFO("seed " << seed);
    const Network network(problem);
    std::uint64_t steps = 20'000, again = 20'000;
    const Choice found = repair(network, problem.classes, derivation.choice, steps);
    REQUIRE(repair(network, problem.classes, derivation.choice, again) == found);
    const auto needed = needed_classes(problem, found);
    REQUIRE(needed);
    const double cost = cost_of(problem, *needed, found);
    REQUIRE(cost <= cost_of(problem, *before, derivation.choice));
    const std::optional<double> least = brute_force(problem);
    REQUIRE(least);
    REQUIRE(cost >= *least);
    best += cost == *least ? 1 : 0;
    ++runs;
  }
  CHECK(runs > 200);
  CHECK(best > runs * 9 / 10);
}

#include "splitter/choose.hpp"

#include <cmath>
#include <limits>

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// Random candidates. Times are whole numbers, so that sums are exact and equal costs are equal.
SizeProblem drawn(Random& random, std::size_t most, bool rising) {
  SizeProblem p;
  std::int64_t size = 0;
  double seconds = 0;
  const bool may_be_eager = random.below(2) == 0;
  const std::size_t n = 1 + random.below(most);
  for (std::size_t i = 0; i < n; ++i) {
    p.sizes.push_back(size += 1 + static_cast<std::int64_t>(random.below(9)));
    p.steps.push_back(static_cast<double>(random.below(50)));
    seconds = rising ? seconds + static_cast<double>(random.below(6))
                     : static_cast<double>(random.below(40));
    p.seconds.push_back(seconds);
    p.graph_cost.push_back(rising ? static_cast<double>(1 + random.below(4)) : 1);
    p.eager.push_back(may_be_eager ? p.steps.back() * (seconds + 40) : kNever);
  }
  return p;
}

/// Written down again from the meaning: every step runs at the smallest chosen size.
double cost_of(const SizeProblem& p, const std::vector<std::size_t>& chosen, double lambda) {
  double cost = p.beyond;
  for (std::size_t j = 0; j < p.sizes.size(); ++j) {
    double here = p.eager[j];
    for (const std::size_t c : chosen)
      if (c >= j) {
        here = p.steps[j] * p.seconds[c];
        break;
      }
    cost += here;
  }
  for (const std::size_t c : chosen) cost += lambda * p.graph_cost[c];
  return cost;
}

/// The least cost of each number of graphs, over all subsets.
std::vector<double> brute_force(const SizeProblem& p, double lambda) {
  std::vector<double> least(p.sizes.size() + 1, kNever);
  for (std::size_t set = 0; set < std::size_t{1} << p.sizes.size(); ++set) {
    std::vector<std::size_t> chosen;
    for (std::size_t j = 0; j < p.sizes.size(); ++j)
      if (set >> j & 1) chosen.push_back(j);
    least[chosen.size()] = std::min(least[chosen.size()], cost_of(p, chosen, lambda));
  }
  return least;
}

double weighed(const ChosenSizes& set, double lambda) {
  return set.seconds + lambda * set.graph_cost;
}

}  // namespace

TEST_CASE("choose: the best sets are those of all subsets", "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 60)));
  INFO("seed " << seed);
  Random random(seed);
  const SizeProblem p = drawn(random, 11, true);
  const double lambda = static_cast<double>(random.below(3) * 20);
  const std::vector<double> least = brute_force(p, lambda);
  const auto sets = best_sets(p, p.sizes.size(), lambda);
  REQUIRE(sets.size() == least.size());
  for (std::size_t k = 0; k < sets.size(); ++k) {
    CHECK(sets[k].sizes.size() == k);
    CHECK(weighed(sets[k], lambda) == least[k]);
  }
}

TEST_CASE("choose: times that fall with the size are made to rise, and nothing is lost",
          "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 60)));
  INFO("seed " << seed);
  Random random(seed);
  SizeProblem p = drawn(random, 10, false);
  p.eager.assign(p.sizes.size(), kNever);
  const std::vector<double> least = brute_force(p, 0);
  const SizeProblem rising = monotone(p);
  for (std::size_t i = 0; i + 1 < rising.seconds.size(); ++i)
    CHECK(rising.seconds[i] <= rising.seconds[i + 1]);
  // With at most k graphs: more of them may be needed only to fill up the number.
  double best = kNever, all = kNever;
  const auto sets = best_sets(rising, p.sizes.size());
  for (std::size_t k = 0; k < least.size(); ++k) {
    if (k < sets.size()) best = std::min(best, sets[k].seconds);
    all = std::min(all, least[k]);
    CHECK(best == all);
  }
}

TEST_CASE("choose: dividing finds what trying all finds", "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 20)));
  INFO("seed " << seed);
  Random random(seed);
  const SizeProblem p = drawn(random, 200, true);
  const auto quick = best_sets(p, 40, 7), slow = best_sets_slowly(p, 40, 7);
  REQUIRE(quick.size() == slow.size());
  for (std::size_t k = 0; k < quick.size(); ++k) {
    if (std::isinf(slow[k].seconds)) {
      CHECK(std::isinf(quick[k].seconds));
      continue;
    }
    CHECK(weighed(quick[k], 7) == weighed(slow[k], 7));
  }
}

TEST_CASE("choose: no set beats the frontier where all graphs cost the same", "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 30)));
  INFO("seed " << seed);
  Random random(seed);
  SizeProblem p = drawn(random, 10, true);
  const bool equal = random.below(2) == 0;
  if (equal) p.graph_cost.assign(p.sizes.size(), 3);
  const auto points = frontier(p, p.sizes.size());
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    CHECK(points[i].graph_cost < points[i + 1].graph_cost);
    CHECK(points[i].seconds > points[i + 1].seconds);
  }
  // At every exchange rate the frontier holds a best set.
  for (const double lambda : {0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0}) {
    const std::vector<double> least = brute_force(p, lambda);
    const double best = *std::min_element(least.begin(), least.end());
    double found = kNever;
    for (const ChosenSizes& set : points) found = std::min(found, weighed(set, lambda));
    CHECK(found == best);
  }
}

TEST_CASE("choose: steps above the largest size run eagerly where that pays", "[splitter]") {
  SizeProblem p{{1, 2, 100}, {10, 10, 1}, {1, 2, 100}, {1, 1, 1}, {50, 50, 100}, 5};
  const auto sets = best_sets(p, 3);
  REQUIRE(sets.size() == 4);
  CHECK(sets[0].seconds == 205);
  CHECK(sets[1].sizes == std::vector<std::int64_t>{2});  // 20 · 2 + 100 eagerly + 5
  CHECK(sets[1].seconds == 145);
  CHECK(sets[2].sizes == std::vector<std::int64_t>{1, 2});
  CHECK(sets[2].seconds == 135);
}

TEST_CASE("choose: candidates are the counts that occur, rounded up", "[splitter]") {
  const Histogram h{{{1, 5}, {3, 2}, {4, 1}, {9, 4}, {300, 1}}};
  const auto seconds = [](std::int64_t t) { return static_cast<double>(t); };
  const SizeProblem p = size_problem(h, 4, 256, seconds, seconds);
  CHECK(p.sizes == std::vector<std::int64_t>{4, 12});
  CHECK(p.steps == std::vector<double>{8, 4});
  CHECK(p.seconds == std::vector<double>{4, 12});
  CHECK(p.eager == std::vector<double>{5 + 6 + 4, 36});
  CHECK(p.beyond == 300);
  CHECK(with_sizes(p, {4, 12}).seconds == 8 * 4 + 4 * 12 + 300);
  CHECK(with_sizes(p, {4}).seconds == 8 * 4 + 36 + 300);
}

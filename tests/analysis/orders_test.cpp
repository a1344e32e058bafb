// All orders of passes, and which pass takes the nodes of which.
#include "rewriter/analysis/orders/orders.hpp"

#include <algorithm>
#include <random>
#include <set>

#include <fmt/format.h>

#include "rewriter/analysis/orders/order_numbers.hpp"
#include "rewriter/strategies/driver.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using pw::test::World;

namespace {

// One theft per line: the pass `thief`, the pass `victim`, and a graph with one match.
const std::string kOrderRules = R"(
op relu_neg(x: T[*s]) -> (p: T[*s], q: T[*s]) { p = relu(x) q = neg(x) }
op neg_exp(x: T[*s]) -> (q: T[*s], r: T[*s]) { q = neg(x) r = exp(x) }
op abs_relu(x: T[*s]) -> y: T[*s] { y = abs(relu(x)) }
op relu_tanh(x: T[*s]) -> y: T[*s] { y = relu(tanh(x)) }
op add_mul(a: T[*s], b: T[*s], c: T[*s]) -> y: T[*s] { y = a * b + c }
rule pair { p = relu(x) q = neg(x) => p, q = relu_neg(x) }
rule other_pair { q = neg(x) r = exp(x) => q, r = neg_exp(x) }
rule outer { y = abs(relu(x)) => y = abs_relu(x) }
rule inner { y = relu(tanh(x)) => y = relu_tanh(x) }
rule spell { y = sigmoid(x) => y = tanh(x) }
rule fused { y = add(mul(a, b), c) => y = add_mul(a, b, c) }
rule squared { y = mul(a, a) => y = exp(a) }
rule negative { y = neg(neg(x)) => y = x }
pass p_pair = greedy { pair }
pass p_other = greedy { other_pair }
pass p_outer = greedy { outer }
pass p_inner = greedy { inner }
pass p_spell = greedy { spell }
pass p_fused = greedy { fused }
pass p_squared = greedy { squared }
pass p_negative = greedy { negative }
)";

OrderSpace space_of(const World& world, const std::vector<std::string>& passes) {
  OrderSpace out;
  for (const std::string& name : passes) out.passes.push_back(*world.rules.strategy(name));
  return out;
}

/// The end graphs of all orders, each from its own run.
std::map<std::uint64_t, std::uint64_t> brute_force(const World& world, const Graph& graph,
                                                   const OrderSpace& space) {
  std::vector<std::size_t> order(space.passes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::map<std::uint64_t, std::uint64_t> out;
  do {
    Graph g = graph;
    for (const std::size_t pass : order)
      REQUIRE(run_strategy(g, world.rules, space.passes[pass], world.params, {}));
    ++out[structural_hash(g)];
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

/// Random uses of the ops that the rules are about.
std::string random_body(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> unary{"relu", "neg", "exp", "abs", "tanh", "sigmoid"};
  std::string out = "in x0: f32[8]\n";
  std::size_t last = 0;
  for (; last < 14; ++last) {
    const auto value = [&] { return "x" + std::to_string(random() % (last + 1)); };
    const std::uint64_t kind = random() % 8;
    const std::string call = kind < 6   ? unary[kind] + "(" + value() + ")"
                             : kind < 7 ? "mul(" + value() + ", " + value() + ")"
                                        : "add(" + value() + ", " + value() + ")";
    out += "x" + std::to_string(last + 1) + " = " + call + "\n";
  }
  return out + "out x" + std::to_string(last) + ", x" + std::to_string(last - 1) + "\n";
}

}  // namespace

TEST_CASE("orders: the ends of shared states are those of every order run by itself",
          "[analysis]") {
  const World world(kOrderRules);
  const OrderSpace space =
      space_of(world, {"p_pair", "p_other", "p_outer", "p_inner", "p_spell", "p_squared"});
  std::size_t several = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    const Graph graph = world.graph(random_body(seed));
    const auto found = explore_orders(graph, world.rules, world.params, space);
    REQUIRE(found);
    const auto expected = brute_force(world, graph.compact(), space);
    std::map<std::uint64_t, std::uint64_t> ends;
    for (const OrderEnd& end : found->ends) ends[found->graphs[end.graph].hash] = end.orders;
    CHECK(ends == expected);
    CHECK(found->orders == 720);
    CHECK(found->runs < 720);
    several += ends.size() > 1 ? 1 : 0;
  }
  CHECK(several > 3);
}

TEST_CASE("orders: above 16 passes, those that change nothing are left out", "[analysis]") {
  const World world(kOrderRules +
                    "rule never { y = silu(silu(x)) => y = silu(x) }\n"
                    "pass p_never = greedy { never }\n");
  const std::vector<std::string> names{"p_pair",  "p_other", "p_outer",
                                       "p_inner", "p_spell", "p_squared"};
  const OrderSpace few = space_of(world, names);
  std::vector<std::string> all;
  for (const std::string& name : names) all.insert(all.end(), {"p_never", name, "p_never"});
  const OrderSpace space = space_of(world, all);
  std::size_t late = 0;  // passes that act in some orders, and not in the written one
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    const Graph graph = world.graph(random_body(seed));
    const auto found = explore_orders(graph, world.rules, world.params, space);
    REQUIRE(found);
    CHECK(found->together.empty());
    CHECK(found->idle.size() >= 12);
    std::map<std::uint64_t, std::uint64_t> ends;
    for (const OrderEnd& end : found->ends)
      ends[found->graphs[end.graph].hash] = end.orders * (720 / found->orders);
    CHECK(ends == brute_force(world, graph.compact(), few));
    Graph written = graph.compact();
    for (std::size_t pass = 0; pass < space.passes.size(); ++pass) {
      const std::uint64_t before = structural_hash(written);
      REQUIRE(run_strategy(written, world.rules, space.passes[pass], world.params, {}));
      const bool idle = std::binary_search(found->idle.begin(), found->idle.end(), pass);
      late += structural_hash(written) == before && !idle ? 1 : 0;
    }
    const auto full = with_idle(found->ends.front().example, space, *found);
    CHECK(std::set(full.begin(), full.end()).size() == space.passes.size());
  }
  CHECK(late > 0);
}

TEST_CASE("orders: above 16 passes that change the graph, neighbours that commute run as one",
          "[analysis]") {
  std::string rules, body = "in x0: f32[8]\n";
  std::vector<std::string> names;
  for (int i = 0; i < 18; ++i) {
    rules += fmt::format(
        "op from{0}(x: T[*s]) -> y: T[*s] {{ y = neg(x) }}\nop to{0}(x: T[*s]) -> y: T[*s] {{ y = "
        "neg(x) }}\nrule r{0} {{ y = from{0}(x) => y = to{0}(x) }}\npass p{0} = greedy {{ r{0} "
        "}}\n",
        i);
    body += fmt::format("x{} = from{}(x{})\n", i + 1, i, i);
    names.push_back(fmt::format("p{}", i));
  }
  const World world(rules);
  OrderSpace space = space_of(world, names);
  space.most_runs = 20'000;
  const auto found =
      explore_orders(world.graph(body + "out x18\n"), world.rules, world.params, space);
  REQUIRE(found);
  CHECK(found->idle.empty());
  CHECK(found->ends.size() == 1);
  CHECK(found->orders == 3'628'800);  // of ten
  std::size_t joined = 0;
  for (const auto& passes : found->together) joined += passes.size() - 1;
  CHECK(joined == 8);
  CHECK(found->runs <= 20'000);
  space.before = {{0, 1}, {1, 0}};
  CHECK(explore_orders(world.graph(body + "out x18\n"), world.rules, world.params, space)
            .error()
            .front()
            .code == "PW1114");
}

TEST_CASE("orders: constraints and subsets are those of counting", "[analysis]") {
  const World world(kOrderRules);
  const Graph graph = world.graph(random_body(2));
  OrderSpace space = space_of(world, {"p_pair", "p_other", "p_outer", "p_inner"});
  space.before = {{0, 1}, {2, 3}};
  CHECK(explore_orders(graph, world.rules, world.params, space)->orders == 6);
  space.before = {{0, 1}, {1, 0}};
  CHECK(explore_orders(graph, world.rules, world.params, space).error().front().code == "PW1114");
  space.before.clear();
  space.subsets = true;
  CHECK(explore_orders(graph, world.rules, world.params, space)->orders == 65);
}

TEST_CASE("orders: counts equal those of a list of all orders that meet the constraints",
          "[analysis]") {
  using Before = std::vector<std::pair<std::size_t, std::size_t>>;
  for (const bool subsets : {false, true})
    for (const Before& before : {Before{}, Before{{2, 0}}, Before{{0, 1}, {1, 3}}}) {
      std::vector<std::vector<std::size_t>> expected;
      std::vector<std::size_t> order;
      const auto list = [&](const auto& self) -> void {
        if (subsets || order.size() == 4) expected.push_back(order);
        for (std::size_t pass = 0; pass < 4; ++pass) {
          const auto ran = [&](std::size_t each) {
            return std::find(order.begin(), order.end(), each) != order.end();
          };
          const bool kept = std::all_of(before.begin(), before.end(), [&](const auto& pair) {
            return pair.second != pass || ran(pair.first);
          });
          if (ran(pass) || !kept) continue;
          order.push_back(pass);
          self(self);
          order.pop_back();
        }
      };
      list(list);
      const auto numbers = OrderNumbers::of(4, before, subsets);
      REQUIRE(numbers);
      REQUIRE(numbers->count() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(numbers->order(i) == expected[i]);
    }
  CHECK(OrderNumbers::of(0, {}, false).error().front().code == "PW1114");
  CHECK(OrderNumbers::of(17, {}, false).error().front().code == "PW1114");
  CHECK(OrderNumbers::of(2, {{0, 1}, {1, 0}}, false).error().front().code == "PW1114");
  CHECK(OrderNumbers::of(16, {}, false)->count() == 20'922'789'888'000);
}

TEST_CASE("orders: a sample holds each order equally often", "[analysis]") {
  const auto numbers = OrderNumbers::of(4, {{0, 1}}, false);
  std::vector<std::size_t> seen(12);
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const std::vector<std::uint64_t> sample = numbers->sample(3, seed);
    REQUIRE(sample.size() == 3);
    CHECK(std::adjacent_find(sample.begin(), sample.end(), std::greater_equal<>()) == sample.end());
    for (const std::uint64_t number : sample) ++seen.at(number);
  }
  // Each is in a quarter of the samples: 1000 times, give or take five standard deviations of 27.
  for (const std::size_t count : seen) CHECK((count > 860 && count < 1140));
  CHECK(numbers->sample(50, 1).size() == 12);
  CHECK(numbers->sample(5, 3) == numbers->sample(5, 3));
  CHECK(numbers->sample(5, 3) != numbers->sample(5, 4));
}

TEST_CASE("thefts: who took the node, and the orders that show it", "[analysis]") {
  struct Case {
    std::vector<std::string> passes;
    std::string body;
    std::string thief, victim;
    std::vector<std::size_t> losing;
  };
  const std::string readers = "in x: f32[8] h = tanh(x) q = neg(h) p = relu(h) r = exp(h) ";
  const std::vector<Case> cases{
      {{"p_pair", "p_other"}, readers + "out q, p, r", "pair", "other_pair", {0, 1}},
      {{"p_pair", "p_other"}, readers + "out q, p, r", "other_pair", "pair", {1, 0}},
      {{"p_outer", "p_inner"},
       "in x: f32[8] y = abs(relu(tanh(x))) out y",
       "outer",
       "inner",
       {0, 1}},
      {{"p_outer", "p_inner"},
       "in x: f32[8] y = abs(relu(tanh(x))) out y",
       "inner",
       "outer",
       {1, 0}},
      {{"p_pair", "p_outer"}, readers + "y = abs(p) out q, y, r", "pair", "outer", {0, 1}},
      {{"p_pair", "p_outer"}, readers + "y = abs(p) out q, y, r", "outer", "pair", {1, 0}},
      {{"p_pair", "p_inner"},
       "in x: f32[8] h = tanh(x) p = relu(h) q = neg(h) out p, q",
       "pair",
       "",
       {}},
      {{"p_squared", "p_fused"},
       "in a: f32[8], c: f32[8] y = add(mul(a, a), c) out y",
       "squared",
       "fused",
       {0, 1}},
      {{"p_fused", "p_squared"},
       "in a: f32[8], c: f32[8] y = add(mul(a, a), c) out y",
       "fused",
       "squared",
       {0, 1}},
      {{"p_negative", "p_other"},
       "in x: f32[8] q = neg(x) r = exp(x) z = neg(q) out z, r",
       "negative",
       "other_pair",
       {0, 1}},
      {{"p_negative", "p_pair"},
       "in x: f32[8] q = neg(x) p = relu(x) z = neg(q) out z, p",
       "negative",
       "pair",
       {0, 1}},
      {{"p_pair", "p_negative"},
       "in x: f32[8] q = neg(x) p = relu(x) z = neg(q) out z, p",
       "pair",
       "negative",
       {0, 1}},
      {{"p_spell", "p_outer", "p_inner"},
       "in x: f32[8] y = abs(relu(sigmoid(x))) out y",
       "inner",
       "outer",
       {0, 2, 1}},
      {{"p_spell", "p_inner", "p_outer"},
       "in x: f32[8] y = abs(relu(sigmoid(x))) out y",
       "outer",
       "inner",
       {0, 2, 1}},
  };
  for (const Case& each : cases) {
    const World world(kOrderRules);
    const Graph graph = world.graph(each.body);
    CAPTURE(each.body, each.thief, each.victim);
    const OrderSpace space = space_of(world, each.passes);
    const auto thefts = find_thefts(graph, world.rules, world.params, space);
    REQUIRE(thefts);
    const auto found = std::find_if(thefts->begin(), thefts->end(), [&](const Theft& theft) {
      return theft.thief_rule == each.thief &&
             (each.victim.empty() || theft.victim_rule == each.victim);
    });
    if (each.victim.empty()) {
      CHECK(found == thefts->end());
      continue;
    }
    REQUIRE(found != thefts->end());
    CHECK(found->losing == each.losing);
    // The orders show it: the victim's rule fires less in the one than in the other.
    const auto fired = [&](const std::vector<std::size_t>& order) {
      Graph g = graph;
      std::size_t count = 0;
      for (const std::size_t pass : order) {
        const auto report = run_strategy(g, world.rules, space.passes[pass], world.params, {});
        REQUIRE(report);
        count += report->journal.count(world.rules, each.victim);
      }
      return count;
    };
    CHECK(fired(found->losing) + found->lost == fired(found->keeping));
  }
}

// Other orders of the same work.
#include "rewriter/analysis/orders/fuzz_order.hpp"
#include "rewriter/analysis/orders/shuffle.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using pw::test::World;

namespace {

const std::string kReaders = R"(
op relu_neg(x: T[*s]) -> (p: T[*s], q: T[*s]) { p = relu(x) q = neg(x) }
op neg_exp(x: T[*s]) -> (q: T[*s], r: T[*s]) { q = neg(x) r = exp(x) }
rule left { p = relu(x) q = neg(x) => p, q = relu_neg(x) }
rule right { q = neg(x) r = exp(x) => q, r = neg_exp(x) }
pass p = greedy { left, right }
pass q = greedy { left }
)";
const std::string kGraph = R"(
  in x: f32[8]
  h = tanh(x)
  q = neg(h) p = relu(h) r = exp(h)
  z = add(add(p, q), r)
  out z
)";

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> out;
  for (NodeId n : graph.order()) out.push_back(graph.op_of(n).name);
  return out;
}

FuzzReport fuzz(const World& world, const Graph& graph, const char* pass) {
  Result<FuzzReport> report =
      fuzz_order(graph, world.rules, *world.rules.strategy(pass), world.params);
  REQUIRE(report);
  return std::move(*report);
}

}  // namespace

TEST_CASE("shuffle: another order of the nodes is the same graph", "[analysis]") {
  const World world(kReaders);
  const Graph graph = world.graph(kGraph);
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Graph other = reordered(graph, seed);
    CHECK(verify(other).empty());
    CHECK(structural_hash(other) == structural_hash(graph));
    CHECK(hash_of_terms(other) == hash_of_terms(graph));
    orders.insert(ops(other));
  }
  CHECK(orders.size() == 8);  // six of the readers; two where the first sum stands before exp
}

TEST_CASE("shuffle: ops with effects stay where they are", "[analysis]") {
  const World world("op speak(x: T[*s]) -> y: T[*s] effect");
  const Graph graph = world.graph("in x: f32[8] a = speak(x) b = speak(x) c = relu(x) out a, b, c");
  for (std::uint64_t seed = 1; seed <= 10; ++seed) CHECK(ops(reordered(graph, seed)) == ops(graph));
}

TEST_CASE("fuzz: a pass whose result depends on order is found out", "[analysis]") {
  const World world(kReaders);
  const FuzzReport report = fuzz(world, world.graph(kGraph), "p");
  REQUIRE(report.runs.size() == 21);
  REQUIRE(!report.different.empty());
  std::set<OrderRun::Kind> kinds;
  for (std::size_t i : report.different) {
    kinds.insert(report.runs[i].kind);
    CHECK(report.runs[i].hash != report.runs[0].hash);
  }
  CHECK(kinds.size() == 3);  // nodes, ranks, and matches at random
}

TEST_CASE("fuzz: one rule with one match is the same in any order", "[analysis]") {
  const World world(kReaders);
  CHECK(fuzz(world, world.graph(kGraph), "q").different.empty());
}

TEST_CASE("fuzz: over is kept in every order", "[analysis]") {
  std::string text = kReaders;
  text.replace(text.find("rule left"), 9, "rule left over right");
  const World world(text);
  CHECK(fuzz(world, world.graph(kGraph), "p").different.empty());
}

TEST_CASE("fuzz: what is left of a graph is what it takes", "[analysis]") {
  const World world(kReaders);
  const Graph small = reduce_order_dependence(world.graph(kGraph), world.rules,
                                              *world.rules.strategy("p"), world.params, {});
  std::vector<std::string> left = ops(small);
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"exp", "neg", "relu"});
  CHECK(verify(small).empty());
  CHECK(!fuzz(world, small, "p").different.empty());
}

TEST_CASE("terms: commutative operands and the order of nodes do not count", "[analysis]") {
  const World world("");
  const auto hash = [&](const std::string& body) {
    return hash_of_terms(world.graph("in x: f32[8], y: f32[8] " + body));
  };
  CHECK(hash("a = relu(x) b = neg(y) z = a + b out z") ==
        hash("b = neg(y) a = relu(x) z = b + a out z"));
  CHECK(hash("z = x - y out z") != hash("z = y - x out z"));
  CHECK(hash("a = relu(x) out a") != hash("a = relu(y) out a"));
  CHECK(hash("a = relu(x) out a, a") != hash("a = relu(x) b = relu(x) out a, b"));
}

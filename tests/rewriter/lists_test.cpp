// Patterns whose parts are matched several times or must be absent, and searches that start from
// nodes that are given.
#include "rewriter/search.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

NodeId node(const Graph& g, std::string_view value) { return g.producer(g.find_value(value)); }

/// How many matches there are with these nodes given, in pattern order; "-" is free.
std::size_t count_fixed(const World& world, const Graph& g, std::string_view rule,
                        const std::vector<std::string>& names) {
  std::vector<NodeId> nodes;
  for (const std::string& name : names) nodes.push_back(name == "-" ? NodeId() : node(g, name));
  RuleLayout layout = lay_out(world.rules, world.rule(rule));
  Env base = starting_env(*layout.rule, world.params);
  Search search(g, layout, base, false);
  std::size_t found = 0;
  search.run_fixed(nodes, [&](const Match&) { return ++found, true; });
  return found;
}

}  // namespace

TEST_CASE("lists: a search with given nodes finds the matches that hold them", "[rewriter]") {
  World world(R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
rule siblings { p = relu(x)  q = abs(x)  => p, q = pair(x) }
rule sum { y = add(neg(a), abs(b))  => y = sub(abs(b), a) }
)");
  Graph g = world.graph(R"(
    in x: f32[n], z: f32[n]
    a = relu(x)  b = abs(x)  c = abs(x)  d = abs(z)
    e = neg(z)  f = abs(x)  s = add(f, e)
    out a, b, c, d, s)");
  CHECK(count_fixed(world, g, "siblings", {"a", "b"}) == 1);
  CHECK(count_fixed(world, g, "siblings", {"a", "-"}) == 3);
  CHECK(count_fixed(world, g, "siblings", {"-", "c"}) == 1);
  CHECK(count_fixed(world, g, "siblings", {"-", "-"}) == 3);
  CHECK(count_fixed(world, g, "siblings", {"a", "d"}) == 0);
  CHECK(count_fixed(world, g, "siblings", {"b", "a"}) == 0);
  // Swapped operands are searched all the same; the way from a given node leads to the anchor.
  CHECK(count_fixed(world, g, "sum", {"e", "f", "s"}) == 1);
  CHECK(count_fixed(world, g, "sum", {"-", "f", "-"}) == 1);
  CHECK(count_fixed(world, g, "sum", {"-", "b", "-"}) == 0);
}

// The driver's work grows with the graph, not with its square: attempts are counted, not seconds.
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// x → op → op → … of one op, built without text.
Graph chain(const World& world, std::string_view op, std::size_t length) {
  Graph g(world.context);
  TypeId type = world.context->types.get(DType::f32, {world.context->dims.constant(8)});
  ValueId v = g.add_input("x", type, InputKind::input);
  for (std::size_t i = 0; i < length; ++i) {
    NodeSpec spec;
    spec.op = world.context->ops.find(op);
    spec.operands = {v};
    spec.results = {{type, ""}};
    v = g.result(g.add_node(spec));
  }
  g.add_output(v);
  return g;
}

std::size_t attempts(const RewriteReport& report) {
  std::size_t out = 0;
  for (const PassStats& pass : report.passes)
    for (const auto& [name, stats] : pass.rules) out += stats.attempts;
  return out;
}

RewriteOptions counted() {
  RewriteOptions options;
  options.stats = true;
  return options;
}

}  // namespace

TEST_CASE("scale: a chain of 100 000 nodes collapses with a few attempts a node", "[rewriter]") {
  World world(R"(
rule merge { y = relu(relu(x))  => y = relu(x) }
rule twice { y = neg(neg(x))  => y = x }
pass p = greedy { merge, twice }
)");
  constexpr std::size_t kLength = 100'000;
  Graph merged = chain(world, "relu", kLength);
  RewriteReport report = world.run(merged, "p", counted());
  CHECK(merged.node_count() == 1);
  CHECK(report.journal.count(world.rules, "merge") == kLength - 1);
  CHECK(attempts(report) >= kLength);
  CHECK(attempts(report) < 6 * kLength);
  Graph gone = chain(world, "neg", kLength);
  CHECK(attempts(world.run(gone, "p", counted())) < 6 * kLength);
  CHECK(gone.node_count() == 0);
}

TEST_CASE("scale: a value with 100 000 users costs no more a rewrite than one with few",
          "[rewriter]") {
  World world(R"(
rule norm_quant {
  y = neg(x)
  q = mul(y, s)
  => q = sub(x, s)
}
pass p = greedy { norm_quant }
)");
  auto star = [&](std::size_t arms) {
    Graph g(world.context);
    TypeId type = world.context->types.get(DType::f32, {world.context->dims.constant(8)});
    ValueId x = g.add_input("x", type, InputKind::input),
            s = g.add_input("s", type, InputKind::input);
    for (std::size_t i = 0; i < arms; ++i) {
      NodeSpec neg{
          world.context->ops.find("neg"), {x}, Attributes::empty(), {{type, ""}}, "", "", ""};
      ValueId y = g.result(g.add_node(neg));
      NodeSpec mul{
          world.context->ops.find("mul"), {y, s}, Attributes::empty(), {{type, ""}}, "", "", ""};
      g.add_output(g.result(g.add_node(mul)));
    }
    return g;
  };
  Graph g = star(100'000 / 4);
  RewriteReport report = world.run(g, "p", counted());
  CHECK(report.journal.total() == 100'000 / 4);
  CHECK(attempts(report) >= g.node_count());
  CHECK(attempts(report) < 4 * g.node_count());
}

#include "graph/graph.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

struct Fixture {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context, "g"};
  OpId op;
  TypeId type = context->types.get(DType::f32, {context->dims.constant(4)});
  Fixture() {
    Op decl;
    decl.name = "f";
    decl.imported = true;
    op = *context->ops.declare(decl);
  }
  NodeId node(std::vector<ValueId> operands, std::string name = "", std::size_t results = 1) {
    NodeSpec spec;
    spec.op = op;
    spec.operands = std::move(operands);
    for (std::size_t i = 0; i < results; ++i) spec.results.push_back({type, i == 0 ? name : ""});
    return graph.add_node(spec);
  }
};

/// The uses of a value in the order of its list.
std::string uses_of(const Graph& g, ValueId v) {
  std::string out = std::string(g.value_name(v)) + ":";
  std::size_t uses = 0;
  for (UseId u = g.first_use(v); u.valid(); u = g.next_use(u)) {
    ++uses;
    REQUIRE(g.operand(g.user(u), g.use_operand(u)) == v);
    out += std::to_string(g.user(u).index) + "." + std::to_string(g.use_operand(u)) + ",";
  }
  REQUIRE(uses == g.use_count(v));
  return out + "/" + std::to_string(g.output_count(v));
}

/// Everything observable, in order.
std::string snapshot(const Graph& g) {
  std::string out;
  std::uint64_t label = 0;
  for (NodeId n = g.first(); n.valid(); n = g.next(n)) {
    REQUIRE(g.alive(n));
    REQUIRE(g.label(n) > label);
    label = g.label(n);
    out += std::string(g.node_name(n)) + "(";
    for (ValueId v : g.operands(n)) {
      out += v.valid() ? std::string(g.value_name(v)) + "," : "none,";
      if (v.valid() && !g.is_input(v)) REQUIRE(g.label(g.producer(v)) < g.label(n));
    }
    out += ")";
    for (std::size_t i = 0; i < g.result_count(n); ++i) out += " " + uses_of(g, g.result(n, i));
    out += "\n";
  }
  for (ValueId v : g.inputs()) out += uses_of(g, v) + "\n";
  for (ValueId v : g.outputs()) out += "out " + std::string(g.value_name(v)) + "\n";
  return out;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "graph: uses are linked both ways and follow replacements", "[graph]") {
  ValueId x = graph.add_input("x", type, InputKind::input);
  ValueId a = graph.result(node({x, x}, "a"));
  ValueId b = graph.result(node({a, x}, "b"));
  graph.add_output(a);
  graph.add_output(b);
  CHECK(graph.use_count(x) == 3);
  graph.replace_uses(a, x);
  CHECK(graph.use_count(a) == 0);
  CHECK(graph.unused(a));
  CHECK(graph.outputs()[0] == x);
  graph.erase(graph.producer(a));
  CHECK(graph.use_count(x) == 2);
  CHECK(graph.node_count() == 1);
}

TEST_CASE_METHOD(Fixture, "graph: names are unique, and free again after an erase", "[graph]") {
  ValueId x = graph.add_input("x", type, InputKind::input);
  NodeId a = node({x}, "a");
  NodeId b = node({x}, "a");
  CHECK(graph.value_name(graph.result(b)) == "a_1");
  graph.erase(a);
  CHECK(graph.fresh_name("a") == "a");
}

TEST_CASE_METHOD(Fixture, "graph: ten thousand insertions at one place keep the order", "[graph]") {
  ValueId x = graph.add_input("x", type, InputKind::input);
  NodeId first = node({x}, "first"), last = node({graph.result(first)}, "last");
  graph.insert_before(last);
  for (int i = 0; i < 10000; ++i) node({graph.result(first)});
  std::vector<NodeId> order = graph.order();
  CHECK(order.size() == 10002);
  CHECK(order.front() == first);
  CHECK(order.back() == last);
  CHECK(std::is_sorted(order.begin(), order.end(),
                       [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); }));
}

TEST_CASE_METHOD(Fixture, "graph: rollback restores everything, whatever was done", "[graph]") {
  const std::uint64_t seed = 7;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    Graph g(context, "g");
    std::vector<ValueId> values{g.add_input("x", type, InputKind::input),
                                g.add_input("y", type, InputKind::input)};
    auto add = [&] {
      NodeSpec spec;
      spec.op = op;
      // Only values before the insertion point (the end) may be read.
      for (int k = 0; k < 2; ++k) spec.operands.push_back(values[random.below(values.size())]);
      spec.results = {{type, ""}, {type, ""}};
      NodeId n = g.add_node(spec);
      values.push_back(g.result(n, 0));
      values.push_back(g.result(n, 1));
    };
    for (int i = 0; i < 12; ++i) add();
    g.add_output(values.back());
    g.start_undo();
    std::string before = snapshot(g);
    Graph::Checkpoint mark = g.checkpoint();
    std::vector<ValueId> saved = values;
    for (int i = 0; i < 30; ++i) {
      std::vector<NodeId> order = g.order();
      switch (random.below(5)) {
        case 0: add(); break;
        case 1:
          g.erase_dead();
          std::erase_if(values,
                        [&](ValueId v) { return !g.is_input(v) && !g.alive(g.producer(v)); });
          break;
        case 2: {
          NodeId n = order[random.below(order.size())];
          const std::size_t operand = random.below(2);
          g.set_operand(n, operand, values[random.below(2)]);
          break;
        }
        case 3: {
          const ValueId value = values[random.below(values.size())];
          g.rename(value, "r" + std::to_string(random.below(5)));
          break;
        }
        case 4: {
          NodeId n = order[random.below(order.size())];
          if (g.result_count(n)) g.replace_uses(g.result(n, 0), values[0]);
          break;
        }
      }
    }
    snapshot(g);
    g.rollback(mark);
    REQUIRE(snapshot(g) == before);
    values = saved;
  }
}

TEST_CASE_METHOD(Fixture, "make_room: moves early users behind the inputs", "[graph]") {
  // m1 reads x; u reads m1's result and precedes p, whose value the replacement needs.
  ValueId x = graph.add_input("x", type, InputKind::input);
  NodeId m1 = node({x}, "m1");
  NodeId u = node({graph.result(m1)}, "u");
  NodeId p = node({x}, "p");
  NodeId m2 = node({graph.result(m1), graph.result(p)}, "m2");
  graph.add_output(graph.result(u));
  graph.add_output(graph.result(m2));
  std::vector<ValueId> reads{x, graph.result(p)}, writes{graph.result(m1), graph.result(m2)};
  std::vector<NodeId> matched{m1, m2};
  REQUIRE(graph.make_room(reads, writes, matched));
  NodeId fused = node({x, graph.result(p)}, "fused", 2);
  graph.replace_uses(graph.result(m1), graph.result(fused, 0));
  graph.replace_uses(graph.result(m2), graph.result(fused, 1));
  graph.erase_dead();
  snapshot(graph);
  CHECK(graph.node_count() == 3);
}

TEST_CASE_METHOD(Fixture, "make_room: refuses when a path leads from an output to an input",
                 "[graph]") {
  ValueId x = graph.add_input("x", type, InputKind::input);
  NodeId m1 = node({x}, "m1");
  NodeId u = node({graph.result(m1)}, "u");
  NodeId m2 = node({graph.result(m1), graph.result(u)}, "m2");
  std::string before = snapshot(graph);
  std::vector<ValueId> reads{x, graph.result(u)}, writes{graph.result(m1), graph.result(m2)};
  std::vector<NodeId> matched{m1, m2};
  CHECK_FALSE(graph.make_room(reads, writes, matched));
  CHECK(snapshot(graph) == before);
}

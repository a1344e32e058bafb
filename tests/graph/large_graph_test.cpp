// What lets a graph have a million nodes: its size a node, names that cost nothing, labels that
// change locally. Bounds are on bytes and on counts of what was touched, never on time.
#include <algorithm>
#include <map>

#include "base/hash.hpp"
#include "graph/graph.hpp"
#include "graph/text/text.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

struct Large {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context, "g"};
  OpId op = declare("f");
  TypeId type = context->types.get(DType::f32, {context->dims.constant(4)});
  ValueId x = graph.add_input("x", type, InputKind::input);

  OpId declare(const std::string& name) {
    Op decl;
    decl.name = name;
    decl.imported = true;
    return *context->ops.declare(decl);
  }
  NodeId fast(std::vector<ValueId> operands, std::size_t results = 1, NodeId like = {}) {
    const std::vector<TypeId> types(results, type);
    return graph.add_node(op, operands, Attributes::empty(), types, like);
  }
  NodeId named(std::vector<ValueId> operands, const std::string& name, std::size_t results = 1) {
    NodeSpec spec;
    spec.op = op;
    spec.operands = std::move(operands);
    for (std::size_t i = 0; i < results; ++i)
      spec.results.push_back({type, i == 0 ? name : name + "_r" + std::to_string(i)});
    return graph.add_node(spec);
  }
  std::string name(NodeId n) const { return std::string(graph.value_name(graph.result(n))); }
};

bool labels_rise(const Graph& g) {
  std::uint64_t last = 0;
  for (NodeId n = g.first(); n.valid(); n = g.next(n)) {
    if (g.label(n) <= last) return false;
    last = g.label(n);
  }
  return true;
}

}  // namespace

TEST_CASE_METHOD(Large, "graph: a node of a transformer takes at most 92 bytes", "[graph][large]") {
  // Of twenty nodes sixteen read two values and three make two: 1.8 operands, 1.15 results.
  constexpr std::size_t kNodes = 20'000;
  ValueId last = x;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const std::size_t k = i % 20;
    std::vector<ValueId> operands{last};
    if (k < 16) operands.push_back(x);
    const NodeId n =
        named(operands, "l" + std::to_string(i / 20) + "_v" + std::to_string(k), k < 3 ? 2 : 1);
    last = graph.result(n);
  }
  graph.add_output(last);
  graph.settle();
  CHECK(graph.bytes() <= 92 * kNodes);
  CHECK(name(graph.first()) == "l0_v0");
  CHECK(graph.value_name(last) == "l999_v19");
}

TEST_CASE_METHOD(Large,
                 "graph: the fast way in takes provenance from another node and makes no names",
                 "[graph][large]") {
  NodeSpec spec;
  spec.op = op;
  spec.operands = {x};
  spec.results = {{type, "a"}};
  spec.group = "layers.0";
  spec.source = "m.py:1";
  const NodeId a = graph.add_node(spec);
  const NodeId b = fast({graph.result(a), ValueId(), x}, 2, a);
  CHECK(graph.group(b) == "layers.0");
  CHECK(graph.source(b) == "m.py:1");
  CHECK(graph.operand_count(b) == 3);
  CHECK_FALSE(graph.operand(b, 1).valid());
  CHECK(graph.result_count(b) == 2);
  CHECK_FALSE(graph.named(graph.result(b)));
  CHECK(graph.use_count(x) == 2);
  CHECK(graph.last() == b);
  CHECK(graph.group(fast({x})).empty());
}

TEST_CASE("graph: an unnamed value is called the same whenever it is requested", "[graph][large]") {
  const auto build = [](bool ask) {
    Large l;
    const NodeId a = l.fast({l.x}), b = l.fast({l.x});
    if (ask) l.name(a);
    l.graph.rename(l.graph.result(b), "other");
    l.named({l.x}, "f__1");   // what `a` is called
    l.named({l.x}, "f__99");  // nobody yet
    const NodeId c = l.fast({l.graph.result(a)});
    l.graph.take_name(l.graph.result(c), l.graph.result(b));
    l.graph.add_output(l.graph.result(c));
    std::string out = print_node(l.graph, a) + "\n";
    for (NodeId n : l.graph.order()) out += print_node(l.graph, n) + "\n";
    return out;
  };
  CHECK(build(false) == build(true));
}

TEST_CASE_METHOD(Large,
                 "graph: names of unnamed values differ from all that are given, before or after",
                 "[graph][large]") {
  named({x}, "f__3");  // value 1
  named({x}, "f__3_");
  const NodeId a = fast({x});  // value 3
  REQUIRE(graph.result(a).index == 3);
  CHECK(name(a) == "f__3__");
  const NodeId b = named({x}, "f__3__");
  CHECK(name(b) != "f__3__");
  graph.rename(graph.result(b), "f__3__");
  CHECK(name(b) != "f__3__");
  CHECK(name(a) == "f__3__");
  CHECK(graph.find_value("f__3__") == graph.result(a));
  CHECK(graph.fresh_name("f__3__") != "f__3__");
}

TEST_CASE_METHOD(Large, "graph: a name is taken over, and comes back with a rollback",
                 "[graph][large]") {
  const ValueId a = graph.result(named({x}, "a")), b = graph.result(fast({x}));
  const std::string unnamed(graph.value_name(b));
  graph.start_undo();
  graph.take_name(b, a);
  CHECK(graph.value_name(b) == "a");
  CHECK_FALSE(graph.named(a));
  CHECK(graph.value_name(a) != "a");
  graph.take_name(b, a);  // unnamed: nothing happens
  CHECK(graph.value_name(b) == "a");
  CHECK(graph.fresh_name("a") == "a_1");
  graph.erase(graph.producer(b));
  CHECK(graph.fresh_name("a") == "a");
  graph.rollback(0);
  CHECK(graph.value_name(a) == "a");
  CHECK(graph.value_name(b) == unnamed);
  CHECK(graph.fresh_name("a") != "a");
}

TEST_CASE_METHOD(Large, "graph: a settled graph still records which names are taken",
                 "[graph][large]") {
  named({x}, "a");
  graph.settle();
  CHECK(graph.fresh_name("a") == "a_1");
  CHECK(graph.fresh_name("x") == "x_1");
  CHECK(name(named({x}, "a")) != "a");
}

TEST_CASE_METHOD(Large, "graph: trusted names are taken as they are, and compared afterwards",
                 "[graph][large]") {
  graph.fresh_name("a");
  graph.trust_names(true);
  named({x}, "a");
  graph.trust_names(false);
  CHECK(graph.fresh_name("a") == "a_1");
}

TEST_CASE_METHOD(Large, "graph: a node may have a hundred thousand operands and results",
                 "[graph][large]") {
  constexpr std::size_t kMany = 100'000;
  const NodeId wide = fast(std::vector<ValueId>(kMany, x), kMany), after = fast({x}, 7);
  CHECK(graph.operand_count(wide) == kMany);
  CHECK(graph.result_count(wide) == kMany);
  CHECK(graph.result_count(after) == 7);
  CHECK(graph.result_index(graph.result(wide, kMany - 1)) == kMany - 1);
  CHECK(graph.producer(graph.result(after)) == after);
  CHECK(graph.use_count(x) == kMany + 1);
}

TEST_CASE_METHOD(Large, "graph: inputs may be added between nodes", "[graph][large]") {
  const NodeId a = fast({x}, 2);
  const ValueId w = graph.add_input("w", type, InputKind::weight);
  const NodeId b = fast({w, graph.result(a, 1)});
  CHECK(graph.result_count(a) == 2);
  CHECK(graph.input_kind(w) == InputKind::weight);
  CHECK(graph.input_kind(x) == InputKind::input);
  graph.set_input_kind(w, InputKind::buffer);
  CHECK(graph.input_kind(w) == InputKind::buffer);
  CHECK(graph.use_count(w) == 1);
  CHECK(graph.producer(graph.result(b)) == b);
}

TEST_CASE_METHOD(Large, "graph: a value may be an output several times", "[graph][large]") {
  const ValueId a = graph.result(fast({x})), b = graph.result(fast({x}));
  for (ValueId v : {a, b, a, a}) graph.add_output(v);
  CHECK(graph.output_count(a) == 3);
  CHECK(graph.output_count(b) == 1);
  graph.start_undo();
  graph.set_output(0, b);
  CHECK(graph.output_count(a) == 2);
  graph.replace_uses(a, b);
  CHECK(graph.output_count(a) == 0);
  CHECK(graph.unused(a));
  CHECK(graph.output_count(b) == 4);
  graph.rollback(0);
  CHECK(graph.output_count(a) == 3);
  CHECK(graph.output_count(b) == 1);
  CHECK(graph.output_count(x) == 0);
}

TEST_CASE_METHOD(Large, "graph: mutations of a star relabel nothing", "[graph][large]") {
  constexpr std::size_t kUsers = 50'000;
  const ValueId y = graph.add_input("y", type, InputKind::input);
  std::vector<NodeId> users;
  for (std::size_t i = 0; i < kUsers; ++i) users.push_back(fast({x, x}));
  graph.start_undo();
  graph.replace_uses(x, y);
  CHECK(graph.use_count(x) == 0);
  CHECK(graph.use_count(y) == 2 * kUsers);
  CHECK(graph.users(y) == users);
  for (std::size_t i = 0; i < kUsers; i += 2) graph.set_operand(users[i], 0, x);
  CHECK(graph.use_count(x) == kUsers / 2);
  for (std::size_t i = 0; i < kUsers; i += 3) graph.erase(users[i]);
  for (NodeId n : users)  // each is replaced where it stands
    if (graph.alive(n)) {
      graph.insert_before(n);
      fast({x});
      graph.erase(n);
    }
  CHECK(labels_rise(graph));
  graph.rollback(0);
  CHECK(graph.users(x) == users);
  CHECK(graph.users(y).empty());
  CHECK(labels_rise(graph));
  CHECK(graph.renumberings() == 0);
}

TEST_CASE_METHOD(Large, "graph: insertions at one place relabel a stretch, not the graph",
                 "[graph][large]") {
  constexpr std::size_t kNodes = 20'000, kInserted = 20'000;
  const bool behind = GENERATE(true, false);  // each behind the one before, or in front of it
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes.push_back(fast({x}));
  NodeId at = nodes[kNodes / 2];
  for (std::size_t i = 0; i < kInserted; ++i) {
    graph.insert_before(at);
    const NodeId n = fast({x});
    if (!behind) at = n;
  }
  CHECK(labels_rise(graph));
  CHECK(graph.renumberings() > 0);
  CHECK(graph.renumberings() < kInserted / 4);
}

TEST_CASE_METHOD(Large,
                 "graph: a compact copy numbers in order and keeps what everything is called",
                 "[graph][large]") {
  const NodeId a = named({x}, "a"), b = fast({graph.result(a)}, 2), c = fast({graph.result(a)});
  graph.move_before(c, b);
  graph.erase(fast({x}));
  graph.insert_before({});
  const NodeId d = named({graph.result(b, 1), graph.result(c)}, "d");
  graph.add_output(graph.result(d));
  graph.add_output(graph.result(d));
  const Graph copy = graph.compact();
  CHECK(print_pwg(copy) == print_pwg(graph));
  CHECK(copy.node_bound() == 4);
  std::uint32_t next = 0;
  for (NodeId n : copy.order()) CHECK(n.index == next++);
  CHECK(copy.output_count(copy.outputs()[0]) == 2);
  CHECK(copy.compact().bytes() == copy.bytes());
}

TEST_CASE_METHOD(Large, "graph: stop_undo forgets and records no more", "[graph][large]") {
  graph.start_undo();
  fast({x});
  CHECK(graph.checkpoint() == 1);
  graph.stop_undo();
  fast({x});
  CHECK(graph.checkpoint() == 0);
  graph.rollback(0);
  CHECK(graph.node_count() == 2);
}

TEST_CASE("value names: every text comes back", "[graph][large]") {
  Strings strings;
  ValueNames names(strings);
  std::vector<std::string> texts{"",
                                 "a",
                                 "7",
                                 "l0_q",
                                 "l007_q",
                                 "x2097151",
                                 "x2097152",
                                 "l1_2_3",
                                 "99999999999999999999",
                                 "0",
                                 "00",
                                 "_0",
                                 std::string(100'000, 'x'),
                                 std::string("a\0b", 3),
                                 "\xc3\xa9"
                                 "1"};
  for (int i = 0; i < 3000; ++i)
    texts.push_back("p" + std::string(i % 1500, 'y') + std::to_string(i));
  std::vector<ValueNameId> ids;
  for (const std::string& text : texts) ids.push_back(names.add(text));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    REQUIRE(ids[i].valid());
    REQUIRE(names.text(ids[i]) == texts[i]);
    REQUIRE(names.copy(ids[i]) == texts[i]);
    REQUIRE(names.is(ids[i], texts[i]));
    REQUIRE_FALSE(names.is(ids[i], texts[i] + "0"));
    REQUIRE_FALSE(names.is(ids[i], "0" + texts[i]));
    REQUIRE_FALSE(names.is(ids[i], texts[(i + 1) % texts.size()]));
  }
}

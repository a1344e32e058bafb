// Two graphs without a shared history: what corresponds, and what is reported to differ.
#include "graph/compare/match_graphs.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.hpp"
#include "graph/compare/graph_diff.hpp"
#include "models/generate.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// A graph as a list, to be edited and built under other names and in another order.
struct Sketch {
  struct Node {
    std::string op;
    std::vector<std::size_t> operands;  ///< positions among inputs and nodes
  };
  std::size_t inputs = 0;
  std::vector<Node> nodes;
  std::vector<std::size_t> outputs;
};

constexpr const char* kUnary[] = {"relu", "neg", "abs", "sin", "cos", "exp"};
constexpr const char* kBinary[] = {"add", "sub", "mul", "maximum"};

Sketch random_plan(Random& random, std::size_t size) {
  Sketch plan;
  plan.inputs = 2 + random.below(6);
  const auto any = [&] {
    const std::size_t known = plan.inputs + plan.nodes.size();
    return random.below(3) == 0 ? random.below(known)
                                : known - 1 - random.below(std::min<std::size_t>(known, 6));
  };
  while (plan.nodes.size() < size) {
    if (random.below(3) != 0)
      plan.nodes.push_back({kBinary[random.below(std::size(kBinary))], {any(), any()}});
    else
      plan.nodes.push_back({kUnary[random.below(std::size(kUnary))], {any()}});
  }
  // Every value without a reader is an output, so that every node counts.
  std::set<std::size_t> read;
  for (const Sketch::Node& node : plan.nodes)
    read.insert(node.operands.begin(), node.operands.end());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    if (read.count(plan.inputs + i) == 0) plan.outputs.push_back(plan.inputs + i);
  return plan;
}

/// Returns the nodes in a random topological order.
std::vector<std::size_t> some_order(const Sketch& plan, Random& random) {
  std::vector<std::size_t> waiting(plan.nodes.size(), 0), ready, order;
  std::multimap<std::size_t, std::size_t> users;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    for (const std::size_t o : plan.nodes[i].operands) {
      if (o < plan.inputs) continue;
      users.emplace(o - plan.inputs, i);
      ++waiting[i];
    }
    if (waiting[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random.below(ready.size())], ready.back());
    const std::size_t i = ready.back();
    ready.pop_back();
    order.push_back(i);
    const auto [first, last] = users.equal_range(i);
    for (auto it = first; it != last; ++it)
      if (--waiting[it->second] == 0) ready.push_back(it->second);
  }
  return order;
}

/// `prefix` begins all names; `random` draws the orders of inputs and nodes.
Graph build(const ContextPtr& context, const Sketch& plan, const std::string& prefix,
            Random* random) {
  Graph graph(context);
  const TypeId type = context->types.get(DType::f32, {context->dims.constant(8)});
  std::vector<ValueId> values(plan.inputs + plan.nodes.size());
  std::vector<std::size_t> inputs(plan.inputs), order(plan.nodes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = i;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random != nullptr) {
    for (std::size_t i = inputs.size(); i > 1; --i)
      std::swap(inputs[i - 1], inputs[random->below(i)]);
    order = some_order(plan, *random);
  }
  for (const std::size_t i : inputs)
    values[i] = graph.add_input(prefix + "in" + std::to_string(i), type, InputKind::input);
  for (const std::size_t i : order) {
    NodeSpec spec;
    spec.op = context->ops.find(plan.nodes[i].op);
    for (const std::size_t o : plan.nodes[i].operands) spec.operands.push_back(values[o]);
    spec.results = {{type, prefix + "v" + std::to_string(i)}};
    values[plan.inputs + i] = graph.result(graph.add_node(spec));
  }
  for (const std::size_t o : plan.outputs) graph.add_output(values[o]);
  return graph;
}

/// Another op, another operand, or another output: one node is changed or made.
void edit(Sketch& plan, std::size_t at, Random& random) {
  Sketch::Node& node = plan.nodes[at];
  const auto other = [&](const auto& ops) {
    std::string op;
    do op = ops[random.below(std::size(ops))];
    while (op == node.op);
    return op;
  };
  switch (random.below(3)) {
    case 0: node.op = node.operands.size() == 1 ? other(kUnary) : other(kBinary); break;
    case 1: node.operands[0] = random.below(plan.inputs + at); break;
    default:
      plan.nodes.push_back({"tanh", {plan.inputs + at}});
      plan.outputs.push_back(plan.inputs + plan.nodes.size() - 1);
  }
}

GraphDiff compare(const Graph& a, const Graph& b) { return diff_graphs(a, b, match_graphs(a, b)); }

std::size_t differing(const GraphDiff& diff) { return diff.removed + diff.added + diff.changed; }

std::string listing(const GraphDiff& diff) {
  std::string out;
  for (const GraphChange& c : diff.changes)
    out += std::string(name(c.kind)) + " " + std::to_string(c.count) + " × " + c.thing + " " +
           c.first + ": " + c.what + (c.where.empty() ? "" : " @ " + c.where) + "\n";
  return out;
}

Graph parsed(const ContextPtr& context, const std::string& text) {
  auto graph = parse_graph(context, text, "text");
  if (!graph) FAIL(messages(graph.error(), *context));
  return std::move(*graph);
}

}  // namespace

TEST_CASE("match: a graph with other names and another order is equal", "[graph][match]") {
  const ContextPtr context = library();
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Sketch plan = random_plan(random, 1 + random.below(300));
    const Graph a = build(context, plan, "a_", nullptr);
    const GraphDiff same = compare(a, build(context, plan, "a_", &random));
    INFO(listing(same));
    REQUIRE(same.equal());
    REQUIRE(same.renamed_inputs == 0);
    const GraphDiff renamed = compare(a, build(context, plan, "b_", &random));
    INFO(listing(renamed));
    REQUIRE(renamed.equal());
    REQUIRE(renamed.matched == plan.nodes.size());
    REQUIRE(renamed.renamed_inputs == plan.inputs);
  }
}

TEST_CASE("match: edits are found where they are, with the names and without", "[graph][match]") {
  const ContextPtr context = library();
  for (const bool renamed : {false, true}) {
    std::size_t edits = 0, found = 0, hidden = 0, unedited = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      INFO("seed " << seed << (renamed ? " renamed" : ""));
      Random random(seed);
      const Sketch plan = random_plan(random, 100 + random.below(300));
      Sketch edited = plan;
      std::set<std::size_t> places;  // each node once
      while (places.size() < 5 && random.below(4) != 0)
        places.insert(random.below(plan.nodes.size()));
      for (const std::size_t at : places) edit(edited, at, random);
      const std::size_t count = places.size();
      const Graph a = build(context, plan, "a_", nullptr);
      const GraphDiff diff = compare(a, build(context, edited, renamed ? "b_" : "a_", &random));
      INFO(listing(diff));
      REQUIRE(diff.matched + diff.removed == plan.nodes.size());
      REQUIRE(diff.matched + diff.added == edited.nodes.size());
      edits += count;
      found += differing(diff);
      hidden += diff.equal() ? 1 : 0;
      unedited += count == 0 ? 1 : 0;
      if (!renamed) CHECK(differing(diff) <= count);
      CHECK(differing(diff) <= 3 * count);
    }
    CHECK(found <= edits + edits / 10);
    CHECK(hidden <= unedited + 10);  // an operand may be the old one again
  }
}

TEST_CASE("match: a changed constant, type and attribute are changes of one node",
          "[graph][match]") {
  const ContextPtr context = library();
  const std::string text =
      "graph { symbol n in 1..64 tokens in x: bf16[n, 64], w: bf16[64], u: bf16[64, 32]\n"
      "  y = rms_norm(x, w){eps = 1e-5}\n  z = mm(y, u)\n  v = relu(z)\n  out v, y }";
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    for (std::size_t at = other.find(from); at != std::string::npos;
         at = other.find(from, at + to.size()))
      other.replace(at, from.size(), to);
    return listing(compare(parsed(context, text), parsed(context, other)));
  };
  CHECK(changed("1e-5", "1e-6") == "changed 1 × rms_norm y: eps: 1e-05 → 1e-06\n");
  CHECK(changed("relu", "silu") == "changed 1 × relu v: op: relu → silu\n");
  CHECK(changed("out v, y", "out y, v") ==
        "changed 1 × output v: output 0: v → y\nchanged 1 × output y: output 1: y → v\n");
  CHECK(changed("out v, y", "out v") == "removed 1 × output y: output 1: y\n");
  CHECK(changed("1..64", "1..128") == "changed 1 × symbol n: 1..64 tokens → 1..128 tokens\n");
  CHECK(changed("relu(z)", "relu(mm(y, u))") ==
        "added 1 × mm z: (bf16[n, 64], bf16[64, 32]) → bf16[n, 32]\n");  // the one nobody reads
}

TEST_CASE("match: one more operand is a change", "[graph][match]") {
  const ContextPtr context = library();
  const auto joined = [&](const std::string& values) {
    return parsed(context, "graph { in x: f32[4, 8]  a = relu(x)  b = neg(x)  y = cat(" + values +
                               "){dim = 1}  z = abs(y)  out z, a, b }");
  };
  const GraphDiff diff = compare(joined("a, b"), joined("a, b, x"));
  INFO(listing(diff));
  CHECK(diff.removed + diff.added == 0);
  CHECK(listing(diff).find("operand 2: absent → x") != std::string::npos);
}

TEST_CASE("match: inputs with the same names are the same, whatever reads them", "[graph][match]") {
  const ContextPtr context = library();
  const Graph a = parsed(
      context, "graph { in x: f32[8], p: f32[8], q: f32[8]  y = mul(x, p)  z = mul(y, q)  out z }");
  const Graph b = parsed(
      context, "graph { in x: f32[8], p: f32[8], q: f32[8]  y = mul(x, q)  z = mul(y, p)  out z }");
  CHECK(listing(diff_graphs(a, b, match_graphs(a, b), false)) ==
        "changed 1 × mul y: operand 1: p → q\nchanged 1 × mul z: operand 1: q → p\n");
  const Graph c = parsed(
      context, "graph { in x: f32[8], r: f32[8], s: f32[8]  y = mul(x, s)  z = mul(y, r)  out z }");
  CHECK(compare(a, c).equal());
}

TEST_CASE("match: numbers in names shift without harm", "[graph][match]") {
  const ContextPtr context = library();
  const auto exported = [&](bool more) {
    std::string text = "graph { in arg0: f32[8], arg1: f32[8]";
    std::string body, last = "arg0";
    int number = 0;
    for (int i = 0; i < 30; ++i) {
      const auto add = [&](const std::string& op, const std::string& operands) {
        const std::string name = op + "_" + std::to_string(number++);
        body += "  " + name + " = " + op + "(" + operands + ")\n";
        return name;
      };
      const std::string first = add("add", last + ", arg1");
      last = add("mul", first + ", " + last);
      if (i == 10 && more) last = add("neg", last);
    }
    return parsed(context, text + "\n" + body + "  out " + last + " }");
  };
  const GraphDiff diff = compare(exported(false), exported(true));
  INFO(listing(diff));
  CHECK(diff.removed == 0);
  CHECK(diff.added == 1);
  CHECK(diff.changed <= 2);  // those that read the new node
}

TEST_CASE("match: twins without any difference are paired along their chains", "[graph][match]") {
  const ContextPtr context = library();
  Sketch plan;
  plan.inputs = 1;
  for (int chain = 0; chain < 20; ++chain)  // nobody reads their ends
    for (int i = 0; i < 5; ++i) {
      const std::size_t last = plan.inputs + plan.nodes.size() - 1;
      plan.nodes.push_back({kUnary[i], {i == 0 ? 0 : last}});
    }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const GraphDiff diff =
        compare(build(context, plan, "a_", nullptr), build(context, plan, "b_", &random));
    INFO("seed " << seed << "\n" << listing(diff));
    CHECK(diff.equal());
  }
}

TEST_CASE("match: equal changes of all layers are one row", "[graph][match]") {
  const ContextPtr context = library();
  LlamaOptions options;
  options.layers = 6;
  const Graph a = *generate_llama(context, options);
  Graph b = *generate_llama(context, options);
  const NameId eps = context->strings.intern("eps");
  for (NodeId n = b.first(); n.valid(); n = b.next(n))
    if (b.op_of(n).name == "rms_norm")
      b.set_attributes(n, context->attributes.intern({{eps, Attribute(1e-6)}}));
  CHECK(listing(compare(a, b)) ==
        "changed 13 × rms_norm l0_attn_normed: eps: 1e-05 → 1e-06 @ layers.0.attn … final\n");
  CHECK(diff_graphs(a, b, match_graphs(a, b), false).changes.size() == 13);
  options.layers = 7;
  const GraphDiff longer = compare(a, *generate_llama(context, options));
  INFO(listing(longer));
  CHECK(longer.removed == 0);
  CHECK(longer.added == 18);
}

TEST_CASE("match: the steps grow with the graph", "[graph][match]") {
  const ContextPtr context = library();
  const auto steps = [&](std::size_t size) {
    std::size_t sum = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Random random(seed);
      const Sketch plan = random_plan(random, size);
      Sketch edited = plan;
      for (std::size_t i = 0; i < size / 100; ++i) edit(edited, random.below(size), random);
      sum +=
          match_graphs(build(context, plan, "a_", nullptr), build(context, edited, "b_", &random))
              .steps;
    }
    return static_cast<double>(sum);
  };
  const double small = steps(2'000), large = steps(16'000);
  INFO(small << " " << large);
  CHECK(large < 8 * 1.5 * small);
}

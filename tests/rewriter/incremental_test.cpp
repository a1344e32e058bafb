// Incremental rewriting: whatever is edited, graph, ids, journal and report are those of a run from
// scratch, and what is kept alive is the same graph but for ids.
#include "rewriter/incremental.hpp"

#include "tests/rewriter/random_graphs.hpp"

using namespace pw;
using namespace pw::test;

namespace {

struct Outcome {
  std::string graph, journal, passes, warnings;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome outcome_of(const Graph& graph, const RewriteReport& report, const RuleSet& rules) {
  Outcome out{print_pwg(graph), journal_to_json_lines(report.journal, graph, rules), "", ""};
  for (NodeId n : graph.order()) out.graph += std::to_string(n.index) + " ";
  for (const PassStats& pass : report.passes) {
    out.passes += pass.pass + " " + std::to_string(pass.rewrites) + " " +
                  std::to_string(pass.nodes_after) + " " + std::string(name(pass.stop));
    for (const auto& [rule, stats] : pass.rules)
      out.passes += " " + rule + "=" + std::to_string(stats.matches);
    out.passes += "\n";
  }
  for (const Diagnostic& d : report.warnings) {
    out.warnings += d.code + " " + d.message + "\n";
    for (const std::string& note : d.notes) out.warnings += note + "\n";
  }
  return out;
}

Outcome from_scratch(const World& world, const Graph& input, const RuleSet& rules,
                     std::string_view pipeline) {
  Graph graph = input;
  Result<RewriteReport> report = run_pipeline(graph, rules, pipeline, world.params);
  if (!report) FAIL(render(report.error(), world.context->sources));
  return outcome_of(graph, *report, rules);
}

/// Whether the rules come to an end by themselves.
bool ends(const World& world, Graph graph) {
  RewriteOptions options;
  options.limits.rewrites = 200;
  Result<RewriteReport> report = run_pipeline(graph, world.rules, "all", world.params, options);
  return report && std::ranges::all_of(report->passes, [](const PassStats& pass) {
           return pass.stop == StopReason::fixpoint;
         });
}

Outcome next_of(IncrementalRun& run, const World& world, const Graph& input,
                const std::shared_ptr<const RuleSet>& rules, std::string_view pipeline) {
  const auto shared = std::make_shared<const Graph>(input);
  if (auto done = run.update(shared, rules, pipeline, world.params); !done)
    FAIL(render(done.error(), world.context->sources));
  auto result = run.result();
  if (!result) FAIL(render(result.error(), world.context->sources));
  CHECK(verify(result->graph).empty());
  CHECK(verify(run.graph()).empty());
  CHECK(structural_hash(run.graph()) == structural_hash(result->graph));
  return outcome_of(result->graph, result->report, *rules);
}

/// Changes a few things anywhere: operands, ops, outputs; adds and takes away nodes.
class Editor {
 public:
  explicit Editor(std::uint64_t seed) : random_(seed) {}

  void edit(Graph& graph) {
    const std::size_t edits = 1 + random_.below(3);
    for (std::size_t i = 0; i < edits; ++i) edit_once(graph);
  }

 private:
  NodeId any(const Graph& graph) {
    const std::vector<NodeId> order = graph.order();
    return order[random_.below(order.size())];
  }
  /// A value of this type that stands before the node.
  ValueId value_before(const Graph& graph, NodeId node, TypeId type) {
    std::vector<ValueId> fit;
    for (ValueId v : graph.inputs())
      if (graph.type(v) == type) fit.push_back(v);
    for (NodeId n = graph.first(); n != node; n = graph.next(n))
      for (std::size_t k = 0; k < graph.result_count(n); ++k)
        if (graph.type(graph.result(n, k)) == type) fit.push_back(graph.result(n, k));
    return fit.empty() ? ValueId() : fit[random_.below(fit.size())];
  }
  void edit_once(Graph& graph) {
    if (graph.node_count() == 0) return;
    const NodeId n = any(graph);
    switch (random_.below(4)) {
      case 0: return rewire(graph, n);
      case 1: return wrap(graph, n);
      case 2: return drop(graph, n);
      default: return copy(graph, n);
    }
  }
  void rewire(Graph& graph, NodeId n) {
    if (graph.operand_count(n) == 0) return;
    const std::size_t slot = random_.below(graph.operand_count(n));
    const ValueId old = graph.operand(n, slot);
    if (!old.valid()) return;
    const ValueId to = value_before(graph, n, graph.type(old));
    if (to.valid()) graph.set_operand(n, slot, to);
  }
  /// Its uses read relu or neg of it.
  void wrap(Graph& graph, NodeId n) {
    if (graph.result_count(n) == 0) return;
    const ValueId v = graph.result(n);
    NodeSpec spec;
    spec.op = graph.context().ops.find(random_.below(2) == 0 ? "relu" : "neg");
    spec.operands = {v};
    spec.results = {{graph.type(v), ""}};
    graph.insert_before(graph.next(n));
    const NodeId made = graph.add_node(spec);
    graph.insert_before({});
    graph.replace_uses(v, graph.result(made));
    graph.set_operand(made, 0, v);
  }
  /// Its users read its first operand.
  void drop(Graph& graph, NodeId n) {
    if (graph.result_count(n) != 1 || graph.operand_count(n) == 0) return;
    const ValueId v = graph.operand(n, 0);
    if (!v.valid() || graph.type(v) != graph.type(graph.result(n))) return;
    graph.replace_uses(graph.result(n), v);
    graph.erase(n);
  }
  /// One more like it, which is an output.
  void copy(Graph& graph, NodeId n) {
    if (graph.result_count(n) != 1) return;
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.operands = graph.operands(n);
    spec.attributes = graph.attributes(n);
    spec.results = {{graph.type(graph.result(n)), ""}};
    graph.insert_before(graph.next(n));
    graph.add_output(graph.result(graph.add_node(spec)));
    graph.insert_before({});
  }

  Random random_;
};

constexpr const char* kGreedy =
    "pipeline all {\n  fixpoint\n  cse\n  fixpoint\n  dce\n  fixpoint\n}\n";
std::string without_fuel(std::string text) {
  const std::string fuel = " fuel 60";
  for (std::size_t at; (at = text.find(fuel)) != std::string::npos;) text.erase(at, fuel.size());
  return text;
}
/// A sweep has to be made anew.
constexpr const char* kSweep = "pipeline all {\n  fixpoint\n  cse\n  sweep\n  dce\n}\n";

/// `text` with `to` in the place of `from` at `at`, as rules; null, and the text as it was, where
/// that makes no valid set.
std::shared_ptr<const RuleSet> with_replaced(const World& world, std::string& text, std::size_t at,
                                             const std::string& from, const std::string& to) {
  std::string edited = text;
  edited.replace(at, from.size(), to);
  Result<RuleSet> loaded = load_rule_texts(world.context, {{"rules.pwr", edited}});
  if (!loaded) return nullptr;
  text = std::move(edited);
  return std::make_shared<const RuleSet>(std::move(*loaded));
}

/// With another op at one place of one rule; null where that makes no valid set.
std::shared_ptr<const RuleSet> edited_rules(const World& world, const RandomRules& drawn,
                                            std::string& text, Random& random) {
  const std::string rule = "rule r" + std::to_string(random.below(drawn.rules.size()));
  const std::size_t begin = text.find(rule), end = text.find("\n}", begin);
  const auto& unary = drawn.alphabet.unary;
  const auto& binary = drawn.alphabet.binary;
  const bool one = random.below(2) == 0;
  const auto any = [&]() -> std::string {
    return std::string(one ? unary[random.below(3)] : binary[random.below(2)]) + "(";
  };
  const std::string from = any(), to = any();
  const std::size_t at = text.find(from, begin);
  return at < end ? with_replaced(world, text, at, from, to) : nullptr;
}

/// What became of the updates of a test.
struct Tally {
  std::size_t kept = 0, undone = 0, edits = 0;
  std::map<std::string, std::size_t> why;

  /// The update gives what a run from scratch gives.
  void update(IncrementalRun& run, const World& world, const Graph& graph,
              const std::shared_ptr<const RuleSet>& rules, const char* pipeline) {
    const Outcome expected = from_scratch(world, graph, *rules, pipeline);
    const Outcome found = next_of(run, world, graph, rules, pipeline);
    REQUIRE(found.journal == expected.journal);
    REQUIRE(found.graph == expected.graph);
    REQUIRE(found.passes == expected.passes);
    REQUIRE(found.warnings == expected.warnings);
    kept += run.counters().kept ? 1 : 0;
    undone += run.counters().undone;
    ++why[run.counters().why];
  }
};

}  // namespace

TEST_CASE("incremental: random graphs, rules and edits give what a run from scratch gives",
          "[rewriter][incremental]") {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomRules drawn = random_rules(seed, seed % 4 == 0 ? Mix::all : Mix::plain);
    std::string text = without_fuel(drawn.text) + (seed % 8 == 0 ? kSweep : kGreedy);
    World world(text);
    auto rules = std::make_shared<const RuleSet>(world.rules);
    Graph graph = random_graph(world, drawn, seed);
    if (!ends(world, graph)) continue;
    IncrementalRun incremental;
    Editor editor(seed);
    Random random(seed);
    for (int turn = 0; turn < 6; ++turn) {
      INFO("seed " << seed << ", turn " << turn << "\n" << text << print_pwg(graph));
      tally.update(incremental, world, graph, rules, "all");
      if (random.below(3) != 0) {
        editor.edit(graph);
      } else if (auto other = edited_rules(world, drawn, text, random)) {
        rules = std::move(other);
        ++tally.edits;
      }
    }
  }
  CHECK(tally.edits > 100);
  CHECK(tally.why.contains(""));
  CHECK(tally.kept > 400);
  CHECK(tally.undone > 300);
}

namespace {

constexpr const char* kMany = R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
op both(x: T[*s], z: T[*s]) -> (p: T[*s], q: T[*s])
rule merge { y = relu(relu(x))  => y = relu(x) }
rule twice { y = neg(neg(x))  => y = x }
rule sum_up { given { h = neg(z) }  y = add(x, h)  => y = sub(x, z) }
rule difference { y = sub(x, neg(z))  => y = add(x, z) }
rule siblings { p = relu(x)  q = abs(x)  => p, q = pair(x) }
rule stacked { p, q = pair(x)  y = relu(p)  => y, q = pair(x) }
rule product { y = mul(abs(x), abs(z))  => y = abs(mul(x, z)) }
rule far { p = sin(x)  q = cos(z)  y = add(p, q)  => p, q = both(x, z)  y = maximum(p, q) }
rule wide over merge { y = relu(relu(neg(x)))  => y = abs(x) }
rule folded { y = abs(abs(x))  => y = abs(x) }
rule swapped { y = sub(abs(x), relu(x))  => y = relu(neg(x)) }
rule whole { y = abs(relu(x))  => y = relu(x) }
pass some = greedy { merge, twice, sum_up, difference, siblings, stacked, product }
pass all = greedy { merge, twice, sum_up, difference, siblings, stacked, product, far, wide, folded, swapped, whole }
pipeline both_of { some  cse  all  dce  some }
)";

Graph grown(const World& world, std::uint64_t seed, std::size_t size) {
  Random random(seed);
  Graph g(world.context);
  const TypeId type = world.context->types.get(DType::f32, {world.context->dims.constant(8)});
  std::vector<ValueId> values{g.add_input("a", type, InputKind::input),
                              g.add_input("b", type, InputKind::input)};
  const char* ops[] = {"relu", "neg", "abs", "sin", "cos", "relu", "neg", "add", "sub", "mul"};
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t which = random.below(std::size(ops));
    NodeSpec spec;
    spec.op = world.context->ops.find(ops[which]);
    for (std::size_t k = 0; k < (which < 7 ? 1u : 2u); ++k) {
      const std::size_t near = std::min<std::size_t>(values.size(), 3);
      const bool anywhere = random.below(40) == 0;
      spec.operands.push_back(
          values[values.size() - 1 - random.below(anywhere ? values.size() : near)]);
    }
    spec.results = {{type, ""}};
    values.push_back(g.result(g.add_node(spec)));
  }
  for (std::size_t i = 0; i < 3; ++i) g.add_output(values[values.size() - 1 - i]);
  return g;
}

/// Another op in one rule.
std::shared_ptr<const RuleSet> with_other_op(const World& world, std::string& text,
                                             Random& random) {
  const char* ops[] = {"relu(", "neg(", "abs(", "sin("};
  const std::string from = ops[random.below(4)], to = ops[random.below(4)];
  const std::size_t begin = text.find("rule merge"), end = text.find("pass some");
  const std::size_t at = text.find(from, begin + random.below(end - begin));
  return at < end && from != to ? with_replaced(world, text, at, from, to) : nullptr;
}

}  // namespace

TEST_CASE("incremental: long chains of rewrites are followed through edits of graph and rules",
          "[rewriter][incremental]") {
  constexpr std::uint64_t most = 150;
  Tally tally;
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    std::string text = kMany;
    World world(text);
    auto rules = std::make_shared<const RuleSet>(world.rules);
    Graph graph = grown(world, seed, 40 + 5 * (seed % 100));
    IncrementalRun incremental;
    Editor editor(seed);
    Random random(seed);
    for (int turn = 0; turn < 8; ++turn) {
      INFO("seed " << seed << ", turn " << turn);
      tally.update(incremental, world, graph, rules, "both_of");
      if (turn % 3 == 2) {
        if (auto other = with_other_op(world, text, random)) {
          rules = std::move(other);
          ++tally.edits;
        }
      } else {
        editor.edit(graph);
      }
    }
  }
  CHECK(tally.edits * 2 > most);
  CHECK(tally.why.contains(""));
  CHECK(tally.kept > 4 * most);
  CHECK(tally.undone > 5 * most);
}

namespace {

/// `tags` chains of three nodes each, with k = 0, 1, 2, 0, …
std::string chains(std::size_t tags) {
  std::string out = "in a: f32[4]\n", outputs;
  for (std::size_t i = 0; i < tags; ++i) {
    const std::string n = std::to_string(i);
    out += "x" + n + " = tag(a){k = " + std::to_string(i % 3) + "}\n";
    out += "y" + n + " = relu(x" + n + ")\nz" + n + " = neg(y" + n + ")\n";
    outputs += (i == 0 ? "out z" : ", z") + n;
  }
  return out + outputs + "\n";
}

std::string tag_rules(const std::string& guard, const std::string& made) {
  return "op tag(x: T[*s]) {k: int = 0} -> T[*s]\n"
         "rule tagged {\n  y = relu(tag(x){k})\n" +
         guard + "  =>\n  y = " + made +
         "\n}\n"
         "rule after { y = neg(abs(x)) => y = sin(x) }\n"
         "pass all = greedy { tagged, after }\npass sweep = walk { tagged, after }\n";
}

/// The same run by other rules, against a run from scratch; whether it was kept.
bool rewrites_alike(IncrementalRun& run, const World& world, const Graph& graph,
                    const std::string& rules, std::string_view pass = "all") {
  Result<RuleSet> loaded = load_rule_texts(world.context, {{"rules.pwr", rules}});
  if (!loaded) FAIL(render(loaded.error(), world.context->sources));
  const auto shared = std::make_shared<const RuleSet>(std::move(*loaded));
  const Outcome expected = from_scratch(world, graph, *shared, pass);
  CHECK(next_of(run, world, graph, shared, pass) == expected);
  return run.counters().kept;
}

}  // namespace

TEST_CASE("incremental: an edited guard concerns the rewrites that it judges otherwise",
          "[rewriter][incremental]") {
  const World world(tag_rules("  where k < 9\n", "abs(x)"));
  const Graph graph = world.graph(chains(12));
  IncrementalRun run;
  CHECK(!rewrites_alike(run, world, graph, tag_rules("  where k < 2\n", "abs(x)")));
  CHECK(run.counters().rewrites == 16);
  SECTION("nothing, where all verdicts stay") {
    CHECK(rewrites_alike(run, world, graph, tag_rules("  where k <= 1\n", "abs(x)")));
    CHECK(run.counters().undone == 0);
  }
  SECTION("those that no longer fit, and what was built upon them") {
    CHECK(rewrites_alike(run, world, graph, tag_rules("  where k < 1\n", "abs(x)")));
    CHECK(run.counters().rewrites == 8);
    CHECK(run.counters().undone == 8);
    CHECK(run.counters().why.empty());
  }
  SECTION("those that now make something else") {
    CHECK(rewrites_alike(run, world, graph, tag_rules("  where k < 2\n", "cos(x)")));
    CHECK(run.counters().rewrites == 8);
    CHECK(run.counters().fresh == 8);
  }
  SECTION("all, where a rule fires that did not") {
    CHECK(!rewrites_alike(run, world, graph, tag_rules("  where k < 3\n", "abs(x)")));
    CHECK(run.counters().why == "a rule fires where it did not");
    CHECK(run.counters().rewrites == 24);
  }
}

TEST_CASE("incremental: a rule that fires at many places is edited again and again",
          "[rewriter][incremental]") {
  const auto rules = [](const std::string& guard) {
    return tag_rules("  where " + guard + "\n", "abs(x)");
  };
  const World world(rules("k < 9"));
  Graph graph = world.graph(chains(900));
  IncrementalRun run;
  CHECK(!rewrites_alike(run, world, graph, rules("k < 2")));
  for (const auto& [guard, why] : std::vector<std::pair<std::string, std::string>>{
           {"k < 1", "a rule that fires at many places was edited"},
           {"k < 3", "a rule fires where it did not"},
           {"k <= 2", ""},
           {"k < 2", "a rule that fires at many places was edited"}}) {
    INFO(guard);
    CHECK(rewrites_alike(run, world, graph, rules(guard)) == why.empty());
    CHECK(run.counters().why == why);
    const NodeId node =
        graph.producer(graph.find_value("y" + std::to_string(graph.node_bound() % 7)));
    graph.set_op(node, world.context->ops.find(graph.op_of(node).name == "relu" ? "cos" : "relu"));
    CHECK(rewrites_alike(run, world, graph, rules(guard)));
    CHECK(run.counters().undone <= 2);
  }
}

TEST_CASE("incremental: a rule that is edited very often is mostly kept",
          "[rewriter][incremental]") {
  const World world(tag_rules("  where k < 9\n", "abs(x)"));
  const Graph graph = world.graph(chains(12));
  IncrementalRun run;
  CHECK(!rewrites_alike(run, world, graph, tag_rules("  where k < 2\n", "abs(x)")));
  std::size_t kept = 0;
  for (int i = 0; i < 40; ++i) {
    INFO(i);
    const std::string made = i % 2 == 0 ? "cos(x)" : "abs(x)";
    kept += rewrites_alike(run, world, graph, tag_rules("  where k < 2\n", made)) ? 1 : 0;
  }
  CHECK(kept > 20);  // new nodes at one place run out of labels, now and then
}

TEST_CASE("incremental: an edit far from the others leaves them alone", "[rewriter][incremental]") {
  const std::string rules = tag_rules("  where k < 2\n", "abs(x)");
  const World world(rules);
  Graph graph = world.graph(chains(300));
  const auto shared = std::make_shared<const RuleSet>(world.rules);
  IncrementalRun run;
  (void)next_of(run, world, graph, shared, "all");
  for (std::size_t i = 0; i < 40; ++i) {
    const NodeId node = graph.producer(graph.find_value("x" + std::to_string(7 * i)));
    const auto k = static_cast<std::int64_t>((i + i / 3) % 3);
    graph.set_attributes(node, world.context->attributes.intern(
                                   {{world.context->strings.intern("k"), Attribute(k)}}));
    INFO("edit " << i);
    REQUIRE(next_of(run, world, graph, shared, "all") ==
            from_scratch(world, graph, *shared, "all"));
    REQUIRE(run.counters().kept);
    REQUIRE(run.counters().undone <= 2);
    REQUIRE(run.counters().fresh <= 2);
  }
}

TEST_CASE("incremental: a graph of another context is rewritten from scratch",
          "[rewriter][incremental]") {
  const std::string rules = tag_rules("  where k < 2\n", "abs(x)");
  const World here(rules), there("op other(x: T[*s]) -> T[*s]\n" + rules);
  IncrementalRun run;
  for (const World* world : {&here, &there, &here}) {
    const Graph graph = world->graph(chains(9));
    const auto shared = std::make_shared<const RuleSet>(world->rules);
    CHECK(next_of(run, *world, graph, shared, "all") ==
          from_scratch(*world, graph, *shared, "all"));
    CHECK(!run.counters().kept);
  }
}

TEST_CASE("incremental: rules that were left out come back with an op", "[rewriter][incremental]") {
  const auto rules_with = [](const std::string& made) {
    return "rule first { y = relu(x)  => y = " + made + " }\n" +
           "rule second { y = abs(neg(x))  => y = cos(x) }\n" +
           "rule third { y = x + x  => y = exp(x) }\npass all = greedy { first, second, third }";
  };
  const World world(rules_with("abs(x)"));
  Graph graph = world.graph("in x: f32[n]  a = relu(x)  b = relu(a)  c = silu(b)  out c");
  IncrementalRun run;
  CHECK(!rewrites_alike(run, world, graph, rules_with("abs(x)")));
  CHECK(run.counters().rewrites == 2);
  SECTION("an edit brings the op") {
    const NodeId a = graph.producer(graph.find_value("a"));
    graph.set_op(a, world.context->ops.find("neg"));
    CHECK(!rewrites_alike(run, world, graph, rules_with("abs(x)")));
    CHECK(run.counters().rewrites == 2);  // of the chain: first, then second
    CHECK(rewrites_alike(run, world, graph, rules_with("abs(x)")));
  }
  SECTION("an edited rule makes it, in plain words") {
    CHECK(!rewrites_alike(run, world, graph, rules_with("abs(neg(x))")));
    CHECK(run.counters().rewrites == 4);
  }
  SECTION("an edited rule makes it by an operator") {
    CHECK(!rewrites_alike(run, world, graph, rules_with("x + x")));
    CHECK(run.counters().rewrites == 4);
  }
}

TEST_CASE("incremental: what cannot be kept says why", "[rewriter][incremental]") {
  const World world(tag_rules("  where k < 9\n", "abs(x)"));
  const Graph graph = world.graph(chains(4));
  IncrementalRun run;
  CHECK(!rewrites_alike(run, world, graph, tag_rules("  where k < 9\n", "abs(x)"), "sweep"));
  CHECK(run.counters().why == "a pass is neither greedy nor built in");
}

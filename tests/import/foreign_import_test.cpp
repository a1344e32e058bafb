// A line of .pwr makes a target known: in dumps, in graph.json, in .pwg.
#include "graph/foreign.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "import/fx/fx.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

ContextPtr with(const std::string& rules) {
  ContextPtr context = library();
  auto set = load_rule_texts(context, {{"my.pwr", rules}});
  if (!set) FAIL(messages(set.error(), *context));
  return context;
}

Graph dump(const ContextPtr& context, const std::string& parameters, const std::string& body) {
  Result<FxImport> imported = import_fx(context,
                                        "class <lambda>(torch.nn.Module):\n    def forward(self, " +
                                            parameters + "):\n        " + body + "\n",
                                        {});
  if (!imported) FAIL(messages(imported.error(), *context));
  CHECK(messages(verify(imported->graph), *context) == "");
  return std::move(imported->graph);
}

Graph json(const ContextPtr& context, const std::string& text) {
  Result<Graph> graph = graph_from_json(context, text, "g.json", parse_op);
  if (!graph) FAIL(messages(graph.error(), *context));
  CHECK(messages(verify(*graph), *context) == "");
  return std::move(*graph);
}

constexpr const char* kTwoTensors = "x: \"f32[4, 8]\", y: \"f32[4, 8]\"";
constexpr const char* kScaled =
    "foreign my.scaled(x|input, y, factor = 1.0, exact = true, device: _ = none) = x * factor + "
    "y\n";

}  // namespace

TEST_CASE("foreign: a dump's target becomes its body, by position, keyword and default",
          "[graph][foreign]") {
  ContextPtr context = with(kScaled);
  Graph g = dump(context, kTwoTensors,
                 "a: \"f32[4, 8]\" = torch.ops.my.scaled.default(x, y, 2.5)\n        "
                 "b = torch.ops.my.scaled.default(y = a, input = x, device = device(type='cpu'))\n"
                 "        return b");
  CHECK(describe(g) ==
        std::vector<std::string>{"c__0: f64[] = constant(){dtype = f64, value = 2.5}",
                                 "a__0: f32[4, 8] = mul(x, c__0)", "a: f32[4, 8] = add(a__0, y)",
                                 "c__1: f64[] = constant(){dtype = f64, value = 1.0}",
                                 "b__0: f32[4, 8] = mul(x, c__1)", "b: f32[4, 8] = add(b__0, a)"});
}

TEST_CASE("foreign: an argument that nothing uses must hold its default", "[graph][foreign]") {
  ContextPtr context = with(kScaled);
  Graph g = dump(context, kTwoTensors,
                 "a: \"f32[4, 8]\" = torch.ops.my.scaled.default(x, y, exact = False)\n        "
                 "return a");
  CHECK(g.op_of(g.producer(g.find_value("a"))).imported);

  const auto items = *context->foreign->find("my.scaled");
  Graph empty(context, "g");
  const ValueId x = empty.add_input("x", context->types.get(DType::f32, {}), InputKind::input);
  const ForeignArguments arguments{{{x}, {x}}, {{"exact", {Attribute(false)}}}};
  const auto values = bind_foreign(*context, *items[0], arguments);
  REQUIRE(values);
  const auto env = match_foreign(empty, *items[0], *values);
  REQUIRE_FALSE(env);
  CHECK(env.error() == "its declaration does not accept argument `exact` = False");
  const auto wrong = bind_foreign(*context, *items[0], {{}, {{"speed", {Attribute(1.0)}}}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error() == "its declaration has no argument `speed`");
}

TEST_CASE("foreign: the first item whose types and guard hold is taken", "[graph][foreign]") {
  ContextPtr context = with(
      "foreign my.act(x: T[*s], k: int = 0) = relu(x) where T == bf16, k >= 0\n"
      "foreign my.act(x, k: int = 0) = neg(x) where k == 1\n"
      "foreign my.act(x, k: int = 0) = abs(x) where k == 2\n");
  Graph g = dump(context, "x: \"f32[4]\", h: \"bf16[4]\"",
                 "a = torch.ops.my.act.default(x, 1)\n        "
                 "b = torch.ops.my.act.default(h, 1)\n        "
                 "c = torch.ops.my.act.default(x, 2)\n        "
                 "d: \"f32[4]\" = torch.ops.my.act.default(x, 3)\n        return (a, b, c, d)");
  CHECK(line_of(g, "a") == "a: f32[4] = neg(x)");
  CHECK(line_of(g, "b") == "b: bf16[4] = relu(h)");
  CHECK(line_of(g, "c") == "c: f32[4] = abs(x)");
  CHECK(g.op_of(g.producer(g.find_value("d"))).imported);
}

TEST_CASE("foreign: what is written is what its name means from there on", "[graph][foreign]") {
  ContextPtr context = with(
      "foreign my.step(mut x, out q, w) -> y {\n  y = mul(x, w)\n  x = add(x, y)\n  q = "
      "neg(y)\n}\n");
  Graph g =
      dump(context, "x: \"f32[4]\", w: \"f32[4]\"",
           "q: \"f32[4]\" = torch.ops.aten.empty.memory_format([4], dtype = torch.float32)\n"
           "        auto = torch.ops.higher_order.auto_functionalized(torch.ops.my.step.default, "
           "x = x, q = q, w = w)\n        y: \"f32[4]\" = auto[0]\n        "
           "x2: \"f32[4]\" = auto[1]\n        q2: \"f32[4]\" = auto[2]\n        "
           "return (x2, q2)");
  CHECK(line_of(g, "x2").find("= add(x, ") != std::string::npos);
  CHECK(line_of(g, "q2").find("= neg(") != std::string::npos);
}

TEST_CASE("foreign: a functionalised unknown call returns the copies that its schema names",
          "[graph][foreign]") {
  const auto context = std::make_shared<Context>();
  FxOptions options;
  options.file = "dump.txt";
  options.schemas["my.quant.default"] = "my.quant x:T o:Ta! caches:Lb! s:Tc!= >";
  options.schemas["my.pair.default"] = "my.pair x:T o:Ta! > T T";
  const auto import = import_fx(
      context,
      "def forward(self, x: \"f32[4]\", o: \"f32[4]\", k: \"f32[2]\", v: \"f32[3]\"):\n"
      "    f = torch.ops.higher_order.auto_functionalized(torch.ops.my.quant.default, x = x, o = "
      "o, "
      "caches = [k, v], s = None)\n"
      "    o2: \"f32[4]\" = f[1]\n    c = f[2]\n    v2: \"f32[3]\" = c[1]\n"
      "    g = torch.ops.higher_order.auto_functionalized(torch.ops.my.pair.default, x = o2, o = "
      "o)\n    a: \"f32[4]\" = g[0]\n    b: \"f32[4]\" = g[1]\n    o3: \"f32[4]\" = g[2]\n"
      "    h = torch.ops.higher_order.auto_functionalized_v2(torch.ops.my.pair.default, x = o3, "
      "_o_base_index = 0, _all_bases = [o])\n"
      "    d: \"f32[4]\" = h[1]\n    o4: \"f32[4]\" = h[2]\n"
      "    return (o2, v2, a, b, o3, d, o4, o)\n",
      options);
  INFO((import ? std::string() : render(import.error(), context->sources)));
  REQUIRE(import);
  const Graph& g = import->graph;
  const auto producer = [&](std::string_view name) { return g.producer(g.find_value(name)); };
  CHECK(g.op_of(producer("o2")).name == "my.quant.default");
  CHECK(producer("v2") == producer("o2"));
  CHECK(g.operand(producer("o2"), 1) == g.find_value("o"));  // a copy of it: `o` stays what it was
  CHECK(producer("a") == producer("o3"));
  CHECK(producer("b") == producer("o3"));
  CHECK(g.result_count(producer("o3")) == 3);
  CHECK(producer("d") == producer("o4"));
  CHECK(g.is_input(g.find_value("o")));
}

TEST_CASE("foreign: a declared op of the target's name refines it, with its defaults",
          "[graph][foreign]") {
  ContextPtr context = with(
      "op mine.f.default(x: T[*s], i: I[*i]?) {k: int = 1, mode: str = \"a\"} -> y: T[*s]\n"
      "op mine.g(x: T[*s]) -> y: T[*s] { y = relu(x) }\n");
  Graph g = dump(context, "x: \"f32[4]\", i: \"i64[2]\"",
                 "a = torch.ops.mine.f.default(x, 3, i)\n        "
                 "b = torch.ops.mine.f.default(a, None, mode = 'b')\n        "
                 "c = torch.ops.mine.g.default(b)\n        return c");
  CHECK(line_of(g, "a") == "a: f32[4] = mine.f.default(x, i){k = 3, mode = \"a\"}");
  CHECK(line_of(g, "b") == "b: f32[4] = mine.f.default(a, none){k = 1, mode = \"b\"}");
  CHECK(line_of(g, "c") == "c: f32[4] = mine.g(b)");
}

TEST_CASE("foreign: graph.json and .pwg with an op that was unknown get what it is now",
          "[graph][foreign]") {
  const std::string body =
      "t: \"f32[4]\" = torch.ops.mine.f.default(x, 3, y)\n        u: \"f32[4]\" = "
      "torch.ops.my.scaled.default(t, y, factor = 2.0)\n        return u";
  const std::string parameters = "x: \"f32[4]\", y: \"f32[4]\"";
  ContextPtr before = library();
  Graph unknown = dump(before, parameters, body);
  const std::string as_json = graph_to_json(unknown), as_text = print_pwg(unknown);
  REQUIRE(as_json.find("imported") != std::string::npos);

  const std::string rules =
      std::string(kScaled) + "op mine.f.default(x: T[*s], y: T[*s]) {k: int} -> z: T[*s]\n";
  ContextPtr context = with(rules);
  const std::string wanted = print_pwg(dump(context, parameters, body));
  Graph from_json = json(with(rules), as_json);
  CHECK(line_of(from_json, "t") == "t: f32[4] = mine.f.default(x, y){k = 3}");
  CHECK(line_of(from_json, "u").find("= add(") != std::string::npos);
  CHECK(print_pwg(from_json).find("(...)") == std::string::npos);
  ContextPtr again = with(rules);
  Result<Graph> from_text = parse_graph(again, as_text, "g.pwg");
  if (!from_text) FAIL(messages(from_text.error(), *again));
  CHECK(line_of(*from_text, "t") == "t: f32[4] = mine.f.default(x, y){k = 3}");
  CHECK(line_of(*from_text, "u").find("= add(") != std::string::npos);
}

TEST_CASE("foreign: a number for which PyTorch raises is not refined in a graph that is read",
          "[graph][foreign]") {
  const Graph g = dump(library(), "x: \"f16[4]\"",
                       "y: \"f16[4]\" = torch.ops.aten.clamp.default(x, None, 65519.0)\n        "
                       "return y");
  const std::string line = line_of(g, "y");
  CHECK(line.find("= aten.clamp.default(x)") != std::string::npos);
  CHECK(line_of(json(library(), graph_to_json(g)), "y") == line);
}

TEST_CASE("foreign: names that a body invents differ from the graph's", "[graph][foreign]") {
  ContextPtr context = with("foreign my.twice(x) -> y {\n  c = x * 2.0\n  y = neg(c)\n}\n");
  Graph g = json(context, R"({"format": "piecewise.graph/1", "ops": [{"imported": "my.twice"}],
      "inputs": [{"name": "c", "type": "f32[4]"}],
      "nodes": [{"name": "a", "op": "my.twice", "operands": ["c"],
                 "results": [{"name": "a", "type": "f32[4]"}]},
                {"name": "c_1", "op": "my.twice", "operands": ["a"],
                 "results": [{"name": "c_1", "type": "f32[4]"}]}],
      "outputs": ["c_1"]})");
  CHECK(line_of(g, "c_1").find("= neg(") != std::string::npos);
  CHECK(line_of(g, "a").find("= neg(") != std::string::npos);
}

TEST_CASE("foreign: a graph's call that does not fit the declaration is refused with the reason",
          "[graph][foreign]") {
  ContextPtr context = with("op mine.f.default(x: T[*s]) {k: int} -> z: T[*s]\n");
  Result<Graph> graph =
      graph_from_json(context,
                      R"({"format": "piecewise.graph/1", "ops": [{"imported": "mine.f.default"}],
          "inputs": [{"name": "x", "type": "f32[4]"}, {"name": "y", "type": "f32[4]"}],
          "nodes": [{"name": "t", "op": "mine.f.default", "operands": ["x", "y"],
                     "results": [{"name": "t", "type": "f32[4]"}]}],
          "outputs": ["t"]})",
                      "g.json", parse_op);
  REQUIRE_FALSE(graph);
  CHECK(graph.error().front().code == "PW0514");
  CHECK(graph.error().front().message.find("more tensors than operands") != std::string::npos);
}

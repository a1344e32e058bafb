// The final contents of inputs that ops write without a statement in the graph's text.
#include "graph/passes/writes.hpp"

#include "dsl/dsl.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "import/fx/fx.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr const char* kOps = R"(
  op put(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c) { o = c + x }
  op both(out a: f32[m, d], mut b: f32[m, d], x: f32[m, d])
    -> (p: f32[m, d] from a, s: f32[m, d], q: f32[m, d] from b) { p = x  s = neg(x)  q = b * x }
  op silent(mut c: f32[m, d], x: f32[m, d]) -> y: f32[m, d] { y = c + x }
  op opaque(mut c: f32[m, d], x: f32[m, d])
  op flat(mut c: f32[m], x: f32[m]) -> (o: f32[m] from c) { o = c + x }
)";

Result<Graph> read_written(const ContextPtr& context, const std::string& body) {
  REQUIRE(load_op_library(context));
  return parse_graph(context,
                     "graph g {" + std::string(kOps) +
                         "in buffer c: f32[4, 2], b: f32[4, 2]  in x: f32[4, 2], z: f32[4, 2]\n" +
                         body + "\n}",
                     "test.pwg");
}

/// "c = y, b = q"
std::string writes(const Graph& graph) {
  std::string out;
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i) {
    const ValueId value = graph.outputs()[graph.returned_count() + i];
    out += (out.empty() ? "" : ", ") + std::string(graph.value_name(graph.written_inputs()[i])) +
           " = " + std::string(graph.value_name(value));
  }
  return out;
}

std::string writes_of(const std::string& body) {
  const auto context = std::make_shared<Context>();
  const auto graph = read_written(context, body);
  INFO((graph ? std::string() : render(graph.error(), context->sources)));
  REQUIRE(graph);
  return writes(*graph);
}

}  // namespace

TEST_CASE("writes: what ops write of inputs is declared as the text is read", "[graph]") {
  CHECK(writes_of("y = put(c, x)  w = exp(y)  out w") == "c = y");
  CHECK(writes_of("y = put(c, x)  w = exp(x)  out w") == "c = y");
  CHECK(writes_of("y = put(c, x)  w = put(y, z)  out y") == "c = w");
  CHECK(writes_of("p, s, q = both(c, b, x)  out s") == "c = p, b = q");
  CHECK(writes_of("y = put(b, x)  w = put(c, y)  out x") == "b = y, c = w");
}

TEST_CASE("writes: what the text states stays, and a value that is not an input is not written",
          "[graph]") {
  CHECK(writes_of("y = put(c, x)  w = put(c, z)  out y  write c = w") == "c = w");
  CHECK(writes_of("y = put(c, x)  out y  write c = x") == "c = x");
  CHECK(writes_of("t = exp(c)  y = put(t, x)  out y").empty());
  CHECK(writes_of("y = exp(c)  out y").empty());
  CHECK(writes_of("opaque(c, x)  y = exp(c)  out y").empty());  // known to no engine
}

TEST_CASE("writes: where nothing states what an input holds, the location and a way to state it",
          "[graph]") {
  struct Case {
    const char *body, *statement, *message, *help;
  };
  const Case cases[] = {
      {"y = put(c, x)  w = put(c, z)  out y, w", "put(c, z)", "which `y` has already written",
       "give it `y`"},
      {"p, s, q = both(c, c, x)  out s", "both(c, c, x)", "has already written", "give it `p`"},
      {"y = flat(reshape(c){shape = [8]}, reshape(x){shape = [8]})  out y", "flat(",
       "a view of `c`", "`write c = …`"},
      {"y = silent(c, x)  out y", "silent(c, x)", "no result has its new contents", "`from c`"},
  };
  for (const auto& [body, statement, message, help] : cases) {
    const auto context = std::make_shared<Context>();
    const auto graph = read_written(context, body);
    INFO(body);
    REQUIRE_FALSE(graph);
    REQUIRE(graph.error().size() == 1);
    const Diagnostic& d = graph.error().front();
    CHECK(d.code == "PW0335");
    CHECK(d.message.find(message) != std::string::npos);
    CHECK(d.help.find(help) != std::string::npos);
    CHECK(context->sources.text(d.span).find(statement) != std::string::npos);
  }
}

TEST_CASE("writes: graph.json states the same, and both forms read back", "[graph]") {
  const auto context = std::make_shared<Context>();
  const Graph graph = read_written(context, "y = put(c, x)  w = exp(y)  out w").value();
  const std::string text = print_pwg(graph);
  CHECK(text.find("write c = y") != std::string::npos);
  CHECK(print_pwg(parse_graph(context, text, "again.pwg").value()) == text);
  std::string json = graph_to_json(graph);
  const std::size_t at = json.find("\"writes\"");
  REQUIRE(at != std::string::npos);
  json.replace(at, json.find('}', at) - at, "\"writes\": {");  // an empty list
  CHECK(writes(graph_from_json(context, json, "g.json", parse_op).value()) == "c = y");
}

TEST_CASE("writes: graph.json names the node", "[graph]") {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  const std::string json = R"text({"format": "piecewise.graph/1", "name": "g",
    "ops": ["op put(mut c: T[*s], x: T[*s]) -> (o: T[*s] from c)"],
    "inputs": [{"name": "c", "type": "f32[4]"}, {"name": "x", "type": "f32[4]"}],
    "nodes": [{"name": "a", "op": "put", "operands": ["c", "x"], "results": [{"name": "a"}]},
              {"name": "b", "op": "put", "operands": ["c", "x"], "results": [{"name": "b"}]}],
    "outputs": ["a"]})text";
  const auto graph = graph_from_json(context, json, "g.json", parse_op);
  REQUIRE_FALSE(graph);
  CHECK(graph.error().front().code == "PW0335");
  CHECK(graph.error().front().place.find("/nodes/1") != std::string::npos);
}

TEST_CASE("writes: a functionalised dump copies what its calls would write", "[graph]") {
  const auto context = std::make_shared<Context>();
  REQUIRE(load_rule_texts(
      context, {{"mine.pwr", "op mine.put(mut c: T[*s], x: T[*s]) -> (o: T[*s] from c)"}}));
  FxOptions options;
  options.file = "dump.txt";
  const auto import = import_fx(
      context,
      "def forward(self, c: \"f32[4]\", x: \"f32[4]\"):\n"
      "    auto = torch.ops.higher_order.auto_functionalized(torch.ops.mine.put.default, c = c, "
      "x = x)\n    y: \"f32[4]\" = auto[1]\n    return (y,)\n",
      options);
  INFO((import ? std::string() : render(import.error(), context->sources)));
  REQUIRE(import);
  const Graph& graph = import->graph;
  CHECK(writes(graph).empty());
  const auto again = std::make_shared<Context>();
  REQUIRE(load_rule_texts(
      again, {{"mine.pwr", "op mine.put(mut c: T[*s], x: T[*s]) -> (o: T[*s] from c)"}}));
  CHECK(writes(parse_graph(again, print_pwg(graph), "again.pwg").value()).empty());
}

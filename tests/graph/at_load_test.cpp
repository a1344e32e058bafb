// Exactly the nodes that depend only on weights and numbers are removed from a graph.
#include "graph/passes/at_load.hpp"

#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Graph graph_of(const ContextPtr& context, const std::string& body) {
  auto graph = parse_graph(context, "graph g { symbol n in 1..64 tokens\n" + body + " }", "g.pwg");
  if (!graph) FAIL(render(graph.error(), context->sources));
  return std::move(*graph);
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> out;
  for (NodeId n : graph.order())
    if (!graph.op_of(n).is_literal()) out.push_back(graph.op_of(n).name);
  return out;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("at load: sums and transpositions of weights, each read as a weight afterwards",
          "[graph]") {
  const auto context = library();
  Graph graph = graph_of(context, R"(
    in x: bf16[n, 8]
    in weight w: bf16[8], m: bf16[16, 8]
    gain = f32(w) + 1.0
    y = rms_norm(x, bf16(gain))
    b = transpose(m){dim0 = 0, dim1 = 1}
    z = mm(y, b)
    u = mm(relu(x), b)
    out z, u)");
  const std::optional<Graph> at_load = take_constants(graph);
  REQUIRE(at_load);
  CHECK(verify(graph).empty());
  CHECK(verify(*at_load).empty());
  CHECK(ops_of(graph) == Names{"rms_norm", "mm", "relu", "mm"});
  CHECK(ops_of(*at_load) == Names{"cast", "add", "cast", "transpose"});
  REQUIRE(at_load->outputs().size() == 2);
  for (ValueId made : at_load->outputs()) {
    const ValueId read = graph.find_value(at_load->value_name(made));
    REQUIRE(read.valid());
    CHECK(graph.is_input(read));
    CHECK(graph.input_kind(read) == InputKind::weight);
    CHECK(graph.type(read) == at_load->type(made));
  }
}

TEST_CASE("at load: transpositions that products read as stored may stay", "[graph]") {
  const auto context = library();
  const auto graph = [&] {
    return graph_of(context, R"(
    in x: bf16[n, 8]
    in weight m: bf16[16, 8], v: bf16[16, 8], c: bf16[16]
    b = transpose(m){dim0 = 0, dim1 = 1}
    d = transpose(v + v){dim0 = 0, dim1 = 1}
    e = transpose(v){dim0 = 0, dim1 = 1}
    z = mm(x, b)
    u = addmm(c, x, d)
    w = mm(x, relu(e))
    out z, u, w)");
  };
  Graph moved = graph(), kept = graph();
  REQUIRE(take_constants(moved));
  CHECK(ops_of(moved) == Names{"mm", "addmm", "mm"});
  const std::optional<Graph> at_load = take_constants(kept, {.keep_transpositions = true});
  REQUIRE(at_load);
  CHECK(verify(kept).empty());
  CHECK(ops_of(kept) == Names{"transpose", "transpose", "mm", "addmm", "mm"});
  CHECK(ops_of(*at_load) == Names{"add", "transpose", "relu"});
}

TEST_CASE("at load: what a step decides stays, as do views in place and what is returned",
          "[graph]") {
  const auto context = library();
  for (const char* body : {
           "in x: f32[n, 8], v: f32[8]  y = x * (v + 1.0)  out y",  // no weight
           "in weight w: f32[8]  y = w + 1.0  out y",               // returned
           "in x: f32[n, 4] in weight w: f32[8]  y = x * slice(w){dim = 0, end = 4}  out y",
           "in x: f32[n, 8] in weight w: f32[8]  y = x + expand(w){shape = [n, 8]}  out y",
           "in x: f32[n, 8] in weight w: f32[2, 4]  y = x + reshape(w){shape = [8]}  out y",
           "in x: f32[n, 8] in weight w: f32[8]  y = x + all_reduce(w){group = \"tp\"}  out y",
           "in x: f32[n, 8] in buffer w: f32[8]  y = x + exp(w)  out y",
           "in x: f32[n, 8] in weight w: f32[8]  y = x + exp(w)  z = w + 1.0  out y  write w = z",
       }) {
    INFO(body);
    Graph graph = graph_of(context, body);
    const std::string before = print_pwg(graph);
    CHECK(!take_constants(graph));
    CHECK(print_pwg(graph) == before);
  }
}

TEST_CASE("at load: a returned value is computed in the step, of what is there", "[graph]") {
  const auto context = library();
  Graph graph = graph_of(context, R"(
    in x: f32[n, 8]
    in weight w: f32[8]
    a = exp(w)
    b = a + 1.0
    y = x * b
    out y, b)");
  const std::optional<Graph> at_load = take_constants(graph);
  REQUIRE(at_load);
  CHECK(ops_of(graph) == Names{"add", "mul"});
  CHECK(ops_of(*at_load) == Names{"exp"});
}

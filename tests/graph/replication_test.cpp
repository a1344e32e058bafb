#include "graph/compare/replication.hpp"

#include "graph/build.hpp"
#include "graph/text/text.hpp"
#include "tests/graph/library.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Graph on_ranks(const ContextPtr& context, const std::string& text) {
  auto graph = parse_graph(context, text, "g.pwg");
  if (!graph) FAIL(render(graph.error(), context->sources));
  return std::move(*graph);
}

Graph ranks() {
  return on_ranks(library(), R"(graph g {
    in x: bf16[8, 64], res: bf16[8, 64] replicated "tp", w: bf16[64] replicated "tp" "dp"
    s = all_reduce(x){group = "tp"}
    r = s + res
    y = rms_norm(r, w)
    p = shard(y){dim = 0, world = 2, group = "tp"}
    g = all_gather(p){dim = 0, world = 2, group = "tp"}
    z, t = fused_all_reduce_add_rms_norm(x, g, w){group = "tp"}
    u, v = fused_all_reduce_add_rms_norm(g, x, w){group = "tp"}
    c = full(){shape = [8], value = 1.0, dtype = f32}
    other = all_reduce(y){group = "dp"}
    out z, t, u, v, c, other
  })");
}

Truth of(const Graph& graph, std::string_view value, std::string* why = nullptr) {
  return is_replicated(graph, graph.find_value(value), "tp", why);
}

}  // namespace

TEST_CASE("replication: declared, established by collectives, kept by other ops", "[graph]") {
  const Graph g = ranks();
  for (const char* value : {"res", "w", "s", "r", "y", "g", "c"}) {
    INFO(value);
    CHECK(of(g, value) == Truth::yes);
  }
}

TEST_CASE("replication: a fused collective is what its body is", "[graph]") {
  const Graph g = ranks();
  CHECK(of(g, "z") == Truth::yes);
  CHECK(of(g, "t") == Truth::yes);
  CHECK(of(g, "u") == Truth::unknown);
}

TEST_CASE("replication: a part is not, and what is not declared is not known", "[graph]") {
  const Graph g = ranks();
  std::string why;
  CHECK(of(g, "p", &why) == Truth::no);
  CHECK(why == "%p is a part of a tensor over \"tp\"");
  CHECK(of(g, "x") == Truth::unknown);
  CHECK(of(g, "other") == Truth::unknown);
  CHECK(of(g, "v", &why) == Truth::unknown);
  CHECK(why == "%x is not declared to be replicated over \"tp\"");
}

TEST_CASE("replication: follows a change of the graph", "[graph]") {
  Graph g = ranks();
  CHECK(of(g, "y") == Truth::yes);
  g.set_operand(g.producer(g.find_value("r")), 1, g.find_value("x"));
  CHECK(of(g, "y") == Truth::unknown);
}

TEST_CASE("replication: a chain of a million nodes does not overflow the stack", "[graph]") {
  Graph g = ranks();
  NodeSpec spec;
  spec.op = g.context().ops.find("neg");
  ValueId at = g.find_value("y");
  for (int i = 0; i < 1'000'000; ++i) {
    spec.operands = {at};
    spec.results = {{g.type(at), ""}};
    at = g.result(g.add_node(spec));
  }
  CHECK(is_replicated(g, at, "tp") == Truth::yes);
}

TEST_CASE("replication: printed with the graph", "[graph]") {
  const Graph g = ranks();
  const std::string text = print_pwg(g);
  CHECK(text.find("in w: bf16[64] replicated \"dp\" \"tp\"\n") != std::string::npos);
  CHECK(print_pwg(on_ranks(g.context_ptr(), text)) == text);
}

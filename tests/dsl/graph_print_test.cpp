// Graph texts read back as they were printed.
#include "graph/text/text.hpp"
#include "tests/dsl/parsed.hpp"

using namespace pw;

namespace {

Graph graph_of(const ContextPtr& context, const std::string& text) {
  auto graph = parse_graph(context, text, "test.pwg");
  INFO((graph ? std::string() : render(graph.error(), context->sources)) << text);
  REQUIRE(graph);
  return std::move(*graph);
}
ContextPtr context_with_ops() {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context));
  return context;
}

constexpr const char* kGraph = R"(graph `layer-0` {
  symbol k in 1..64 by 8
  symbol n in 1..8192 tokens
  op `my op`(...) effect
  op twice(x: T[*s]) {by: float = 2.0} -> y: T[*s] rowwise {
    y = x * T(by)
  }
  in x: bf16[n, 64]
  in weight w: bf16[64]
  in weight `layers.0.w`: f32[]
  in buffer `in`: i64[n]
  y = rms_norm(x, w){eps = 1e-05} @ "layers.0" "model.py:3"
  t = twice(y){by = -inf} @ "" "model.py:4"
  a: bf16[n, 2], b: i64[k / 2] = `my op`(t, none, `layers.0.w`){k = -3, text = "a\"b\n", on = true, list = [1, n], real = [0.5]}
  q, s = dynamic_per_token_fp8_quant(t) @ "layers.0"
  l, r = split(t){dim = 1, sizes = [32, 32]}
  d = reshape(l){shape = [n * 32]}
  c = constant(){dtype = f32, value = 0.5}
  w2 = neg(w)
  i2 = neg(`in`)
  out q, `in`, d, q
  write w = w2
  write `in` = i2
}
)";

}  // namespace

TEST_CASE("graph text: prints as it reads, byte for byte", "[dsl]") {
  const Graph graph = graph_of(context_with_ops(), kGraph);
  const std::string once = print_pwg(graph);
  const Graph again = graph_of(context_with_ops(), once);
  CHECK(print_pwg(again) == once);
  CHECK(structural_hash(again) == structural_hash(graph));
  CHECK(again.name == "layer-0");
  CHECK(again.facts.symbols.at("k").multiple == 8);
  CHECK(again.facts.tokens() == "n");
  CHECK(again.input_kind(again.inputs()[1]) == InputKind::weight);
  CHECK(again.value_name(again.inputs()[2]) == "layers.0.w");
  CHECK(again.group(again.first()) == "layers.0");
  CHECK(again.source(again.first()) == "model.py:3");
  CHECK(again.returned_count() == 4);
  REQUIRE(again.outputs().size() == 6);
  CHECK(again.written_inputs() == std::vector<ValueId>{again.inputs()[1], again.inputs()[3]});
  CHECK(again.value_name(again.outputs()[4]) == "w2");
  CHECK(again.op_of(again.producer(again.find_value("a"))).traits.effect);
  // Types stand exactly where the signature does not give them.
  CHECK(once.find("y = rms_norm(x, w)") != std::string::npos);
  CHECK(once.find("a: bf16[n, 2], b: i64[") != std::string::npos);
}

TEST_CASE("graph text: the formatter leaves a printed graph's lines alone", "[dsl]") {
  const std::string text = print_pwg(graph_of(context_with_ops(), R"(graph g {
    in x: bf16[n, 64], w: bf16[64]
    y = rms_norm(x, w) @ "layers.0" "model.py:3"
    out y
  })"));
  Parsed parsed(text);
  REQUIRE(parsed.file);
  CHECK(format_file(*parsed.file, parsed.sources) == text);
}

TEST_CASE("graph text: the hash sees structure, not names or order", "[dsl]") {
  const auto context = context_with_ops();
  const auto hash = [&](const std::string& body) {
    return structural_hash(graph_of(context, "graph g { in x: f32[4], w: f32[4] " + body + " }"));
  };
  const std::uint64_t base = hash("a = neg(x) b = exp(w) c = add(a, b) out c");
  CHECK(hash("b1 = exp(w) a1 = neg(x) z = add(a1, b1) out z") == base);
  CHECK(hash("a = neg(x) b = exp(w) c = add(b, a) out c") != base);
  CHECK(hash("a = neg(w) b = exp(x) c = add(a, b) out c") != base);
  CHECK(hash("a = neg(x) b = exp(w) c = sub(a, b) out c") != base);
  CHECK(hash("a = neg(x) b = exp(w) c = add(a, b) out c, a") != base);
  CHECK(hash("a = neg(x) b = exp(w) c = add(a, b) d = neg(c) out c") != base);
  CHECK(hash("y = sum(x){dim = 0} out y") != hash("y = sum(x){dim = 0, keepdim = true} out y"));
}

TEST_CASE("graph text: names that are not words are quoted", "[dsl]") {
  CHECK(print_name("x_1") == "x_1");
  CHECK(print_name("in") == "`in`");
  CHECK(print_word("in") == "in");
  CHECK(print_name("") == "``");
  CHECK(print_name("a.b") == "`a.b`");
  CHECK(print_name("1x") == "`1x`");
  CHECK(print_name("a`\"\n") == "`a\\`\"\\n`");
  CHECK(print_name("inf") == "`inf`");
  CHECK(print_path("aten.add.in") == "aten.add.in");
  CHECK(print_path("in.a") == "`in.a`");
  CHECK(print_path("layers.0.w") == "`layers.0.w`");
}

TEST_CASE("graph text: signatures read back", "[dsl]") {
  auto context = std::make_shared<Context>();
  for (const char* text :
       {"op f(mut x: T[n, d], out y: i32[], ids: i64[n]?) {eps: float = 1e-06, k: int?, sizes: "
        "dims = [1, 2]} -> (z: T[n, d] from x) effect",
        "op g(x: T, xs...: T) {dim: axis = 0} -> y: T[concatenated(dim)] commutative associative "
        "view",
        "op aten.sort.stable(...)", "op h(a: T[*a], b: U[*b]) -> promote(T, U)[broadcast(*a, *b)]",
        "op s(x: T[*s]) {dim: axis = -1, sizes: dims} -> y...: T[split_part(*s, dim, sizes)]"}) {
    auto op = parse_op(*context, text);
    INFO((op ? std::string() : render(op.error(), context->sources)) << text);
    REQUIRE(op);
    CHECK(print_signature(*op, context->attributes) == text);
  }
}

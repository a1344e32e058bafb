#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "tests/catch.hpp"

namespace {

pw::ContextPtr library_context() {
  auto context = std::make_shared<pw::Context>();
  auto loaded = pw::load_op_library(context);
  INFO((loaded ? std::string() : pw::render(loaded.error(), context->sources)));
  REQUIRE(loaded);
  return context;
}

std::vector<std::string> codes(const std::string& text) {
  auto context = library_context();
  auto graph = pw::parse_graph(context, text, "test.pwg");
  if (graph) return {};
  INFO(pw::render(graph.error(), context->sources));
  std::vector<std::string> result;
  for (const pw::Diagnostic& d : graph.error()) {
    CHECK((d.span.valid() || !d.place.empty()));
    result.push_back(d.code);
  }
  return result;
}

}  // namespace

TEST_CASE("graph text: inputs, symbols, nested calls and outputs", "[dsl]") {
  auto context = library_context();
  auto graph = pw::parse_graph(context, R"(graph layer {
    symbol n in 1..64 tokens
    in x: bf16[n, 64], w: bf16[64], s: f32[1]
    y = rms_norm(x, w){eps = 1e-5}
    q = static_scaled_fp8_quant(y, s)
    out q
  })",
                               "test.pwg");
  INFO((graph ? std::string() : pw::render(graph.error(), context->sources)));
  REQUIRE(graph);
  CHECK(graph->name == "layer");
  CHECK(graph->facts.tokens() == "n");
  CHECK(graph->node_count() == 2);
  CHECK(context->types.print(graph->type(graph->outputs()[0])) == "f8e4m3[n, 64]");
  CHECK(graph->value_name(graph->outputs()[0]) == "q");
}

TEST_CASE("graph text: what divides a symbol makes dims one", "[dsl]") {
  const std::string body = R"( in x: f32[n, 4], w: f32[n / 8, 8, 4], k: f32[8 * (n / 8), 3]
    a = reshape(x){shape = [n / 8, 8, 4]}
    b = a * w
    c = reshape(b){shape = [n, 4]} + x
    d = reshape(b){shape = [-1, 4]} * x
    e = cat(d, k){dim = 1}
    f = expand(reshape(b){shape = [-1, 4]}){shape = [2, n, 4]}
    g, h = split(x){dim = 0, sizes = [4 * (n / 8), n / 2]}
    out c, e, f, g, h })";
  for (const char* facts : {"8..64 by 8", "16..64 by 16"}) {
    auto context = library_context();
    const auto graph = pw::parse_graph(
        context, "graph g { symbol n in " + std::string(facts) + " tokens" + body, "test.pwg");
    INFO((graph ? std::string() : pw::render(graph.error(), context->sources)));
    REQUIRE(graph);
    CHECK(pw::verify(*graph).empty());
    const std::string text = pw::print_pwg(*graph);
    const auto again = pw::parse_graph(context, text, "printed.pwg");
    REQUIRE(again);
    CHECK(pw::print_pwg(*again) == text);
  }
  for (const char* facts : {"1..64", "4..64 by 4", "6..66 by 6"})
    CHECK(codes("graph g { symbol n in " + std::string(facts) + " tokens" + body)[0] == "PW0310");
}

TEST_CASE("graph text: facts that no number meets are refused, with the codes of graph.json",
          "[dsl]") {
  const auto of = [](const std::string& facts) {
    return codes("graph g { " + facts + " in x: f32[n, 4]  y = relu(x)  out y }");
  };
  using Codes = std::vector<std::string>;
  CHECK(of("symbol n in 100..5 tokens") == Codes{"PW1008"});
  CHECK(of("symbol n in 9..15 by 8 tokens") == Codes{"PW1008"});
  CHECK(of("symbol n in 0..0 tokens") == Codes{"PW1008"});
  CHECK(of("symbol n in 1..64 by 0 tokens") == Codes{"PW1003"});
  CHECK(of("symbol n in -4..64 tokens") == Codes{"PW1003"});
  CHECK(of("symbol n in 1..1099511627777 tokens") == Codes{"PW1003"});
  CHECK(of("symbol n in 1..64 role \"experts\"") == Codes{"PW1008"});
  CHECK(of("symbol n in 1..64 tokens symbol m in 1..4 tokens") == Codes{"PW1008"});
  CHECK(of("symbol n in 1..64 tokens symbol n in 1..32 tokens") == Codes{"PW0480"});
}

TEST_CASE("graph text: an op may be declared twice alike, and its types are inferred", "[dsl]") {
  auto context = library_context();
  auto op = pw::parse_op(*context, "op my_op(x: T[n, d]) {layer: str} -> y: T[n, d] effect");
  INFO((op ? std::string() : pw::render(op.error(), context->sources)));
  REQUIRE(op);
  CHECK(op->traits.effect);
  CHECK(op->attribute("layer") != nullptr);
  CHECK_FALSE(pw::parse_op(*context, "op a(x: T[n]) -> y: T[n] op b(x: T[n]) -> y: T[n]"));
  CHECK_FALSE(pw::parse_op(*context, "param tp: int = 1"));
  CHECK_FALSE(pw::parse_op(*context, "op a(x: T[n]) -> y: T[n] efect"));
}

TEST_CASE("graph text: bad graphs are diagnosed once a fault", "[dsl]") {
  CHECK(codes("graph { in x: f32[n] y = rellu(x) z = neg(y) out z }") ==
        std::vector<std::string>{"PW0320"});
  CHECK(codes("graph { in x: f32[n] y = relu(x) out z }") == std::vector<std::string>{"PW0474"});
  CHECK(codes("graph { in x: f32[n], x: f32[n] y = relu(x) out y }") ==
        std::vector<std::string>{"PW0471"});
  CHECK(codes("graph { in x: f32[n] y = relu(x) out y write x = y }").empty());
  CHECK(codes("graph { in x: f32[n] write = relu(x) out write }").empty());
  CHECK(codes("graph { in x: f32[n] y = relu(x) out write x = y }").empty());
  CHECK(codes("graph { in x: f32[n] y = relu(x) out y write x = z }") ==
        std::vector<std::string>{"PW0474"});
  CHECK(codes("graph { in x: f32[n] y = relu(x) out y write y = x }") ==
        std::vector<std::string>{"PW0479"});
  CHECK(codes("graph { in x: f32[n] y = relu(x) out y write x = y write x = y }") ==
        std::vector<std::string>{"PW0479"});
  CHECK(codes("graph { in x: f32[n], z: f32[2] y = relu(x) out y write z = y }") ==
        std::vector<std::string>{"PW0479"});
  CHECK(codes("graph { in n: f32[n] y = relu(n) out y }") == std::vector<std::string>{"PW0471"});
  CHECK(codes("graph { in x: [n] y = relu(x) out y }") == std::vector<std::string>{"PW0473"});
  CHECK(codes("graph { in x: f32[n] x = relu(x) out x }") == std::vector<std::string>{"PW0471"});
  CHECK(codes("rule r { y = relu(x) => y = x }") == std::vector<std::string>{"PW0476"});
  CHECK(codes("graph { in x: f32[n] out x } graph { in x: f32[n] out x }") ==
        std::vector<std::string>{"PW0476"});
  CHECK(codes("") == std::vector<std::string>{"PW0477"});
}

TEST_CASE("graph text: the body of an op gives the types that its signature declares", "[dsl]") {
  const auto of = [](const std::string& op) {
    return codes("graph g { " + op + " in x: bf16[n, 4]  y = relu(x)  out y }");
  };
  using Codes = std::vector<std::string>;
  CHECK(of("op wide(x: T[*s]) -> y: T[*s] { y = f32(x) }") == Codes{"PW0225"});
  CHECK(of("op off(x: T[n, k], w: T[k, m]) -> y: T[n, m] { y = mm(w, x) }") == Codes{"PW0226"});
  CHECK(of("op own(x: T[*s]) -> y: T[*s] { y = nothing(x) }") == Codes{"PW0220"});
  CHECK(of("op fine(x: T[*s]) -> y: T[*s] { y = T(f32(x)) }").empty());
}

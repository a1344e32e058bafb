// Functions of C++ that rules and signatures call by name.
#include "dsl/dsl.hpp"
#include "dsl/natives.hpp"
#include "graph/text/text.hpp"
#include "tests/catch.hpp"

using namespace pw;

TEST_CASE("extern: a result type may call a function that returns dims", "[dsl]") {
  auto context = std::make_shared<Context>();
  bind_native(*context, "padded", {AttributeKind::dims, AttributeKind::int_},
              [&dims = context->dims](std::span<const Attribute> arguments) -> Result<Attribute> {
                auto shape = std::get<std::vector<DimId>>(arguments[0]);
                const auto more = std::get<std::int64_t>(arguments[1]);
                shape.back() = dims.add(shape.back(), dims.constant(more));
                return Attribute(shape);
              });
  auto set = load_rule_texts(context, {{"test.pwr", R"(
    extern fn padded(s: dims, more: int) -> dims
    op padded_by(x: T[*s]) {more: int = 1} -> T[padded(*s, more)]
    op tall(x: T[*s]) -> T[2, padded(*s, 3)]
  )"}});
  INFO((set ? std::string() : render(set.error(), context->sources)));
  REQUIRE(set);
  auto graph = parse_graph(
      context, "graph g { in x: f32[n, 4]  y = padded_by(x){more = 4}  z = tall(x)  out y, z }",
      "g.pwg");
  INFO((graph ? std::string() : render(graph.error(), context->sources)));
  REQUIRE(graph);
  const Types& types = context->types;
  CHECK(types.print(graph->type(graph->find_value("y"))) == "f32[n, 8]");
  CHECK(types.print(graph->type(graph->find_value("z"))) == "f32[2, n, 7]");
}

TEST_CASE("extern: what the function refuses is an error of the call", "[dsl]") {
  auto context = std::make_shared<Context>();
  bind_native(*context, "never", {AttributeKind::int_},
              [](std::span<const Attribute>) -> Result<Attribute> {
                return fail({}, "PW0303", "no such size");
              });
  auto set = load_rule_texts(context, {{"test.pwr", R"(
    extern fn never(n: int) -> int
    op odd(x: T[*s]) -> T[never(2)]
  )"}});
  REQUIRE(set);
  auto graph = parse_graph(context, "graph g { in x: f32[n]  y = odd(x)  out y }", "g.pwg");
  REQUIRE_FALSE(graph);
  CHECK(graph.error().front().message.find("no such size") != std::string::npos);
}

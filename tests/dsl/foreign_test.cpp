// `foreign` items: how they are read, printed and declared. What they do to a call is
// tests/import/foreign_import_test.cpp.
#include "graph/foreign.hpp"

#include "tests/dsl/parsed.hpp"

using namespace pw;

namespace {

ContextPtr loaded(const std::vector<std::pair<std::string, std::string>>& texts) {
  auto context = std::make_shared<Context>();
  for (const auto& text : texts) {
    auto set = load_rule_texts(context, {text});
    if (!set) FAIL(render(set.error(), context->sources));
  }
  return context;
}

}  // namespace

TEST_CASE("foreign: arguments, guard and body are read as they are written", "[dsl][foreign]") {
  Parsed parsed(
      "foreign \"_C.f\"(mut x|input, out q, k: int = -1, device: _ = none) -> y where k < 3 { y = "
      "relu(x) x = neg(y) q = y }");
  const auto& item = parsed.item<ast::ForeignItem>();
  CHECK(item.target == "_C.f");
  REQUIRE(item.parameters.size() == 4);
  CHECK(item.parameters[0].mut);
  REQUIRE(item.parameters[0].names.size() == 2);
  CHECK(item.parameters[0].names[1].first == "input");
  CHECK(item.parameters[1].out);
  CHECK(item.parameters[2].value->integer == -1);
  CHECK(item.parameters[3].value->kind == Expr::Kind::none);
  CHECK(item.where.size() == 1);
  CHECK(item.body.size() == 3);
  REQUIRE(item.returns.size() == 1);
  CHECK(item.returns[0].first == "y");
}

TEST_CASE("foreign: the formatter has one layout, and keeps quotes and aliases", "[dsl][foreign]") {
  CHECK(formatted(
            "foreign aten.add.Tensor( self,other , alpha=1 )=add( self,other )where alpha==1") ==
        "foreign aten.add.Tensor(self, other, alpha = 1) = add(self, other) where alpha == 1\n");
  CHECK(formatted("foreign \"_C.f\"(out result|out,x){result=relu(x)}") ==
        "foreign \"_C.f\"(out result|out, x) { result = relu(x) }\n");
  const std::string block =
      "foreign _C.f(mut x, w: T[n, d], device: _ = none) -> y where n == 1 {\n  y = mul(x, w)\n  x "
      "= "
      "neg(y)\n}\n";
  CHECK(formatted(block) == block);
}

TEST_CASE("foreign: a word of the language is still a name elsewhere", "[dsl][foreign]") {
  auto context = loaded({{"a.pwr",
                          "op foreign(x: T[*s]) -> y: T[*s] { y = relu(x) }\n"
                          "op g(x: T[*s]) -> y: T[*s] { foreign = relu(x)  y = neg(foreign) }\n"
                          "foreign my.g.default(x) = foreign(x)\n"}});
  CHECK(context->foreign->find("my.g") != nullptr);
  CHECK(context->foreign->find("torch.ops.my.g.default") != nullptr);
}

TEST_CASE("foreign: later files come before earlier ones, and one item counts once",
          "[dsl][foreign]") {
  const std::pair<std::string, std::string> first{"a.pwr", "foreign my.f(x) = relu(x)\n"};
  auto context = loaded({first,
                         {"b.pwr", "foreign my.f(x) = neg(x)\nforeign my.f(x, k) = mul(x, k)\n"},
                         {"c.pwr", first.second}});
  const auto* items = context->foreign->find("my.f");
  REQUIRE(items);
  REQUIRE(items->size() == 3);
  CHECK((*items)[0]->op == "neg");
  CHECK((*items)[1]->op == "mul");
  CHECK((*items)[2]->op == "relu");
}

TEST_CASE("foreign: the library's own items load without a diagnostic", "[dsl][foreign]") {
  auto context = std::make_shared<Context>();
  auto library = load_op_library(context);
  if (!library) FAIL(render(library.error(), context->sources));
  REQUIRE(context->foreign);
  const auto* items = context->foreign->find("aten.sigmoid.default");
  REQUIRE(items);
  CHECK(items->front()->parameters.front().names.front() == "self");
}

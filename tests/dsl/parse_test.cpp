// The parser: every production, and what the trees hold.
#include <limits>

#include "base/io/file.hpp"
#include "graph/text/text.hpp"
#include "tests/dsl/ast_dump.hpp"
#include "tests/dsl/parsed.hpp"

using namespace pw;
using Kind = Expr::Kind;

namespace {

/// With parentheses around every operation, so that precedence shows.
std::string grouped(const Expr& e) {
  const auto inner = [&](std::size_t i) { return grouped(e.args.at(i)); };
  if (e.kind == Kind::binary) return "(" + inner(0) + " " + e.text + " " + inner(1) + ")";
  if (e.kind == Kind::negate) return "(-" + inner(0) + ")";
  if (e.kind == Kind::not_) return "(not " + inner(0) + ")";
  if (e.kind == Kind::index) return "(" + inner(0) + "[" + inner(1) + "])";
  if (e.kind == Kind::spread) return "(" + inner(0) + "...)";
  if (e.kind == Kind::in_range)
    return "(" + inner(0) + " in " + inner(1) + (e.args.size() > 2 ? ".." + inner(2) : "") + ")";
  return print(e);
}
std::string grouped(const std::string& text) { return grouped(Parsed::expression(text)); }

}  // namespace

TEST_CASE("parse: every construct of the language", "[dsl]") {
  auto text = read_file("tests/dsl/fixtures/language.pwr");
  REQUIRE(text);
  Parsed parsed(*text);
  INFO(parsed.errors());
  REQUIRE(parsed.file);
  CHECK(parsed.file->items.size() == 52);
  CHECK(parsed.file->comments.size() == 14);
}

TEST_CASE("parse: precedence and associativity", "[dsl]") {
  CHECK(grouped("a + b * c - d") == "((a + (b * c)) - d)");
  CHECK(grouped("a - b - c") == "((a - b) - c)");
  CHECK(grouped("a / b / c % d") == "(((a / b) / c) % d)");
  CHECK(grouped("not a == b and c or d") == "(((not (a == b)) and c) or d)");
  CHECK(grouped("a or b and c") == "(a or (b and c))");
  CHECK(grouped("not not a") == "(not (not a))");
  CHECK(grouped("-a * -b") == "((-a) * (-b))");
  CHECK(grouped("a - -b") == "(a - (-b))");
  CHECK(grouped("a - - -b") == "(a - (-(-b)))");
  CHECK(grouped("-(a - b)") == "(-(a - b))");
  CHECK(grouped("-x[0]") == "(-(x[0]))");
  CHECK(grouped("x[0][a + 1]") == "((x[0])[(a + 1)])");
  CHECK(grouped("a < b + 1") == "(a < (b + 1))");
  CHECK(grouped("n in 1..a * 2") == "(n in 1..(a * 2))");
  CHECK(grouped("n in k.sizes and a") == "((n in k.sizes) and a)");
}

TEST_CASE("parse: literals", "[dsl]") {
  CHECK(Parsed::expression("-3").integer == -3);
  CHECK(Parsed::expression("-3").kind == Kind::integer);
  CHECK(Parsed::expression("- 2.5e-3").real == -2.5e-3);
  CHECK(Parsed::expression("-9223372036854775808").integer ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(Parsed::expression("9223372036854775807").integer ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(Parsed::expression("-inf").real == -std::numeric_limits<double>::infinity());
  CHECK(Parsed::expression("1e3").kind == Kind::real);
  CHECK(Parsed::expression(R"("a\"b\\\n\t\x41\0")").text == std::string("a\"b\\\n\tA\0", 8));
  CHECK(Parsed::expression("\"\xff\xfe ü\"").text == "\xff\xfe ü");
  CHECK(Parsed::expression("true").integer == 1);
  CHECK(Parsed::expression("none").kind == Kind::none);
  CHECK(Parsed::expression("fuse").kind == Kind::fuse);
  CHECK(Parsed::expression("fuse?").kind == Kind::path);
  CHECK(Parsed("rule r { x = f(a, -9223372036854775809) => y = x }").first_code() == "PW0104");
  CHECK(Parsed("rule r { x = f(a) - 9223372036854775808 => y = x }").first_code() == "PW0104");
  CHECK(Parsed("rule r { x = f(--9223372036854775808) => y = x }").first_code() == "PW0104");
}

TEST_CASE("parse: calls, attributes and annotations", "[dsl]") {
  const Expr e = Parsed::expression(
      "k.quant?(x: T[*b, d], xs..., none, y?){eps, in = 1, out, list = [*, *s, 2], ..}");
  CHECK(e.kind == Kind::call);
  CHECK(e.text == "k.quant");
  CHECK((e.optional && e.braces && e.open));
  REQUIRE(e.args.size() == 4);
  REQUIRE(e.args[0].type.size() == 1);
  CHECK(print(e.args[0].type[0]) == "T[*b, d]");
  CHECK(e.args[1].kind == Kind::spread);
  CHECK(e.args[3].optional);
  REQUIRE(e.attributes.size() == 4);
  CHECK(e.attributes[0].value.empty());
  CHECK(e.attributes[1].name == "in");
  CHECK(e.attributes[2].name == "out");
  const Expr& list = e.attributes[3].value.at(0);
  CHECK(list.args[0].kind == Kind::star);
  CHECK(list.args[1].text == "s");
  CHECK_FALSE(Parsed::expression("f(x)").braces);
  CHECK(Parsed::expression("f(x,){a, b,}").attributes.size() == 2);
  const Expr set = Parsed::expression("T in {bf16, f16}");
  CHECK(set.kind == Kind::in_set);
  CHECK(set.args.size() == 3);
}

TEST_CASE("parse: types", "[dsl]") {
  const auto type = [](const std::string& text) {
    Parsed parsed("op f(x: " + text + ") effect");
    return *parsed.item<ast::OpItem>().operands.at(0).type;
  };
  CHECK(type("T").any_shape);
  CHECK_FALSE(type("T[]").any_shape);
  CHECK(type("[n, 2*d]").dtype.empty());
  CHECK(type("[n, 2*d]").dims.size() == 2);
  CHECK(type("promote(T, U)[broadcast(*a, *b)]").dtype.at(0).kind == Kind::call);
  CHECK(type("out[n]").dtype.at(0).text == "out");
  CHECK(type("k.dtype[*, n]").dims.at(0).kind == Kind::star);
}

TEST_CASE("parse: a statement ends by itself", "[dsl]") {
  Parsed parsed("rule r { a = b c = d(e) store(c) f, g... = h(c){x} where a f2 = x => y = c }");
  const auto& rule = parsed.item<ast::Rule>();
  REQUIRE(rule.body.statements.size() == 5);
  CHECK(rule.body.statements[2].binders.empty());
  CHECK(rule.body.statements[3].binders[1].spread);
  REQUIRE(rule.body.clauses.size() == 1);
  CHECK(rule.body.clauses[0].guards.size() == 1);
}

TEST_CASE("parse: words of the language are names elsewhere", "[dsl]") {
  Parsed parsed(
      "rule rule over table, op.* { group = test(pass){split, weight = use} graph = at(of) => fuel "
      "= graph }");
  const auto& rule = parsed.item<ast::Rule>();
  CHECK(rule.name == "rule");
  CHECK(rule.over.at(1).first == "op.*");
  CHECK(rule.body.statements.at(0).value.attributes.at(1).value.at(0).text == "use");
}

TEST_CASE("parse: arrows and comparisons are distinguished", "[dsl]") {
  CHECK(Parsed("rule r { y = a where b <= c => y = a }").item<ast::Rule>().equivalence == false);
  CHECK(Parsed("rule r { y = a where b <= c <=> y = a }").item<ast::Rule>().equivalence);
  CHECK(Parsed("rule r { y = a where b>=c=>y = a }")
            .item<ast::Rule>()
            .body.clauses.at(0)
            .guards.at(0)
            .text == ">=");
}

TEST_CASE("parse: the result of an op may be a type or a name", "[dsl]") {
  Parsed parsed(
      "op f(x: T) -> T op g(x) -> y { y = x } op h(x) -> T { y = x } op i(x) -> (y: T from x, "
      "z...: U)");
  CHECK(parsed.item<ast::OpItem>(0).results.at(0).name.empty());
  CHECK(parsed.item<ast::OpItem>(1).results.at(0).name == "y");
  CHECK_FALSE(parsed.item<ast::OpItem>(1).results.at(0).type);
  CHECK(parsed.item<ast::OpItem>(2).results.at(0).type);
  CHECK(parsed.item<ast::OpItem>(3).result_from == std::vector<std::string>{"x", ""});
  CHECK(parsed.item<ast::OpItem>(3).results.at(1).variadic);
}

TEST_CASE("parse: options of a strategy belong to the outermost prefix", "[dsl]") {
  Parsed parsed(
      "pass p = atomic (greedy { a } ; b) ensures count(x) == 0 pass q = repeat greedy { a } fuel "
      "3 when tp > 1");
  const ast::Strategy& p = parsed.item<ast::Pass>(0).strategy;
  CHECK(p.kind == ast::Strategy::Kind::atomic);
  CHECK(p.ensures.size() == 1);
  CHECK(p.parts.at(0).parts.size() == 2);
  const ast::Strategy& q = parsed.item<ast::Pass>(1).strategy;
  CHECK(q.kind == ast::Strategy::Kind::repeat);
  CHECK(q.fuel == 3);
  CHECK(q.when.size() == 1);
}

TEST_CASE("parse: a pass ends where the next item begins", "[dsl]") {
  Parsed parsed(
      "pass p = a b ; c\npass q = a\nrule r { y = x => y = x }\ncapture { sizes 1 }\npass s = "
      "rule");
  REQUIRE(parsed.file);
  CHECK(parsed.file->items.size() == 5);
  CHECK(parsed.item<ast::Pass>(0).strategy.parts.size() == 3);
  CHECK(parsed.item<ast::Pass>(4).strategy.references.at(0).first == "rule");
}

TEST_CASE("parse: graphs keep kinds, facts, provenance and quoted names", "[dsl]") {
  Parsed parsed(R"(graph `a-b` {
    symbol n in 1..8192 by 16 tokens
    symbol k in -4..4 role "experts"
    op aten.sort.stable(...)
    in x: bf16[n, 8], weight: f32[]  in weight `layers.0.w`: f32[8]
    y = f(x, `layers.0.w`, none) @ "layers.0" "model.py:3"
    tokens = g(y) @ "" "model.py:4"
    out tokens, y
  })");
  const auto& graph = parsed.item<ast::GraphItem>();
  CHECK(graph.name == "a-b");
  CHECK(graph.symbols.at(0).second.multiple == 16);
  CHECK(graph.symbols.at(0).second.role == "tokens");
  CHECK(graph.symbols.at(1).second.min == -4);
  CHECK(graph.symbols.at(1).second.role == "experts");
  CHECK(graph.ops.at(0).imported);
  CHECK(graph.inputs.at(1).name == "weight");
  CHECK(graph.inputs.at(1).kind.empty());
  CHECK(graph.inputs.at(2).kind == "weight");
  CHECK(graph.nodes.at(0).group == "layers.0");
  CHECK(graph.nodes.at(0).statement.value.args.at(1).text == "layers.0.w");
  CHECK(graph.nodes.at(1).source == "model.py:4");
  CHECK(graph.outputs.size() == 2);
}

TEST_CASE("parse: expectations", "[dsl]") {
  Parsed parsed(R"(test t { graph "g.json" apply p, r[token] with tp = 8
    expect a == 2 * 80 in 1..256, count(all_reduce) == 0 because N05 "why" expect none expect numeric within 1e-3
    expect error "E" expect graph { in x: T[1] out x } })");
  const auto& test = parsed.item<ast::Test>();
  CHECK(test.file == "g.json");
  CHECK(test.apply.at(1).first == "r[token]");
  REQUIRE(test.expectations.size() == 6);
  CHECK(test.expectations[0].guard.at(0).kind == Kind::in_range);
  CHECK(test.expectations[1].kind == ast::Expectation::Kind::guard);
  CHECK(test.expectations[1].because_code == "N05");
  CHECK(test.expectations[3].within == 1e-3);
  CHECK(test.expectations[5].graph.size() == 1);
  CHECK(Parsed("test t { expect a == 1 }").item<ast::Test>().expectations.at(0).kind ==
        ast::Expectation::Kind::count);
}

TEST_CASE("parse: spans cover what they name", "[dsl]") {
  Parsed parsed("// first\nrule r { y, z = (a + f(b){k}) * c => y = a }");
  const auto& rule = parsed.item<ast::Rule>();
  const auto& s = rule.body.statements.at(0);
  CHECK(parsed.sources.text(rule.span) == "rule r { y, z = (a + f(b){k}) * c => y = a }");
  CHECK(parsed.sources.text(rule.name_span) == "r");
  CHECK(parsed.sources.text(s.span) == "y, z = (a + f(b){k}) * c");
  CHECK(parsed.sources.text(s.binders.at(1).span) == "z");
  CHECK(parsed.sources.text(s.value.args.at(0).span) == "(a + f(b){k})");
  CHECK(parsed.sources.text(s.value.args.at(0).args.at(1).span) == "f(b){k}");
  CHECK(parsed.sources.describe(rule.span) == "test.pwr:2:1");
}

TEST_CASE("parse: print(expr) reads back as the same tree", "[dsl]") {
  for (const char* text : {"(a + b) * -(c - d) / (e / f)",
                           "not (a and b) or c == d",
                           "(a == b) == c",
                           "(a or b) in {1, (c or d)}",
                           "-(-x)",
                           "(-x)[0]",
                           "-x[0]",
                           "(-3)[0]",
                           "x[a + 1]...",
                           "(-x)...",
                           "f((x...)[0])",
                           "a - (b - c)",
                           "(n in 1..2) in 3..4",
                           "`in`(`a b`, `layers.0`, `x\\`y`){`k k` = -1.5e-7, in = [*, *s]}",
                           "not -x == 1",
                           "-(not x)",
                           "f(){}",
                           "f(){..}",
                           "aten.add.Tensor(x, \"a\\\"\\x01\")",
                           "(a.b)[*]",
                           "- (3)",
                           "-(2.5)",
                           "nan"}) {
    const Expr e = Parsed::expression(text);
    INFO(text << " -> " << print(e));
    CHECK(dump(Parsed::expression(print(e))) == dump(e));
  }
}

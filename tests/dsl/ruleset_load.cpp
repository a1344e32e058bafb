#include <filesystem>
#include <fstream>

#include "dsl/embedded_rules.hpp"
#include "tests/dsl/loaded.hpp"

namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

const pw::Rule& rule(const Loaded& loaded, std::string_view name) {
  auto ids = loaded.set.resolve(name);
  INFO(name);
  REQUIRE(ids.size() == 1);
  return loaded.set.rules[ids.front()];
}

std::vector<std::string> names(const Loaded& loaded, const std::vector<pw::RuleId>& ids) {
  std::vector<std::string> result;
  for (pw::RuleId id : ids) result.push_back(loaded.set.rules[id].name);
  return result;
}

std::string op(const Loaded& loaded, const pw::PatternNode& node) {
  return loaded.context->ops[node.op].name;
}

}  // namespace

TEST_CASE("ruleset: nested expressions become pattern nodes, operands before users", "[dsl]") {
  auto l = load("rule r { y = T(f32(x: T[n]) * rsqrt(v + 2)) where T in {bf16} => y = x * T(v) }");
  const pw::Rule& r = rule(l, "r");
  std::vector<std::string> ops;
  for (const pw::PatternNode& node : r.nodes) ops.push_back(op(l, node));
  CHECK(ops == std::vector<std::string>{"cast", "add", "rsqrt", "mul", "cast"});
  const pw::PatternNode& cast = r.nodes[pw::PatternNodeId(0)];
  REQUIRE(cast.attributes.size() == 1);
  CHECK(cast.attributes[0].name == "dtype");
  CHECK(cast.attributes[0].value.text == "f32");
  CHECK(r.nodes[pw::PatternNodeId(4)].attributes[0].value.text == "T");
  const pw::PatternNode& add = r.nodes[pw::PatternNodeId(1)];
  REQUIRE(r.values[add.operands[1]].literal);
  CHECK(std::get<std::int64_t>(*r.values[add.operands[1]].literal) == 2);
  REQUIRE(r.values[r.value_named("x")].types.size() == 1);
  CHECK(r.outputs == std::vector<std::string>{"y"});
  CHECK(r.consumed.size() == 4);
  CHECK(r.where.size() == 1);
}

TEST_CASE(
    "ruleset: names on both sides are outputs, names on the left only are consumed, given nodes "
    "survive",
    "[dsl]") {
  auto l = load(R"(rule r {
    given { h = neg(x) }
    y, r = fused_add_rms_norm(h, res, w){eps}
    q = static_scaled_fp8_quant(y, s: f32[1])
    =>
    q, r = fused_add_rms_norm_static_fp8_quant(h, res, w, s){eps}
  })");
  const pw::Rule& r = rule(l, "r");
  CHECK(r.outputs == std::vector<std::string>{"r", "q"});
  REQUIRE(r.consumed.size() == 1);
  CHECK(r.values[r.consumed[0]].name == "y");
  CHECK(r.nodes[pw::PatternNodeId(0)].given);
  CHECK_FALSE(r.nodes[pw::PatternNodeId(1)].given);
}

TEST_CASE("ruleset: a free operand used as an attribute binds a constant's number", "[dsl]") {
  auto l = load("rule r { v = mean(x){keepdim = true} y = v + eps => y = rms_norm(x, x){eps} }");
  const pw::Rule& r = rule(l, "r");
  CHECK(r.values[r.value_named("eps")].attribute_variable);
  CHECK_FALSE(r.values[r.value_named("x")].attribute_variable);
}

TEST_CASE("ruleset: none, optional operands and opened attributes", "[dsl]") {
  auto l = load(
      "rule r { o = unified_attention(q, k, v, s?){layer, ..} => o = unified_attention(q, k, v, "
      "s){layer, ..} }\n"
      "rule n { o = unified_attention(q, k, v, none){layer} => o = unified_attention(k, q, v, "
      "none){layer} }");
  const pw::Rule& r = rule(l, "r");
  CHECK(r.values[r.value_named("s")].optional);
  CHECK_FALSE(r.values[r.value_named("q")].optional);
  CHECK(r.nodes[pw::PatternNodeId(0)].open);
  const pw::Rule& n = rule(l, "n");
  CHECK(n.values[n.nodes[pw::PatternNodeId(0)].operands[3]].literal_none);
  CHECK_FALSE(n.nodes[pw::PatternNodeId(0)].open);
}

TEST_CASE("ruleset: a family has a rule a row, with its cells put in", "[dsl]") {
  auto l = load(R"(
    op block_quant(x: T[*b, d]) {group: int} -> (q: f8e4m3[*b, d], s: f32[*b, 1])
    table Dyn (quant, group) { token: dynamic_per_token_fp8_quant, none  g64: block_quant, 64 }
    rule r for k in Dyn {
      q, s = k.quant(relu(x: T[*b, d])){group = k.group}
      where k.group == none or d % k.group == 0
      =>
      q, s = k.quant(maximum(x, 0)){group = k.group}
    }
    rule other { y = relu(x) => y = maximum(x, 0) })");
  CHECK(names(l, l.set.resolve("r[*]")) == std::vector<std::string>{"r[token]", "r[g64]"});
  CHECK(names(l, l.set.resolve("r")) == std::vector<std::string>{"r[token]", "r[g64]"});
  const pw::Rule& token = rule(l, "r[token]");
  CHECK(op(l, token.nodes[pw::PatternNodeId(1)]) == "dynamic_per_token_fp8_quant");
  CHECK(token.nodes[pw::PatternNodeId(1)].attributes.empty());
  CHECK(std::holds_alternative<pw::None>(std::get<pw::Attribute>(token.constants.at("k.group"))));
  const pw::Rule& g64 = rule(l, "r[g64]");
  CHECK(op(l, g64.nodes[pw::PatternNodeId(1)]) == "block_quant");
  REQUIRE(g64.nodes[pw::PatternNodeId(1)].attributes.size() == 1);
  CHECK(g64.nodes[pw::PatternNodeId(1)].attributes[0].value.integer == 64);
  CHECK(g64.base_name == "r");
}

TEST_CASE("ruleset: references name rules, groups and families; order within is by name", "[dsl]") {
  auto l = load(R"(
    group g {
      rule z { y = relu(x) => y = maximum(x, 0) }
      rule a over z { y = relu(relu(x)) => y = relu(x) }
    }
    rule m over g.a { y = neg(relu(x)) => y = minimum(neg(x), 0) }
    pass p = greedy { m, g.* })");
  CHECK(names(l, l.set.resolve("g.*")) == std::vector<std::string>{"g.z", "g.a"});
  CHECK(l.set.resolve("g").size() == 2);
  CHECK(l.set.resolve("z").empty());
  CHECK(rule(l, "g.a").rank < rule(l, "g.z").rank);
  CHECK(names(l, l.set.passes.at("p").rules) == std::vector<std::string>{"g.a", "g.z", "m"});
  auto over = names(l, rule(l, "m").over);
  std::ranges::sort(over);
  CHECK(over == std::vector<std::string>{"g.a", "g.z"});
}

TEST_CASE("ruleset: strategies are resolved through passes; options of a reference go with it",
          "[dsl]") {
  auto l = load(R"(
    param tp: int = 1
    rule a { y = relu(x) => y = maximum(x, 0) }
    rule b { y = neg(x) => y = 0 - x }
    pass p = greedy { a } fuel 7
    pipeline q { cse ; p when tp > 1 ; once { b } ; b ; dce })");
  const pw::Strategy* q = l.set.strategy("q");
  REQUIRE(q);
  REQUIRE(q->parts.size() == 5);
  CHECK(q->parts[0].builtin == "cse");
  CHECK(q->parts[1].kind == pw::ast::Strategy::Kind::sequence);
  REQUIRE(q->parts[1].parts.size() == 1);
  CHECK(q->parts[1].parts[0].label == "p");
  CHECK(q->parts[1].parts[0].fuel == 7);
  CHECK(q->parts[1].when.size() == 1);
  CHECK(q->parts[2].label == "once { b }");
  CHECK(q->parts[3].rules.size() == 1);
  REQUIRE(l.set.strategy("a"));
  CHECK(l.set.strategy("a")->kind == pw::ast::Strategy::Kind::greedy);
  CHECK(l.set.strategy("dce")->builtin == "dce");
  CHECK(l.set.strategy("nothing") == nullptr);
}

TEST_CASE("ruleset: params take defaults and definitions, and diagnose the rest", "[dsl]") {
  auto l = load(
      "param tp: int = 1\nparam t: float = 0.5\nparam s: str = \"a\"\nparam d: dtype = bf16\nparam "
      "b: bool = false\n");
  auto env = pw::bind_params(l.set, {{"tp", "2"}, {"d", "f16"}, {"b", "true"}});
  REQUIRE(env);
  CHECK(std::get<std::int64_t>(std::get<pw::Attribute>(env->at("tp"))) == 2);
  CHECK(std::get<double>(std::get<pw::Attribute>(env->at("t"))) == 0.5);
  CHECK(std::get<pw::DTypeBinding>(env->at("d")).dtype == pw::DType::f16);
  CHECK(std::get<bool>(std::get<pw::Attribute>(env->at("b"))));
  auto bad = pw::bind_params(l.set, {{"tpp", "2"}, {"tp", "two"}, {"b", "maybe"}});
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().size() == 3);
  CHECK(bad.error()[0].code == "PW0421");
  CHECK(bad.error()[0].help == "did you mean `tp`?");
  CHECK(bad.error()[1].code == "PW0422");
}

TEST_CASE("ruleset: split and capture items", "[dsl]") {
  auto l = load(
      "param ep: int = 1\nsplit s { at unified_attention, mm at relu when ep > 1 }\n"
      "capture { sizes 1, 2, 4, 8..24 by 8, 16 mode full_and_piecewise }");
  REQUIRE(l.set.splits.size() == 1);
  REQUIRE(l.set.splits[0].at.size() == 2);
  CHECK(l.set.splits[0].at[0].ops.size() == 2);
  CHECK(l.set.splits[0].at[1].when.size() == 1);
  CHECK(l.set.capture.sizes == std::vector<std::int64_t>{1, 2, 4, 8, 16, 24});
  CHECK(l.set.capture.mode == "full_and_piecewise");
}

TEST_CASE("ruleset: explore items", "[dsl]") {
  auto l = load(
      "rule a { y = relu(relu(x)) => y = relu(x) }\nrule b { y = neg(neg(x)) => y = x }\n"
      "param tp: int = 1\nparam d: dtype = bf16\npipeline p { a b }\n"
      "explore e { of p orders a, b before b: a with tp in 1, 2 with d in f16, bf16\n"
      "tokens in 1..8, 9..16 over a, b sample 5 seed 9 subsets by bytes, launches }");
  const auto found = std::find_if(
      l.set.files.back().items.begin(), l.set.files.back().items.end(),
      [](const pw::ast::Item& item) { return std::holds_alternative<pw::ast::Explore>(item); });
  REQUIRE(found != l.set.files.back().items.end());
  const auto& item = std::get<pw::ast::Explore>(*found);
  using Kind = pw::ast::Explore::Clause::Kind;
  CHECK(item.name == "e");
  REQUIRE(item.clauses.size() == 11);
  CHECK(item.clauses[2].kind == Kind::before);
  CHECK(item.clauses[2].names[1].first == "a");
  CHECK(item.clauses[3].values.size() == 2);
  CHECK(item.clauses[5].numbers[1] == std::pair<std::int64_t, std::int64_t>{9, 16});
  CHECK(item.clauses[10].names[1].first == "launches");
}

TEST_CASE("ruleset: every rule file of the library loads without a diagnostic", "[dsl]") {
  for (const pw::EmbeddedFile& file : pw::embedded_rules()) {
    DYNAMIC_SECTION(file.path) {
      auto context = std::make_shared<pw::Context>();
      auto set = pw::load_rules(context, {std::string(file.path)});
      INFO((set ? pw::render(set->warnings, context->sources)
                : pw::render(set.error(), context->sources)));
      REQUIRE(set);
      CHECK(set->warnings.empty());
    }
  }
}

TEST_CASE(
    "ruleset: `use` looks beside the file, then in the library; each file once; circles are fine",
    "[dsl]") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "pw_ruleset_load";
  fs::remove_all(folder);
  fs::create_directories(folder / "inner");
  std::ofstream(folder / "a.pwr")
      << "use \"inner/b.pwr\"\nuse \"noop.pwr\"\nrule a { y = relu(x) => y = maximum(x, 0) }\n";
  std::ofstream(folder / "inner/b.pwr") << "use \"../a.pwr\"\nrule b { y = neg(x) => y = 0 - x }\n";
  auto context = std::make_shared<pw::Context>();
  auto set = pw::load_rules(context, {(folder / "a.pwr").string(), (folder / "a.pwr").string()});
  INFO((set ? std::string() : pw::render(set.error(), context->sources)));
  REQUIRE(set);
  CHECK(set->files.size() == 3);
  CHECK(set->resolve("a").size() == 1);
  CHECK(set->resolve("b").size() == 1);
  CHECK_FALSE(set->resolve("noop").empty());
  fs::remove_all(folder);
}

TEST_CASE("ruleset: an unknown library file is diagnosed with the nearest name", "[dsl]") {
  auto context = std::make_shared<pw::Context>();
  auto set = pw::load_rules(context, {"noopp"});
  REQUIRE_FALSE(set);
  CHECK(set.error().front().code == "PW0461");
  CHECK(set.error().front().help == "did you mean `noop`?");
}

TEST_CASE("ruleset: a dtype of another system gets a hint with the dtype that is meant", "[dsl]") {
  const auto help = [](const std::string& text) {
    auto context = std::make_shared<pw::Context>();
    auto set = pw::load_rule_texts(context, {{"test.pwr", text}});
    REQUIRE_FALSE(set);
    return set.error().front().help;
  };
  const auto of_type = [&](const std::string& dtype) {
    return help("rule r { y = relu(x: " + dtype + "[n]) => y = maximum(x, 0) }");
  };
  CHECK(of_type("bfloat16") == "did you mean `bf16`?");
  CHECK(of_type("float8_e4m3fn") == "did you mean `f8e4m3`?");
  CHECK(of_type("double") == "did you mean `f64`?");
  CHECK(of_type("i16") == "dtypes are b8, i8, i32, i64, u8, f8e4m3, f8e5m2, f16, bf16, f32, f64");
  CHECK(help("rule r { y = relu(x: T[n]) where T == half => y = maximum(x, 0) }") ==
        "did you mean `f16`?");
  CHECK(help("rule r { y = relu(x) => y = cast(x){dtype = fp8} }") == "did you mean `f8e4m3`?");
  CHECK(help("op o(x: T[n]) {to: dtype = long} -> y: T[n]") == "did you mean `i64`?");
}

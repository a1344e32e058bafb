// What a graph declares of its tokens holds of the rows of every step: of sizes, of padding, and of
// plans from elsewhere.
#include "splitter/dispatch.hpp"
#include "splitter/plan.hpp"
#include "splitter/plan_text.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;
using Sizes = std::vector<std::int64_t>;

Builder declared(std::int64_t min, std::int64_t max, std::int64_t multiple) {
  Builder b = toy();
  b.graph.facts.symbols["n"] = {min, max, multiple, "tokens"};
  return b;
}

Result<Plan> plan_of(const SymbolFact& fact, const PlanOptions& options = {}) {
  Builder b = declared(fact.min, fact.max, fact.multiple);
  return make_plan(b.cut({"attention"}), b.graph, options);
}

std::int64_t rows(const Plan& plan, std::int64_t tokens) {
  return Dispatcher(plan).dispatch({tokens, 1, tokens, 0}).key.tokens;
}

std::string code(const Result<Plan>& plan) {
  REQUIRE_FALSE(plan.has_value());
  return plan.error().front().code;
}

}  // namespace

TEST_CASE("facts: capture sizes and ranges are inside them", "[splitter]") {
  const Plan plan = plan_of({8, 64, 8, ""}).value();
  CHECK(plan.capture.sizes == Sizes{8, 16, 24, 32, 40, 48, 56, 64});
  CHECK((plan.max_tokens == 64 && plan.eager_multiple == 8));
  CHECK((plan.ranges.front().begin == 8 && plan.ranges.back().end == 64));
  CHECK(plan_of({5, 20, 1, ""}).value().capture.sizes == Sizes{5, 8, 16, 20});
  CHECK(plan_of({1, 60, 16, ""}).value().max_tokens == 48);
  const Plan sixes = plan_of({6, 300, 6, ""}).value();
  for (const std::int64_t size : sixes.capture.sizes)
    CHECK((size % 6 == 0 && size >= 6 && size <= 300));
}

TEST_CASE("facts: steps pad to what is allowed, captured or not", "[splitter]") {
  for (const char* mode : {"piecewise", "full", "none"})
    for (const SymbolFact& fact :
         {SymbolFact{8, 64, 8, ""}, SymbolFact{1, 50, 3, ""}, SymbolFact{7, 40, 5, ""}}) {
      const Plan plan = plan_of(fact, {.capture_sizes = {30}, .mode = mode})
                            .value_or(plan_of(fact, {.mode = mode}).value());
      for (std::int64_t tokens = std::max(fact.min, plan.ranges.front().begin);
           tokens <= plan.max_tokens; ++tokens) {
        const std::int64_t run = rows(plan, tokens);
        INFO(mode << ", " << tokens << " tokens run as " << run);
        CHECK((run >= tokens && run >= fact.min && run <= fact.max && run % fact.multiple == 0));
      }
    }
}

TEST_CASE("facts: the multiples of decodes and of ranks hold beside them", "[splitter]") {
  const Plan plan =
      plan_of({1, 200, 8, ""}, {.speculative_tokens = 2, .sequence_parallel = 5}).value();
  for (const std::int64_t size : plan.capture.sizes) CHECK(size == 120);
  CHECK(plan.eager_multiple == 40);
  CHECK(plan.max_tokens == 200);
  CHECK(code(plan_of({1, 30, 8, ""}, {.sequence_parallel = 5})) == "PW0728");
  const std::int64_t huge = (std::int64_t{1} << 40) - 1;
  CHECK(code(plan_of({1, std::int64_t{1} << 40, huge, ""},
                     {.speculative_tokens = 1022, .sequence_parallel = 65521})) == "PW0728");
}

TEST_CASE("facts: sizes that are requested outside of them are refused or dropped", "[splitter]") {
  const SymbolFact fact{8, 64, 8, ""};
  CHECK(code(plan_of(fact, {.capture_sizes = {4}})) == "PW0724");
  CHECK(code(plan_of(fact, {.capture_sizes = {72}})) == "PW0724");
  CHECK(code(plan_of(fact, {.range_ends = {4}})) == "PW0724");
  CHECK(code(plan_of(fact, {.capture_sizes = {12, 20}})) == "PW0726");
  CHECK(code(plan_of(fact, {.max_tokens = 7})) == "PW0728");
  const Plan plan = plan_of(fact, {.capture_sizes = {12, 16}, .compile_sizes = {9, 24}}).value();
  CHECK(plan.capture.sizes == Sizes{16});
  CHECK(plan.compile_sizes == Sizes{24});
  CHECK(plan.notes.size() == 2);
}

TEST_CASE("facts: another dim is planned at its greatest allowed value", "[splitter]") {
  Builder b = toy();
  b.graph.facts.symbols["m"] = {1, 100, 8, ""};
  const TypeId wide = b.context->types.get(DType::f32, {b.context->dims.symbol("m")});
  b.graph.add_input("z", wide, InputKind::input);
  CHECK(make_plan(b.cut({}), b.graph, {}).value().bound.at("m") == 96);
}

TEST_CASE("facts: a plan that was made by others is refused", "[splitter]") {
  Builder b = declared(8, 64, 8);
  const StitchedGraph pieces = b.cut({"attention"});
  const std::string text = plan_to_json(make_plan(pieces, b.graph, {}).value(), pieces);
  const auto document = plan_from_json(text, "plan.json");
  REQUIRE(document);
  CHECK(bind_plan(*document, pieces, b.graph));
  for (const SymbolFact& fact : {SymbolFact{16, 64, 8, "tokens"}, SymbolFact{8, 48, 8, "tokens"},
                                 SymbolFact{8, 64, 16, "tokens"}}) {
    b.graph.facts.symbols["n"] = fact;
    const auto bound = bind_plan(*document, pieces, b.graph);
    REQUIRE_FALSE(bound);
    CHECK(bound.error().front().code == "PW0745");
    CHECK(bound.error().front().message.find("the graph declares n in") != std::string::npos);
  }
}

#include "splitter/dispatch.hpp"

#include "base/hash.hpp"
#include "dsl/dsl.hpp"
#include "splitter/check_plan.hpp"
#include "splitter/plan.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;
using pw::test::static_graph;

namespace {

Builder toy_with(Capturable capturable) {
  Builder b;
  Traits traits;
  traits.splitting = true;
  traits.capturable = capturable;
  b.op("attention", traits);
  ValueId x = b.input("x");
  x = b.one("add", {x, x});
  x = b.attention(x, 0);
  b.graph.add_output(b.one("add", {x, x}));
  return b;
}

Plan plan_of(Capturable capturable, PlanOptions options) {
  Builder b = toy_with(capturable);
  auto plan = make_plan(b.cut({"attention"}), b.graph, options);
  REQUIRE(plan.has_value());
  return std::move(*plan);
}

std::string mode_of(Capturable capturable, const std::string& wanted, std::int64_t k = 0) {
  const Plan plan = plan_of(capturable, {.mode = wanted, .speculative_tokens = k});
  CHECK((plan.mode == wanted) == plan.mode_reason.empty());
  return plan.mode;
}

StepShape requests_of(std::initializer_list<std::int64_t> tokens, std::int64_t loras = 0) {
  const std::vector<std::int64_t> list(tokens);
  return shape_of(list, loras);
}
StepShape decode(std::int64_t requests, std::int64_t query = 1) {
  return shape_of(std::vector<std::int64_t>(static_cast<std::size_t>(requests), query));
}

}  // namespace

TEST_CASE("modes: what attention allows lowers the mode", "[splitter]") {
  using enum Capturable;
  for (const Capturable c : {never, Capturable::decode, uniform, always}) {
    CHECK(mode_of(c, "none") == "none");
    CHECK(mode_of(c, "piecewise") == "piecewise");
  }
  for (const char* wanted : {"full", "full_decode_only", "full_and_piecewise"})
    CHECK(mode_of(never, wanted) == "piecewise");
  for (const Capturable c : {Capturable::decode, uniform}) {
    CHECK(mode_of(c, "full") == "full_and_piecewise");
    CHECK(mode_of(c, "full_decode_only") == "full_decode_only");
    CHECK(mode_of(c, "full_and_piecewise") == "full_and_piecewise");
  }
  CHECK(mode_of(always, "full") == "full");
  // A decode with speculative tokens has more than one token a sequence.
  CHECK(mode_of(Capturable::decode, "full_and_piecewise", 3) == "piecewise");
  CHECK(mode_of(Capturable::decode, "full", 3) == "piecewise");
  CHECK(mode_of(uniform, "full_and_piecewise", 3) == "full_and_piecewise");
}

TEST_CASE("modes: the reason names the op", "[splitter]") {
  const Plan never = plan_of(Capturable::never, {.mode = "full"});
  CHECK(never.mode_reason == "full is not possible: op attention is not declared capturable");
  const Plan decode = plan_of(Capturable::decode, {.mode = "full"});
  CHECK(decode.mode_reason ==
        "full is not possible: op attention is capturable only with one new token per sequence");
}

TEST_CASE("modes: without pieces to capture nothing, or whole decodes, are left", "[splitter]") {
  const auto mode = [](Capturable capturable, const std::string& wanted) {
    Builder b;
    Traits traits;
    traits.capturable = capturable;
    b.op("attention", traits);
    b.graph.add_output(b.attention(b.input("x"), 0));
    return make_plan(b.cut({"attention"}), b.graph, {.mode = wanted})->mode;
  };
  CHECK(mode(Capturable::never, "piecewise") == "none");
  CHECK(mode(Capturable::never, "full") == "none");
  CHECK(mode(Capturable::uniform, "full") == "full_decode_only");
  CHECK(mode(Capturable::uniform, "full_and_piecewise") == "full_decode_only");
  Builder b = pw::test::toy();
  CHECK(make_plan(b.cut({}), b.graph, {.mode = "full"})->mode == "full");
}

TEST_CASE("modes: the rules' ops say when they are captured", "[splitter]") {
  auto context = std::make_shared<Context>();
  const auto declare = [&](const std::string& traits) {
    return parse_graph(context, "graph { op " + traits + "\n in x: f32[4]\n y = x + x\n out y }",
                       "g");
  };
  REQUIRE(load_op_library(context).has_value());
  REQUIRE(declare("mamba(x: T[*s]) -> y: T[*s] splitting capturable_uniform").has_value());
  CHECK(context->ops[context->ops.find("mamba")].traits.capturable == Capturable::uniform);
  const auto twice = declare("other(x: T[*s]) -> y: T[*s] splitting capturable capturable_decode");
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().front().code == "PW0210");
}

TEST_CASE("dispatch: whole decodes, then pieces, then nothing", "[splitter]") {
  const Plan plan = plan_of(
      Capturable::uniform,
      {.capture_sizes = {1, 2, 4, 8, 16, 32}, .max_requests = 16, .mode = "full_and_piecewise"});
  const Dispatcher d(plan);
  const auto found = [&](const StepShape& step) { return d.dispatch(step); };

  const Dispatch whole = found(decode(7));
  CHECK(whole.mode == DispatchMode::full);
  CHECK(whole.key == DispatchKey{8, 8, 1, 0});
  CHECK(whole.padding == 1);
  CHECK(d.explain(decode(7), whole) == "the next captured size");

  const Dispatch mixed = found(requests_of({1, 1, 5}));
  CHECK(mixed.mode == DispatchMode::piecewise);
  CHECK(mixed.key == DispatchKey{8, 0, 0, 0});
  CHECK(mixed.reason == DispatchReason::differ);
  CHECK(found(requests_of({4, 4})).mode == DispatchMode::piecewise);  // uniform, but no decode
  CHECK(found(decode(16)).mode == DispatchMode::full);

  const Dispatch crowd = found(decode(20));  // more than the 16 of a whole graph
  CHECK(crowd.mode == DispatchMode::piecewise);
  CHECK(crowd.reason == DispatchReason::requests);

  const Dispatch large = found(requests_of({33}));
  CHECK(large.mode == DispatchMode::none);
  CHECK(large.key.tokens == 33);
  CHECK(large.padding == 0);
  CHECK(large.reason == DispatchReason::above_largest);
  CHECK(found(requests_of({})).reason == DispatchReason::no_tokens);
  CHECK(found(requests_of({9000})).reason == DispatchReason::too_many);
}

TEST_CASE("dispatch: a whole step of any kind needs room for its sequences", "[splitter]") {
  const Plan plan =
      plan_of(Capturable::always, {.capture_sizes = {4, 16}, .max_requests = 8, .mode = "full"});
  const Dispatcher d(plan);
  CHECK(d.dispatch(requests_of({1, 2})).key == DispatchKey{4, 4, 0, 0});
  CHECK(d.dispatch(requests_of({9, 2})).key == DispatchKey{16, 8, 0, 0});
  CHECK(d.dispatch(decode(8)).key == DispatchKey{16, 8, 0, 0});
  const Dispatch crowd = d.dispatch(decode(9));
  CHECK(crowd.mode == DispatchMode::none);
  CHECK(crowd.reason == DispatchReason::requests);
  CHECK(crowd.key.tokens == 9);
}

TEST_CASE("dispatch: speculative decodes have 1 + k tokens a sequence", "[splitter]") {
  const Plan plan =
      plan_of(Capturable::uniform,
              {.max_requests = 8, .mode = "full_and_piecewise", .speculative_tokens = 3});
  const Dispatcher d(plan);
  CHECK(d.dispatch(decode(3, 4)).key == DispatchKey{16, 4, 4, 0});  // 12 tokens: 4, 8, 16, …
  CHECK(d.dispatch(decode(3, 4)).mode == DispatchMode::full);
  CHECK(d.dispatch(decode(4, 1)).mode == DispatchMode::piecewise);
  CHECK(plan.capture.sizes.front() == 4);
}

TEST_CASE("dispatch: decodes alone are captured up to the largest", "[splitter]") {
  const Plan plan =
      plan_of(Capturable::decode,
              {.capture_sizes = {1, 4, 16}, .max_requests = 8, .mode = "full_decode_only"});
  CHECK(plan.capture.sizes == std::vector<std::int64_t>{1, 4});
  CHECK(plan.notes ==
        std::vector<std::string>{
            "capture sizes 16 are dropped: a decode of 8 requests has at most 8 tokens"});
  const Dispatcher d(plan);
  CHECK(d.dispatch(decode(3)).mode == DispatchMode::full);
  const Dispatch other = d.dispatch(requests_of({2, 1}));
  CHECK(other.mode == DispatchMode::none);
  CHECK(other.key.tokens == 3);
  CHECK(d.explain(requests_of({2, 1}), other) ==
        "only steps with one new token per sequence are captured whole");
}

TEST_CASE("dispatch: adapters take the next number that is captured", "[splitter]") {
  const Plan plan = plan_of(Capturable::never, {.capture_sizes = {4}, .loras = {4, 2}});
  CHECK(plan.loras == std::vector<std::int64_t>{0, 2, 4});
  const Dispatcher d(plan);
  CHECK(d.dispatch(requests_of({3}, 0)).key.loras == 0);
  CHECK(d.dispatch(requests_of({3}, 1)).key.loras == 2);
  CHECK(d.dispatch(requests_of({3}, 3)).key.loras == 4);
  const Dispatch many = d.dispatch(requests_of({3}, 5));
  CHECK(many.mode == DispatchMode::none);
  CHECK(many.reason == DispatchReason::loras);
}

TEST_CASE("dispatch: eager steps pad to the ranks of sequence parallelism", "[splitter]") {
  std::vector<std::int64_t> all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i + 1);
  const Plan plan = plan_of(Capturable::never, {.capture_sizes = all, .sequence_parallel = 8});
  const Dispatcher d(plan);
  const Dispatch small = d.dispatch(requests_of({10}));
  CHECK(small.mode == DispatchMode::piecewise);
  CHECK(small.key.tokens == 16);
  const Dispatch large = d.dispatch(requests_of({300}));
  CHECK(large.mode == DispatchMode::none);
  CHECK(large.key.tokens == 304);
  CHECK(large.padding == 4);
}

TEST_CASE("dispatch: graphs are captured pieces first, largest first", "[splitter]") {
  const Plan plan = plan_of(
      Capturable::uniform,
      {.capture_sizes = {1, 2, 8}, .max_requests = 4, .mode = "full_and_piecewise", .loras = {2}});
  std::vector<std::string> order;
  for (const Capture& c : plan.captures)
    order.push_back(std::string(name(c.mode)) + " " + print(c.key));
  CHECK(order == std::vector<std::string>{
                     "piecewise 8 tokens, 2 adapters", "piecewise 8 tokens",
                     "piecewise 2 tokens, 2 adapters", "piecewise 2 tokens",
                     "piecewise 1 token, 2 adapters", "piecewise 1 token",
                     "full 2 tokens, 2 requests of 1, 2 adapters", "full 2 tokens, 2 requests of 1",
                     "full 1 token, 1 request of 1, 2 adapters", "full 1 token, 1 request of 1"});
}

TEST_CASE("dispatch: a static graph has one size", "[splitter]") {
  Builder b = static_graph();
  const auto plan = make_plan(b.cut({}), b.graph, {.mode = "piecewise"});
  REQUIRE(plan.has_value());
  REQUIRE(plan->captures.size() == 1);
  const Dispatcher d(*plan);
  CHECK(d.dispatch(requests_of({4})).mode == DispatchMode::piecewise);
  CHECK(d.dispatch(requests_of({4})).padding == 0);
}

TEST_CASE("dispatch: every answer of a random step has room for it", "[splitter]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 30)));
  INFO("seed " << seed);
  Random random(seed);
  const char* modes[] = {"none", "piecewise", "full", "full_decode_only", "full_and_piecewise"};
  PlanOptions options;
  options.mode = modes[random.below(5)];
  options.max_requests = 1 + static_cast<std::int64_t>(random.below(40));
  options.speculative_tokens = static_cast<std::int64_t>(random.below(4));
  options.sequence_parallel = 1 + static_cast<std::int64_t>(random.below(4));
  options.loras = {static_cast<std::int64_t>(random.below(5))};
  const Plan plan = plan_of(static_cast<Capturable>(random.below(4)), options);
  for (const Contradiction& c : contradictions(plan)) FAIL(c.at << ": " << c.message);
  const Dispatcher d(plan);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> tokens(1 + random.below(50));
    const bool same = random.below(2) == 0;
    const auto query = 1 + static_cast<std::int64_t>(random.below(5));
    for (std::int64_t& t : tokens)
      t = same ? query : 1 + static_cast<std::int64_t>(random.below(9));
    const StepShape step = shape_of(tokens, static_cast<std::int64_t>(random.below(6)));
    const Dispatch found = d.dispatch(step);
    CHECK(found.key.tokens == step.tokens + found.padding);
    CHECK(found.padding >= 0);
    if (found.mode == DispatchMode::none) {
      CHECK(found.padding < plan.eager_multiple);
      CHECK_FALSE(d.explain(step, found).empty());
      continue;
    }
    CHECK(found.key.loras >= step.loras);
    const bool listed =
        std::any_of(plan.captures.begin(), plan.captures.end(),
                    [&](const Capture& c) { return c.mode == found.mode && c.key == found.key; });
    CHECK(listed);
    if (found.mode == DispatchMode::full) {
      CHECK(found.key.requests >= step.requests);
      CHECK((found.key.query == 0 || found.key.query == step.query));
    }
  }
}

#include "models/generate.hpp"

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::small_llama;

namespace {

LlamaOptions small(const std::string& quant = "none", std::int64_t tp = 1) {
  LlamaOptions options = test::small_llama();
  options.quant = quant;
  options.tp = tp;
  return options;
}

struct Llama {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context};

  explicit Llama(const LlamaOptions& options) {
    REQUIRE(load_op_library(context).has_value());
    make(options);
  }
  StitchedGraph pieces(bool fold = true) {
    const SplitOptions options{{}, fold};
    return split(graph, *splitting_ops(context, nullptr, {}, options), options).value();
  }

 protected:
  Llama() = default;
  void make(const LlamaOptions& options) {
    auto made = generate_llama(context, options);
    if (!made) FAIL(render(made.error(), context->sources));
    graph = std::move(*made);
  }
};

/// With the rule library, which brings the ops.
struct Rewritten : Llama {
  RuleSet rules;
  Env params;
  RewriteReport report;

  explicit Rewritten(const LlamaOptions& options) {
    auto loaded = load_rules(context, {"rules/llm.pwr"});
    if (!loaded) FAIL(render(loaded.error(), context->sources));
    rules = std::move(*loaded);
    make(options);
    params = *bind_params(rules, {{"tp", std::to_string(options.tp)}});
    auto done = run_pipeline(graph, rules, "o2", params);
    if (!done) FAIL(render(done.error(), context->sources));
    report = std::move(*done);
  }
  std::size_t count(const char* op) const {
    std::size_t found = 0;
    for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
      found += graph.op_of(n).name == op ? 1 : 0;
    return found;
  }
};

}  // namespace

TEST_CASE("generate: the graph is well formed", "[splitter]") {
  const std::string quant = GENERATE(std::string("none"), std::string("fp8"));
  const std::int64_t tp = GENERATE(1, 2);
  Llama llama(small(quant, tp));
  const Diagnostics problems = verify(llama.graph);
  INFO(render(problems, llama.context->sources));
  CHECK(problems.empty());
  CHECK(llama.graph.facts.tokens() == "n");
}

TEST_CASE("generate: twelve layers are 25 pieces, 13 of them capturable, 3 classes of these",
          "[splitter]") {
  Llama llama(small());
  const StitchedGraph s = llama.pieces();
  CHECK(s.pieces.size() == 25);
  CHECK(s.capturable() == 13);
  CHECK(s.capturable_classes() == 3);
  CHECK(s.classes.size() == 4);
  CHECK(llama.pieces(false).capturable_classes() == 13);
}

TEST_CASE("generate: the pipeline fuses every layer, and pieces stay equal", "[splitter]") {
  Rewritten llama(small("fp8", 2));
  CHECK(llama.count("add") == 0);
  CHECK(llama.count("rms_norm") == 0);
  CHECK(llama.count("silu") == 0);
  CHECK(llama.count("silu_and_mul_quant") == 12);
  CHECK(llama.count("scaled_mm") == 48);
  CHECK(verify(llama.graph).empty());
  const StitchedGraph s = llama.pieces();
  CHECK(s.pieces.size() == 25);
  CHECK(s.capturable_classes() == 3);
}

TEST_CASE("generate: without ranks and quantisation every sum meets its norm", "[splitter]") {
  Rewritten llama(small());
  CHECK(llama.report.journal.count(llama.rules, "add_rms") == 24);
  const auto plan = make_plan(llama.pieces(), llama.graph, {});
  REQUIRE(plan.has_value());
  CHECK(plan->capture.pad(7) == 8);
  CHECK(plan->capture.pad(300) == 304);
  CHECK(plan->memory.arena_bytes >= plan->memory.live_bytes);
  CHECK(plan->memory.arena_bytes < 2 * plan->memory.live_bytes);
}

TEST_CASE("generate: a mixture of experts has a branch for each, and every branch is fused",
          "[splitter]") {
  LlamaOptions options = small("fp8", 2);
  options.layers = 3;
  options.experts = 4;
  Rewritten moe(options);
  CHECK(verify(moe.graph).empty());
  CHECK(moe.graph.name == "moe");
  CHECK(moe.count("keep_topk") == 3);
  CHECK(moe.count("silu_and_mul_quant") == 3 * 4);
  CHECK(moe.count("scaled_mm") == 3 * (2 + 2 * 4));
  CHECK(moe.count("add") == 3 * 3);  // the sums over experts; those of the residual are fused
}

TEST_CASE("generate: both families reach a million nodes, and end soon after", "[splitter]") {
  for (const std::int64_t experts : {0, 3, 64}) {
    INFO(experts << " experts");
    LlamaOptions options = small("fp8", 2);
    options.experts = experts;
    options.layers = experts == 0 ? 42'000 : experts == 3 ? 18'800 : 1'550;
    const Llama large(options);
    CHECK(large.graph.node_count() >= 1'000'000);
    CHECK(large.graph.node_count() <= 1'100'000);
    options.layers += options.layers / 10;
    CHECK_FALSE(generate_llama(large.context, options).has_value());
  }
}

TEST_CASE("generate: a shuffled graph is the same graph in another order", "[splitter]") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  LlamaOptions options = small("none", 2);
  options.experts = 4;
  const Llama plain(options);
  const Graph other = shuffled(plain.graph, seed), again = shuffled(plain.graph, seed);
  CHECK(verify(other).empty());
  CHECK(structural_hash(other) == structural_hash(plain.graph));
  CHECK(print_pwg(other) != print_pwg(plain.graph));
  CHECK(print_pwg(other) == print_pwg(again));
  std::uint32_t next = 0;
  for (NodeId n : other.order()) CHECK(n.index == next++);
  const auto collectives = [](const Graph& g) {
    std::string names;
    for (NodeId n : g.order())
      if (g.op_of(n).traits.collective) names += std::string(g.node_name(n)) + " ";
    return names;
  };
  CHECK(collectives(other) == collectives(plain.graph));
}

TEST_CASE("generate: impossible sizes are refused", "[splitter]") {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context).has_value());
  const auto refused = [&](LlamaOptions options) {
    return !generate_llama(context, options).has_value();
  };
  CHECK(refused({.layers = 0}));
  CHECK(refused({.layers = 1'000'000}));
  CHECK(refused({.hidden = 100, .heads = 3}));
  CHECK(refused({.heads = 32, .kv_heads = 5}));
  CHECK(refused({.tp = 3}));
  CHECK(refused({.quant = "int1"}));
  CHECK(refused({.experts = -1}));
  CHECK(refused({.layers = 1, .experts = 4, .topk = 5}));
  CHECK_FALSE(refused({.layers = 1}));
  CHECK_FALSE(refused({.layers = 1, .experts = 4}));
}

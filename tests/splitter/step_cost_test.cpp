#include "splitter/step_cost.hpp"

#include "dsl/dsl.hpp"
#include "graph/ops/product.hpp"
#include "splitter/choose.hpp"
#include "splitter/plan.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

/// y = x @ w with x: bf16[n, 1024], w: bf16[1024, 4096], then relu-like neg.
struct Model {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context};
  StitchedGraph pieces{Graph(context), {}, {}};

  explicit Model(const std::string& text) {
    REQUIRE(load_op_library(context).has_value());
    auto parsed = parse_graph(context, text, "g");
    if (!parsed) FAIL(render(parsed.error(), context->sources));
    graph = std::move(*parsed);
    pieces = *split(graph, *splitting_ops(context, nullptr, {}, {}));
  }
};

const char* const kProduct = R"(graph {
  symbol n in 1..8192 tokens
  in x: bf16[n, 1024], w: bf16[1024, 4096]
  y = mm(x, w)
  z = -y
  out z
})";

}  // namespace

TEST_CASE("cost: products are known by their signature", "[splitter]") {
  auto context = std::make_shared<Context>();
  REQUIRE(load_op_library(context).has_value());
  const auto product = [&](const char* op) {
    return product_of(context->ops[context->ops.find(op)]);
  };
  for (const char* op : {"add", "rms_norm", "embedding", "unified_attention", "cat", "keep_topk"})
    CHECK_FALSE(product(op).has_value());
  REQUIRE(product("addmm").has_value());
  CHECK(product("addmm")->a == 1);
  CHECK(product("addmm")->b == 2);
  CHECK(product("mm").has_value());
  CHECK(product("scaled_mm").has_value());
}

TEST_CASE("cost: a step moves its bytes and computes whole tiles in whole waves", "[splitter]") {
  Model m(kProduct);
  Machine slow_memory;
  slow_memory.bytes = 1;
  slow_memory.replayed = 0;
  // x, w and y of the product, y and z of the negation, 2 bytes each.
  const auto bytes = [](double n) { return 2 * (n * 1024 + 1024 * 4096 + 3 * n * 4096); };
  CHECK(StepCost(m.pieces, m.graph, slow_memory).captured(7) == Approx(bytes(7)));

  Machine tiled;
  tiled.bytes = 1e300;
  tiled.replayed = 0;
  tiled.operations = 132;
  // 32 tiles of 128 columns a row of tiles, 132 at a time; a wave is a tile's 2 · 64 · 128 · 1024.
  const StepCost cost(m.pieces, m.graph, tiled);
  const double wave = 2.0 * 64 * 128 * 1024;
  CHECK(cost.captured(1) == Approx(wave));
  CHECK(cost.captured(64) == cost.captured(1));
  CHECK(cost.captured(256) == Approx(wave));      // 128 tiles
  CHECK(cost.captured(257) == Approx(2 * wave));  // 160 tiles
}

TEST_CASE("cost: a kernel costs more by itself than in a graph", "[splitter]") {
  Model m(kProduct);
  const StepCost cost(m.pieces, m.graph);
  CHECK(cost.eager(16) - cost.captured(16) == Approx(2 * 4e-6));
  double before = 0;
  for (std::int64_t n = 1; n <= 8192; n += 37) {
    CHECK(cost.captured(n) >= before);
    before = cost.captured(n);
  }
}

TEST_CASE("cost: equal pieces count as often as they occur, splitting ones never", "[splitter]") {
  const auto layers = [](int count) {
    std::string text = "graph {\n  symbol n in 1..8192 tokens\n  in x0: bf16[n, 8, 64]\n";
    for (int i = 0; i < count; ++i) {
      const std::string x = "x" + std::to_string(i), a = "a" + std::to_string(i);
      text += "  " + a + " = unified_attention(" + x + ", " + x + ", " + x + ", none){layer = \"" +
              std::to_string(i) + "\"}\n  x" + std::to_string(i + 1) + " = -" + a + "\n";
    }
    return text + "  out x" + std::to_string(count) + "\n}";
  };
  Model one(layers(1)), five(layers(5));
  CHECK(StepCost(five.pieces, five.graph).captured(100) ==
        Approx(5 * StepCost(one.pieces, one.graph).captured(100)));
}

TEST_CASE("cost: measured times are joined by lines", "[splitter]") {
  const std::vector<std::pair<std::int64_t, double>> times{{8, 1}, {16, 2}, {32, 6}};
  CHECK(interpolated(times, 1) == 1);
  CHECK(interpolated(times, 8) == 1);
  CHECK(interpolated(times, 12) == 1.5);
  CHECK(interpolated(times, 32) == 6);
  CHECK(interpolated(times, 40) == 8);
  CHECK(interpolated({{8, 3}}, 100) == 3);
  CHECK(interpolated({{8, 3}, {16, 2}}, 100) == 2);
}

TEST_CASE("cost: half as many chosen sizes serve as well as the default ones", "[splitter]") {
  Model m(kProduct);
  const StepCost cost(m.pieces, m.graph);
  const auto captured = [&](std::int64_t n) { return cost.captured(n); };
  const auto eager = [&](std::int64_t n) { return cost.eager(n); };
  const CaptureSizes defaults = make_capture_sizes(default_capture_sizes({}));
  REQUIRE(defaults.sizes.size() == 51);
  for (const char* name : {"lognormal", "bimodal", "uniform"}) {
    INFO(name);
    const Histogram traffic = *histogram_named(name);
    const auto sets = best_sets(monotone(size_problem(traffic, 1, 512, captured, eager)), 24);
    const Served chosen = serve(traffic, make_capture_sizes(sets.back().sizes), captured, eager);
    CHECK(sets.back().sizes.size() <= 24);
    CHECK(chosen.seconds == Approx(sets.back().seconds));
    CHECK(chosen.seconds <= 1.004 * serve(traffic, defaults, captured, eager).seconds);
  }
}

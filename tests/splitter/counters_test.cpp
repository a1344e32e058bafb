#include "splitter/counters.hpp"

#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "tests/catch.hpp"
#include "tests/splitter/graphs.hpp"

using namespace pw;
using pw::test::Builder;
using pw::test::small_llama;

namespace {

// Graphs seen, pieces, capturable pieces, backend compilations, graphs captured.
using Numbers = std::vector<std::size_t>;

Numbers numbers(const Counters& c) {
  return {c.graphs_seen, c.pieces, c.capturable_pieces, c.backend_compilations, c.graphs_captured};
}

Counters counted(const StitchedGraph& pieces, const Graph& graph, PlanOptions options = {}) {
  if (options.capture_sizes.empty()) options.capture_sizes = {1, 2};
  const auto plan = make_plan(pieces, graph, options);
  REQUIRE(plan.has_value());
  Counting counting;
  counting.add(pieces, *plan);
  return counting.counters();
}

struct Model {
  ContextPtr context = std::make_shared<Context>();
  Graph graph{context};
  explicit Model(const LlamaOptions& options) {
    REQUIRE(load_op_library(context).has_value());
    graph = *generate_llama(context, options);
  }
  StitchedGraph pieces(bool fold, bool at_attention = true) const {
    const SplitOptions options{{}, fold};
    const auto ops =
        at_attention ? *splitting_ops(context, nullptr, {}, options) : std::vector<OpId>{};
    return *split(graph, ops, options);
  }
};

LlamaOptions small(std::int64_t layers, std::int64_t experts = 0) {
  LlamaOptions options = small_llama(layers);
  options.experts = experts;
  return options;
}

}  // namespace

TEST_CASE("counters: the toy model, piece by piece and folded", "[splitter]") {
  Builder b = pw::test::toy();
  CHECK(numbers(counted(b.cut({"attention"}, false), b.graph)) == Numbers{1, 5, 3, 3, 6});
  // x+1; x+2 · −2; −1 · +1: no two are equal.
  CHECK(counted(b.cut({"attention"}), b.graph).piece_classes == 3);
}

TEST_CASE("counters: twelve layers of llama", "[splitter]") {
  const Model llama(small(12));
  CHECK(numbers(counted(llama.pieces(false), llama.graph)) == Numbers{1, 25, 13, 13, 26});
  CHECK(numbers(counted(llama.pieces(false, false), llama.graph)) == Numbers{1, 1, 1, 1, 2});
  const Counters folded = counted(llama.pieces(true), llama.graph);
  CHECK(folded.piece_classes == 3);
  CHECK(numbers(folded) == Numbers{1, 25, 13, 3, 6});
}

TEST_CASE("counters: three attentions, inlined", "[splitter]") {
  Builder b;
  ValueId x = b.input("x");
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k <= i; ++k) x = b.one("relu", {x});
    x = b.attention(x, i);
  }
  b.graph.add_output(b.one("tanh", {x}));
  CHECK(numbers(counted(b.cut({"attention"}, false), b.graph)) == Numbers{1, 7, 4, 4, 8});
}

TEST_CASE("counters: a mixture of 32 layers", "[splitter]") {
  const Model moe(small(32, 4));
  CHECK(counted(moe.pieces(false), moe.graph).backend_compilations == 33);
  CHECK(counted(moe.pieces(true), moe.graph).backend_compilations == 3);
}

TEST_CASE("counters: ranges and exact sizes compile by themselves", "[splitter]") {
  Builder b = pw::test::toy();
  const PlanOptions options{.range_ends = {8, 32}, .compile_sizes = {16, 64, 128}};
  CHECK(counted(b.cut({}), b.graph, options).backend_compilations == 6);
  CHECK(counted(b.cut({"attention"}), b.graph, options).backend_compilations == 3 * 6);
}

TEST_CASE("counters: what the graphs of two ranges share compiles once", "[splitter]") {
  const auto graph = [](double last) {
    Builder b;
    ValueId x = b.attention(b.one("relu", {b.input("x")}), 0);
    b.graph.add_output(b.one("add", {x, b.literal(last)}));
    return b;
  };
  Builder one = graph(1), same = graph(1), other = graph(2);
  Counting counting;
  const auto add = [&](Builder& b) {
    const StitchedGraph pieces = b.cut({"attention"});
    counting.add(pieces, *make_plan(pieces, b.graph, {.capture_sizes = {1, 2}}));
  };
  add(one);
  CHECK(counting.counters().backend_compilations == 2);
  add(same);
  CHECK(counting.counters().backend_compilations == 2);
  add(other);
  CHECK(counting.counters().graphs_seen == 3);
  CHECK(counting.counters().backend_compilations == 3);
  CHECK(counting.counters().graphs_captured == 3 * 4);
}

TEST_CASE("counters: mode `none` captures nothing", "[splitter]") {
  Builder b = pw::test::toy();
  CHECK(counted(b.cut({"attention"}), b.graph, {.mode = "none"}).graphs_captured == 0);
}

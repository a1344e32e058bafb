// Several ranks in one process: what the collectives give, and that graphs which should mean the
// same on all ranks do.
#include <algorithm>
#include <cmath>

#include "backends/collectives.hpp"
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "exec/runner.hpp"
#include "tests/backends/graphs.hpp"

namespace {

using namespace pw;
using namespace pw::test;

using Numbers = std::vector<double>;

/// The only output of a graph with one f32 input [rows, 2], by rank; the same on both engines.
std::vector<Numbers> on_ranks(const std::string& text, std::int64_t rows,
                              const std::vector<Numbers>& inputs) {
  const Graph graph = graph_of("in x: f32[n, 2]  y = " + text + "  out y");
  const RunContext context{{{"n", rows}}, nullptr, rows};
  std::vector<Tensor> tensors;
  std::vector<std::vector<TensorView>> views;
  for (const Numbers& input : inputs) {
    tensors.push_back(tensor(DType::f32, {rows, 2}, input));
    views.push_back({tensors.back().view()});
  }
  const auto exact = interpret_ranks(graph, views, context);
  INFO((exact ? std::string() : exact.error()[0].message));
  REQUIRE(exact);
  std::vector<Numbers> out;
  std::vector<RankTensors> ranks;
  std::vector<Tensor> rounded;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    out.push_back(values((*exact)[rank][0]));
    rounded.emplace_back(DType::f32, (*exact)[rank][0].extents());
    ranks.push_back({views[rank], {rounded.back().view()}});
  }
  REQUIRE(make_eager()->compile(graph).value()->run_ranks(ranks, context));
  for (std::size_t rank = 0; rank < inputs.size(); ++rank)
    CHECK(values(rounded[rank]) == out[rank]);
  return out;
}

std::string code_of(const std::string& text, std::int64_t rows, std::size_t ranks) {
  const Graph graph = graph_of("in x: f32[n, 2]  " + text);
  const RunContext context{{{"n", rows}}, nullptr, rows};
  const Tensor x(DType::f32, {rows, 2});
  const std::vector<std::vector<TensorView>> views(ranks, {x.view()});
  const auto result = interpret_ranks(graph, views, context);
  return result ? "" : result.error()[0].code;
}

/// Largest difference between two graphs with the same inputs and outputs, over all outputs and
/// ranks, on the reference.
double apart(const std::string& inputs, const std::string& before, const std::string& after,
             std::int64_t ranks, const Replication& replication, std::int64_t tokens) {
  const Graph a = graph_of(inputs + before), b = graph_of(inputs + after);
  std::vector<Weights> weights = weights_of_ranks(a, 11, ranks, replication);
  const Step step = one_sequence(tokens);
  const auto x = run_reference(a, weights, step), y = run_reference(b, weights, step);
  INFO((x ? std::string() : x.error()[0].message) << (y ? "" : y.error()[0].message));
  REQUIRE(x);
  REQUIRE(y);
  double largest = 0;
  for (std::size_t rank = 0; rank < x->size(); ++rank) {
    for (std::size_t i = 0; i < (*x)[rank].size(); ++i) {
      const Numbers p = values((*x)[rank][i]), q = values((*y)[rank][i]);
      if (p.size() != q.size()) return INFINITY;
      for (std::size_t j = 0; j < p.size(); ++j)
        largest = std::max(largest, std::fabs(p[j] - q[j]));
    }
  }
  return largest;
}

std::string with_world(std::string text, std::int64_t world) {
  for (std::size_t at = 0; (at = text.find("WORLD")) != std::string::npos;)
    text.replace(at, 5, std::to_string(world));
  return text;
}

constexpr double kExact = 1e-12;

}  // namespace

TEST_CASE("ranks: collectives over two ranks", "[backends]") {
  const std::vector<Numbers> x = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  using All = std::vector<Numbers>;
  CHECK(on_ranks("all_reduce(x){group = \"tp\"}", 2, x) == All{{11, 22, 33, 44}, {11, 22, 33, 44}});
  CHECK(on_ranks("reduce_scatter(x){dim = 0, world = 2, group = \"tp\"}", 2, x) ==
        All{{11, 22}, {33, 44}});
  CHECK(on_ranks("reduce_scatter(x){dim = 1, world = 2, group = \"tp\"}", 2, x) ==
        All{{11, 33}, {22, 44}});
  CHECK(on_ranks("all_gather(x){dim = 0, world = 2, group = \"tp\"}", 2, x) ==
        All{{1, 2, 3, 4, 10, 20, 30, 40}, {1, 2, 3, 4, 10, 20, 30, 40}});
  CHECK(on_ranks("all_gather(x){dim = -1, world = 2, group = \"tp\"}", 2, x) ==
        All{{1, 2, 10, 20, 3, 4, 30, 40}, {1, 2, 10, 20, 3, 4, 30, 40}});
  CHECK(on_ranks("shard(x){dim = 0, world = 2, group = \"tp\"}", 2, x) == All{{1, 2}, {30, 40}});
  CHECK(on_ranks("shard(x){dim = 1, world = 2, group = \"tp\"}", 2, x) == All{{1, 3}, {20, 40}});
}

TEST_CASE("ranks: groups of a step are neighbours or strided", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 2]  y = all_reduce(x){group = \"dp\"}  z = "
      "all_gather(x){dim = 0, world = 2, "
      "group = \"tp\"}  out y, z");
  const std::vector<Numbers> x = {{1, 2}, {10, 20}, {100, 200}, {1000, 2000}};
  std::vector<Weights> weights = weights_of_ranks(graph, 1, 4);
  for (std::size_t rank = 0; rank < 4; ++rank)
    weights[rank].give("x", tensor(DType::f32, {1, 2}, x[rank]));
  Step step = one_sequence(1);
  const auto outputs = [&](const RankGroups& groups, std::size_t output) {
    step.groups = &groups;
    const auto ran = run_reference(graph, weights, step);
    INFO((ran ? std::string() : ran.error()[0].message));
    REQUIRE(ran);
    std::vector<Numbers> out;
    for (const std::vector<Tensor>& rank : *ran) out.push_back(values(rank[output]));
    return out;
  };
  using All = std::vector<Numbers>;
  const RankGroups apart = {{"dp", {2, 2}}}, near = {{"dp", {2, 1}}}, turned = {{"tp", {2, 2}}};
  CHECK(outputs(apart, 0) == All{{101, 202}, {1010, 2020}, {101, 202}, {1010, 2020}});
  CHECK(outputs(near, 0) == All{{11, 22}, {11, 22}, {1100, 2200}, {1100, 2200}});
  CHECK(outputs(apart, 1) ==
        All{{1, 2, 10, 20}, {1, 2, 10, 20}, {100, 200, 1000, 2000}, {100, 200, 1000, 2000}});
  CHECK(outputs(turned, 1) ==
        All{{1, 2, 100, 200}, {10, 20, 1000, 2000}, {1, 2, 100, 200}, {10, 20, 1000, 2000}});
  for (const RankGroup wrong : {RankGroup{4, 1}, RankGroup{2, 4}}) {
    const RankGroups groups = {{"tp", wrong}};
    step.groups = &groups;
    const auto ran = run_reference(graph, weights, step);
    REQUIRE_FALSE(ran);
    CHECK(ran.error()[0].code == "PW1208");
  }
}

TEST_CASE("ranks: what is replicated over several groups is so over all they reach", "[backends]") {
  const RankGroups groups = {{"tp", {2, 1}}, {"dp", {2, 2}}, {"all", {0, 1}}};
  const auto places = [&](const std::vector<std::string>& over) {
    std::vector<std::int64_t> out;
    for (std::int64_t rank = 0; rank < 4; ++rank) out.push_back(replica_of(over, rank, groups));
    return out;
  };
  using Places = std::vector<std::int64_t>;
  CHECK(places({}) == Places{0, 1, 2, 3});
  CHECK(places({"tp"}) == Places{0, 0, 1, 1});
  CHECK(places({"dp"}) == Places{0, 1, 0, 1});
  CHECK(places({"tp", "dp"}) == Places{0, 0, 0, 0});
  CHECK(places({"all"}) == Places{0, 0, 0, 0});
  CHECK(places({"unknown"}) == Places{0, 0, 0, 0});
}

TEST_CASE("ranks: operands of collectives may be views", "[backends]") {
  const std::vector<Numbers> x = {{1, 2, 3, 4}, {10, 20, 30, 40}};
  using All = std::vector<Numbers>;
  CHECK(on_ranks("reduce_scatter(transpose(x){dim0 = 0, dim1 = 1}){dim = 0, world = 2, group = "
                 "\"tp\"}",
                 2, x) == All{{11, 33}, {22, 44}});
  CHECK(on_ranks("neg(shard(transpose(x){dim0 = 0, dim1 = 1}){dim = 0, world = 2, group = \"tp\"})",
                 2, x) == All{{-1, -3}, {-20, -40}});
}

TEST_CASE("ranks: a group of two among four ranks is a pair of neighbours", "[backends]") {
  const std::vector<Numbers> x = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  using All = std::vector<Numbers>;
  CHECK(on_ranks("all_gather(x){dim = 0, world = 2, group = \"tp\"}", 1, x) ==
        All{{1, 2, 3, 4}, {1, 2, 3, 4}, {5, 6, 7, 8}, {5, 6, 7, 8}});
  // The all_reduce does not say how many ranks its group has; the gather of the group does.
  CHECK(on_ranks("all_gather(all_reduce(x){group = \"tp\"}){dim = 1, world = 2, group = \"tp\"}", 1,
                 x) == All{{4, 6, 4, 6}, {4, 6, 4, 6}, {12, 14, 12, 14}, {12, 14, 12, 14}});
  CHECK(on_ranks("all_reduce(x){group = \"tp\"}", 1, x) ==
        All{{16, 20}, {16, 20}, {16, 20}, {16, 20}});
}

TEST_CASE("ranks: a sum rounds once, integers stay exact", "[backends]") {
  const Graph graph = graph_of(
      "in x: bf16[1], i: i64[1]  y = all_reduce(x){group = \"tp\"}  j = all_reduce(i){group = "
      "\"tp\"}  out y, j");
  // In bf16, 256 + 1 is 256 again; the exact 259 rounds to 260.
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  std::vector<Tensor> tensors;
  std::vector<RankTensors> ranks;
  for (double x : {256.0, 1.0, 1.0, 1.0}) {
    const Tensor in = tensor(DType::bf16, {1}, {x}), i(DType::i64, {1}), out(DType::bf16, {1}),
                 j(DType::i64, {1});
    reinterpret_cast<std::int64_t*>(i.data())[0] = big;
    ranks.push_back({{in.view(), i.view()}, {out.view(), j.view()}});
    tensors.insert(tensors.end(), {in, i, out, j});
  }
  for (const auto& backend : all_backends()) {
    REQUIRE(backend->compile(graph).value()->run_ranks(ranks, {}));
    for (std::size_t rank = 0; rank < 4; ++rank) {
      // The interpreter keeps 259 until it is stored.
      CHECK(values(tensors[rank * 4 + 2]) == Numbers{260});
      CHECK(reinterpret_cast<std::int64_t*>(tensors[rank * 4 + 3].data())[0] == 4 * big);
    }
  }
}

TEST_CASE("ranks: runs that no such group of ranks can make are diagnosed", "[backends]") {
  const std::string gather = "y = all_gather(x){dim = 0, world = 2, group = \"tp\"}  out y";
  CHECK(code_of(gather, 2, 2).empty());
  CHECK(code_of(gather, 2, 1) == "PW1201");
  CHECK(code_of(gather, 2, 3) == "PW1208");
  CHECK(code_of("y = shard(x){dim = 0, world = 2, group = \"tp\"}  out y", 3, 2) == "PW1203");
  CHECK(code_of("y = reduce_scatter(x){dim = 0, world = 2, group = \"tp\"}  out y", 3, 2) ==
        "PW1203");
  CHECK(code_of("y = all_gather(x){dim = 0, world = 2, group = \"tp\"}  z = all_gather(x){dim = 0, "
                "world = 4, group = \"tp\"}  out y, z",
                2, 4) == "PW1208");
  CHECK(code_of("y = all_gather(x){dim = 0, world = 2, group = \"tp\"}  z = all_gather(x){dim = 0, "
                "world = 4, group = \"ep\"}  out y, z",
                2, 4)
            .empty());
}

TEST_CASE("ranks: an executable of one rank refuses two", "[backends]") {
  class Alone final : public Executable {
    Status run(std::span<const TensorView>, std::span<const TensorView>,
               const RunContext&) override {
      return {};
    }
  } alone;
  const std::vector<RankTensors> two(2);
  CHECK(alone.run_ranks(std::span(two).first(1), {}));
  CHECK(alone.run_ranks(two, {}).error()[0].code == "PW1201");
}

TEST_CASE("ranks: replicated inputs are equal on all ranks, others differ", "[backends]") {
  const Graph graph = graph_of("in x: f32[4], w: f32[4]  y = x + w  out y");
  Replication replication;
  replication.names = {"w"};
  std::vector<Weights> weights = weights_of_ranks(graph, 3, 2, replication);
  const Step step = one_sequence(1);
  const auto of = [&](std::size_t rank, const char* input) {
    return values(weights[rank].tensor(input, {}, step).value());
  };
  CHECK(of(0, "w") == of(1, "w"));
  CHECK(of(0, "x") != of(1, "x"));
  CHECK(of(0, "x") == values(Weights(graph, 3).tensor("x", {}, step).value()));
}

TEST_CASE("ranks: an input replicated over a group is equal within each of its groups",
          "[backends]") {
  const Graph graph = graph_of(
      "in x: f32[4] replicated \"tp\", w: f32[4] replicated \"all\", v: f32[4]  "
      "y = all_gather(x + w + v){dim = 0, world = 2, group = \"tp\"}  out y");
  std::vector<Weights> weights = weights_of_ranks(graph, 3, 4);
  const auto of = [&](std::size_t rank, const char* input) {
    return values(weights[rank].tensor(input, {}, one_sequence(1)).value());
  };
  CHECK(of(0, "x") == of(1, "x"));
  CHECK(of(2, "x") == of(3, "x"));
  CHECK(of(0, "x") != of(2, "x"));
  CHECK(of(0, "w") == of(3, "w"));
  CHECK(of(0, "v") != of(1, "v"));
}

TEST_CASE("ranks: sequence parallelism around a norm keeps every rank's numbers", "[backends]") {
  const std::string inputs =
      "symbol n in 1..64 tokens  in m: bf16[n, 32], res: bf16[n, 32], w: bf16[32]\n";
  const std::string before =
      "h = all_reduce(m){group = \"tp\"}  y, r = fused_add_rms_norm(h, res, w)  out y, r";
  const std::string after = R"(
    hs = reduce_scatter(m){dim = 0, world = WORLD, group = "tp"}
    rs0 = shard(res){dim = 0, world = WORLD, group = "tp"}
    ys, rs = fused_add_rms_norm(hs, rs0, w)
    y = all_gather(ys){dim = 0, world = WORLD, group = "tp"}
    r = all_gather(rs){dim = 0, world = WORLD, group = "tp"}
    out y, r)";
  Replication same;
  same.names = {"res", "w"};
  Replication residual_only;
  residual_only.names = {"res"};
  for (std::int64_t ranks : {2, 4}) {
    const std::string text = with_world(after, ranks);
    CHECK(apart(inputs, before, text, ranks, same, 8) <= kExact);
    // It rests on both being replicated.
    CHECK(apart(inputs, before, text, ranks, residual_only, 8) > 0.01);
    CHECK(apart(inputs, before, text, ranks, {}, 8) > 0.01);
    // A rank's own residual, which is not its part of the whole one.
    std::string unscattered = text;
    unscattered.replace(unscattered.find("reduce_scatter(m){"), 18, "shard(m){");
    CHECK(apart(inputs, before, unscattered, ranks, same, 8) > 0.01);
  }
}

TEST_CASE("ranks: products fused with collectives mean the composition", "[backends]") {
  const std::string inputs =
      "symbol n in 1..64 tokens  in a: bf16[n, 16], b: bf16[16, 8], w: bf16[16, 8]\n";
  const Replication none;
  for (std::int64_t ranks : {2, 4}) {
    const auto compare = [&](const std::string& before, const std::string& after) {
      return apart(inputs, with_world(before, ranks), with_world(after, ranks), ranks, none, 8);
    };
    const std::string scattered =
        "y = reduce_scatter(mm(a, b)){dim = 0, world = WORLD, group = \"tp\"}  out y";
    CHECK(compare(scattered,
                  "y = fused_matmul_reduce_scatter(a, b){scatter_dim = 0, world = WORLD, "
                  "group = \"tp\"}  out y") <= kExact);
    CHECK(compare("y = reduce_scatter(mm(a, b)){dim = 1, world = WORLD, group = \"tp\"}  out y",
                  "y = fused_matmul_reduce_scatter(a, b){scatter_dim = 1, world = WORLD, group = "
                  "\"tp\"}  out y") <= kExact);
    CHECK(compare(scattered, "y = shard(mm(a, b)){dim = 0, world = WORLD, group = \"tp\"}  out y") >
          0.01);
    CHECK(
        compare("h = all_gather(a){dim = 0, world = WORLD, group = \"tp\"}  y = mm(h, w)  out h, y",
                "h, y = fused_all_gather_matmul(a, w){gather_dim = 0, world = WORLD, group = "
                "\"tp\"}  out h, y") <= kExact);
    // A shard of a gather is the part itself, even if the parts differ.
    CHECK(
        compare("y = shard(all_gather(a){dim = 0, world = WORLD, group = \"tp\"}){dim = 0, world = "
                "WORLD, group = \"tp\"}  out y",
                "y = neg(neg(a))  out y") == 0);
  }
}

TEST_CASE("ranks: padded and split steps give what the whole graph gives", "[backends]") {
  const Graph graph = graph_of(R"(
    symbol n in 1..64 tokens
    in x: f32[n, 8], w: f32[8, 8]
    h = all_reduce(mm(x, w)){group = "tp"}
    y = relu(h)
    z = all_gather(y){dim = 1, world = 2, group = "tp"}
    out z, h)");
  const StitchedGraph pieces = split(graph, {graph.context().ops.find("all_reduce")}).value();
  PlanOptions options;
  options.max_tokens = 64;
  options.capture_sizes = {8};
  const Plan plan = make_plan(pieces, graph, options).value();
  CHECK(pieces.pieces.size() == 3);
  const auto backend = make_interpreter();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  const Step step = one_sequence(5);
  // Of four, the piece with the sum does not say that a group has two.
  const std::size_t count = GENERATE(std::size_t{2}, std::size_t{4});
  std::vector<Weights> weights = weights_of_ranks(graph, 5, static_cast<std::int64_t>(count));
  const auto result = runner.run(step, weights, {true, true, {}});
  const auto whole = run_whole(graph, *backend, weights, step);
  REQUIRE(result);
  REQUIRE(whole);
  CHECK(result->report.padded == 8);
  for (std::size_t rank = 0; rank < count; ++rank) {
    REQUIRE(result->outputs[rank].size() == 2);
    // Values that cross pieces are stored in f32.
    for (std::size_t i = 0; i < 2; ++i) {
      const Numbers got = values(result->outputs[rank][i]), all = values((*whole)[rank][i]);
      REQUIRE(got.size() == all.size());
      for (std::size_t j = 0; j < got.size(); ++j) CHECK(got[j] == Approx(all[j]).epsilon(1e-5));
    }
  }
  CHECK(values(result->outputs[0][1]) == values(result->outputs[1][1]));
}

// Running steps through a plan: split ≡ unsplit, padded ≡ unpadded, with the arena and all padding
// poisoned.
#include "exec/runner.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "exec/dispatch.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/distance.hpp"

namespace {

using namespace pw;
using namespace pw::test;

const char kDecoder[] = R"(
  symbol n in 1..64 tokens
  in ids: i64[n], positions: i64[n]
  in weight table: bf16[50, 32], cs: bf16[64, 8], w1: bf16[32], wq: bf16[64, 32], bq: bf16[64]
  in weight wo: bf16[32, 32], w2: bf16[32], wg: bf16[128, 32], wd: bf16[32, 64]
  x = embedding(table, ids)
  y = rms_norm(x, w1)
  qkv = addmm(bq, y, transpose(wq){dim0 = 0, dim1 = 1})
  q, k, v = split(qkv){dim = -1, sizes = [32, 16, 16]}
  qr, kr = rotary_embedding(positions, q, k, cs){head = 8}
  o = unified_attention(reshape(qr){shape = [n, 4, 8]}, reshape(kr){shape = [n, 2, 8]}, reshape(v){shape = [n, 2, 8]}, none){layer = "0"}
  h = mm(reshape(o){shape = [n, 32]}, transpose(wo){dim0 = 0, dim1 = 1})
  z, r = fused_add_rms_norm(h, x, w2)
  gu = mm(z, transpose(wg){dim0 = 0, dim1 = 1})
  d = mm(silu_and_mul(gu), transpose(wd){dim0 = 0, dim1 = 1})
  out d, r, cs
)";

struct Setup {
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
  std::unique_ptr<Backend> backend = make_eager();
};

PlanOptions up_to_64(std::vector<std::int64_t> sizes) {
  PlanOptions options;
  options.max_tokens = 64;
  options.capture_sizes = std::move(sizes);
  return options;
}

Setup decoder(const std::string& mode = "piecewise") {
  Graph graph = graph_of(kDecoder);
  const OpId attention = graph.context().ops.find("unified_attention");
  StitchedGraph pieces = split(graph, {attention}).value();
  PlanOptions options = up_to_64({1, 2, 4, 8, 16, 32});
  options.mode = mode;
  Plan plan = make_plan(pieces, graph, options).value();
  return {std::move(graph), std::move(pieces), std::move(plan)};
}

/// Products may be summed in another order if the number of rows differs: a few steps of bf16.
void check_close(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].extents() == expected[i].extents());
    const Distance apart = distance(got[i].view(), expected[i].view());
    INFO("output " << i);
    REQUIRE(std::isfinite(apart.worst));
    CHECK(apart.worst <= 0.02 * apart.largest);
  }
}

}  // namespace

TEST_CASE("runner: padded, split and poisoned steps give what the whole graph gives",
          "[backends]") {
  Setup setup = decoder();
  CHECK(setup.pieces.pieces.size() == 3);
  auto runner = Runner::make(setup.pieces, setup.graph, setup.plan, *setup.backend);
  REQUIRE(runner);
  Weights weights(setup.graph, 7);
  const std::vector<std::pair<Step, std::int64_t>> steps = {
      {one_sequence(1), 1},
      {{{{0, 3, 0}, {1, 2, 0}, {2, 1, 0}}}, 8},
      {one_sequence(16), 16},
      {{{{0, 20, 0}, {1, 13, 0}}}, 33}};
  for (const auto& [step, padded] : steps) {
    INFO(step.tokens() << " tokens");
    RunOptions options;
    options.poison = true;
    const auto result = runner->run(step, weights, options);
    INFO((result ? std::string() : result.error()[0].message));
    REQUIRE(result);
    CHECK(result->report.tokens == step.tokens());
    CHECK(result->report.padded == padded);
    CHECK(result->report.mode == (padded == 33 ? StepMode::eager : StepMode::captured));
    const auto whole = run_whole(setup.graph, *setup.backend, weights, step);
    REQUIRE(whole);
    check_close(result->outputs, *whole);
  }
}

TEST_CASE("runner: row ops of a padded step are bit-equal to the unpadded one", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: bf16[n, 32], r: bf16[n, 32], w: bf16[32]  y, s = "
      "fused_add_rms_norm(x, r, w)  q, t = dynamic_per_token_fp8_quant(y)  out q, t, s");
  const StitchedGraph pieces = split(graph, {}).value();
  const Plan plan = make_plan(pieces, graph, up_to_64({8})).value();
  const auto backend = make_eager();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  Weights weights(graph, 5);
  const auto padded = runner.run(one_sequence(5), weights, {true, true, {}});
  const auto exact = runner.run(one_sequence(5), weights, {false, true, {}});
  REQUIRE(padded);
  REQUIRE(exact);
  CHECK(padded->report.padded == 8);
  CHECK(exact->report.padded == 5);
  CHECK(exact->report.reason == "padding is off");
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(values(padded->outputs[i]) == values(exact->outputs[i]));
}

TEST_CASE("runner: a graph that mixes rows is not padded; where it is, the poison shows",
          "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 4]  y = mm(x, mm(transpose(x){dim0 = 0, dim1 = 1}, "
      "x))  out y");
  const StitchedGraph pieces = split(graph, {}).value();
  Plan plan = make_plan(pieces, graph, up_to_64({8})).value();
  CHECK(plan.mode == "none");
  const auto backend = make_eager();
  Weights weights(graph, 5);
  const auto exact = Runner::make(pieces, graph, plan, *backend)
                         .value()
                         .run(one_sequence(5), weights, {true, true, {}});
  REQUIRE(exact);
  CHECK(exact->report.padded == 5);
  CHECK(values(exact->outputs[0]) ==
        values(run_whole(graph, *backend, weights, one_sequence(5)).value()[0]));
  plan.mode = "piecewise";
  plan.capture = make_capture_sizes({8});
  plan.captures = captures_of(plan);
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  const auto poisoned = runner.run(one_sequence(5), weights, {true, true, {}});
  REQUIRE(poisoned);
  const std::vector<double> y = values(poisoned->outputs[0]);
  CHECK(std::all_of(y.begin(), y.end(), [](double v) { return std::isnan(v); }));
}

TEST_CASE("runner: ranks reduce over all tokens beside their parts of the rows", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 4]  a = amax(abs(x)){dim = 0}  m = mean(x){dim = 0}  "
      "p = shard(x){dim = 0, world = 2, group = \"g\"}  y = all_gather((p - m) / a){dim = 0, world "
      "= 2, group = \"g\"}  out a, m, y");
  const StitchedGraph pieces = split(graph, {}).value();
  PlanOptions options = up_to_64({16});
  options.sequence_parallel = 2;
  const Plan plan = make_plan(pieces, graph, options).value();
  const auto backend = make_interpreter(Precision::single);
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  std::vector<Weights> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.emplace_back(graph, 5);
  for (const std::int64_t tokens : {16, 6, 10}) {
    const auto padded = runner.run(one_sequence(tokens), ranks, {true, true, {}});
    REQUIRE(padded);
    CHECK(padded->report.padded == 16);
    const auto whole = run_whole(graph, *backend, ranks, one_sequence(tokens));
    REQUIRE(whole);
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(values(padded->outputs[rank][i]) == values((*whole)[rank][i]));
  }
}

TEST_CASE("runner: what the graph declares of its tokens holds of every step", "[backends]") {
  const Graph graph =
      graph_of("symbol n in 8..64 by 8 tokens  in x: f32[n, 4]  y = relu(x)  out y");
  const StitchedGraph pieces = split(graph, {}).value();
  const auto backend = make_eager();
  for (const char* mode : {"piecewise", "none"}) {
    PlanOptions options;
    options.mode = mode;
    const Plan plan = make_plan(pieces, graph, options).value();
    auto runner = Runner::make(pieces, graph, plan, *backend).value();
    Weights weights(graph, 7);
    for (const std::int64_t tokens : {8, 12, 57, 64}) {
      const auto done = runner.run(one_sequence(tokens), weights);
      REQUIRE(done);
      CHECK(done->report.padded == (tokens + 7) / 8 * 8);
      CHECK(done->outputs[0].extents()[0] == tokens);
    }
    for (const std::int64_t tokens : {3, 65}) {
      const auto refused = check_declared(graph, tokens);
      REQUIRE_FALSE(refused);
      CHECK(refused.error()[0].code == "PW1207");
      CHECK(refused.error()[0].message.find("8..64 by 8") != std::string::npos);
      CHECK(!refused.error()[0].help.empty());
    }
    CHECK(check_declared(graph, 9));
    RunOptions alone;
    alone.pad = false;
    CHECK(runner.run(one_sequence(16), weights, alone));
    const auto odd = runner.run(one_sequence(12), weights, alone);
    REQUIRE_FALSE(odd);
    CHECK(odd.error()[0].message ==
          "would run with 12 rows, but graph g declares symbol n in 8..64 by 8");
  }
}

TEST_CASE("runner: rows that mix are not padded to what the graph declares", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 by 4 tokens  in x: f32[n, 4]  y = slice(x){dim = 0, start = n - 1, end = "
      "n}  out y");
  const StitchedGraph pieces = split(graph, {}).value();
  const Plan plan = make_plan(pieces, graph, {}).value();
  const auto backend = make_eager();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  Weights weights(graph, 7);
  CHECK(runner.run(one_sequence(12), weights)->report.padded == 12);
  CHECK(runner.run(one_sequence(11), weights).error()[0].code == "PW1207");
}

TEST_CASE("runner: what no memory holds is refused with its place and its bytes", "[backends]") {
  const auto backend = make_eager();
  const std::pair<const char*, const char*> cases[] = {
      {"in x: f32[1048576, 1048576, 1024]  y = relu(x)  out y", "4503599627370496 bytes"},
      {"in x: f32[1099511627776, 1099511627776]  y = relu(x)  out y", "more than 2^63 bytes"},
      {"in x: f32[4]  y = expand(x){shape = [1099511627776, 1024, 4]}  z = relu(y)  out z",
       "18014398509481984 bytes"},
      {"in x: f32[4], w: f32[1099511627776, 4]  y = x + amax(w){dim = 0}  out y",
       "17592186044416 bytes"}};
  for (const auto& [text, bytes] : cases) {
    INFO(text);
    const Graph graph = graph_of(text);
    Weights weights(graph, 7);
    const auto refused = run_whole(graph, *backend, weights, one_sequence(1));
    REQUIRE_FALSE(refused);
    CHECK(refused.error()[0].code == "PW1215");
    CHECK(refused.error()[0].message.find(bytes) != std::string::npos);
    CHECK(!refused.error()[0].place.empty());
    CHECK(!refused.error()[0].help.empty());
  }
}

TEST_CASE("runner: an arena that no memory holds is refused", "[backends]") {
  const Graph graph =
      graph_of("in x: f32[4]  y = expand(x){shape = [1099511627776, 1024, 4]}  z = relu(y)  out z");
  const StitchedGraph pieces = split(graph, {}).value();
  const Plan plan = make_plan(pieces, graph, {}).value();
  const auto backend = make_eager();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  Weights weights(graph, 7);
  const auto refused = runner.run(one_sequence(1), weights);
  REQUIRE_FALSE(refused);
  CHECK(refused.error()[0].code == "PW1215");
  CHECK(refused.error()[0].message.find("18014398509481984 of them") != std::string::npos);
  CHECK(refused.error()[0].place.find("at value y") != std::string::npos);
}

TEST_CASE("runner: inputs that nobody reads are not filled", "[backends]") {
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in x: f32[n, 4], z: f32[n, 1099511627776, 4]  in weight w: "
      "f32[1099511627776, 4]  y = relu(x)  out y");
  const StitchedGraph pieces = split(graph.compact(), {}).value();
  const auto backend = make_eager();
  Weights weights(graph, 7);
  const auto whole = run_whole(graph, *backend, weights, one_sequence(3));
  REQUIRE(whole);
  const Plan plan = make_plan(pieces, graph, up_to_64({4})).value();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  const auto done = runner.run(one_sequence(3), weights);
  REQUIRE(done);
  CHECK(values(done->outputs[0]) == values((*whole)[0]));
}

TEST_CASE("runner: modes and limits are reported", "[backends]") {
  Setup setup = decoder("none");
  auto runner = Runner::make(setup.pieces, setup.graph, setup.plan, *setup.backend);
  REQUIRE(runner);
  Weights weights(setup.graph, 7);
  const auto result = runner->run(one_sequence(3), weights);
  REQUIRE(result);
  CHECK(result->report.mode == StepMode::eager);
  CHECK(result->report.padded == 3);
  CHECK(result->report.reason == "capture mode `none` captures nothing");
  CHECK(runner->run(one_sequence(65), weights).error()[0].code == "PW1207");
  CHECK(runner->run(one_sequence(0), weights).error()[0].code == "PW1207");
}

/// Of a static graph with inputs c and x, split at an op: through a plan as it is whole.
void check_split(const std::string& text, const std::string& op) {
  INFO(text);
  const Graph graph = graph_of(text);
  const StitchedGraph pieces = split(graph, {graph.context().ops.find(op)}).value();
  const Plan plan = make_plan(pieces, graph, {}).value();
  const auto backend = make_eager();
  auto runner = Runner::make(pieces, graph, plan, *backend).value();
  Weights weights(graph, 5);
  const auto result = runner.run(one_sequence(1), weights);
  const auto whole = run_whole(graph, *backend, weights, one_sequence(1));
  REQUIRE(result);
  REQUIRE(whole);
  REQUIRE(result->outputs.size() == whole->size());
  for (std::size_t i = 0; i < whole->size(); ++i)
    CHECK(values(result->outputs[i]) == values((*whole)[i]));
}

TEST_CASE("runner: what an op writes keeps what it held for whoever reads it", "[backends]") {
  for (const char* text :
       {"t = sin(c)  y = put(t, x)  z = exp(t)  w = put(t, z)  out y, z, w",
        "t = sin(c)  y = put(t, x)  w = put(y, x)  out y, w, t",
        "t = sin(c)  v = reshape(t){shape = [2, 4]}  r = reshape(x){shape = [2, 4]}  y = put(v, r)"
        "  z = exp(t)  out y, z",
        "t = sin(c)  y = put(t, x)  w = put(y, x)  out w"})
    check_split(
        "op put(mut c: f32[m, d], x: f32[m, d]) -> (o: f32[m, d] from c) splitting { o = c + x }\n"
        "in c: f32[4, 2], x: f32[4, 2]\n" +
            std::string(text),
        "put");
}

TEST_CASE("runner: a view that is not its operand byte for byte has its own place", "[backends]") {
  check_split(R"(
    op turned(x: T[n, d]) -> y: T[d, n] view { y = transpose(x){dim0 = 0, dim1 = 1} }
    op same(x: T[*s]) -> y: T[*s] view { y = x }
    op cut(x: T[*s]) -> y: T[*s] splitting { y = x * 2.0 }
    in x: f32[4, 4]
    t = cut(x)
    v = turned(t)
    s = same(t)
    w = cut(v)
    z = exp(s)
    u = cut(z)
    out w, u, v, s)",
              "cut");
}

TEST_CASE("weights: a seed of random numbers belongs to a sequence", "[backends]") {
  const Graph graph = graph_of(R"(symbol n in 1..8 tokens
    in x: bf16[n, 4], seeds: i64[n], at: i64[n]
    y = sample_token(x, seeds, at)
    out y
)");
  Weights weights(graph, 1);
  CHECK(weights.role("seeds") == InputRole::seed);
  const auto seeds = [&](const Step& step) {
    return values(weights.tensor("seeds", {{"n", step.tokens()}}, step).value());
  };
  const std::vector<double> first = seeds({{{0, 2, 0}, {1, 1, 4}}});
  CHECK(first[0] == first[1]);
  CHECK(first[0] != first[2]);
  CHECK(seeds({{{1, 2, 30}, {0, 1, 9}}}) == std::vector<double>{first[2], first[2], first[0]});
}

TEST_CASE("weights: roles follow use, and contents depend on seed and name only", "[backends]") {
  const Graph graph = graph_of(kDecoder);
  Weights weights(graph, 1), other(graph, 2);
  CHECK(weights.role("ids") == InputRole::indices);
  CHECK(weights.role("positions") == InputRole::positions);
  CHECK(weights.role("cs") == InputRole::rope);
  CHECK(weights.role("w1") == InputRole::gain);
  CHECK(weights.role("wq") == InputRole::matrix);
  CHECK(weights.role("bq") == InputRole::bias);
  CHECK(weights.role("table") == InputRole::activation);
  const Step step{{{0, 3, 0}, {1, 2, 10}}};
  CHECK(values(weights.tensor("positions", {{"n", 5}}, step).value()) ==
        std::vector<double>{0, 1, 2, 10, 11});
  std::vector<double> five = values(weights.tensor("ids", {{"n", 5}}, step).value());
  const std::vector<double> eight =
      values(Weights(graph, 1).tensor("ids", {{"n", 8}}, step).value());
  CHECK(std::equal(five.begin(), five.end(), eight.begin()));
  for (double id : eight) CHECK((id >= 0 && id < 50));
  CHECK(values(weights.tensor("wq", {}, step).value()) !=
        values(other.tensor("wq", {}, step).value()));
  const std::vector<double> cs = values(weights.tensor("cs", {}, step).value());
  CHECK(cs[8] == rounded(DType::bf16, std::cos(1.0)));
  CHECK(cs[12] == rounded(DType::bf16, std::sin(1.0)));
  double sum = 0, squares = 0;
  const std::vector<double> wq = values(weights.tensor("wq", {}, step).value());
  for (double w : wq) sum += w, squares += w * w;
  const auto count = static_cast<double>(wq.size());
  CHECK(std::fabs(sum / count) < 0.02);
  CHECK(std::sqrt(squares / count * 32) == Approx(1).margin(0.1));
}

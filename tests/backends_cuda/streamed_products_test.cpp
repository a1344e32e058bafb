// Products of few rows that stream their weights, on the host: kernels of random shapes and joined
// neighbours against the interpreter, which sums in the same order if the product is written as
// `sum(x * w)`.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/nvrtc.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/matmul/scaled_weight.hpp"
#include "cuda/kernels/matmul/streamed_product.hpp"
#include "cuda/runtime.hpp"
#include "cuda/step_schedule.hpp"
#include "dsl/dsl.hpp"
#include "splitter/plan.hpp"
#include "tests/backends_cuda/streamed_cases.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// A product as its op, and as a sum in the order of row programs.
struct StreamedCase {
  std::string op, sum;
  std::int64_t rows = 0, depth = 0, columns = 0;
};

/// A product of a weight with scales of blocks.
StreamedCase random_blocks(Random& random) {
  const auto upto = [&](std::uint64_t n) { return 1 + static_cast<std::int64_t>(random.below(n)); };
  StreamedCase out;
  out.rows = upto(9);
  const std::int64_t deep = 8 * upto(16), across = upto(12), down = upto(4);
  const std::int64_t blocks = upto(random.below(6) == 0 ? 40 : 7);
  out.depth = deep * blocks;
  out.columns = across * down;
  const char* dtypes[] = {"f8e4m3", "f8e5m2", "bf16"};
  const std::string head =
      fmt::format("graph g {{\n  in x: f32[n, {0}], w: {2}[{1}, {0}], s: f32[{3}, {4}]\n",
                  out.depth, out.columns, dtypes[random.below(3)], down, blocks);
  out.op = head + fmt::format(
                      "  t = transpose(w){{dim0 = 0, dim1 = 1}}\n"
                      "  u = transpose(s){{dim0 = 0, dim1 = 1}}\n"
                      "  r = reshape(f32(t)){{shape = [{0}, {1}, {2}, {3}]}} * "
                      "reshape(u){{shape = [{0}, 1, {2}, 1]}}\n"
                      "  y = mm(x, reshape(r){{shape = [{4}, {5}]}})\n  out y\n}}\n",
                      blocks, deep, down, across, out.depth, out.columns);
  const std::string scaled = fmt::format(
      "reshape(f32(w)){{shape = [{0}, {1}, {2}, {3}]}} * reshape(s){{shape = [{0}, 1, {2}, 1]}}",
      down, across, blocks, deep);
  out.sum = head + "  r = " + scaled + "\n  y = " + sum_of("x", "r", out.depth, out.columns) +
            "\n  out y\n}\n";
  return out;
}

StreamedCase random_case(Random& random) {
  if (random.below(5) == 0) return random_blocks(random);
  StreamedCase out;
  out.rows = 1 + static_cast<std::int64_t>(random.below(9));
  const std::int64_t deepest = random.below(8) == 0 ? 5000 : random.below(2) == 0 ? 700 : 70;
  out.depth = 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(deepest)));
  if (random.below(2) == 0) out.depth = (out.depth + 7) / 8 * 8;
  out.columns = 1 + static_cast<std::int64_t>(random.below(deepest > 1000 ? 5 : 40));
  const bool scaled = random.below(3) == 0;
  const char* dtypes[] = {"bf16", "f16", "f8e4m3", "f8e5m2"};
  const std::string dtype = dtypes[scaled ? 2 + random.below(2) : random.below(2)];
  const std::string result = scaled ? random.below(2) == 0 ? "bf16" : "f32" : dtype;
  const std::string head = fmt::format("graph g {{\n  in x: {0}[n, {1}], w: {0}[{2}, {1}]", dtype,
                                       out.depth, out.columns);
  const std::string turned = "  wt = transpose(w){dim0 = 0, dim1 = 1}\n";
  const std::string sum = sum_of("x", "w", out.depth, out.columns);
  if (scaled) {
    const bool each = random.below(2) == 0;
    const std::string scales = each ? fmt::format(", s: f32[n, 1], t: f32[{}]\n", out.columns)
                                    : std::string(", s: f32[1], t: f32[1]\n");
    out.op = head + scales + turned +
             fmt::format("  y = scaled_mm(x, wt, s, t){{out = {}}}\n  out y\n}}\n", result);
    out.sum = head + scales + fmt::format("  y = {}({} * (s * t))\n  out y\n}}\n", result, sum);
  } else if (random.below(2) == 0) {
    const std::string bias = fmt::format(", c: {}[{}]\n", dtype, out.columns);
    out.op = head + bias + turned + "  y = addmm(c, x, wt)\n  out y\n}\n";
    out.sum = head + bias + fmt::format("  y = {}({} + f32(c))\n  out y\n}}\n", dtype, sum);
  } else {
    out.op = head + "\n" + turned + "  y = mm(x, wt)\n  out y\n}\n";
    out.sum = head + fmt::format("\n  y = {}({})\n  out y\n}}\n", dtype, sum);
  }
  return out;
}

struct StreamedKernel {
  Graph graph;
  std::vector<ValueId> operands;
  cuda::Kernel kernel;
};

StreamedKernel streamed_kernel(const ContextPtr& context, const std::string& text) {
  Graph graph = need(parse_graph(context, text, "test"), *context);
  const NodeId node = graph.producer(graph.outputs()[0]);
  const auto call = cuda::product_call(graph, node);
  REQUIRE(call);
  const auto scaled = cuda::scaled_weight(graph, node, call->b);
  auto product = cuda::tensor_product_of(graph, node, !scaled);
  REQUIRE(product);
  const auto all = graph.operands(node);
  std::vector<ValueId> operands(all.begin(), all.end());
  if (scaled) {
    product = cuda::with_scaled_weight(std::move(*product), *scaled, graph);
    operands[call->b] = scaled->weight;
    operands.push_back(scaled->scale);
  } else {
    operands[call->b] = graph.operand(graph.producer(operands[call->b]), 0);
  }
  auto kernel =
      cuda::streamed_product(cuda::StreamedProduct::alone(std::move(*product)), "sm_90", *context);
  REQUIRE(kernel);
  return {std::move(graph), std::move(operands), std::move(*kernel)};
}

void check_random_products(std::size_t count, std::uint64_t seed) {
  INFO("seed " << seed);
  Random random(seed);
  const ContextPtr context = library();
  std::vector<StreamedCase> cases;
  std::vector<StreamedKernel> made;
  std::vector<cuda::Kernel> kernels;
  while (cases.size() < count) {
    cases.push_back(random_case(random));
    made.push_back(streamed_kernel(context, cases.back().op));
    kernels.push_back(made.back().kernel);
  }
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].op << cases[i].rows << " rows");
    const Symbols symbols{{"n", cases[i].rows}};
    const Graph& graph = made[i].graph;
    const std::vector<Tensor> inputs = inputs_of(graph, symbols, seed + i);
    std::vector<void*> pointers;
    for (const ValueId v : made[i].operands) {
      const auto at = std::find(graph.inputs().begin(), graph.inputs().end(), v);
      REQUIRE(at != graph.inputs().end());
      pointers.push_back(inputs[static_cast<std::size_t>(at - graph.inputs().begin())].data());
    }
    const ValueId y = graph.outputs()[0];
    std::vector<Tensor> out;
    out.emplace_back(context->types[graph.type(y)].dtype,
                     need(extents_of(graph, y, symbols), *context));
    pointers.push_back(out[0].data());
    const auto done = host->run(made[i].kernel.name, pointers,
                                std::vector<std::int64_t>{cases[i].rows}, random.below(1000));
    if (!done) FAIL(done.error().front().message);
    const Graph as_sum = need(parse_graph(context, cases[i].sum, "sum"), *context);
    CHECK(difference(values_of_all(out), interpreted(as_sum, inputs, symbols)) == "");
  }
}

}  // namespace

TEST_CASE("streamed products: random ragged shapes have the bits of a sum in the interpreter",
          "[cuda][streamed]") {
  if (no_host_compiler()) return;
  check_random_products(16, 49);
}

TEST_CASE("streamed products: 200 more shapes", "[.][slow][cuda][streamed]") {
  if (no_host_compiler()) return;
  // In parts, because a source of many kernels compiles for longer than compilers are given.
  for (std::uint64_t seed = 0; seed < 40; ++seed) check_random_products(5, 20261129 + seed);
}

TEST_CASE("streamed products: the shape of a block has whole rings and all groups",
          "[cuda][streamed]") {
  for (std::int64_t depth = 1; depth < 40000; depth += depth < 3000 ? 1 : 97) {
    for (const int warps : {2, 4, 8, 16}) {
      const cuda::StreamShape s = cuda::stream_shape(depth, warps);
      const int steps = std::max(s.lanes / 32, 1) / s.split * s.each;
      REQUIRE(warps % s.split == 0);
      REQUIRE(steps % s.ahead == 0);
      REQUIRE(std::int64_t{s.lanes} * s.each * 8 >= depth);
      REQUIRE(std::int64_t{s.lanes} * (s.each - 1) * 8 < depth);
    }
  }
}

namespace {

void check_layer(const StreamedLayer& layer) {
  StreamedPiece piece(layer.text(false));
  INFO(layer.text(false));
  const std::size_t most = layer.width < 8 ? 2 : 1;  // narrow heads may have a kernel of their own
  CHECK(piece.nodes(1) <= most);
  CHECK(piece.nodes(8) <= most);
  CHECK(piece.nodes(16) > 4);
  const std::string sum = layer.text(true);
  for (const std::int64_t tokens : {1, 2, 3, 4, 5, 8}) {
    INFO(tokens);
    const auto wanted = piece.wanted(sum, tokens);
    CHECK(difference(piece.run(tokens, true), wanted) == "");
    CHECK(difference(piece.run(tokens, false), wanted) == "");
  }
}

/// A product of fp8 numbers with scales of groups, as block-quantized models have it.
std::string block_scaled(bool as_sum, std::int64_t depth, std::int64_t columns,
                         std::int64_t group) {
  const std::int64_t deep = depth / group, across = columns / group;
  std::string out = fmt::format(
      "graph g {{\n  symbol n in 1..24 tokens\n  in x: f8e4m3[n, {0}], t: f32[n, {2}]\n"
      "  in weight w: f8e4m3[{1}, {0}], s: f32[{3}, {2}]\n",
      depth, columns, deep, across);
  if (!as_sum)
    return out + fmt::format(
                     "  y = block_scaled_mm(x, transpose(w){{dim0 = 0, dim1 = 1}}, t, "
                     "transpose(s){{dim0 = 0, dim1 = 1}}){{group = {}, out = bf16}}\n  out y\n}}\n",
                     group);
  out += fmt::format(
      "  p = reshape(f32(x)){{shape = [n, {0}, {1}]}} * reshape(t){{shape = [n, {0}, 1]}}\n"
      "  r = reshape(f32(w)){{shape = [{2}, {1}, {0}, {1}]}} * "
      "reshape(s){{shape = [{2}, 1, {0}, 1]}}\n",
      deep, group, across);
  return out + "  y = bf16(" + sum_of("p", "r", depth, columns) + ")\n  out y\n}\n";
}

void check_block_scaled(std::int64_t depth, std::int64_t columns, std::int64_t group) {
  INFO(depth << " x " << columns << " in groups of " << group);
  StreamedPiece piece(block_scaled(false, depth, columns, group));
  CHECK(piece.nodes(1) == 2);  // the rows of a, and the product with its rounding
  CHECK(piece.nodes(16) > 2);
  for (const std::int64_t tokens : {1, 3, 8}) {
    const auto wanted = piece.wanted(block_scaled(true, depth, columns, group), tokens);
    CHECK(difference(piece.run(tokens, true), wanted) == "");
    CHECK(difference(piece.run(tokens, false), wanted) == "");
  }
}

}  // namespace

TEST_CASE("streamed products: a layer between attentions is one kernel", "[cuda][streamed]") {
  if (no_host_compiler()) return;
  check_layer({});
  check_layer({264, 40, 1, 1, 8});  // one head of a rank
  Random random(3);
  check_layer(StreamedLayer::random(random));
}

TEST_CASE("streamed products: weights with scales of blocks are read as they are stored",
          "[cuda][streamed]") {
  if (no_host_compiler()) return;
  check_block_scaled(384, 256, 128);
  check_block_scaled(40, 24, 8);
}

TEST_CASE("streamed products: 50 shapes of layers", "[.][cuda][streamed][slow]") {
  if (no_host_compiler()) return;
  Random random(4);
  for (int i = 0; i < 50; ++i) check_layer(StreamedLayer::random(random));
}

namespace {

/// The text of a product alone.
std::string product_text(std::int64_t depth, std::int64_t columns) {
  return fmt::format(
      "graph g {{\n  in x: bf16[n, {0}], w: bf16[{1}, {0}]\n  wt = transpose(w){{dim0 = 0, dim1 = "
      "1}}\n  y = mm(x, wt)\n  out y\n}}\n",
      depth, columns);
}

/// The kernels of one piece with products that stream their weights.
std::vector<cuda::Kernel> kernels_of(const std::string& text) {
  const ContextPtr context = library();
  const Graph graph = need(parse_graph(context, text, "test"), *context);
  const StitchedGraph pieces = need(split(graph, {}), *context);
  const Plan plan = need(make_plan(pieces, graph, StreamedPiece::options()), *context);
  RecordingDriver driver;
  cuda::RuntimeOptions how;
  how.stream_weights = true;
  return need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context)->kernels();
}

}  // namespace

TEST_CASE("streamed products: kernels of a decoder's sizes compile without spills",
          "[cuda][streamed]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const ContextPtr context = library();
  for (const auto& [depth, columns] : {std::pair(2048, 2048), std::pair(8192, 2048)}) {
    const cuda::Kernel kernel = streamed_kernel(context, product_text(depth, columns)).kernel;
    const auto cubin = nvrtc.compile(cuda::source_file(kernel), kernel.name, {"sm_90", false});
    if (!cubin) FAIL(cubin.error().front().message);
    std::printf("%d x %d: %d registers\n", columns, depth, cubin->usage.registers);
    CHECK_FALSE(cubin->usage.spills());
  }
  // The products of a whole layer, joined with the ops around them.
  for (const cuda::Kernel& kernel : kernels_of(StreamedLayer().text(false))) {
    if (kernel.source.find("pw_stream<") == std::string::npos) continue;
    const auto cubin = nvrtc.compile(cuda::source_file(kernel), kernel.name, {"sm_90", false});
    if (!cubin) FAIL(cubin.error().front().message);
    std::printf("%s: %d registers\n", kernel.op.c_str(), cubin->usage.registers);
    CHECK_FALSE(cubin->usage.spills());
  }
}

namespace {

/// The text with only those products that compute so many rows at a time.
std::string for_rows(const std::string& source, int rows) {
  const std::string wanted = fmt::format("    pw_stream<pw_of_bf16, pw_of_bf16, false, {}, ", rows);
  std::string out;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    const std::string line = source.substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("    pw_stream<") || line.starts_with(wanted)) out += line + "\n";
  }
  return out;
}

/// The most bytes that a kernel may spill: of its text, and of those parts that compute 1, 2, and 4
/// rows. 8 rows are two blocks of 4.
struct SpillLimits {
  std::int64_t all = 0, one = 0, two = 0, four = 0;
};

void check_spills(const cuda::Nvrtc& nvrtc, const cuda::Kernel& kernel, const SpillLimits& most) {
  const std::string source = cuda::source_file(kernel);
  for (const auto& [rows, limit] : {std::pair(0, most.all), std::pair(1, most.one),
                                    std::pair(2, most.two), std::pair(4, most.four)}) {
    const auto cubin =
        nvrtc.compile(rows == 0 ? source : for_rows(source, rows), kernel.name, {"sm_90", false});
    if (!cubin) FAIL(cubin.error().front().message);
    INFO(rows << " rows, " << cubin->usage.registers << " registers");
    CHECK(cubin->usage.spill_stores + cubin->usage.spill_loads <= limit);
  }
}

}  // namespace

TEST_CASE("streamed products: kernels of Llama-3.2-1B spill few registers for any number of rows",
          "[cuda][streamed]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  std::size_t chains = 0;
  for (const cuda::Kernel& kernel : kernels_of(StreamedLayer{2048, 8192, 32, 8, 64}.text(false))) {
    if (kernel.phases < 4) continue;
    ++chains;
    check_spills(nvrtc, kernel, {128, 0, 0, 128});
  }
  CHECK(chains == 1);
  const ContextPtr context = library();
  check_spills(nvrtc, streamed_kernel(context, product_text(2048, 2048)).kernel, {0, 0, 16, 16});
  check_spills(nvrtc, streamed_kernel(context, product_text(8192, 2048)).kernel, {});
}

namespace {

/// A decoder's attention with the products around it, of random sizes.
struct CachedCase {
  std::int64_t depth = 8, groups = 1, share = 1, width = 2;
  bool turned = true;  ///< keys and queries are rotated

  static CachedCase random(Random& random) {
    CachedCase out;
    out.depth = 1 + static_cast<std::int64_t>(random.below(random.below(2) == 0 ? 640 : 60));
    if (random.below(3) != 0) out.depth = (out.depth + 7) / 8 * 8;
    out.groups = 1 + static_cast<std::int64_t>(random.below(3));
    out.share = 1 + static_cast<std::int64_t>(random.below(3));
    out.width = 2 + 2 * static_cast<std::int64_t>(random.below(32));
    out.turned = random.below(4) != 0;
    return out;
  }
  std::string text(bool as_sum) const {
    const std::int64_t k = groups * width, q = k * share;
    const std::string turn =
        turned
            ? fmt::format("  qr, kr = rotary_embedding(positions, q, k, cs){{head = {}}}\n", width)
            : "  qr = q + q\n  kr = k + k\n";
    return fmt::format(
        "graph g {{\n  symbol n in 1..24 tokens\n"
        "  in x: bf16[n, {0}], positions: i64[n]\n"
        "  in weight qw: bf16[{1}, {0}], ow: bf16[{0}, {2}], g: bf16[{0}], cs: bf16[64, {3}]\n"
        "  b = rms_norm(x, g){{eps = 1e-5}}\n  qkv = {4}\n"
        "  q, k, v = split(qkv){{dim = 1, sizes = [{2}, {5}, {5}]}}\n{6}"
        "  o = unified_attention(reshape(qr){{shape = [n, {7}, {3}]}}, reshape(kr){{shape = [n, "
        "{8}, {3}]}}, reshape(v){{shape = [n, {8}, {3}]}}, none){{layer = \"0\"}}\n"
        "  y = {9}\n  out y, kr, v\n}}\n",
        depth, q + 2 * k, q, width, product_of(as_sum, "b", "qw", depth, q + 2 * k), k, turn,
        groups * share, groups,
        product_of(as_sum, fmt::format("reshape(o){{shape = [n, {}]}}", q), "ow", q, depth));
  }
};

/// The attention of the interpreter's order of sums, because the architecture has no tensor cores.
struct CachedModel {
  CachedModel(const std::string& text, const std::string& sum, const std::string& mode,
              std::int64_t requests)
      : context(library()),
        graph(need(parse_graph(context, text, "test"), *context)),
        as_sum(need(parse_graph(context, sum, "sum"), *context)),
        pieces(
            need(split(graph, need(splitting_ops(context, nullptr, {}, {}), *context)), *context)),
        plan(need(make_plan(pieces, graph, options(mode, requests)), *context)),
        driver({.libraries = false, .arch = "sm_70"}),
        weights(graph, 5) {
    cuda::RuntimeOptions how;
    how.stream_weights = true;
    runtime = need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context);
    need(runtime->load(weights), *context);
    need(runtime->capture(), *context);
  }
  CachedModel(const CachedModel&) = delete;
  static PlanOptions options(const std::string& mode, std::int64_t requests) {
    PlanOptions out = StreamedPiece::options();
    out.mode = mode;
    out.max_requests = requests;
    return out;
  }
  /// Runs a step with padding and without, and compares both with the interpreter.
  StepReport check(Step step) {
    RunOptions run;
    run.poison = true;
    step.cache = &replayed;
    const StepResult padded = need(runtime->run(step, weights, run), *context);
    step.cache = &launched;
    run.pad = false;
    const StepResult exact = need(runtime->run(step, weights, run), *context);
    step.cache = &unsplit;
    const auto wanted = values_of_all(
        need(run_whole(as_sum, *make_interpreter(Precision::single), weights, step), *context));
    CHECK(difference(values_of_all(padded.outputs), wanted) == "");
    CHECK(difference(values_of_all(exact.outputs), wanted) == "");
    return padded.report;
  }
  std::vector<std::string> launches(std::int64_t tokens) const {
    std::map<std::string, std::string> ops;
    for (const cuda::Kernel& kernel : runtime->kernels()) ops[kernel.name] = kernel.op;
    std::vector<std::string> out;
    for (const auto& node : need(runtime->record_step(tokens), *context).nodes)
      out.push_back(ops[node.name]);
    return out;
  }

  ContextPtr context;
  Graph graph, as_sum;
  StitchedGraph pieces;
  Plan plan;
  cuda::HostDriver driver{cached()};
  Weights weights;
  KvCache replayed, launched, unsplit;
  std::unique_ptr<cuda::Runtime> runtime;
};

/// Two sequences of at most 8 tokens a step, of which the first goes beyond a page.
std::vector<Step> cached_steps(Random& random) {
  std::int64_t past[2] = {0, 0};
  std::vector<Step> out;
  for (int i = 0; i < 6; ++i) {
    Step step;
    for (const std::int64_t id : {0, 1}) {
      const std::int64_t fresh = i < 3 ? 6 - 4 * id : static_cast<std::int64_t>(random.below(4));
      if (fresh > 0) step.sequences.push_back({id, fresh, past[id]});
      past[id] += fresh;
    }
    if (!step.sequences.empty()) out.push_back(step);
  }
  return out;
}

void check_cached(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const CachedCase shape = CachedCase::random(random);
    CachedModel model(shape.text(false), shape.text(true), "full", 4);
    INFO("seed " << seed << ", " << i << "\n" << shape.text(false));
    for (const std::int64_t tokens : {1, 2, 4, 8, 16}) {
      const auto ops = model.launches(tokens);
      const auto put = std::count(ops.begin(), ops.end(), "put keys and values");
      CHECK(put <= 1);
      if (tokens > 8) CHECK(put == 1);
      if (tokens <= 8 && shape.width >= 8) CHECK(put == 0);  // narrow heads may have a kernel
    }
    for (const Step& step : cached_steps(random)) {
      INFO(step.tokens() << " tokens");
      CHECK(model.check(step).whole);
    }
  }
}

}  // namespace

TEST_CASE("streamed products: a product puts the keys and values that it computes into pages",
          "[cuda][streamed]") {
  if (no_host_compiler()) return;
  check_cached(4, 11);
}

TEST_CASE("streamed products: 200 shapes of keys and values", "[.][cuda][streamed][slow]") {
  if (no_host_compiler()) return;
  check_cached(200, 12);
}

TEST_CASE("streamed products: graphs of pieces follow pages that move", "[cuda][streamed]") {
  if (no_host_compiler()) return;
  const CachedCase shape{64, 2, 2, 8, true};
  CachedModel model(shape.text(false), shape.text(true), "piecewise", 1);
  std::int64_t past = 0;
  for (std::int64_t fresh : {8, 8, 1, 8, 8, 3, 8, 8, 8, 1, 4}) {
    INFO(past << " tokens");
    model.check(Step{{{0, fresh, past}}});
    past += fresh;
  }
  CHECK(model.runtime->counters().stale > 0);
}

TEST_CASE("streamed products: a schedule states each edge, its bytes, and its modelled time",
          "[cuda][streamed]") {
  const CachedCase shape{512, 2, 2, 64, true};
  const CachedModel model(shape.text(false), shape.text(true), "full", 4);
  cuda::RuntimeOptions options;
  options.stream_weights = options.programmatic_edges = true;
  const auto schedule = [&](std::int64_t tokens) {
    return need(cuda::schedule_of(model.pieces, model.graph, model.plan, "sm_90", tokens, options),
                *model.context);
  };
  using Launch = cuda::ScheduledLaunch;
  const cuda::StepSchedule chosen = schedule(1);
  REQUIRE(chosen.launches.size() == 3);
  CHECK(chosen.early() == 0);
  CHECK(chosen.launches[0].why == "it has no predecessor");
  for (const std::size_t i : {1, 2})
    CHECK(chosen.launches[i].why ==
          "it would end 1.80 us later by the model: its blocks and its predecessor's leave room "
          "for more");
  options.early_at_a_loss = true;
  const cuda::StepSchedule s = schedule(1);
  CHECK(s.early() == 2);
  CHECK(s.launches[2].why ==
        "only a prefetch of weights precedes its wait, and its only predecessor is "
        "unified_attention, launch 1");
  // The products' weights and the norm's, without the table of the rotation.
  const std::int64_t first = 2 * (512 * 512 + 512), last = 2 * 512 * 256;
  CHECK(s.total(&Launch::weight_bytes) == first + last);
  CHECK(s.total(&Launch::early_bytes) == last);
  CHECK(s.total(&Launch::prefetched) == last);
  CHECK(s.total(&Launch::early_seconds) > chosen.total(&Launch::early_seconds));
  CHECK(chosen.total(&Launch::early_seconds) == s.total(&Launch::full_seconds));
  options.programmatic_edges = false;
  CHECK(schedule(1).early() == 0);
  CHECK(schedule(16).launches.size() > 4);
}

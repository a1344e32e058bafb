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
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// A product as its op, and as a sum in the order of row programs.
struct StreamedCase {
  std::string op, sum;
  std::int64_t rows = 0, depth = 0, columns = 0;
};

/// Returns the text of x · wᵀ in f32 as a reduction.
std::string sum_of(const std::string& x, const std::string& w, std::int64_t depth,
                   std::int64_t columns) {
  return fmt::format(
      "sum(f32(reshape({}){{shape = [n, 1, {}]}}) * f32(reshape({}){{shape = [1, {}, {}]}}))"
      "{{dim = 2, keepdim = false}}",
      x, depth, w, columns, depth);
}

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

/// The values of tensors, whatever their dtypes: the interpreter's results are f32.
std::vector<std::vector<double>> values_of_all(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> out;
  for (const Tensor& t : tensors) out.push_back(values_of(t.view()));
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

std::vector<std::vector<double>> interpreted(const Graph& graph, const std::vector<Tensor>& inputs,
                                             const Symbols& symbols) {
  std::vector<TensorView> views;
  for (const Tensor& t : inputs) views.push_back(t.view());
  RunContext run;
  run.symbols = symbols;
  return values_of_all(need(interpret(graph, views, run, Precision::single), graph.context()));
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

/// One piece, planned for up to 24 rows, with products that stream their weights.
struct StreamedPiece {
  explicit StreamedPiece(const std::string& text)
      : context(library()),
        graph(need(parse_graph(context, text, "test"), *context)),
        pieces(need(split(graph, {}), *context)),
        plan(need(make_plan(pieces, graph, options()), *context)),
        weights(graph, 3) {
    cuda::RuntimeOptions how;
    how.stream_weights = true;
    runtime = need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context);
    need(runtime->load(weights), *context);
    need(runtime->capture(), *context);
  }
  StreamedPiece(const StreamedPiece&) = delete;
  static PlanOptions options() {
    PlanOptions out;
    out.max_tokens = 24;
    out.capture_sizes = {1, 2, 4, 8, 16};
    return out;
  }
  std::size_t nodes(std::int64_t tokens) const {
    return need(runtime->record(PieceId(0), tokens), *context).nodes.size();
  }
  std::vector<std::vector<double>> run(std::int64_t tokens, bool pad) {
    Step step;
    step.sequences = {{0, tokens, 0}};
    RunOptions run;
    run.pad = pad;
    run.poison = true;
    return values_of_all(need(runtime->run(step, weights, run), *context).outputs);
  }
  /// The results of another text in the interpreter, with the same inputs.
  std::vector<std::vector<double>> wanted(const std::string& text, std::int64_t tokens) {
    const Graph other = need(parse_graph(context, text, "sum"), *context);
    Step step;
    step.sequences = {{0, tokens, 0}};
    const Symbols symbols{{"n", tokens}};
    std::vector<Tensor> inputs;
    for (ValueId v : other.inputs())
      inputs.push_back(need(weights.tensor(other.value_name(v), symbols, step), *context));
    return interpreted(other, inputs, symbols);
  }

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
  Weights weights;
  cuda::HostDriver driver{cached()};
  std::unique_ptr<cuda::Runtime> runtime;
};

/// A product of a text: its call, or its sum in the order of row programs.
std::string product_of(bool as_sum, const std::string& x, const std::string& w, std::int64_t depth,
                       std::int64_t columns) {
  if (as_sum) return "bf16(" + sum_of(x, w, depth, columns) + ")";
  return fmt::format("mm({}, transpose({}){{dim0 = 0, dim1 = 1}})", x, w);
}

/// The ops of a decoder layer between two attentions.
struct StreamedLayer {
  std::int64_t hidden = 512, ffn = 192, heads = 3, groups = 2, width = 32;

  static StreamedLayer random(Random& random) {
    const auto upto = [&](std::uint64_t n) {
      return 1 + static_cast<std::int64_t>(random.below(n));
    };
    return {8 * (32 + upto(50)), upto(200), upto(4), upto(3), 2 * upto(24)};
  }
  std::string text(bool as_sum) const {
    const auto mm = [&](const char* x, const char* w, std::int64_t depth, std::int64_t columns) {
      return product_of(as_sum, x, w, depth, columns);
    };
    const std::int64_t q = heads * width, k = groups * width;
    return fmt::format(
        "graph g {{\n  symbol n in 1..24 tokens\n"
        "  in x: bf16[n, {0}], r: bf16[n, {0}], p: i64[n]\n"
        "  in weight ow: bf16[{0}, {0}], uw: bf16[{1}, {0}], dw: bf16[{0}, {2}],"
        " qw: bf16[{3}, {0}], g: bf16[{0}], h: bf16[{0}], cs: bf16[24, {4}]\n"
        "  o = {5}\n  s = o + r\n  a = rms_norm(s, g){{eps = 1e-5}}\n"
        "  u = {6}\n  m = silu_and_mul(u)\n"
        "  d = {7}\n  t = d + s\n  b = rms_norm(t, h){{eps = 1e-5}}\n"
        "  qkv = {8}\n  q, k, v = split(qkv){{dim = 1, sizes = [{9}, {10}, {4}]}}\n"
        "  qr, kr = rotary_embedding(p, q, k, cs){{head = {4}}}\n  out t, qr, kr, v\n}}\n",
        hidden, 2 * ffn, ffn, q + k + width, width, mm("x", "ow", hidden, hidden),
        mm("a", "uw", hidden, 2 * ffn), mm("m", "dw", ffn, hidden),
        mm("b", "qw", hidden, q + k + width), q, k);
  }
};

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

/// A launch of a chain on the host, with other texts of its kernel.
struct ChainLaunch {
  ChainLaunch(const StreamedPiece& piece, std::int64_t tokens) {
    node = need(piece.runtime->record(PieceId(0), tokens), *piece.context).nodes.at(0);
    for (const cuda::Kernel& k : piece.runtime->kernels())
      if (k.name == node.name) kernel = cuda::waiting(k);
    for (const auto* tensors : {&node.reads, &node.writes})
      for (const cuda::DeviceTensor& t : *tensors) pointers.push_back(memory(t));
  }
  static void* memory(const cuda::DeviceTensor& t) { return reinterpret_cast<void*>(t.address); }
  /// The bytes that a run writes; nothing if it ends with a fault. `early`: before its predecessor
  /// has ended.
  std::optional<std::string> run(const cuda::HostKernels& host, std::uint64_t seed,
                                 bool early) const {
    for (std::size_t i = 0; i < node.writes.size(); ++i) {
      const bool state = node.reads.size() + i == kernel.zero;
      std::memset(memory(node.writes[i]), state ? 0 : 0xff,
                  static_cast<std::size_t>(node.writes[i].bytes()));
    }
    std::function<Status()> earlier;
    if (early) earlier = [] { return Status(); };
    if (!host.run(kernel.name, pointers, node.params, seed, nullptr, earlier)) return std::nullopt;
    std::string out;
    for (const cuda::DeviceTensor& t : node.writes)
      out.append(static_cast<const char*>(memory(t)), static_cast<std::size_t>(t.bytes()));
    return out;
  }

  cuda::LaunchNode node;
  cuda::Kernel kernel;
  std::vector<void*> pointers;
};

/// All mutants of a chain in one text, of which a variable selects one; 0: none.
class ChainMutants {
 public:
  explicit ChainMutants(const std::string& source) {
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = source.find('\n', at);
      lines_.push_back(source.substr(at, end - at));
      at = end + 1;
    }
    const auto kernel = std::find_if(lines_.begin(), lines_.end(), [](const std::string& line) {
      return line.find("__global__") != std::string::npos;
    });
    begin_ = static_cast<std::size_t>(kernel - lines_.begin());
    instead_.resize(lines_.size());
    before_.resize(lines_.size());
    plant();
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] std::string source() const {
    std::string out = "static int pw_mutant = 0;\n";
    for (std::size_t i = 0; i < lines_.size(); ++i)
      out += before_[i] + (instead_[i].empty() ? lines_[i] : instead_[i] + lines_[i]) + "\n";
    return out;
  }
  static constexpr const char* kSelect =
      "extern \"C\" void select_mutant(int m) { pw_mutant = m; }";

 private:
  [[nodiscard]] bool begins(std::size_t line, const std::string& text) const {
    return lines_[line].starts_with(text);
  }
  [[nodiscard]] std::size_t next(std::size_t line, const std::string& text) const {
    while (line < lines_.size() && !begins(line, text)) ++line;
    REQUIRE(line < lines_.size());
    return line;
  }
  int mutant(const std::string& what, std::size_t line) {
    names_.push_back(what + ": " + lines_[line]);
    return static_cast<int>(names_.size());
  }
  /// In a mutant another text runs in place of the line.
  void replace(std::size_t line, const std::string& what, const std::string& text) {
    instead_[line] += fmt::format("if (pw_mutant == {}) {{ {} }} else ", mutant(what, line), text);
  }
  /// In a mutant the line runs before the line `to`.
  void move(std::size_t line, std::size_t to, const std::string& what) {
    const int number = mutant(what, line);
    instead_[line] += fmt::format("if (pw_mutant == {}) {{}} else ", number);
    before_[to] += fmt::format("if (pw_mutant == {}) {{ {} }}\n", number, lines_[line]);
  }
  void make_conditional(std::size_t line, const std::vector<std::string>& conditions) {
    for (const std::string& condition : conditions)
      replace(line, "if (" + condition + ")",
              fmt::format("if ({}) {{ {} }}", condition, lines_[line]));
  }
  /// In a mutant a part of the line is another.
  void change(std::size_t line, const std::string& from, const std::string& to) {
    std::string text = lines_[line];
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    replace(line, from + " is " + to, text.replace(at, from.size(), to));
  }

  void plant() {
    std::size_t first = begin_;  // of the present product
    for (std::size_t i = begin_; i < lines_.size(); ++i) {
      if (begins(i, "pw_wait_for_earlier();")) {
        replace(i, "removed", "");
        move(i, next(i, "  const int number"), "moved");
        move(i, next(i, "  pw_leave_grid("), "moved to the end");
        make_conditional(i, {"threadIdx.x < 32", "blockIdx.y != 0"});
      } else if (begins(i, "  pw_await(")) {
        first = i;
        plant_wait(i);
      } else if (begins(i, "  pw_announce(")) {
        plant_announcement(i, first);
      } else if (begins(i, "  pw_leave_grid(")) {
        replace(i, "removed", "");
        make_conditional(i, {"block != 0"});
        change(i, "across * ", "across * 2 * ");
      }
    }
  }
  void plant_wait(std::size_t i) {
    replace(i, "removed", "");
    const std::size_t product = next(i, "  if (count == 1) {");
    if (product != i + 1) move(i, product, "moved after the rows");
    std::size_t end = product;
    while (!begins(end, "  pw_announce(") && !begins(end, "  pw_leave_grid(")) ++end;
    move(i, begins(end, "  pw_leave_grid(") ? end - 1 : end, "moved after the product");
    const std::string state = lines_[i].substr(11, lines_[i].find(' ', 11) - 11);
    make_conditional(i, {"block % 2 != 0", "row0 == 0", "threadIdx.x < 32", "*" + state + " > 1"});
    change(i, "across * ", "-1 + across * ");
    change(i, "pw_await(", "pw_await(-1 + ");
  }
  void plant_announcement(std::size_t i, std::size_t first) {
    replace(i, "removed", "");
    replace(i, "twice", lines_[i] + lines_[i]);
    move(i, next(first, "  if (count == 1) {"), "moved before the product");
    make_conditional(i, {"block != 0", "row0 == 0"});
    change(i, "pw_announce(", "pw_announce(1 + ");
  }

  std::vector<std::string> lines_, instead_, before_, names_;
  std::size_t begin_ = 0;
};

/// Checks that all mutants of a layer's chain are found, and that other orders change no bit.
std::size_t check_chain_mutants(const StreamedLayer& layer) {
  constexpr std::uint64_t kOrders = 1000;
  const StreamedPiece piece(layer.text(false));
  ChainLaunch launch(piece, 5);  // two blocks of rows
  REQUIRE(launch.kernel.phases == 4);
  const ChainMutants mutants(launch.kernel.source);
  launch.kernel.source = mutants.source();
  const auto host =
      need(cached_kernels({&launch.kernel, 1}, ChainMutants::kSelect), *piece.context);
  const auto select = reinterpret_cast<void (*)(int)>(host.symbol("select_mutant"));
  select(0);
  const auto wanted = launch.run(host, 1, false);
  REQUIRE(wanted);
  for (std::uint64_t seed = 2; seed < 20; ++seed)
    CHECK(launch.run(host, seed, seed % 2 == 0) == wanted);
  for (std::size_t i = 0; i < mutants.names().size(); ++i) {
    INFO(mutants.names()[i]);
    select(static_cast<int>(i) + 1);
    bool found = false;
    for (std::uint64_t seed = 1; seed < kOrders && !found; ++seed)
      found = launch.run(host, seed, true) != wanted;
    CHECK(found);
  }
  return mutants.names().size();
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

TEST_CASE("streamed products: every fault planted in a chain is found", "[cuda][streamed]") {
  if (no_host_compiler()) return;
  CHECK(check_chain_mutants({264, 40, 2, 1, 8}) > 40);
}

TEST_CASE("streamed products: 1000 faults planted in chains are found",
          "[.][cuda][streamed][slow]") {
  if (no_host_compiler()) return;
  Random random(5);
  std::size_t mutants = 0;
  while (mutants < 1000) mutants += check_chain_mutants(StreamedLayer::random(random));
  std::printf("%zu faults in chains\n", mutants);
}

namespace {

/// The kernels of one piece with products that stream their weights.
std::vector<cuda::Kernel> kernels_of(const std::string& text) {
  const ContextPtr context = library();
  const Graph graph = need(parse_graph(context, text, "test"), *context);
  const StitchedGraph pieces = need(split(graph, {}), *context);
  const Plan plan = need(make_plan(pieces, graph, StreamedPiece::options()), *context);
  cuda::HostDriver driver(cached());
  cuda::RuntimeOptions how;
  how.stream_weights = true;
  return need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context)->kernels();
}

}  // namespace

TEST_CASE("streamed products: kernels of a decoder's sizes compile without spills",
          "[cuda][streamed]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present()) {
    WARN("SKIPPED: NVRTC is " << nvrtc.state());
    return;
  }
  const ContextPtr context = library();
  const auto text = [](std::int64_t depth, std::int64_t columns) {
    return fmt::format(
        "graph g {{\n  in x: bf16[n, {0}], w: bf16[{1}, {0}]\n  wt = transpose(w){{dim0 = 0, "
        "dim1 = 1}}\n  y = mm(x, wt)\n  out y\n}}\n",
        depth, columns);
  };
  for (const auto& [depth, columns] : {std::pair(2048, 2048), std::pair(8192, 2048)}) {
    const cuda::Kernel kernel = streamed_kernel(context, text(depth, columns)).kernel;
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
      CHECK(std::count(ops.begin(), ops.end(), "put keys and values") == (tokens > 8 ? 1 : 0));
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

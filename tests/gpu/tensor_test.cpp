// Tensor cores: their instructions compared with their emulation on the host, products of ragged
// shapes whose blocks wait for each other, attention over pages.
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "cuda/runtime.hpp"
#include "dsl/dsl.hpp"
#include "exec/runner.hpp"
#include "splitter/plan.hpp"
#include "tensor/kv_cache.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/backends_cuda/tensor_cases.hpp"
#include "tests/distance.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/memory.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr int kNan = 0xFF;  // every byte of a NaN of any dtype

void check_one_near(const Tensor& got, const Tensor& wanted, double tolerance) {
  const Distance apart = distance(got.view(), wanted.view());
  CHECK(apart.largest > 0);
  CHECK(apart.worst <= tolerance * apart.largest);
}

/// Error of sums in f32 in any order, rounded once to a result's dtype.
double tolerance_of(DType dtype) {
  if (dtype == DType::f32) return 1e-4;
  return dtype == DType::f16 ? 1.0 / 1024 : 1.0 / 128;
}

}  // namespace

TEST_CASE("gpu: mma, wgmma and ldmatrix do what their emulation on the host does", "[gpu]") {
  cuda::Driver& driver = device_of_tensor_cores();
  const ContextPtr context = library();
  Random random(11);
  // y = a · b + c, or without c; elements of b by their column and k.
  const auto check = [&](const cuda::Kernel& kernel, const std::vector<Tensor>& operands, bool adds,
                         std::int64_t depth, const auto& element_of_b) {
    Memory memory(driver, *context);
    cuda::LaunchNode node;
    node.name = kernel.name;
    for (std::size_t i = 0; i < 3; ++i) node.reads.push_back(memory.copy(operands[i].view()));
    node.writes = {memory.take(DType::f32, operands[3].extents(), kNan)};
    node.params = {1};
    need(driver.launch(node), *context);
    const Tensor got = memory.read(node.writes[0]);
    const DType dtype = operands[0].dtype();
    const std::int64_t rows = operands[3].extents()[0], columns = operands[3].extents()[1];
    int wrong = 0;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        double sum = adds ? load(DType::f32, operands[2].data(), row * columns + column) : 0;
        double mass = std::abs(sum);
        for (std::int64_t k = 0; k < depth; ++k) {
          const double part = load(dtype, operands[0].data(), row * depth + k) *
                              load(dtype, operands[1].data(), element_of_b(column, k));
          sum += part;
          mass += std::abs(part);
        }
        // A tensor core truncates the addends at the last bit of the largest one.
        const double y = load(DType::f32, got.data(), row * columns + column);
        wrong += std::abs(y - sum) <= mass * 0x1p-20 ? 0 : 1;
      }
    CHECK(wrong == 0);
  };
  for (const Instruction& instruction : instructions()) {
    INFO(instruction.kernel.name);
    need(driver.load(std::span(&instruction.kernel, 1)), *context);
    for (int round = 0; round < (sparing() ? 2 : 20); ++round)
      check(instruction.kernel, operands_of(instruction, random), true, instruction.depth,
            [](std::int64_t column, std::int64_t k) { return k * 8 + column; });
  }
  for (const GroupInstruction& instruction : group_instructions()) {
    if (driver.arch() != "sm_90") break;  // no other has them
    const std::int64_t columns = instruction.columns;
    INFO(columns << " columns, " << (instruction.down ? "down" : "along")
                 << (instruction.registers ? ", a in registers" : ""));
    need(driver.load(std::span(&instruction.kernel, 1)), *context);
    check(instruction.kernel, operands_of(instruction, random), instruction.adds, 16,
          [&](std::int64_t column, std::int64_t k) {
            return instruction.down ? k * columns + column : column * 16 + k;
          });
  }
  const cuda::Kernel loads = matrix_loads();
  need(driver.load(std::span(&loads, 1)), *context);
  Tensor in(DType::f16, {256});
  std::vector<std::uint16_t> numbers;
  for (int i = 0; i < 256; ++i) numbers.push_back(static_cast<std::uint16_t>(i * 257));
  std::memcpy(in.data(), numbers.data(), in.view().bytes());
  Memory memory(driver, *context);
  cuda::LaunchNode node;
  node.name = loads.name;
  node.reads = {memory.copy(in.view())};
  node.writes = {memory.take(DType::i32, {256}, kNan)};
  node.params = {1};
  need(driver.launch(node), *context);
  const Tensor got = memory.read(node.writes[0]);
  std::vector<std::uint32_t> words(256);
  std::memcpy(words.data(), got.data(), got.view().bytes());
  CHECK(words == loaded_matrices(numbers));
}

TEST_CASE("gpu: products of ragged shapes are near their sums, the same bits each time", "[gpu]") {
  cuda::Driver& driver = device_of_tensor_cores();
  const std::uint64_t seed = 20261126;
  INFO("seed " << seed);
  Random random(seed);
  std::size_t cut = 0;
  for (int i = 0; i < (sparing() ? 12 : 120); ++i) {
    const ContextPtr context = library();
    const ProductCase c = random_product(random);
    INFO(c.text << ", " << c.rows << " rows, " << described(c.tile));
    const Graph graph = product_graph(context, c.text);
    const auto kernels = kernels_of(graph, {driver.arch(), c.rows, c.tile}, c.transposed);
    if (!kernels) continue;  // fp8 on what has none
    cut += kernels->sums ? 1 : 0;
    const Symbols symbols{{"n", c.rows}};
    const std::vector<Tensor> inputs = inputs_of(graph, symbols, seed + static_cast<unsigned>(i));
    std::vector<TensorView> views;
    for (const Tensor& t : inputs) views.push_back(t.view());
    RunContext run;
    run.symbols = symbols;
    const auto wanted = need(interpret(graph, views, run, Precision::exact), *context);

    Memory memory(driver, *context);
    cuda::LaunchNode node;
    node.name = kernels->product.name;
    for (const TensorView& view : views) node.reads.push_back(memory.copy(view));
    if (c.text.find("addmm") != std::string::npos)  // its operands are c, x, w
      std::rotate(node.reads.begin(), node.reads.end() - 1, node.reads.end());
    const auto take = [&](TypeId type, int byte) {
      return memory.take(
          context->types[type].dtype,
          need(extents_of(*context, type, symbols, [] { return std::string("a product"); }),
               *context),
          byte);
    };
    if (kernels->sums) node.writes = {take(*kernels->sums, kNan), take(*kernels->met, 0)};
    const DType dtype = context->types[graph.type(graph.outputs()[0])].dtype;
    node.writes.push_back(memory.take(dtype, wanted[0].extents(), kNan));
    node.params = {c.rows};
    need(driver.load(std::span(&kernels->product, 1)), *context);
    const auto ready = need(driver.instantiate({"product", {node}}), *context);
    Tensor first;
    for (int round = 0; round < (sparing() ? 2 : 10); ++round) {
      need(driver.fill(node.writes.back().address, kNan, node.writes.back().bytes()), *context);
      need(ready->replay(), *context);
      Tensor got = memory.read(node.writes.back());
      if (round == 0) {
        check_one_near(got, wanted[0], tolerance_of(dtype));
        first = std::move(got);
      } else {
        CHECK(bits_apart({got}, {first}) == "");
      }
    }
  }
  CHECK(cut >= (sparing() ? 3 : 30));
}

TEST_CASE("gpu: attention over pages is near the reference, the same bits each time", "[gpu]") {
  struct Heads {
    const char* dtype;
    int heads, groups, width;
    int speculative;  ///< tokens
  };
  cuda::Driver& driver = device_of_tensor_cores();
  for (const Heads& h :
       {Heads{"bf16", 8, 2, 128, 3}, Heads{"f16", 6, 6, 64, 3}, Heads{"bf16", 7, 1, 80, 0}}) {
    if (sparing() && h.width != 64) continue;
    const ContextPtr context = library();
    const std::string text = fmt::format(
        "graph g {{\n  symbol n in 1..640 tokens\n  in q: {0}[n, {1}, {3}], k: {0}[n, {2}, {3}], "
        "v: {0}[n, {2}, {3}]\n  y = unified_attention(q, k, v, none){{layer = \"a\"}}  out y\n}}\n",
        h.dtype, h.heads, h.groups, h.width);
    INFO(text);
    const Graph graph = need(parse_graph(context, text, "test"), *context);
    const StitchedGraph pieces =
        need(split(graph, need(splitting_ops(context, nullptr, {}, {}), *context)), *context);
    PlanOptions options;
    options.max_tokens = 640;
    options.capture_sizes = {1 + h.speculative, 8, 640};
    options.mode = "full";
    options.speculative_tokens = h.speculative;
    const Plan plan = need(make_plan(pieces, graph, options), *context);
    Weights weights(graph, 5);
    cuda::RuntimeOptions how;
    how.cached_tokens = 16384;
    const auto runtime = need(cuda::Runtime::make(pieces, graph, plan, driver, how), *context);
    need(runtime->load(weights), *context);
    need(runtime->capture(), *context);
    CHECK(runtime->notes().empty());
    // Prompts by themselves and beside others, short and longer than a tile; single tokens of few
    // and of many sequences; a prompt that goes on; four tokens of each, which share a block.
    std::vector<Step> steps;
    const auto add = [&](std::vector<Sequence> sequences) {
      steps.emplace_back().sequences = std::move(sequences);
    };
    add({{0, 1, 0}});
    add({{0, 1, 1}, {1, 30, 0}, {2, 3, 0}});
    add({{1, 1, 30}, {2, 1, 3}, {3, 200, 0}});
    if (!sparing()) {
      add({{4, 300, 0}});
      add({{5, 513, 0}, {4, 1, 300}});
      add({{5, 100, 513}, {3, 260, 200}});
      std::vector<Sequence> many = {{5, 1, 613}, {4, 1, 301}, {3, 1, 460}, {2, 1, 4}};
      for (std::int64_t i = 10; i < 40; ++i) many.push_back({i, 1, 0});
      add(many);
      add({{5, 4, 614}, {4, 4, 302}, {3, 4, 461}, {2, 4, 5}, {10, 4, 1}});
      many.clear();
      for (std::int64_t i = 50; i < 350; ++i) many.push_back({i, 1, 0});
      add(many);
    } else {
      add({{1, 4, 31}, {2, 4, 4}, {3, 4, 200}});
    }
    KvCache replayed, launched, exact;
    for (const Step& s : steps) {
      INFO(s.tokens() << " tokens in " << s.sequences.size() << " sequences");
      const auto run = [&](KvCache& cache, bool pad) {
        Step step = s;
        step.cache = &cache;
        RunOptions how_run;
        how_run.pad = pad;
        how_run.poison = true;
        return need(runtime->run(step, weights, how_run), *context).outputs;
      };
      const std::vector<Tensor> first = run(launched, false);
      CHECK(bits_apart(first, run(launched, false)) == "");
      const std::vector<Tensor> padded = run(replayed, true);
      Step step = s;
      step.cache = &exact;
      const auto wanted = need(run_reference(graph, weights, step), *context);
      for (const auto* got : {&first, &padded})
        check_one_near(got->front(), wanted[0], tolerance_of(got->front().dtype()));
    }
  }
}

// The driver alone: memory, copies, kernels inside and outside of graphs.
#include <array>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/kernels/topk.hpp"
#include "tensor/numerics.hpp"
#include "tests/backends_cuda/forms.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/gpu/device.hpp"
#include "tests/gpu/memory.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// Launches a subject's kernel on inputs that are copied to the device.
cuda::LaunchNode node_of(Memory& memory, const Subject& s, const std::vector<Tensor>& inputs,
                         const Symbols& symbols) {
  Context& context = s.graph.context();
  cuda::LaunchNode node;
  node.name = s.kernel.name;
  const auto& all = s.graph.inputs();
  for (ValueId v : s.operands) {
    const auto at = std::find(all.begin(), all.end(), v) - all.begin();
    node.reads.push_back(memory.copy(inputs[static_cast<std::size_t>(at)].view()));
  }
  for (ValueId v : s.graph.outputs()) {
    const Tensor zeros(context.types[s.graph.type(v)].dtype,
                       need(extents_of(s.graph, v, symbols), context));
    node.writes.push_back(memory.copy(zeros.view()));
  }
  for (DimId d : s.kernel.params) node.params.push_back(context.dims.evaluate(d, symbols).value());
  return node;
}

std::vector<std::vector<double>> results_of(Memory& memory, const cuda::LaunchNode& node) {
  std::vector<std::vector<double>> out;
  for (const cuda::DeviceTensor& t : node.writes) out.push_back(values_of(memory.read(t).view()));
  return out;
}

void check(const Subject& s, const Symbols& symbols, std::uint64_t seed) {
  const Context& context = s.graph.context();
  INFO(s.name << "  seed = " << seed);
  need(device().load(std::span(&s.kernel, 1)), context);
  const auto inputs = inputs_of(s.graph, symbols, seed);
  const auto wanted = run_interpreter(s, inputs, symbols, false);
  Memory memory(device(), context);
  const cuda::LaunchNode launched = node_of(memory, s, inputs, symbols);
  need(device().launch(launched), context);
  CHECK(difference(results_of(memory, launched), wanted) == "");
  const cuda::LaunchNode recorded = node_of(memory, s, inputs, symbols);
  const auto graph = need(device().instantiate({s.name, {recorded}}), context);
  need(graph->replay(), context);
  CHECK(difference(results_of(memory, recorded), wanted) == "");
}

}  // namespace

TEST_CASE("gpu: what is written is read, and memory is counted", "[gpu]") {
  const ContextPtr context = library();
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  const std::int64_t before = device().memory().free;
  Memory memory(device(), *context);
  const cuda::Address at = memory.take(kBytes);
  CHECK(at % 256 == 0);
  CHECK(before - device().memory().free >= kBytes);
  std::array<std::uint32_t, 1000> sent{}, got{};
  for (std::size_t i = 0; i < sent.size(); ++i)
    sent[i] = static_cast<std::uint32_t>(i * 2654435761U);
  need(device().write(at + 1024, sent.data(), sizeof sent), *context);
  need(device().read(got.data(), at + 1024, sizeof got), *context);
  CHECK(sent == got);
  need(device().fill(at, 0xA5, 4096), *context);
  need(device().read(got.data(), at, sizeof got), *context);
  CHECK(std::set<std::uint32_t>(got.begin(), got.end()) == std::set<std::uint32_t>{0xA5A5A5A5U});
  const auto refused = device().allocate(device().memory().total * 2);
  REQUIRE(!refused);
  CHECK(refused.error().front().code == "PW1250");
}

TEST_CASE("gpu: each op's kernel gives the interpreter's bits", "[gpu]") {
  const ContextPtr context = library();
  std::uint64_t seed = 1;
  const auto run = [&](const Form& form, const char* dtype, int d) {
    const std::string text = fmt::format(fmt::runtime(form.text), dtype, d, 2 * d);
    const Subject s =
        subject(context, fmt::format("{} {} {}", form.op, dtype, d), "graph { " + text + " }");
    if (!s.program) FAIL(s.program.error().reason);
    check(s, {{"n", 5}, {"m", 37}}, seed++);
  };
  std::size_t number = 0;
  for (const Form& form : kForms) {
    if (sparing() && number++ % 5 != 0) continue;
    run(form, "bf16", 128);
    if (!sparing()) run(form, "f32", 131);
  }
  for (const Form& form : kSpecial)
    if (!sparing() || number++ % 5 == 0) run(form, "f16", 0);
}

TEST_CASE("gpu: products and the routing of experts have kernels", "[gpu]") {
  const ContextPtr context = library();
  std::uint64_t seed = 50;
  for (const char* text :
       {"in a: bf16[n, 160], b: bf16[160, 70]  y = mm(a, b)  out y",
        "in c: f32[33], a: f32[n, 64], b: f32[64, 33]  y = addmm(c, a, b)  out y",
        "in a: f8e4m3[n, 48], b: f8e4m3[48, 96], s: f32[n, 1], t: f32[96]"
        "  y = scaled_mm(a, b, s, t){out = bf16}  out y",
        "in p: f32[n, 13]  y = keep_topk(p){k = 4}  out y"}) {
    Subject s = subject(context, text, std::string("graph { ") + text + " }");
    auto kernel = cuda::product_kernel(s.graph, s.graph.first());
    if (!kernel) kernel = cuda::topk_kernel(s.graph, s.graph.first());
    REQUIRE(kernel);
    s.kernel = std::move(*kernel);
    s.operands = s.graph.inputs();
    for (std::int64_t n : {1, 70}) check(s, {{"n", n}}, seed++);
  }
}

TEST_CASE("gpu: nodes of a graph run in the order of its edges, each time", "[gpu]") {
  const ContextPtr context = library();
  Subject s = subject(context, "twice", "graph { in x: f32[n, 64]  y = add(x, x)  out y }");
  REQUIRE(s.program);
  need(device().load(std::span(&s.kernel, 1)), *context);
  const Symbols symbols{{"n", 9}};
  const auto inputs = inputs_of(s.graph, symbols, 3);
  Memory memory(device(), *context);
  cuda::RecordedGraph graph{"chain", {}};
  graph.nodes.push_back(node_of(memory, s, inputs, symbols));
  for (int i = 0; i < 6; ++i) {
    cuda::LaunchNode next = node_of(memory, s, inputs, symbols);
    next.reads.assign(next.reads.size(), graph.nodes.back().writes[0]);
    graph.nodes.push_back(std::move(next));
  }
  cuda::LaunchNode copy = node_of(memory, s, inputs, symbols);
  copy.kind = cuda::LaunchNode::Kind::copy;
  copy.name = "copy";
  copy.params.clear();
  copy.reads = {graph.nodes.back().writes[0]};
  graph.nodes.push_back(copy);
  cuda::order_nodes(graph);
  const auto ready = need(device().instantiate(graph), *context);
  for (int round = 0; round < 3; ++round) {
    for (const cuda::LaunchNode& n : graph.nodes)
      need(device().fill(n.writes[0].address, 0xFF, n.writes[0].bytes()), *context);
    need(ready->replay(), *context);
    const auto got = results_of(memory, copy);
    for (std::size_t i = 0; i < got[0].size(); ++i)
      REQUIRE(got[0][i] == 128 * load(DType::f32, inputs[0].data(), static_cast<std::int64_t>(i)));
  }
}

// Every op with a body, on the vectors: generated code in strict mode against the bits of the
// interpreter in single precision. That they are what is expected is tested in tests/vectors.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "graph/build.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/backends_cpu/running.hpp"
#include "tests/vectors/case_file.hpp"

namespace {

using namespace pw;
using namespace pw::test;

std::vector<std::string> case_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/vectors"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().generic_string());
  std::ranges::sort(paths);
  return paths;
}

Graph graph_of_case(const ContextPtr& context, const std::string& op, const vectors::Case& one) {
  Graph graph(context);
  NodeRequest request;
  request.op = context->ops.find(op);
  REQUIRE(request.op.valid());
  for (const Tensor& input : one.inputs) {
    Shape shape;
    for (std::int64_t extent : input.extents()) shape.push_back(context->dims.constant(extent));
    request.operands.push_back(graph.add_input(fmt::format("x{}", request.operands.size()),
                                               context->types.get(input.dtype(), shape),
                                               InputKind::input));
  }
  const auto& declared = context->ops[request.op].operands;
  while (request.operands.size() < declared.size() && declared[request.operands.size()].optional)
    request.operands.emplace_back();  // absent
  for (const auto& [name, value] : one.attributes)
    request.attributes.emplace_back(context->strings.intern(name), value);
  auto node = build_node(graph, request);
  if (!node) FAIL(render(node.error(), context->sources));
  for (std::size_t i = 0; i < graph.result_count(*node); ++i)
    graph.add_output(graph.result(*node, i));
  return graph;
}

/// Of each op the first `most` cases of each dtype.
void check_bits_on_vectors(std::size_t most) {
  const ContextPtr context = library();
  CpuBackend strict({.strict = true});
  const auto oracle = make_interpreter(Precision::single);
  std::size_t cases = 0, collectives = 0;
  for (const std::string& path : case_files()) {
    const vectors::CaseFile file = vectors::read_case_file(path, context->dims);
    std::map<DType, std::size_t> seen;
    for (const vectors::Case& one : file.cases) {
      if (++seen[one.inputs.front().dtype()] > most) continue;
      INFO(path << ": " << one.name);
      const Graph graph = graph_of_case(context, file.op, one);
      const auto inputs = views_of(one.inputs);
      const auto bits = outputs_of(strict, graph, inputs, {}),
                 wanted = outputs_of(*oracle, graph, inputs, {});
      for (std::size_t i = 0; i < bits.size(); ++i) CHECK(bit_difference(bits[i], wanted[i]) == "");
      ++cases;
      collectives += file.op.find("all_") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(cases >= 50);
  CHECK(strict.report().kernels.size() + collectives >= 30);
}

}  // namespace

TEST_CASE("cpu: every op with a body has the interpreter's bits on the vectors", "[cpu][diff]") {
  if (have_compiler()) check_bits_on_vectors(1);
}

TEST_CASE("cpu: every op with a body has the interpreter's bits on all vectors", "[.slow][cpu]") {
  if (have_compiler()) check_bits_on_vectors(std::numeric_limits<std::size_t>::max());
}

TEST_CASE("cpu: an op that fits no row program runs on eager, and the report states why", "[cpu]") {
  if (!have_compiler()) return;
  const Graph graph = graph_of(
      "symbol n in 1..64 tokens  in a: f32[n, 8], b: f32[8, 4]  c = mm(a, b)  y = silu(c)  out y");
  CpuBackend cpu;
  const Tensor a = tensor(DType::f32, {2, 8}, std::vector<double>(16, 0.5)),
               b = tensor(DType::f32, {8, 4}, std::vector<double>(32, 0.25));
  const auto got = outputs_of(cpu, graph, {a.view(), b.view()}, {{{"n", 2}}, nullptr, 2});
  for (double y : values(got[0])) CHECK(std::fabs(y - 1 / (1 + std::exp(-1.0))) < 1e-6);
  const CpuReport report = cpu.report();
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].ops == "silu");
  REQUIRE(report.fallbacks.size() == 1);
  CHECK(report.fallbacks[0].op == "mm");
  CHECK(report.fallbacks[0].nodes == 1);
  CHECK(report.fallbacks[0].reason.find("no body") != std::string::npos);
}

TEST_CASE("cpu: a phase keeps what the next one needs, and rows that are not of buffers' size work",
          "[cpu][diff]") {
  if (!have_compiler()) return;
  CpuBackend cpu({.strict = true});
  const auto oracle = make_interpreter(Precision::single);
  const ContextPtr context = library();
  for (const char* text :
       {"in x: bf16[3, 20000], z: bf16[3, 20000], w: bf16[20000]  y, r = fused_add_rms_norm(x, z, "
        "w)  out y, r",
        "in x: bf16[3, 4096], z: bf16[3, 4096], w: bf16[4096]  q, t, r = "
        "fused_add_rms_norm_dynamic_per_token_quant(x, z, w)  out q, t, r",
        "in x: f32[5, 7]  y = sum(x){dim = 0}  out y",
        "in x: i64[3, 70]  y = sum(x)  z = amax(x)  out y, z",
        "in x: f64[3, 70]  y = mean(x)  z = amin(x)  out y, z",
        "in x: f32[3, 0]  y = sum(x)  z = amax(x)  out y, z"}) {
    INFO(text);
    const Graph graph = graph_of(text, context);
    std::vector<Tensor> inputs;
    Random random(5);
    for (ValueId v : graph.inputs()) {
      Tensor t(context->types[graph.type(v)].dtype, extents_of(graph, v, {}).value());
      for (std::int64_t i = 0; i < t.view().count(); ++i)
        store(t.dtype(), t.data(), i,
              is_float(t.dtype()) ? random.normal() : std::floor(50 * random.normal()));
      inputs.push_back(std::move(t));
    }
    const auto got = outputs_of(cpu, graph, views_of(inputs), {}),
               wanted = outputs_of(*oracle, graph, views_of(inputs), {});
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(bit_difference(got[i], wanted[i]) == "");
  }
}

TEST_CASE("cpu: what is stored is rounded once, to nearest even, in any mode", "[cpu][diff]") {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  const Graph graph = graph_of(
      "in x: bf16[4, 512], z: bf16[4, 512], w: bf16[512]  y, r = fused_add_rms_norm(x, z, w)  out "
      "y, r",
      context);
  std::vector<Tensor> inputs;
  Random random(3);
  for (ValueId v : graph.inputs()) {
    Tensor t(DType::bf16, extents_of(graph, v, {}).value());
    for (std::int64_t i = 0; i < t.view().count(); ++i)
      store(t.dtype(), t.data(), i, random.normal());
    inputs.push_back(std::move(t));
  }
  CpuBackend cpu;
  const auto eager = make_eager();
  const auto got = outputs_of(cpu, graph, views_of(inputs), {}),
             wanted = outputs_of(*eager, graph, views_of(inputs), {});
  CHECK(bit_difference(got[1], wanted[1]) == "");
}

TEST_CASE("cpu: generated kernels refuse an index outside the table, wherever it is read",
          "[cpu]") {
  if (!have_compiler()) return;
  const ContextPtr context = library();
  for (const char* text :
       {"in t: f32[5, 64], i: i64[9]  y = relu(embedding(t, i) * 2)  out y",
        "in t: f32[5], i: i64[9]  y = embedding(t, i)  out y",
        "in t: f32[5], i: i32[3, 96]  y = neg(embedding(t, i))  out y",
        "in t: f32[5], i: i64[3, 96]  e = embedding(t, i)  y = e * 2 - amax(e){keepdim = true}  "
        "out y",
        "in t: bf16[5, 64], i: i64[3, 2]  y = cat(embedding(t, i), embedding(t, i)){dim = 1}  out "
        "y",
        "in t: i64[4], i: i64[9]  y = remainder(t, divisor(slice(i){dim = 0, start = 0, end = 4}))"
        "  out y",
        "in t: f32[5, 8], i: i64[9]  y = below(i){n = 5}  out y"}) {
    INFO(text);
    const Graph graph = graph_of(text, context);
    const bool divides = std::string(text).find("divisor") != std::string::npos;
    const auto bad = divides ? std::vector<double>{0} : std::vector<double>{5, -1, 1e12};
    std::vector<Tensor> inputs;
    for (ValueId v : graph.inputs()) {
      Tensor t(context->types[graph.type(v)].dtype, extents_of(graph, v, {}).value());
      for (std::int64_t i = 0; i < t.view().count(); ++i) store(t.dtype(), t.data(), i, 1 + i % 4);
      inputs.push_back(std::move(t));
    }
    for (const bool strict : {false, true}) {
      CpuBackend cpu({.strict = strict});
      const auto eager = make_eager();
      const auto got = outputs_of(cpu, graph, views_of(inputs), {});
      CHECK(bit_difference(got[0], outputs_of(*eager, graph, views_of(inputs), {})[0]) == "");
      auto executable = cpu.compile(graph);
      REQUIRE(executable);
      CHECK(cpu.report().nodes_on_eager() == 0);
      for (const double index : bad) {
        if (inputs[1].dtype() == DType::i32 && index > 1e9) continue;
        Tensor ids(inputs[1].dtype(), inputs[1].extents());
        std::memcpy(ids.data(), inputs[1].data(), inputs[1].view().bytes());
        store(ids.dtype(), ids.data(), 2, index);
        std::vector<Tensor> outputs = got;
        std::vector<TensorView> views = views_of(outputs);
        const std::vector<TensorView> in = {inputs[0].view(), ids.view()};
        const auto done = (*executable)->run(in, views, {});
        REQUIRE(!done);
        CHECK(done.error()[0].code == "PW1204");
      }
    }
  }
}

// Every op of the library with a body against the vectors beside this file: the interpreter in both
// precisions, and eager.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "backends/backend.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "graph/build.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"
#include "tests/vectors/case_file.hpp"

namespace {

using namespace pw;
using vectors::Case;
using vectors::CaseFile;

std::vector<std::string> case_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/vectors"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().generic_string());
  std::ranges::sort(paths);
  return paths;
}

ContextPtr library_context() {
  auto context = std::make_shared<Context>();
  auto loaded = load_op_library(context);
  if (!loaded) FAIL(render(loaded.error(), context->sources));
  return context;
}

TypeId type_of(Context& context, const Tensor& tensor) {
  Shape shape;
  for (std::int64_t extent : tensor.extents()) shape.push_back(context.dims.constant(extent));
  return context.types.get(tensor.dtype(), shape);
}

/// One node of the op, its operands the graph's inputs and its results the outputs.
Graph graph_of(const ContextPtr& context, const std::string& op, const Case& one) {
  Graph graph(context);
  NodeRequest request;
  request.op = context->ops.find(op);
  REQUIRE(request.op.valid());
  for (std::size_t i = 0; i < one.inputs.size(); ++i)
    request.operands.push_back(graph.add_input("x" + std::to_string(i),
                                               type_of(*context, one.inputs[i]), InputKind::input));
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

using Outputs = Result<std::vector<Tensor>>;
struct Runner {
  std::string name;
  std::function<Outputs(const Graph&, const std::vector<TensorView>&)> run;
};

Outputs run_on(Backend& backend, const Graph& graph, const std::vector<TensorView>& inputs,
               const Case& one) {
  auto executable = PW_TRY(backend.compile(graph));
  std::vector<Tensor> outputs;
  std::vector<TensorView> views;
  for (const auto& expected : one.outputs) {
    outputs.emplace_back(expected.tensor.dtype(), expected.tensor.extents());
    views.push_back(outputs.back().view());
  }
  PW_TRY(executable->run(inputs, views, RunContext{}));
  return outputs;
}

void check_types(const Graph& graph, const Case& one) {
  REQUIRE(graph.outputs().size() == one.outputs.size());
  for (std::size_t i = 0; i < one.outputs.size(); ++i)
    CHECK(graph.context().types.print(graph.type(graph.outputs()[i])) ==
          graph.context().types.print(type_of(graph.context(), one.outputs[i].tensor)));
}

void check_outputs(const Graph& graph, const Case& one, const std::string& runner,
                   Outputs outputs) {
  INFO(runner);
  if (!outputs) FAIL(render(outputs.error(), graph.context().sources));
  REQUIRE(outputs->size() == one.outputs.size());
  for (std::size_t i = 0; i < outputs->size(); ++i) {
    INFO("output " << i);
    CHECK(vectors::mismatch(one.outputs[i], (*outputs)[i].view()) == "");
  }
}

void check_case(const ContextPtr& context, const std::string& op, const Case& one,
                const std::vector<std::unique_ptr<Backend>>& backends) {
  INFO(op << ": " << one.name);
  const Graph graph = graph_of(context, op, one);
  check_types(graph, one);
  std::vector<TensorView> inputs;
  for (const Tensor& input : one.inputs) inputs.push_back(input.view());
  check_outputs(graph, one, "interpreter, exact",
                interpret(graph, inputs, RunContext{}, Precision::exact));
  check_outputs(graph, one, "interpreter, single",
                interpret(graph, inputs, RunContext{}, Precision::single));
  for (const auto& backend : backends)
    check_outputs(graph, one, backend->name(), run_on(*backend, graph, inputs, one));
}

}  // namespace

TEST_CASE("vectors: every op with a body computes what PyTorch computes", "[vectors]") {
  const ContextPtr context = library_context();
  const auto backends = all_backends();
  for (const std::string& path : case_files()) {
    INFO(path);
    const CaseFile file = vectors::read_case_file(path, context->dims);
    CHECK(std::filesystem::path(path).stem() == file.op);
    for (const Case& one : file.cases) check_case(context, file.op, one, backends);
  }
}

TEST_CASE("vectors: no op of the library with a body is without them", "[vectors]") {
  const ContextPtr context = library_context();
  std::set<std::string> covered;
  for (const std::string& path : case_files()) covered.insert(std::filesystem::path(path).stem());
  std::size_t with_body = 0;
  for (const std::string& name : context->ops.names()) {
    if (!context->ops[context->ops.find(name)].has_body()) continue;
    ++with_body;
    INFO(name);
    CHECK(covered.contains(name));
  }
  CHECK(with_body >= 20);
}

TEST_CASE("vectors: a wrong result is detected", "[vectors]") {
  const ContextPtr context = std::make_shared<Context>();
  CaseFile file = vectors::read_case_file("tests/vectors/silu.json", context->dims);
  vectors::Expected& expected = file.cases.front().outputs.front();
  REQUIRE(expected.tensor.dtype() == DType::bf16);
  Tensor result(DType::f64, expected.tensor.extents());
  const auto put = [&](std::int64_t i, double x) { store(DType::f64, result.data(), i, x); };
  for (std::int64_t i = 0; i < result.view().count(); ++i)
    put(i, load(DType::bf16, expected.tensor.data(), i));
  CHECK(vectors::mismatch(expected, result.view()) == "");

  const std::int64_t last = result.view().count() - 1;
  const double right = load(DType::bf16, expected.tensor.data(), last);
  put(last, right + 0.9 * ulp(DType::bf16, right));
  CHECK(vectors::mismatch(expected, result.view()) == "");
  expected.equal = 1;
  CHECK(vectors::mismatch(expected, result.view()) != "");
  expected.equal = 0;
  put(last, right + 1.1 * ulp(DType::bf16, right));
  CHECK(vectors::mismatch(expected, result.view()) != "");
  put(last, std::numeric_limits<double>::quiet_NaN());
  CHECK(vectors::mismatch(expected, result.view()) != "");
}

// The library fuses norms and activations from the spellings of ONNX exporters.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/eager/eager.hpp"
#include "dsl/dsl.hpp"
#include "dsl/graph_formats.hpp"
#include "engines/run_given.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/catch.hpp"
#include "tests/onnx/test_model.hpp"

using namespace pw;
using pw_test_onnx::TestModel;

namespace {

constexpr int kWidth = 8;

/// The library and its rules, read once.
struct Library {
  ContextPtr context = std::make_shared<Context>();
  RuleSet rules;
  Env params;
  Library() {
    auto loaded = load_rules(context, {"llm"});
    if (!loaded) FAIL(render(loaded.error(), context->sources));
    rules = std::move(*loaded);
    params = *bind_params(rules, {});
  }
};
const Library& library() {
  static const Library one;
  return one;
}

Graph graph_of_model(const TestModel& model) {
  FxOptions options;
  options.file = "model.onnx";
  auto read = read_graph(library().context, model.bytes(), options);
  if (!read) FAIL(render(read.error(), library().context->sources));
  return std::move(read->graph);
}

std::vector<float> run(const Graph& graph) {
  Tensor x(DType::f32, {3, kWidth});
  for (int i = 0; i < 3 * kWidth; ++i)
    reinterpret_cast<float*>(x.data())[i] = 2.5F * std::sin(1.7F * static_cast<float>(i));
  GivenInputs inputs{{"x", x}};
  inputs.merge(contents_of_inputs(graph));
  const auto backend = make_eager();
  const auto done = run_given(graph, *backend, inputs);
  REQUIRE(done);
  const TensorView view = done->returned.at(0).view();
  std::vector<float> out(static_cast<std::size_t>(view.count()));
  std::memcpy(out.data(), view.data, view.bytes());
  return out;
}

/// The ops of the graph after `o2`, except casts, numbers and copies.
std::string ops_after(Graph& graph) {
  auto report = run_pipeline(graph, library().rules, "o2", library().params, {});
  if (!report) FAIL(render(report.error(), library().context->sources));
  CHECK(verify(graph).empty());
  std::string out;
  for (const NodeId n : graph.order())
    if (const Op& op = graph.op_of(n); !op.is_literal() && op.name != "detach")
      out += (out.empty() ? "" : " ") + op.name;
  return out;
}

/// The model becomes these ops, and its numbers do not change.
void check_fused(const TestModel& model, const std::string& ops) {
  Graph graph = graph_of_model(model);
  INFO(print_pwg(graph));
  const std::vector<float> before = run(graph);
  CHECK(ops_after(graph) == ops);
  const std::vector<float> after = run(graph);
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(std::abs(before[i] - after[i]) <= 1e-5F * std::max(1.0F, std::abs(before[i])));
}

TestModel with_numbers(const std::vector<std::int64_t>& shape = {}, std::int64_t opset = 17) {
  TestModel m(opset);
  m.in("x", {"n", std::to_string(kWidth)}).out("y", {"n", std::to_string(kWidth)});
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, float>>{{"half", 0.5F},
                                                  {"one", 1},
                                                  {"two", 2},
                                                  {"three", 3},
                                                  {"eps", 1e-5F},
                                                  {"root2", 1.4142135F},
                                                  {"root_half", 0.70710678F},
                                                  {"cubic", 0.044715F},
                                                  {"scale", 0.79788456F}})
    m.tensor(name, shape).add_float_data(value);
  auto& w = m.tensor("w", {kWidth});
  auto& b = m.tensor("b", {kWidth});
  for (int i = 0; i < kWidth; ++i) {
    w.add_float_data(0.5F + 0.1F * static_cast<float>(i));
    b.add_float_data(0.1F * static_cast<float>(i));
  }
  return m;
}

TestModel& mean(TestModel& m, const std::string& from, const std::string& to) {
  m.node("ReduceMean", {from}, {to}, {{"keepdims", 1}});
  auto& axes = *m.model.mutable_graph()->mutable_node()->rbegin()->add_attribute();
  axes.set_name("axes");
  axes.add_ints(-1);
  axes.set_type(7);
  return m;
}

/// `x`, or what is normalised, times 1 / sqrt(mean(x²) + eps), as `r`.
TestModel& normalised(TestModel& m, const std::string& x, const std::string& root) {
  if (root == "product")
    m.node("Mul", {x, x}, {"p"});
  else
    m.node("Pow", {x, "two"}, {"p"});
  mean(m, "p", "v").node("Add", {"v", "eps"}, {"a"}).node("Sqrt", {"a"}, {"s"});
  if (root == "quotient") return m.node("Div", {x, "s"}, {"r"});
  if (root == "reciprocal")
    m.node("Reciprocal", {"s"}, {"i"});
  else
    m.node("Div", {"one", "s"}, {"i"});
  return m.node("Mul", {x, "i"}, {"r"});
}

TestModel& activated(TestModel& m, int product) {
  if (product == 0) return m.node("Mul", {"x", "a"}, {"h"}).node("Mul", {"h", "half"}, {"y"});
  if (product == 1) return m.node("Mul", {"x", "half"}, {"h"}).node("Mul", {"h", "a"}, {"y"});
  return m.node("Mul", {"half", "a"}, {"h"}).node("Mul", {"x", "h"}, {"y"});
}

}  // namespace

TEST_CASE("onnx: an initialiser of rank 0 is a number, and so is one that is broadcast", "[onnx]") {
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {1}}) {
    TestModel m = with_numbers(shape);
    m.node("Div", {"x", "root2"}, {"y"});
    const Graph graph = graph_of_model(m);
    const std::string text = print_pwg(graph);
    INFO(text);
    CHECK(text.find("constant(){dtype = f32, value = 1.4142135381698608}") != std::string::npos);
    CHECK(text.find("full") == std::string::npos);
  }
}

TEST_CASE("onnx: RMSNorm fuses", "[onnx]") {
  for (const char* root : {"quotient", "reciprocal", "inverse", "product"})
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{}, {1}}) {
      INFO(root);
      TestModel m = with_numbers(shape);
      normalised(m, "x", root).node("Mul", {"w", "r"}, {"y"});
      check_fused(m, "rms_norm");
    }
  TestModel named = with_numbers({}, 21);
  named.node("SimplifiedLayerNormalization", {"x", "w"}, {"y"}, {{"axis", -1}});
  check_fused(named, "rms_norm");
  TestModel standard = with_numbers({}, 23);
  standard.node("RMSNormalization", {"x", "w"}, {"y"});
  check_fused(standard, "rms_norm");
}

TEST_CASE("onnx: LayerNorm fuses", "[onnx]") {
  TestModel m = with_numbers();
  mean(m, "x", "m").node("Sub", {"x", "m"}, {"c"});
  normalised(m, "c", "quotient").node("Mul", {"r", "w"}, {"q"}).node("Add", {"q", "b"}, {"y"});
  check_fused(m, "layer_norm");
}

TEST_CASE("onnx: SiLU fuses", "[onnx]") {
  TestModel left = with_numbers(), right = with_numbers();
  left.node("Sigmoid", {"x"}, {"s"}).node("Mul", {"x", "s"}, {"y"});
  right.node("Sigmoid", {"x"}, {"s"}).node("Mul", {"s", "x"}, {"y"});
  check_fused(left, "silu");
  check_fused(right, "silu");
}

TEST_CASE("onnx: GELU by the error function fuses", "[onnx]") {
  for (const bool quotient : {false, true})
    for (const int product : {0, 1, 2}) {
      INFO(quotient << " " << product);
      TestModel m = with_numbers();
      if (quotient)
        m.node("Div", {"x", "root2"}, {"u"});
      else
        m.node("Mul", {"x", "root_half"}, {"u"});
      m.node("Erf", {"u"}, {"e"}).node("Add", {"e", "one"}, {"a"});
      check_fused(activated(m, product), "gelu");
    }
  TestModel named = with_numbers({}, 21);
  named.node("Gelu", {"x"}, {"y"});
  check_fused(named, "gelu");
}

TEST_CASE("onnx: GELU by the tangent fuses", "[onnx]") {
  for (const int cube : {0, 1, 2, 3})
    for (const int product : {0, 1, 2}) {
      INFO(cube << " " << product);
      TestModel m = with_numbers();
      if (cube == 3) {  // x · scale · (1 + cubic · x²)
        m.node("Mul", {"x", "scale"}, {"g"}).node("Mul", {"x", "cubic"}, {"k"});
        m.node("Mul", {"k", "x"}, {"l"}).node("Add", {"one", "l"}, {"o"});
        m.node("Mul", {"g", "o"}, {"z"});
      } else {
        if (cube == 0) m.node("Pow", {"x", "three"}, {"q"});
        if (cube != 0) m.node("Mul", {"x", "x"}, {"xx"});
        if (cube == 1) m.node("Mul", {"xx", "x"}, {"q"});
        if (cube == 2) m.node("Mul", {"x", "xx"}, {"q"});
        m.node("Mul", {"cubic", "q"}, {"k"}).node("Add", {"x", "k"}, {"l"});
        m.node("Mul", {"l", "scale"}, {"z"});
      }
      m.node("Tanh", {"z"}, {"t"}).node("Add", {"t", "one"}, {"a"});
      check_fused(activated(m, product), "gelu_tanh");
    }
}

TEST_CASE("onnx: numbers that are only near to those of GELU stay", "[onnx]") {
  TestModel m = with_numbers();
  m.tensor("near", {}).add_float_data(1.4142F);
  m.node("Div", {"x", "near"}, {"u"}).node("Erf", {"u"}, {"e"}).node("Add", {"e", "one"}, {"a"});
  check_fused(activated(m, 0), "div erf add mul mul");
}

#include "import/onnx/examples.hpp"

#include "import/onnx/model.hpp"
#include "import/onnx/wire.hpp"

namespace pw::onnx {
namespace {

constexpr std::int64_t kFloat = static_cast<std::int64_t>(ElementType::f32);
constexpr std::int64_t kInt64 = static_cast<std::int64_t>(ElementType::i64);

WireWriter value_of(std::string_view name, const std::vector<std::int64_t>& extents) {
  WireWriter shape, tensor, type, value;
  for (const std::int64_t extent : extents) {
    WireWriter dim;
    if (extent > 0)
      dim.integer(1, extent);
    else
      dim.text(2, "n");
    shape.message(1, dim);
  }
  tensor.integer(1, kFloat).message(2, shape);
  type.message(1, tensor);
  return value.text(1, name).message(2, type);
}

WireWriter node_of(std::string_view op, const std::vector<std::string>& inputs,
                   std::string_view output) {
  WireWriter node;
  for (const std::string& input : inputs) node.text(1, input);
  return node.text(2, output).text(4, op);
}

WireWriter model_of(const WireWriter& graph) {
  WireWriter opset, model;
  opset.integer(2, 21);
  return model.integer(1, 10).message(7, graph).message(8, opset);
}

std::string elementwise_model() {
  WireWriter graph;
  graph.message(1, node_of("Relu", {"x"}, "h")).message(1, node_of("Add", {"h", "w"}, "y"));
  WireWriter weight;
  weight.integer(1, 2).integer(2, kFloat).text(8, "w").text(
      9, std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  graph.message(5, weight).message(11, value_of("x", {0, 2})).message(12, value_of("y", {0, 2}));
  return model_of(graph).str();
}

std::string shape_model() {
  WireWriter graph, shape, axis, softmax = node_of("Softmax", {"r"}, "y");
  axis.text(1, "axis").integer(3, -1).integer(20, 2);
  softmax.message(5, axis);
  graph.message(1, node_of("Reshape", {"x", "shape"}, "r")).message(1, softmax);
  shape.integer(1, 2).integer(2, kInt64).integer(7, 0).integer(7, -1).text(8, "shape");
  graph.message(5, shape).message(11, value_of("x", {4, 2, 3})).message(12, value_of("y", {4, 6}));
  return model_of(graph).str();
}

}  // namespace

std::vector<std::string> example_models() { return {elementwise_model(), shape_model()}; }

}  // namespace pw::onnx

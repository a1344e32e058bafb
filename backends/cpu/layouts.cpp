#include "backends/cpu/layouts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace pw::cpu {
namespace {

const Shape& shape_of(const Graph& graph, ValueId value) {
  return graph.context().types[graph.type(value)].shape;
}

/// Returns true if all tensors that a node reads and makes have one shape.
bool has_one_shape(const Graph& graph, NodeId node) {
  const Shape& shape = shape_of(graph, graph.result(node));
  const std::vector<ValueId> operands = graph.operands(node);
  return graph.result_count(node) == 1 &&
         std::all_of(operands.begin(), operands.end(), [&](ValueId v) {
           if (!v.valid()) return true;
           const bool literal = !graph.is_input(v) && graph.op_of(graph.producer(v)).is_literal();
           return literal || (graph.type(v) != Types::unknown() && shape_of(graph, v) == shape);
         });
}

}  // namespace

bool keeps_layout(const Graph& graph, const rows::RunUnit& unit,
                  const std::function<bool(NodeId)>& reads_any) {
  if (unit.program.valid || unit.program.checks || unit.outputs.empty()) return false;
  const Shape& shape = shape_of(graph, unit.outputs.front());
  const bool pointwise = std::all_of(unit.nodes.begin(), unit.nodes.end(), [&](NodeId n) {
    return graph.op_of(n).traits.pointwise && has_one_shape(graph, n) &&
           shape_of(graph, graph.result(n)) == shape;
  });
  return pointwise && std::all_of(unit.outputs.begin(), unit.outputs.end(), [&](ValueId v) {
           const std::vector<NodeId> users = graph.users(v);
           return std::count_if(users.begin(), users.end(), [&](NodeId n) {
                    return !graph.op_of(n).traits.pointwise && !reads_any(n);
                  }) <= 1;
         });
}

bool is_dense(const Array& array) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;
  for (std::size_t i = 0; i < array.extents.size(); ++i)
    if (array.extents[i] != 1) dims.emplace_back(array.strides[i], array.extents[i]);
  std::sort(dims.begin(), dims.end());
  std::int64_t step = 1;
  return std::all_of(dims.begin(), dims.end(), [&](const auto& dim) {
    return dim.first == std::exchange(step, step * dim.second);
  });
}

bool has_strides(const Array& array, const Extents& strides) {
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (array.extents[i] != 1 && array.strides[i] != strides[i]) return false;
  return true;
}

Array with_strides(const Array& array, const Extents& strides) {
  if (has_strides(array, strides)) return array;
  Array out = make_array(array.dtype, array.extents);
  out.strides = strides;
  copy(array, out);
  return out;
}

}  // namespace pw::cpu

// Adds nodes to a graph by the names of their ops, for programs that generate graphs. Types and
// attributes are inferred once for each distinct call, so that equal layers cost little.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

class NodeMaker {
 public:
  using Given = std::vector<std::pair<std::string_view, Attribute>>;

  /// Creates a maker over the ops of the context. Names of results and inputs are `prefix` followed
  /// by the given name, and must be distinct.
  NodeMaker(const ContextPtr& context, std::string name);

  /// Returns the node's only result. After an error returns any value: finish() does not return the
  /// graph.
  ValueId call(std::string_view op, std::vector<ValueId> operands, Given given,
               std::vector<std::string> results);
  /// Returns the node; invalid after an error.
  NodeId node(std::string_view op, std::vector<ValueId> operands, Given given,
              std::vector<std::string> results);
  /// Returns all results of a node; as many invalid values after an error.
  std::vector<ValueId> calls(std::string_view op, std::vector<ValueId> operands, Given given,
                             std::vector<std::string> results);

  [[nodiscard]] DimId dim(std::int64_t value) { return context_.dims.constant(value); }
  Shape dims(std::initializer_list<std::int64_t> values);
  TypeId type(DType dtype, const Shape& shape) { return context_.types.get(dtype, shape); }
  ValueId weight(const std::string& name, DType dtype, std::initializer_list<std::int64_t> shape);

  [[nodiscard]] bool failed() const { return !errors_.empty(); }
  /// Returns the graph, or the error of the first failed call: PW0802 for an unknown op, or the
  /// error of inference.
  Result<Graph> finish();

  Graph graph;
  std::string prefix;  ///< of names
  std::string group;   ///< of nodes

 private:
  struct Call {
    OpId op;
    AttributesId attributes;
    std::vector<TypeId> types;
  };
  using Key = std::pair<AttributesId, std::vector<std::uint32_t>>;

  const Call* infer(std::string_view name, const std::vector<ValueId>& operands, const Given& given,
                    std::size_t results);
  const Call* refuse(Diagnostics errors);

  Context& context_;
  std::map<Key, Call> calls_;
  Diagnostics errors_;
};

}  // namespace pw

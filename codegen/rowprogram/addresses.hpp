// Internal to rowprogram/: index expressions of a graph's dims and layouts.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/rowprogram/scopes.hpp"

namespace pw::rows {

/// Makes expressions in a program. Throws Opaque for dims and layouts that it cannot express.
class Addresses {
 public:
  Addresses(const Graph& graph, RowProgram& program)
      : graph_(graph), context_(graph.context()), program_(program) {}

  [[nodiscard]] const Shape& shape(ValueId value) const {
    return context_.types[graph_.type(value)].shape;
  }
  [[nodiscard]] DType dtype(ValueId value) const {
    return context_.types[graph_.type(value)].dtype;
  }
  [[nodiscard]] bool is_one(DimId dim) const { return context_.dims.value(dim) == 1; }
  /// Returns the axis that an attribute of a node names, of an operand with `rank` dims.
  [[nodiscard]] std::size_t axis(NodeId node, std::string_view name, std::size_t rank) const;
  [[nodiscard]] std::vector<VarId> vars_of(const Position& at) const;
  IndexId extent(DimId dim);
  /// Returns the offset of an element in row-major order.
  IndexId linear(const Shape& shape, const Position& at);
  /// Returns the position in `from` of the element at `at` in `to`, of equal row-major order.
  Position reshaped(const Shape& from, const Shape& to, const Position& at);

 private:
  const Graph& graph_;
  Context& context_;
  RowProgram& program_;
};

}  // namespace pw::rows

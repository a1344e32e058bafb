// A row program: the computation of one row of a fusion group, as plain data. Its domain is the
// leading dims that all results share. Loops run over the dims inside a row, for results and
// reductions. Layout ops become index arithmetic, and loop-invariant values are hoisted. Invariant:
// every rounding point of the graph's meaning is kept. `print` returns the text form.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "codegen/rowprogram/index.hpp"
#include "graph/graph.hpp"

namespace pw::rows {

/// Returns true if a row program computes or moves this op directly.
[[nodiscard]] bool is_row_primitive(Primitive op);

/// The arithmetic type of a computation.
enum class Unit : std::uint8_t { f32, f64, i64 };
[[nodiscard]] std::string_view name(Unit unit);

struct Statement;
using Block = std::vector<Statement>;

struct Statement {
  enum class Kind : std::uint8_t {
    constant,  ///< slot = real
    load,      ///< slot = argument[index]
    compute,   ///< slot = operation(operands), in `unit`, rounded to the slot's dtype
    reduce,    ///< slot = operation over var of operands[0], which `first` computes; tree order, in
               ///< `unit`
    branch,  ///< slot = index < bound ? operands[0] : operands[1], computed by `first` and `second`
    loop,    ///< for var: first
    store,   ///< argument[index] = operands[0]
    check,   ///< operands[0] is an index below `bound`, or the run fails
    place,   ///< slot = index, an i64
  };
  Kind kind = Kind::constant;
  Primitive operation = Primitive::cast;
  Unit unit = Unit::f32;
  SlotId slot;
  std::vector<SlotId> operands;
  double real = 0;
  std::size_t argument = 0;
  IndexId index, bound;
  VarId var;
  Block first, second;
};

struct Argument {
  TypeId type;
  bool result = false;
};

struct RowProgram {
  ContextPtr context;
  std::string op;  ///< for people; never copied into code
  Shape domain;    ///< number of rows: the product of these dims
  std::vector<DimId>
      params;  ///< the number of rows, then the symbolic dims that are read: d1, d2, …
  std::vector<Argument> arguments;  ///< operands, then results
  /// Index of the last operand if a reduction covers the tokens: an i32 with the number of valid
  /// tokens. It is not a value of the graph.
  std::optional<std::size_t> valid;
  bool checks = false;  ///< the program contains checks
  Indices indices;
  VarId row;
  IdVec<SlotId, DType> slots;  ///< dtype of each value
  Block body;

  [[nodiscard]] const Type& type(std::size_t argument) const {
    return context->types[arguments[argument].type];
  }
};

/// Reason why an op has no row program.
struct Opaque {
  std::string reason;
};

/// Lowers a graph of primitives (an op's inlined meaning). Arguments are its inputs, then its
/// outputs, with `valid` between them. A reduction over tokens covers the valid ones; all other
/// loops and addresses include padding rows. An index read from memory is clamped to its table, so
/// that bad ids cannot read elsewhere. With `checks` it is checked as well.
tl::expected<RowProgram, Opaque> lower(const Graph& meaning, bool checks = false);
/// Lowers these nodes of a graph, in graph order, with inlined bodies. `inputs` and `outputs`
/// receive the program's arguments except `valid`: each outside value that is read, once, and each
/// value that is read outside; for a single node, all its results. Operands made by `constant`
/// become literals; absent operands have no argument.
tl::expected<RowProgram, Opaque> lower_nodes(const Graph& graph, std::span<const NodeId> nodes,
                                             std::vector<ValueId>& inputs,
                                             std::vector<ValueId>& outputs, bool checks = false);
/// Lowers nodes of which the results have rows of a few elements, so that a row covers more dims:
/// the results are written as if these dims were joined. Nothing if there are no such results, or
/// if the addresses of an element would be harder to compute.
std::optional<RowProgram> lower_with_wide_rows(const Graph& graph, std::span<const NodeId> nodes,
                                               bool checks = false);
/// Lowers one node.
tl::expected<RowProgram, Opaque> lower_node(const Graph& graph, NodeId node);
/// Returns a graph of these nodes with the given inputs and outputs, and constants in addition.
/// Bodies are not inlined.
Graph isolate(const Graph& graph, std::span<const NodeId> nodes, std::vector<ValueId>& inputs,
              std::vector<ValueId>& outputs);

/// Returns the text form.
[[nodiscard]] std::string print(const RowProgram& program);

}  // namespace pw::rows

// A row program: the computation of one row of a fusion group. Its domain is the leading dims that
// all results share; results and reductions run over the dims inside the row in loops; layout ops
// are index arithmetic; loop-invariant values are hoisted. Every rounding point of the meaning is
// kept. Plain data; `print` is its text form.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "codegen/rowprogram/index.hpp"
#include "graph/graph.hpp"
#include "graph/primitives.hpp"

namespace pw::rows {

/// The primitives that compute.
enum class Operation : std::uint8_t {
#define PW_OPERATION(name, ...) name,
  PW_NUMBER_PRIMITIVES(PW_OPERATION) PW_INTEGER_PRIMITIVES(PW_OPERATION)
      PW_REAL_PRIMITIVES(PW_OPERATION) cast,
  PW_REDUCTION_PRIMITIVES(PW_OPERATION)
#undef PW_OPERATION
};
[[nodiscard]] std::string_view name(Operation operation);
/// Whether an op is computed, or moved, inside a row program as it is.
[[nodiscard]] bool is_row_primitive(std::string_view op);

/// What a value is held in while it is computed.
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
  };
  Kind kind = Kind::constant;
  Operation operation = Operation::cast;
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
  std::string op;  ///< for people; never goes into code as it is
  Shape domain;    ///< rows: the product of these
  std::vector<DimId>
      params;  ///< the number of rows, then the symbolic dims that are read, d1, d2, …
  std::vector<Argument> arguments;  ///< operands, then results
  /// The last operand, where something is reduced over the tokens: how many of them are valid, an
  /// i32. It is no value of a graph.
  std::optional<std::size_t> valid;
  bool checks = false;  ///< there are checks
  Indices indices;
  VarId row;
  IdVec<SlotId, DType> slots;  ///< dtype of each value
  Block body;

  [[nodiscard]] const Type& type(std::size_t argument) const {
    return context->types[arguments[argument].type];
  }
};

/// Why an op does not fit.
struct Opaque {
  std::string reason;
};

/// The row program of a graph of primitives (an op's meaning, inlined): arguments are its inputs,
/// then its outputs, `valid` before these. A reduction over the tokens covers the valid ones; all
/// other loops, and all addresses, have rows of padding too. An index read from memory is brought
/// into its table, so that bad ids cannot read elsewhere; and checked, where `checks` says so.
tl::expected<RowProgram, Opaque> lower(const Graph& meaning, bool checks = false);
/// The row program of these nodes of a graph (in its order), their bodies inlined. `inputs` and
/// `outputs` become the values of the graph that are its arguments (all but `valid`): what the
/// nodes read from elsewhere, each once, and what is read elsewhere; of one node, all its results.
/// Operands made by `constant` become literals, absent operands are no arguments.
tl::expected<RowProgram, Opaque> lower_nodes(const Graph& graph, std::span<const NodeId> nodes,
                                             std::vector<ValueId>& inputs,
                                             std::vector<ValueId>& outputs, bool checks = false);
/// Of one node.
tl::expected<RowProgram, Opaque> lower_node(const Graph& graph, NodeId node);
/// A graph of these nodes alone, with those inputs and outputs, and constants beside them. Not
/// inlined.
Graph isolate(const Graph& graph, std::span<const NodeId> nodes, std::vector<ValueId>& inputs,
              std::vector<ValueId>& outputs);

/// The text form.
[[nodiscard]] std::string print(const RowProgram& program);

}  // namespace pw::rows

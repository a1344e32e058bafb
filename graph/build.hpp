// From statements to nodes: the only place that gives meaning to the statement form. It builds
// graph texts, op bodies and the right sides of rules. Names are held in an Env; types are inferred
// from the ops' signatures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"
#include "graph/graph.hpp"

namespace pw {

struct DTypeBinding {
  DType dtype = DType::f32;
  bool weak = false;  ///< of a rank-0 operand: yields in promotion
  friend bool operator==(DTypeBinding a, DTypeBinding b) { return a.dtype == b.dtype; }
};
struct Absent {  ///< an absent operand
  friend bool operator==(Absent, Absent) = default;
};
/// Meaning of a name. Dims are always DimId here (an int attribute is an Attribute).
using Binding =
    std::variant<Absent, ValueId, DTypeBinding, DimId, Shape, Attribute, std::vector<ValueId>>;
/// One namespace for values, dtypes, dims, sequences, attributes and lists.
using Env = std::map<std::string, Binding, std::less<>>;

/// Evaluates an expression without graph values to an attribute: arithmetic over ints, dims and
/// reals, lists, strings, dtypes, `size(x, i)`, `x.shape`, params. `graph` gives types to values
/// named in it; may be null.
Result<Attribute> evaluate(Context& context, const Graph* graph, const Expr& expr, const Env& env);
/// Evaluates a guard to a three-valued truth. On `unknown` or `no`, `*why` (if given) receives the
/// deciding sub-expression with its values.
Result<Truth> evaluate_guard(Context& context, const Graph* graph, const Expr& guard,
                             const Env& env, const Facts& facts, std::string* why = nullptr);

/// Binds the variables of `pattern` against a type, or checks those that are bound. On a mismatch
/// returns false and stores the reason.
bool unify(Context& context, const TypeExpr& pattern, TypeId type, Env& env,
           std::string* why = nullptr);
/// Returns the type of a TypeExpr under `env`. `result_index` selects a result of a variadic op
/// (split).
Result<TypeId> instantiate_type(Context& context, const TypeExpr& expr, const Env& env,
                                std::span<const TypeId> operands = {}, int result_index = 0);

/// Fills defaults, coerces kinds, normalises axes against the first operand's rank; sorted.
/// Diagnoses unknown and missing.
Result<AttributesId> complete_attributes(Context& context, const Op& op, AttributeList given,
                                         std::span<const TypeId> operands, Span span = {});
/// Infers the result types of an op from operand types and complete attributes. An invalid TypeId
/// is an absent operand, which differs from unknown(). `result_count` is the caller's number of
/// results if it cannot be derived; -1: unspecified.
Result<std::vector<TypeId>> infer_types(Context& context, OpId op, std::span<const TypeId> operands,
                                        AttributesId attributes, int result_count = -1,
                                        Span span = {});

/// Request for a node with completed attributes and inferred types; `-1` in a view's `shape` is
/// resolved. `stated` types (may be shorter, may hold unknown()) are a check for known ops, and the
/// types of imported ones. Names may be empty.
struct NodeRequest {
  OpId op;
  std::vector<ValueId> operands;
  AttributeList attributes;
  std::vector<std::string>
      result_names;  ///< its size is the number of results wanted of a variadic op
  std::vector<TypeId> stated;
  std::string group, source;
  Span span;
  std::string name = {};  ///< the node's; empty: the first result's
  NodeId like = {};       ///< if valid: its group and source, and no names
};
Result<NodeId> build_node(Graph& graph, const NodeRequest& request);

struct BuildOptions {
  std::string group;  ///< given to new nodes
  std::string source;
  std::string name_prefix;  ///< before every new name
  NodeId like = {};         ///< if valid: new nodes have its group and source, and no names
  /// Dtype of the tensors at hand if all have rank 0. Numbers next to them take a dtype that makes
  /// nothing wider, as in PyTorch.
  std::optional<DType> scalars = {};
  /// Attributes of the left node with that op, by op name, for `..` on a right side.
  std::map<std::string, AttributesId, std::less<>> open_attributes;
};
/// Appends the nodes of one statement at the graph's insertion point and binds its results in
/// `env`.
Status build_statement(Graph& graph, const Statement& statement, Env& env,
                       const BuildOptions& options = {});
Status build_statements(Graph& graph, std::span<const Statement> statements, Env& env,
                        const BuildOptions& options = {});

/// Returns the result types that the body gives, ignoring the signature.
Result<std::vector<TypeId>> body_types(Context& context, OpId op, std::span<const TypeId> operands,
                                       AttributesId attributes);
/// Meaning of an op at given operand types (invalid: absent). It is a graph with an input for each
/// present operand (see `operand_of_input`), the body's nodes, and an output for each result. Not
/// inlined: bodies may call ops with bodies.
struct Meaning {
  Graph graph;
  std::vector<int> operand_of_input;
};
Result<Meaning> instantiate_body(Context& context, OpId op, std::span<const TypeId> operands,
                                 AttributesId attributes, const Facts& facts);
/// Replaces nodes of ops with bodies by these bodies until only primitives and opaque ops remain.
Status inline_bodies(Graph& graph);
/// Inlines one node: users of its results read the body's results. Returns the new nodes.
Result<std::vector<NodeId>> inline_node(Graph& graph, NodeId node);

/// Adds a rank-0 constant node: op `constant` with attributes value, dtype. `like`: see
/// BuildOptions.
ValueId add_constant(Graph& graph, double value, DType dtype, NodeId like = {});

/// Returns true if a constant, whose value is a double, gives this integer: all to 2^53, and the
/// largest, to which 2^63 saturates.
[[nodiscard]] inline bool constant_holds(std::int64_t value) {
  const auto number = static_cast<double>(value);
  return number < 0x1p63 ? static_cast<std::int64_t>(number) == value : value == INT64_MAX;
}

}  // namespace pw

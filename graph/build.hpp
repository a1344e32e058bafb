// From statements to nodes: the one place where the statement form is given meaning. Used for graph
// texts, for op bodies and for the right sides of rules. Names live in an Env; types are inferred
// from the ops' signatures.
#pragma once

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
struct Absent {  ///< an operand that is none
  friend bool operator==(Absent, Absent) = default;
};
/// What a name may stand for. Dims are always DimId here (an int attribute is an Attribute).
using Binding =
    std::variant<Absent, ValueId, DTypeBinding, DimId, Shape, Attribute, std::vector<ValueId>>;
/// One namespace over values, dtypes, dims, sequences, attributes and lists.
using Env = std::map<std::string, Binding, std::less<>>;

/// Evaluates an expression without graph values to an attribute: arithmetic over ints, dims and
/// reals, lists, strings, dtypes, `size(x, i)`, `x.shape`, params. `graph` gives types to values
/// named in it; may be null.
Result<Attribute> evaluate(Context& context, const Graph* graph, const Expr& expr, const Env& env);
/// Three-valued truth of a guard. On `unknown` or `no`, `*why` (if given) says which
/// sub-expression, with its values.
Result<Truth> evaluate_guard(Context& context, const Graph* graph, const Expr& guard,
                             const Env& env, const Facts& facts, std::string* why = nullptr);

/// Binds the variables of `pattern` against a type, or checks those that are bound. On mismatch
/// returns false and says why.
bool unify(Context& context, const TypeExpr& pattern, TypeId type, Env& env,
           std::string* why = nullptr);
/// The type a TypeExpr means under `env`. `result_index` is for variadic results (split).
Result<TypeId> instantiate_type(Context& context, const TypeExpr& expr, const Env& env,
                                std::span<const TypeId> operands = {}, int result_index = 0);

/// Fills defaults, coerces kinds, normalises axes against the first operand's rank; sorted.
/// Diagnoses unknown and missing.
Result<AttributesId> complete_attributes(Context& context, const Op& op, AttributeList given,
                                         std::span<const TypeId> operands, Span span = {});
/// The result types of an op for operand types and complete attributes. An invalid TypeId is an
/// absent operand, which is not the same as unknown(). `result_count` says how many results the
/// caller has, where it cannot be told; -1: no opinion.
Result<std::vector<TypeId>> infer_types(Context& context, OpId op, std::span<const TypeId> operands,
                                        AttributesId attributes, int result_count = -1,
                                        Span span = {});

/// Adds a node with completed attributes and inferred types; `-1` in a view's `shape` is resolved.
/// `stated` types (may be shorter, may hold unknown()) are a check for known ops, and the types of
/// imported ones. Names may be empty.
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
  /// The tensors at hand are all of rank 0, and of this dtype together: numbers beside them take a
  /// dtype that makes nothing wider, as in PyTorch.
  std::optional<DType> scalars = {};
  /// For `..` on a right side: the attributes of the left node with that op, by op name.
  std::map<std::string, AttributesId, std::less<>> open_attributes;
};
/// Appends the nodes of one statement at the graph's insertion point and binds its results in
/// `env`.
Status build_statement(Graph& graph, const Statement& statement, Env& env,
                       const BuildOptions& options = {});
Status build_statements(Graph& graph, std::span<const Statement> statements, Env& env,
                        const BuildOptions& options = {});

/// The result types as the body has them, whatever the signature says.
Result<std::vector<TypeId>> body_types(Context& context, OpId op, std::span<const TypeId> operands,
                                       AttributesId attributes);
/// The meaning of an op at given operand types (invalid: absent): a graph with an input per operand
/// (absent ones left out, but see `operand_of_input`), whose nodes are the body's, and an output
/// per result. Not inlined: bodies may call ops with bodies.
struct Meaning {
  Graph graph;
  std::vector<int> operand_of_input;
};
Result<Meaning> instantiate_body(Context& context, OpId op, std::span<const TypeId> operands,
                                 AttributesId attributes, const Facts& facts);
/// Replaces nodes whose op has a body by that body until only primitives and opaque ops are left.
Status inline_bodies(Graph& graph);
/// The same for one node: its results' users read the body's results. Returns the nodes made.
Result<std::vector<NodeId>> inline_node(Graph& graph, NodeId node);

/// A rank-0 constant node: op `constant` with attributes value, dtype. `like`: see BuildOptions.
ValueId add_constant(Graph& graph, double value, DType dtype, NodeId like = {});

}  // namespace pw

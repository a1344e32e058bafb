// The op table. An op is its signature (arity, defaults, types, aliasing), its traits, and for ops
// that have one, the body: the single source of shape inference, the reference result, and
// generated code.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/special_members.hpp"
#include "graph/attribute.hpp"
#include "graph/ops/primitive.hpp"
#include "graph/statement.hpp"

namespace pw {

using OpId = Id<struct OpTag>;

struct OperandDecl {
  std::string name;
  Span span;
  bool mut = false;       ///< written in place
  bool out = false;       ///< written, never read
  bool variadic = false;  ///< `xs...`; the last operand only
  bool optional = false;  ///< may be absent
  std::optional<TypeExpr> type;
};

struct AttributeDecl {
  std::string name;
  Span span;
  AttributeKind kind = AttributeKind::int_;
  bool nullable = false;
  std::optional<Attribute> default_value;
};

struct ResultDecl {
  std::string name;  ///< may be empty
  Span span;
  bool variadic = false;
  std::optional<TypeExpr> type;  ///< absent: inferred from the body
  std::optional<int> from;       ///< aliases this operand
};

/// Steps in which a splitting op may be recorded with the rest, from fewest to most. Recording
/// requires kernels that read lengths and block tables from device buffers, with a grid fixed by
/// the numbers of tokens and sequences.
enum class Capturable : std::uint8_t {
  never,
  decode,   ///< one new token a sequence
  uniform,  ///< the same number of new tokens in each sequence
  always,
};
/// Returns the spelling of the trait: empty for never, capturable_decode, capturable_uniform,
/// capturable.
[[nodiscard]] std::string_view name(Capturable capturable);

struct Traits {
  bool commutative = false;  ///< in the first two operands
  bool associative = false;
  bool view = false;
  bool collective = false;
  bool effect = false;
  bool splitting = false;
  bool rowwise = false;
  bool pointwise =
      false;  ///< an element of a result depends only on the operands' elements at its place
  Capturable capturable = Capturable::never;
};

struct Op {
  PW_SPECIAL_MEMBERS(Op);
  std::string name;
  Span span;
  std::vector<OperandDecl> operands;
  std::vector<AttributeDecl> attributes;
  std::vector<ResultDecl> results;
  Traits traits;
  std::vector<Statement> body;  ///< empty: opaque
  bool imported =
      false;  ///< from a dump, unknown to the library: any arity and attributes, stated types
  Primitive primitive = Primitive::none;  ///< set by OpTable::declare
  bool local = false;  ///< declared by a graph's own text, which therefore prints it again
  [[nodiscard]] bool has_body() const { return !body.empty(); }
  /// Returns true for `constant`, a number of a graph's text.
  [[nodiscard]] bool is_literal() const { return primitive == Primitive::constant; }
  /// Returns true if a node of the op computes or moves anything: neither a view, nor a literal,
  /// nor reserved memory. Engines launch, cost models count and predictions time such nodes.
  [[nodiscard]] bool does_work() const;
  [[nodiscard]] int operand_index(std::string_view operand) const;  ///< -1 when there is none
  [[nodiscard]] int result_index(std::string_view result) const;    ///< -1 when there is none
  [[nodiscard]] const AttributeDecl* attribute(std::string_view name) const;
};

class OpTable {
 public:
  /// Declares an op. Fails (PW0203) if the name belongs to an op with another signature.
  Result<OpId> declare(Op op);
  [[nodiscard]] OpId find(std::string_view name) const;  ///< invalid when absent
  [[nodiscard]] OpId find(Primitive primitive) const;    ///< invalid when absent
  [[nodiscard]] const Op& operator[](OpId id) const { return ops_[id]; }
  [[nodiscard]] std::vector<std::string> names() const;  ///< sorted
  [[nodiscard]] std::size_t size() const { return ops_.size(); }

 private:
  IdVec<OpId, Op> ops_;
  std::map<std::string, OpId, std::less<>> ids_;
  std::array<OpId, kPrimitives> primitives_ = {};
};

}  // namespace pw

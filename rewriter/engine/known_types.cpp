// Decides equality of unknown types by syntactic equality of terms. A type is a term over the types
// of values about which nothing is known. An op whose signature gives its result the type of an
// operand has that operand's term. Otherwise the term is the op applied to the terms of its
// operands, since a type is a function of these. Terms are nested a few deep; below that, a value
// counts as unknown. Sound, and incomplete by the bounds.
#include "rewriter/engine/known_types.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr int kMostNested = 4;  // ops in a term
constexpr int kLongest = 1000;  // ops on the way to a value

struct Term {
  std::string dtype, shape;
  friend bool operator==(const Term&, const Term&) = default;
};

using Names = std::map<std::string, std::string, std::less<>>;  // bindings of variables

const std::function<ValueId(ValueId)> kNothingAbove;

class Terms {
 public:
  Terms(const Graph& graph, const Graph& outer, const std::function<ValueId(ValueId)>& above)
      : graph_(graph), outer_(outer), above_(above), context_(graph.context()) {}

  Term of(ValueId value, int nested = 0, int away = 0) {
    if (const TypeId type = graph_.type(value); type != Types::unknown())
      return {std::string(name(context_.types[type].dtype)),
              context_.types.print(context_.types[type].shape)};
    if (graph_.is_input(value)) {
      const ValueId source = above_ ? above_(value) : ValueId();
      if (!source.valid()) return leaf(value);
      return Terms(outer_, outer_, kNothingAbove).of(source, nested, away);
    }
    const NodeId node = graph_.producer(value);
    if (away == kLongest || graph_.op_of(node).imported) return leaf(value);
    const auto known = known_.find({value, nested});
    if (known != known_.end()) return known->second;
    const Term out = of_result(value, node, nested, away);
    known_.emplace(std::pair(value, nested), out);
    return out;
  }

 private:
  [[nodiscard]] Term leaf(ValueId value) const {
    return {fmt::format("dtype of %{}", value.index), fmt::format("shape of %{}", value.index)};
  }

  Term of_result(ValueId value, NodeId node, int nested, int away) {
    const Op& op = graph_.op_of(node);
    const std::size_t index = graph_.result_index(value);
    const ResultDecl* result = op.results.empty()          ? nullptr
                               : index < op.results.size() ? &op.results[index]
                                                           : &op.results.back();
    std::optional<std::string> dtype, shape;
    Names dtypes, shapes;
    if (result != nullptr && result->type && bind_operands(node, nested, away, dtypes, shapes)) {
      dtype = dtype_of(*result->type, node, dtypes);
      shape = shape_of(*result->type, node, shapes);
    }
    if (dtype && shape) return {*dtype, *shape};
    const Term call = nested == kMostNested ? leaf(value) : term_of_call(node, index, nested, away);
    return {dtype.value_or(call.dtype), shape.value_or(call.shape)};
  }

  /// Binds the operands' variables; returns false if one variable would have two terms.
  bool bind_operands(NodeId node, int nested, int away, Names& dtypes, Names& shapes) {
    const Op& op = graph_.op_of(node);
    bool agree = true;
    for (std::size_t i = 0; i < graph_.operand_count(node) && i < op.operands.size(); ++i) {
      const OperandDecl& decl = op.operands[i];
      const ValueId v = graph_.operand(node, i);
      if (v.valid() && decl.type && !decl.variadic)
        agree = bind(*decl.type, of(v, nested, away + 1), dtypes, shapes) && agree;
    }
    return agree;
  }

  Term term_of_call(NodeId node, std::size_t index, int nested, int away) {
    std::vector<std::string> operands;
    for (const ValueId v : graph_.operands(node)) {
      const Term term = v.valid() ? of(v, nested + 1, away + 1) : Term{"none", "none"};
      operands.push_back(term.dtype + " " + term.shape);
    }
    const Op& op = graph_.op_of(node);
    if (op.traits.commutative) std::sort(operands.begin(), operands.end());
    const std::string call =
        fmt::format("{}.{}{}({})", op.name, index,
                    context_.attributes.print(graph_.attributes(node)), fmt::join(operands, ", "));
    return {"dtype of " + call, "shape of " + call};
  }

  /// Binds one type; returns false if one variable would have two terms.
  static bool bind(const TypeExpr& type, const Term& term, Names& dtypes, Names& shapes) {
    bool agree = true;
    if (type.dtype.size() == 1 && type.dtype[0].kind == Expr::Kind::path)
      agree = dtypes.emplace(type.dtype[0].text, term.dtype).first->second == term.dtype;
    if (!type.any_shape && type.dims.size() == 1 && type.dims[0].kind == Expr::Kind::star)
      agree = shapes.emplace(type.dims[0].text, term.shape).first->second == term.shape && agree;
    return agree;
  }

  /// Returns the term of a dtype; nothing if it depends on more than one operand.
  [[nodiscard]] std::optional<std::string> dtype_of(const TypeExpr& type, NodeId node,
                                                    const Names& dtypes) const {
    if (type.dtype.empty()) return std::nullopt;
    const Expr& e = type.dtype[0];
    if (e.kind == Expr::Kind::call && e.text == "promote" && !e.args.empty()) {
      const auto first = dtypes.find(e.args[0].text);
      for (const Expr& arg : e.args)
        if (const auto found = dtypes.find(arg.text);
            found == dtypes.end() || found->second != first->second)
          return std::nullopt;
      return first->second;
    }
    if (e.kind != Expr::Kind::path) return std::nullopt;
    if (const auto found = dtypes.find(e.text); found != dtypes.end()) return found->second;
    if (const Attribute* a = graph_.attribute(node, e.text))
      if (const auto* dtype = std::get_if<DType>(a)) return std::string(name(*dtype));
    if (const auto dtype = dtype_named(e.text)) return std::string(name(*dtype));
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> shape_of(const TypeExpr& type, NodeId node,
                                                    const Names& shapes) const {
    if (type.any_shape || type.dims.size() != 1) return std::nullopt;
    const Expr& e = type.dims[0];
    if (e.kind == Expr::Kind::star) {
      const auto found = shapes.find(e.text);
      return found == shapes.end() ? std::nullopt : std::optional(found->second);
    }
    // `reshaped(*s, shape)` is the given shape, unless it leaves a dim open.
    if (e.kind != Expr::Kind::call || (e.text != "reshaped" && e.text != "expanded"))
      return std::nullopt;
    const Attribute* given = graph_.attribute(node, "shape");
    const auto* dims = given ? std::get_if<std::vector<DimId>>(given) : nullptr;
    if (dims == nullptr) return std::nullopt;
    for (const DimId d : *dims)
      if (context_.dims.value(d).value_or(0) < 0) return std::nullopt;
    return context_.types.print(*dims);
  }

  const Graph& graph_;
  const Graph& outer_;
  const std::function<ValueId(ValueId)>& above_;
  Context& context_;
  std::map<std::pair<ValueId, int>, Term> known_;  // looked up only
};

}  // namespace

bool surely_same_type(const Graph& of_a, ValueId a, const Graph& of_b, ValueId b,
                      const std::function<ValueId(ValueId)>& above) {
  if (&of_a == &of_b && a == b) return true;
  return Terms(of_a, of_a, kNothingAbove).of(a) == Terms(of_b, of_a, above).of(b);
}

std::optional<DType> surely_dtype(const Graph& graph, ValueId value) {
  return dtype_named(Terms(graph, graph, kNothingAbove).of(value).dtype);
}

}  // namespace pw

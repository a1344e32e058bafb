// Gates of values: operands in the order of the pattern, numbers, results, and types.
//
// A value is bound at its first occurrence and compared at every later one. Types unify with
// the environment (first-order unification, Robinson 1965, over dims in polynomial normal form).
// Invariant: a check that more bindings may decide is deferred, never guessed. Cost: linear in the
// operands and dims of a node.
#include "rewriter/matcher/value_gates.hpp"

#include <fmt/format.h>

#include "graph/compare/canonical.hpp"
#include "graph/text/text.hpp"
#include "rewriter/egraph/egraph.hpp"
#include "rewriter/engine/known_types.hpp"

namespace pw {
namespace {

constexpr std::string_view kNotANumber =
    "only a `constant` is a number: write a name in its place to accept any operand, if the right "
    "side holds for it";
constexpr std::string_view kOtherNumber =
    "write another rule for this number, or a name in its place if the right side holds for every "
    "number";

std::string describe(Context& context, const Binding& binding) {
  std::optional<Attribute> value = as_attribute(context, binding);
  return value ? context.attributes.print(*value) : std::string("none");
}

/// Returns "T = bf16, d = 64": the bindings of the names in a type.
std::string bound_in(Context& context, const std::set<std::string>& names, const Env& env) {
  std::string out;
  for (const std::string& name : names) {
    auto it = env.find(name);
    if (it == env.end()) continue;
    out += fmt::format("{}{} = {}", out.empty() ? " with " : ", ", name,
                       describe(context, it->second));
  }
  return out;
}

void type_names(const Expr& expr, std::set<std::string>& out) {
  if (expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star) out.insert(expr.text);
  for (const Expr& arg : expr.args) type_names(arg, out);
}

std::set<std::string> type_names(const std::vector<Expr>& exprs) {
  std::set<std::string> out;
  for (const Expr& expr : exprs) type_names(expr, out);
  return out;
}

}  // namespace

bool ValueGates::bind_operands(PatternNodeId id, NodeId node, bool swapped, SearchState& state) {
  const PatternNode& pattern = rule_.nodes[id];
  const std::optional<std::size_t> list = scope_.list_at(id);
  const std::size_t taken =
      list ? graph_.operand_count(node) + 1 - pattern.operands.size() : std::size_t{1};
  for (std::size_t slot = 0; slot < pattern.operands.size(); ++slot) {
    if (list == slot) {
      PatternValueId v = pattern.operands[slot];
      // Values made by members are checked with them.
      const PatternNodeId producer = rule_.values[v].producer;
      if (producer.valid() && rule_.nodes[producer].members.valid()) continue;
      std::vector<ValueId> values;
      for (std::size_t i = 0; i < taken; ++i) values.push_back(graph_.operand(node, slot + i));
      if (!bind_list(v, node, std::move(values), state)) return false;
      ++state.gate;
      continue;
    }
    std::size_t at = swapped && slot < 2 ? 1 - slot : slot;
    if (list && slot > *list) at = slot + taken - 1;
    if (!bind_operand(id, node, slot, at, state)) return false;
    ++state.gate;
  }
  return true;
}

/// Returns false for a value of another op than the pattern wants, which prunes the orders of
/// commutative operands early. A search that explains rejects it later, with a reason.
bool ValueGates::may_come_from(const PatternValue& wanted, ValueId value) const {
  if (scope_.explain || scope_.equal != nullptr || wanted.list || !wanted.producer.valid())
    return true;
  const PatternNode& maker = rule_.nodes[wanted.producer];
  if (maker.members.valid() || maker.negation >= 0) return true;
  const NodeId node = graph_.producer(value);
  return node.valid() && graph_.op(node) == maker.op;
}

bool ValueGates::bind_operand(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at,
                              SearchState& state) {
  const PatternNode& pattern = rule_.nodes[id];
  PatternValueId v = pattern.operands[slot];
  const PatternValue& wanted = rule_.values[v];
  ValueId value = at < graph_.operand_count(node) ? graph_.operand(node, at) : ValueId();
  if (wanted.literal_none && value.valid())
    return scope_.reject(state, "N02", wanted.span, node, [&] {
      return fmt::format("operand {} of {} is present, the pattern has none", at,
                         scope_.shown(node));
    });
  if (!value.valid()) return bind_none(id, node, slot, state);
  if (wanted.literal || wanted.attribute_variable) return bind_constant(id, node, slot, at, state);
  if (state.bound[v] == SearchState::Bound::no) {
    if (scope_.context().ops[pattern.op].traits.commutative && !may_come_from(wanted, value))
      return scope_.reject(state, "N01", wanted.span, node, [] { return std::string(); });
    state.bound[v] = SearchState::Bound::value;
    state.values[v] = value;
    if (!wanted.name.empty() && wanted.name != "_")
      state.env.insert_or_assign(wanted.name, Binding(value));
    return true;
  }
  if (state.bound[v] == SearchState::Bound::value && scope_.same(state.values[v], value))
    return true;
  ValueId held = state.values[v];
  for (std::size_t i = 0; i < graph_.operand_count(node); ++i)
    if (i != at && held.valid() && graph_.operand(node, i) == held &&
        !scope_.context().ops[pattern.op].traits.commutative)
      return scope_.reject(state, "N03", wanted.span, node, [&] {
        return fmt::format("{} is operand {} of {}, not operand {}", scope_.shown(v, held), i,
                           scope_.shown(node), at);
      });
  return scope_.reject(state, "N07", wanted.span, node, [&] {
    return fmt::format("{} is %{} already, here it would be %{}", scope_.shown(v, held),
                       held.valid() ? graph_.value_name(held) : "none", graph_.value_name(value));
  });
}

/// Binds all values of a list: the rest of a node's operands, or of its results.
bool ValueGates::bind_list(PatternValueId id, NodeId node, std::vector<ValueId> values,
                           SearchState& state) {
  if (!state.lists[id]) {
    state.bound[id] = SearchState::Bound::value;
    state.lists[id] = std::make_shared<const std::vector<ValueId>>(std::move(values));
    return true;
  }
  if (scope_.same(*state.lists[id], values)) return true;
  return scope_.reject(state, "N07", rule_.values[id].span, node, [&] {
    return fmt::format("{} is another list already: of {} values, here of {}", scope_.shown(id, {}),
                       state.lists[id]->size(), values.size());
  });
}

bool ValueGates::bind_none(PatternNodeId id, NodeId node, std::size_t slot, SearchState& state) {
  PatternValueId v = rule_.nodes[id].operands[slot];
  const PatternValue& wanted = rule_.values[v];
  if (wanted.literal_none) return true;
  if (!wanted.optional)
    return scope_.reject(state, "N02", wanted.span, node, [&] {
      return fmt::format("operand {} of {} is `none`; only `{}?` matches that", slot,
                         scope_.shown(node), scope_.shown(v, {}));
    });
  if (state.bound[v] == SearchState::Bound::value)
    return scope_.reject(state, "N07", wanted.span, node, [&] {
      return fmt::format("{} is %{} already, here it would be none",
                         scope_.shown(v, state.values[v]), graph_.value_name(state.values[v]));
    });
  state.bound[v] = SearchState::Bound::none;
  if (!wanted.name.empty() && wanted.name != "_")
    state.env.insert_or_assign(wanted.name, Binding(Absent{}));
  return true;
}

bool ValueGates::bind_constant(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at,
                               SearchState& state) {
  const PatternValue& wanted = rule_.values[rule_.nodes[id].operands[slot]];
  const ValueId value = graph_.operand(node, at);
  const NodeId constant = literal_of(value);
  const Attribute* number = nullptr;
  if (constant.valid() && graph_.op_of(constant).is_literal())
    number = graph_.attribute(constant, "value");
  if (number == nullptr)
    return scope_.reject(
        state, "N01", wanted.span, node,
        [&] {
          return fmt::format("operand {} of {} is %{}, not a constant", at, scope_.shown(node),
                             graph_.value_name(value));
        },
        kNotANumber);
  if (wanted.literal) {
    if (reads_number(*wanted.literal, node, at, constant)) return true;
    const auto text = [&] {
      return fmt::format("operand {} of {} is {}, not {}", at, scope_.shown(node),
                         scope_.context().attributes.print(*number),
                         scope_.context().attributes.print(*wanted.literal));
    };
    return scope_.reject(state, "N04", wanted.span, node, text, kOtherNumber);
  }
  const auto held = state.env.find(wanted.name);
  if (held != state.env.end())
    if (const std::optional<Attribute> known = as_attribute(scope_.context(), held->second);
        known && reads_number(*known, node, at, constant))
      return true;
  std::string expected;
  if (attributes_.fit_name(wanted.name, *number, state, &expected) == AttributeGates::Fit::yes)
    return true;
  return scope_.reject(state, "N07", wanted.span, node, [&] {
    return fmt::format("{} is {} already, here it would be {}", wanted.name, expected,
                       scope_.context().attributes.print(*number));
  });
}

/// Returns true if the node reads the number that it would read from the pattern's number.
bool ValueGates::reads_number(const Attribute& wanted, NodeId node, std::size_t at,
                              NodeId constant) const {
  const std::optional<double> number = as_number(wanted);
  return number && as_held(number_dtype(graph_, node, at), *number) ==
                       number_read(graph_, node, at, constant);
}

/// Returns the node of a literal number, if the value is one.
NodeId ValueGates::literal_of(ValueId value) const {
  const NodeId own = graph_.producer(value);
  if (scope_.equal == nullptr || (own.valid() && graph_.op_of(own).is_literal())) return own;
  for (NodeId n : scope_.equal->producers(value))
    if (graph_.op_of(n).is_literal()) return n;
  return own;
}

bool ValueGates::bind_results(PatternNodeId id, NodeId node, SearchState& state) {
  const PatternNode& pattern = rule_.nodes[id];
  for (std::size_t i = 0; i < pattern.results.size(); ++i) {
    PatternValueId v = pattern.results[i];
    const PatternValue& wanted = rule_.values[v];
    if (wanted.list && !pattern.members.valid()) {
      std::vector<ValueId> values;
      for (std::size_t k = i; k < graph_.result_count(node); ++k)
        values.push_back(graph_.result(node, k));
      if (!bind_list(v, node, std::move(values), state)) return false;
      continue;
    }
    ValueId value = graph_.result(node, i);
    if (state.bound[v] != SearchState::Bound::no) {
      if (scope_.same(state.values[v], value)) continue;
      return scope_.reject(state, "N07", wanted.span, node, [&] {
        ValueId held = state.values[v];
        return fmt::format("{} is result {} of {}, not result {}", scope_.shown(v, held),
                           graph_.result_index(held), scope_.shown(node), i);
      });
    }
    state.bound[v] = SearchState::Bound::value;
    state.values[v] = value;
    if (!wanted.name.empty() && wanted.name != "_")
      state.env.insert_or_assign(wanted.name, Binding(value));
  }
  ++state.gate;
  for (PatternValueId v : pattern.results)
    if (!check_types(v, node, state)) return false;
  return true;
}

bool ValueGates::check_types(PatternValueId id, NodeId node, SearchState& state) {
  for (std::size_t i = 0; i < rule_.values[id].types.size(); ++i)
    if (!check_type(id, i, node, state, false)) return false;
  return true;
}

bool ValueGates::check_type(PatternValueId id, std::size_t index, NodeId node, SearchState& state,
                            bool last) {
  if (state.bound[id] != SearchState::Bound::value) return true;
  if (!rule_.values[id].list || state.values[id].valid())
    return check_type_of(state.values[id], id, index, node, state, last);
  const SearchState::List list = state.lists[id];
  const std::size_t waiting = state.deferred.size();
  for (ValueId value : *list) {
    if (!check_type_of(value, id, index, node, state, last)) return false;
    if (state.deferred.size() != waiting) return true;  // all of it, later
  }
  return true;
}

/// Checks a value without a type only against what the ops that produce it determine. A node that
/// must be absent may be present.
bool ValueGates::check_unknown(ValueId value, PatternValueId id, const TypeExpr& wanted,
                               NodeId node, SearchState& state) {
  if (scope_.quiet) return true;
  const Expr* dtype = wanted.dtype.empty() ? nullptr : &wanted.dtype.front();
  const bool requires_dtype =
      dtype != nullptr && !(dtype->kind == Expr::Kind::path && !dtype_named(dtype->text) &&
                            !layout_.compared.contains(dtype->text));
  const auto message = [&] {
    return fmt::format("{}: its type is not known, but the rule requires {}",
                       scope_.shown(id, value), print(wanted));
  };
  if (requires_dtype) {
    TypeExpr element = wanted;
    element.any_shape = true;
    element.dims.clear();
    const std::optional<DType> known = surely_dtype(graph_, value);
    const Shape some{scope_.context().dims.constant(1)};
    if (!known ||
        !unify(scope_.context(), element, scope_.context().types.get(*known, some), state.env))
      return scope_.reject(state, "N05", wanted.span, node, message);
  }
  ++state.gate;
  if (wanted.any_shape) return true;
  return scope_.reject(state, "N06", wanted.span, node, message);
}

bool ValueGates::check_type_of(ValueId value, PatternValueId id, std::size_t index, NodeId node,
                               SearchState& state, bool last) {
  const TypeExpr& wanted = rule_.values[id].types[index];
  if (!value.valid()) return true;
  TypeId type = graph_.type(value);
  auto message = [&](const std::vector<Expr>& part, const std::string& why) {
    std::string text = fmt::format("{}: {} is not {}{}", scope_.shown(id, value),
                                   scope_.context().types.print(type), print(wanted),
                                   bound_in(scope_.context(), type_names(part), state.env));
    return why.empty() ? text : text + " (" + why + ")";
  };
  if (type == Types::unknown()) return check_unknown(value, id, wanted, node, state);
  TypeExpr element = wanted;
  element.any_shape = true;
  element.dims.clear();
  if (!unify(scope_.context(), element, type, state.env))
    return scope_.reject(state, "N05", wanted.span, node,
                         [&] { return message(wanted.dtype, ""); });
  ++state.gate;
  if (wanted.any_shape) return true;
  if (!last && open_sequences(wanted, state.env) > 1) {
    state.deferred.push_back({{}, 0, id, index});
    return true;
  }
  for (const Expr& dim : wanted.dims)
    if (!last && dim.kind != Expr::Kind::star && unbound_names(dim, state.env).size() > 1) {
      state.deferred.push_back({{}, 0, id, index});
      return true;
    }
  Env before;
  if (scope_.explain) before = state.env;
  std::string why;
  if (unify(scope_.context(), wanted, type, state.env, &why)) return ++state.gate, true;
  if (scope_.explain) state.env = std::move(before);  // restored for the message
  return scope_.reject(state, "N06", wanted.span, node, [&] { return message(wanted.dims, why); });
}

}  // namespace pw

// Attribute gates.
//
// The problem: the value that a pattern writes may contain names that another node binds, so the
// order of nodes must not decide whether it fits. A written attribute is solved for its unbound
// name if there is one: dim expressions by unification, as for shapes (value_gates.cpp). With
// several unbound names it is deferred until they are bound (NodeGates::run_deferred). An attribute
// that the pattern does not write must have its default. Invariant: a name is bound only to the one
// value that fits. Cost: linear in the attributes and the elements of lists.
#include "rewriter/matcher/attribute_gates.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/syntax/names.hpp"
#include "graph/compare/canonical.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr std::string_view kNotWritten =
    "bind it, `{name}`, if the right side holds for every value; write `{name = value}` for this "
    "one";
constexpr std::string_view kOtherValue =
    "the pattern requires one value: write another rule for this one, or bind the attribute, "
    "`{name}`, if the right side holds for every value";
constexpr std::string_view kNotBound = "bind the name elsewhere in the pattern";

bool is_known(const std::string& path, const Env& env) {
  if (env.contains(path) || dtype_named(path)) return true;
  std::size_t dot = path.find('.');
  return dot != std::string::npos && env.contains(path.substr(0, dot));
}

void collect_unbound(const Expr& expr, const Env& env, std::set<std::string>& out) {
  bool variable = expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star;
  if (variable && !is_known(expr.text, env)) out.insert(expr.text);
  for (const Expr& arg : expr.args) collect_unbound(arg, env, out);
}

Attribute dim_attribute(const Dims& dims, DimId dim) {
  if (std::optional<std::int64_t> value = dims.value(dim)) return *value;
  return dim;
}

/// Compares numbers. Integers may be exact beyond 2^53, so two integers are compared as such.
bool same_number(const Attribute& a, const Attribute& b) {
  const auto* i = std::get_if<std::int64_t>(&a);
  const auto* j = std::get_if<std::int64_t>(&b);
  return i && j ? *i == *j : *as_number(a) == *as_number(b);
}

}  // namespace

std::optional<double> as_number(const Attribute& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b ? 1.0 : 0.0;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

std::set<std::string> unbound_names(const Expr& expr, const Env& env) {
  std::set<std::string> out;
  collect_unbound(expr, env, out);
  return out;
}

std::size_t open_sequences(const TypeExpr& type, const Env& env) {
  return static_cast<std::size_t>(
      std::count_if(type.dims.begin(), type.dims.end(), [&](const Expr& dim) {
        return dim.kind == Expr::Kind::star && env.find(dim.text) == env.end();
      }));
}

bool all_bound(const Expr& expr, const Env& env) { return unbound_names(expr, env).empty(); }

std::optional<Attribute> as_attribute(Context& context, const Binding& binding) {
  if (const auto* attribute = std::get_if<Attribute>(&binding)) {
    if (const auto* dim = std::get_if<DimId>(attribute)) return dim_attribute(context.dims, *dim);
    return *attribute;
  }
  if (const auto* dtype = std::get_if<DTypeBinding>(&binding)) return Attribute(dtype->dtype);
  if (const auto* dim = std::get_if<DimId>(&binding)) return dim_attribute(context.dims, *dim);
  if (const auto* shape = std::get_if<Shape>(&binding)) return Attribute(*shape);
  return std::nullopt;
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (as_number(a) && as_number(b)) return same_number(a, b);
  if (const auto* x = std::get_if<std::vector<double>>(&a))
    if (const auto* y = std::get_if<std::vector<double>>(&b)) return *x == *y;
  return a == b;
}

bool AttributeGates::match_attributes(PatternNodeId id, NodeId node, SearchState& state) {
  const PatternNode& pattern = rule_.nodes[id];
  for (std::size_t i = 0; i < pattern.attributes.size(); ++i)
    if (!match_written(id, i, node, state, false)) return false;
  ++state.gate;
  if (pattern.open) return true;
  const Op& op = graph_.op_of(node);
  for (const auto& [name_id, value] : scope_.context().attributes[graph_.attributes(node)]) {
    std::string_view attribute = scope_.context().strings.text(name_id);
    auto written = [&](const PatternAttribute& a) { return a.name == attribute; };
    if (std::any_of(pattern.attributes.begin(), pattern.attributes.end(), written)) continue;
    const AttributeDecl* decl = op.attribute(attribute);
    Attribute expected = decl && decl->default_value ? *decl->default_value : Attribute(None{});
    expected = as_in_node(graph_, node, attribute, std::move(expected));
    if (decl && decl->default_value && same_attribute(expected, value)) continue;
    const auto text = [&] {
      if (!decl || !decl->default_value)
        return fmt::format("`{}` of {} is {}, and the pattern does not write it", attribute,
                           scope_.shown(node), scope_.context().attributes.print(value));
      return fmt::format("`{}` of {} is {}; not written in the pattern, it must be its default, {}",
                         attribute, scope_.shown(node), scope_.context().attributes.print(value),
                         scope_.context().attributes.print(expected));
    };
    return scope_.reject(state, "N04", pattern.span, node, text, kNotWritten);
  }
  ++state.gate;
  return true;
}

bool AttributeGates::match_written(PatternNodeId id, std::size_t index, NodeId node,
                                   SearchState& state, bool last) {
  const PatternAttribute& wanted = rule_.nodes[id].attributes[index];
  const auto name = counterpart(id, wanted, node, state, last);
  if (!name) return state.deferred.push_back({id, index, {}, 0}), true;
  const AttributeDecl* decl = graph_.op_of(node).attribute(wanted.name);
  const Attribute* found = graph_.attribute(node, *name);
  Attribute value = found                         ? *found
                    : decl && decl->default_value ? *decl->default_value
                                                  : Attribute(None{});
  std::string expected;
  switch (fit({node, wanted.name}, wanted.value, value, state, &expected)) {
    case Fit::yes: return ++state.gate, true;
    case Fit::later:
      if (!last) return state.deferred.push_back({id, index, {}, 0}), true;
      return scope_.reject(
          state, "N04", wanted.span, node,
          [&] {
            return fmt::format("`{}` of {}: `{}` is not bound", wanted.name, scope_.shown(node),
                               *unbound_names(wanted.value, state.env).begin());
          },
          kNotBound);
    case Fit::conflict:
      return scope_.reject(state, "N07", wanted.span, node, [&] {
        return fmt::format("`{}` of {} is {}, but `{}` is {} already", wanted.name,
                           scope_.shown(node), scope_.context().attributes.print(value),
                           print(wanted.value), expected);
      });
    case Fit::no: break;
  }
  const auto text = [&] {
    std::string message =
        fmt::format("`{}` of {} is {}, not {}", wanted.name, scope_.shown(node),
                    scope_.context().attributes.print(value), print(wanted.value));
    return expected.empty() || expected == print(wanted.value) ? message
                                                               : message + " = " + expected;
  };
  return scope_.reject(state, "N04", wanted.span, node, text, kOtherValue);
}

/// Returns the attribute of the node that a written one is compared with. The axes of a transpose
/// are ascending in a node, and in any order in a pattern. One with a known value takes the axis
/// that has it, and leaves the other to its twin. Nothing while neither is known, but another node
/// may bind one.
std::optional<std::string_view> AttributeGates::counterpart(PatternNodeId id,
                                                            const PatternAttribute& wanted,
                                                            NodeId node, const SearchState& state,
                                                            bool last) const {
  const std::string_view twin = twin_axis(graph_.op_of(node), wanted.name);
  if (twin.empty()) return wanted.name;
  const Attribute *own = graph_.attribute(node, wanted.name), *other = graph_.attribute(node, twin);
  if (own == nullptr || other == nullptr || *own == *other) return wanted.name;
  const auto mine = known_value(id, wanted.name, node, state);
  const auto others = known_value(id, twin, node, state);
  if (!mine && !others && !last && shares_names(id, {wanted.name, twin}, state))
    return std::nullopt;
  const bool exchanged = (mine || others) && (!mine || same_attribute(*mine, *other)) &&
                         (!others || same_attribute(*others, *own));
  return exchanged ? twin : wanted.name;
}

/// Returns true if another node of the pattern has an attribute with an unbound name of these.
bool AttributeGates::shares_names(PatternNodeId id,
                                  std::initializer_list<std::string_view> attributes,
                                  const SearchState& state) const {
  std::set<std::string> open;
  for (const PatternAttribute& written : rule_.nodes[id].attributes)
    if (std::find(attributes.begin(), attributes.end(), written.name) != attributes.end())
      open.merge(unbound_names(written.value, state.env));
  for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
    if (PatternNodeId(i) == id) continue;
    for (const PatternAttribute& written : rule_.nodes[PatternNodeId(i)].attributes)
      for (const std::string& name : unbound_names(written.value, state.env))
        if (open.contains(name)) return true;
  }
  return false;
}

/// Returns the value that the pattern states for the attribute, if all its names are bound.
std::optional<Attribute> AttributeGates::known_value(PatternNodeId id, std::string_view attribute,
                                                     NodeId node, const SearchState& state) const {
  for (const PatternAttribute& written : rule_.nodes[id].attributes) {
    if (written.name != attribute || !all_bound(written.value, state.env)) continue;
    if (Result<Attribute> value = evaluate(scope_.context(), &graph_, written.value, state.env))
      return as_in_node(graph_, node, attribute, std::move(*value));
  }
  return std::nullopt;
}

AttributeGates::Fit AttributeGates::fit(const Written& written, const Expr& expr,
                                        const Attribute& value, SearchState& state,
                                        std::string* expected) {
  const AttributeDecl* decl = graph_.op_of(written.node).attribute(written.attribute);
  const AttributeKind kind = decl ? decl->kind : AttributeKind::int_;
  bool variable = expr.kind == Expr::Kind::path && !dtype_named(expr.text);
  if (variable && expr.text == "_") return Fit::yes;
  if (variable && expr.text.find('.') == std::string::npos) {
    auto held = state.env.find(expr.text);
    bool axis = kind == AttributeKind::axis && held != state.env.end();
    if (!axis) return fit_name(expr.text, value, state, expected);
  }
  if (expr.kind == Expr::Kind::list && expr.args.size() == 1 &&
      expr.args[0].kind == Expr::Kind::spread)
    return fit_rest(expr.args[0].args[0], value, state, expected);
  const auto* dims = std::get_if<std::vector<DimId>>(&value);
  if (dims && is_repetition(expr)) return fit_repetition(expr, *dims, state, expected);
  if (dims && expr.kind == Expr::Kind::list) return fit_list(expr, *dims, state, expected);
  std::set<std::string> unbound = unbound_names(expr, state.env);
  if (unbound.size() > 1) return Fit::later;
  if (unbound.size() == 1) {  // one unknown: a dim expression can be solved for it
    const DimId dim = dim_value(scope_.context().dims, value).value_or(DimId());
    if (!dim.valid() || expr.kind == Expr::Kind::call) return Fit::later;
    Expr list;
    list.args = {expr};
    return fit_list(list, {dim}, state, expected);
  }
  Result<Attribute> result = evaluate(scope_.context(), &graph_, expr, state.env);
  if (!result) return Fit::no;
  *result = as_in_node(graph_, written.node, written.attribute, std::move(*result));
  if (same_attribute(*result, value)) return Fit::yes;
  *expected = scope_.context().attributes.print(*result);
  return variable ? Fit::conflict : Fit::no;
}

/// Fits `[d] * tp`: the list, repeated; an unbound name is bound to the number.
AttributeGates::Fit AttributeGates::fit_repetition(const Expr& expr, const std::vector<DimId>& dims,
                                                   SearchState& state, std::string* expected) {
  const Expr &list = expr.args[0], &times = expr.args[1];
  const auto is_rest = [](const Expr& e) {
    return e.kind == Expr::Kind::star || e.kind == Expr::Kind::spread;
  };
  if (list.args.empty() || std::any_of(list.args.begin(), list.args.end(), is_rest)) return Fit::no;
  const std::size_t count = dims.size() / list.args.size();
  const std::set<std::string> unbound = unbound_names(times, state.env);
  if (times.kind == Expr::Kind::path && unbound.contains(times.text)) {
    if (fit_name(times.text, static_cast<std::int64_t>(count), state, expected) != Fit::yes)
      return Fit::conflict;
  } else if (!unbound.empty()) {
    return Fit::later;
  } else {
    Result<Attribute> wanted = evaluate(scope_.context(), &graph_, times, state.env);
    if (!wanted || !same_attribute(*wanted, static_cast<std::int64_t>(count))) {
      if (wanted) *expected = "of " + scope_.context().attributes.print(*wanted) + " parts";
      return Fit::no;
    }
  }
  Expr whole = list;
  whole.args.clear();
  for (std::size_t i = 0; i < count; ++i)
    whole.args.insert(whole.args.end(), list.args.begin(), list.args.end());
  return fit_list(whole, dims, state, expected);
}

/// Fits `[m...]`: the whole list.
AttributeGates::Fit AttributeGates::fit_rest(const Expr& expr, const Attribute& value,
                                             SearchState& state, std::string* expected) {
  const auto* dims = std::get_if<std::vector<DimId>>(&value);
  if (dims == nullptr || state.env.contains(expr.text))
    return fit_name(expr.text, value, state, expected);
  state.env.insert_or_assign(expr.text, Binding(Shape(*dims)));
  return Fit::yes;
}

/// Fits a list. Elements that are plain names bind one by one; the rest, sequences and sums, is
/// unified like a shape.
AttributeGates::Fit AttributeGates::fit_list(const Expr& expr, const std::vector<DimId>& dims,
                                             SearchState& state, std::string* expected) {
  const auto is_rest = [](const Expr& e) {
    return e.kind == Expr::Kind::star || e.kind == Expr::Kind::spread;
  };
  bool sequence = std::any_of(expr.args.begin(), expr.args.end(), is_rest);
  if (!sequence && expr.args.size() != dims.size()) return Fit::no;
  TypeExpr shape;
  shape.any_shape = false;
  for (const Expr& element : expr.args) {
    if (!is_rest(element) && unbound_names(element, state.env).size() > 1) return Fit::later;
    shape.dims.push_back(element);
    if (element.kind != Expr::Kind::spread) continue;
    shape.dims.back() = element.args.front();  // as `*xs`
    shape.dims.back().kind = Expr::Kind::star;
  }
  Env before;
  if (scope_.explain) before = state.env;
  for (std::size_t i = 0; !sequence && i < dims.size(); ++i) {
    const Expr& element = expr.args[i];
    if (element.kind != Expr::Kind::path || element.text == "_" ||
        element.text.find('.') != std::string::npos)
      continue;
    if (state.env.contains(element.text)) continue;
    state.env.insert_or_assign(element.text, Binding(dims[i]));
  }
  if (unify(scope_.context(), shape, scope_.context().types.get(DType::f32, dims), state.env))
    return Fit::yes;
  if (!scope_.explain) return Fit::no;
  state.env = std::move(before);  // restored for the message
  for (const Expr& element : expr.args)
    if (element.kind == Expr::Kind::path)
      if (auto held = state.env.find(element.text); held != state.env.end())
        if (std::optional<Attribute> known = as_attribute(scope_.context(), held->second))
          *expected += (expected->empty() ? element.text : ", " + element.text) + " = " +
                       scope_.context().attributes.print(*known);
  return Fit::no;
}

AttributeGates::Fit AttributeGates::fit_name(const std::string& name, const Attribute& value,
                                             SearchState& state, std::string* expected) {
  auto held = state.env.find(name);
  if (held != state.env.end()) {
    std::optional<Attribute> known = as_attribute(scope_.context(), held->second);
    if (known && same_attribute(*known, value)) return Fit::yes;
    *expected = known ? scope_.context().attributes.print(*known) : std::string("a value");
    return Fit::conflict;
  }
  Binding binding = value;
  auto kind = layout_.kinds.find(name);
  if (const auto* dim = std::get_if<DimId>(&value)) binding = *dim;
  if (kind != layout_.kinds.end()) {
    if (const auto* number = std::get_if<std::int64_t>(&value);
        number && kind->second == VariableKind::dim)
      binding = scope_.context().dims.constant(*number);
    if (const auto* dtype = std::get_if<DType>(&value);
        dtype && kind->second == VariableKind::dtype)
      binding = DTypeBinding{*dtype, false};
    if (const auto* shape = std::get_if<std::vector<DimId>>(&value);
        shape && kind->second == VariableKind::sequence)
      binding = Shape(*shape);
  }
  state.env.emplace(name, std::move(binding));
  return Fit::yes;
}

}  // namespace pw

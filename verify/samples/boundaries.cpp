#include "verify/samples/boundaries.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

using Guards = std::vector<const Expr*>;

bool reads_dims(const Expr& expr, std::string_view name) {
  bool found = false;
  visit_scalar(expr, Place::dim, [&](const Occurrence& o) { found = found || o.name == name; });
  return found;
}

/// The only name in a guard that is neither known nor a dtype; nothing if there are several, or if
/// the guard calls functions.
std::optional<std::string> only_unknown(const Expr& guard, const Env& known) {
  std::set<std::string> names;
  bool plain = true;
  visit_scalar(guard, Place::guard, [&](const Occurrence& o) {
    plain = plain && o.place == Place::guard;
    if (known.count(o.name) == 0 && !dtype_named(o.name)) names.emplace(o.name);
  });
  if (!plain || names.size() != 1) return std::nullopt;
  return *names.begin();
}

void collect_numbers(const Expr& expr, const Env& known, std::vector<std::int64_t>& out) {
  if (expr.kind == Expr::Kind::integer) out.push_back(expr.integer);
  if (expr.kind == Expr::Kind::path) {
    const auto bound = known.find(expr.text);
    const auto* value = bound == known.end() ? nullptr : std::get_if<Attribute>(&bound->second);
    const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (number != nullptr) out.push_back(*number);
  }
  for (const Expr& arg : expr.args) collect_numbers(arg, known, out);
}

class Variable {
 public:
  Variable(const RuleSet& rules, const Rule& rule, const Env& known, std::string name,
           const Guards& guards)
      : context_(*rules.context),
        name_(std::move(name)),
        guards_(guards),
        known_(known),
        dim_(is_dim_variable(rule, name_)) {}

  /// Tests all values up to twice the largest number in the guards.
  std::vector<GuardBoundary> boundaries(std::int64_t most) {
    std::int64_t largest = 1;
    for (const Expr* guard : guards_)
      for (const std::int64_t number : numbers_in(*guard, known_))
        largest = std::max(largest, number);
    const std::int64_t last = largest > most / 2 ? most : 2 * largest;
    std::vector<bool> holds_at = {false};
    for (std::int64_t value = 1; value <= last + 1; ++value) holds_at.push_back(holds(value));
    std::map<std::int64_t, bool> found;  // value → allowed
    const auto add_edge = [&](std::int64_t value) {
      found[value] = true;
      for (const std::int64_t beyond : {value - 1, value + 1})
        if (beyond >= 1 && !holds_at[static_cast<std::size_t>(beyond)]) found[beyond] = false;
    };
    const auto is_edge = [&](std::int64_t value) {
      const auto i = static_cast<std::size_t>(value);
      return holds_at[i] && (!holds_at[i - 1] || !holds_at[i + 1]);
    };
    std::int64_t least = 1, greatest = last;
    while (least <= last && !is_edge(least)) ++least;
    while (greatest >= 1 && !is_edge(greatest)) --greatest;
    if (least > last) return {};
    add_edge(least);
    add_edge(greatest);
    std::vector<GuardBoundary> out;
    for (const auto& [value, allowed] : found) out.push_back({name_, value, allowed});
    return out;
  }

 private:
  bool holds(std::int64_t value) {
    if (dim_) {
      known_.insert_or_assign(name_, context_.dims.constant(value));
    } else {
      known_.insert_or_assign(name_, Attribute(value));
    }
    return std::all_of(guards_.begin(), guards_.end(), [&](const Expr* guard) {
      const auto truth = evaluate_guard(context_, nullptr, *guard, known_, Facts());
      return truth && *truth == Truth::yes;
    });
  }

  Context& context_;
  std::string name_;
  const Guards& guards_;
  Env known_;  ///< and the variable's own value
  bool dim_;
};

template <class Declare>
void declare_inputs_of(Graph& graph, ValueId value, const Declare& declare) {
  if (!value.valid()) return;
  if (graph.is_input(value)) return declare(value);
  for (ValueId operand : graph.operands(graph.producer(value)))
    declare_inputs_of(graph, operand, declare);
}

std::vector<ValueId> tensors_of(const Binding& binding) {
  if (const auto* value = std::get_if<ValueId>(&binding)) return {*value};
  const auto* list = std::get_if<std::vector<ValueId>>(&binding);
  return list == nullptr ? std::vector<ValueId>() : *list;
}

void declare_weights(Graph& graph, const Expr& guard, const Env& bound) {
  if (guard.args.size() != 1) return;
  const auto found = bound.find(guard.args[0].text);
  if (found == bound.end()) return;
  for (ValueId value : tensors_of(found->second))
    declare_inputs_of(graph, value,
                      [&](ValueId input) { graph.set_input_kind(input, InputKind::weight); });
}

void declare_asked(Graph& graph, const Expr& guard, const Env& bound) {
  for (const Expr& arg : guard.args) declare_asked(graph, arg, bound);
  if (guard.kind != Expr::Kind::call) return;
  if (guard.text == "weight" || guard.text == "constant")
    return declare_weights(graph, guard, bound);
  if (guard.text != "replicated" || guard.args.size() != 2) return;
  const auto found = bound.find(guard.args[0].text);
  const auto group = evaluate(graph.context(), &graph, guard.args[1], bound);
  if (found == bound.end() || !group) return;
  const auto* name = std::get_if<std::string>(&*group);
  if (name == nullptr) return;
  for (ValueId value : tensors_of(found->second))
    declare_inputs_of(graph, value, [&](ValueId input) { graph.declare_replicated(input, *name); });
}

}  // namespace

std::vector<std::int64_t> numbers_in(const Expr& guard, const Env& known) {
  std::vector<std::int64_t> out;
  collect_numbers(guard, known, out);
  return out;
}

bool is_dim_variable(const Rule& rule, std::string_view name) {
  for (const PatternValue& value : rule.values) {
    for (const TypeExpr& type : value.types)
      for (const Expr& dim : type.dims)
        if (reads_dims(dim, name)) return true;
  }
  for (const PatternNode& node : rule.nodes) {
    for (const PatternAttribute& attribute : node.attributes)
      if (attribute.value.kind == Expr::Kind::list && reads_dims(attribute.value, name))
        return true;
  }
  return false;
}

std::vector<GuardBoundary> boundaries_of(const RuleSet& rules, const Rule& rule, const Env& known,
                                         std::int64_t most) {
  std::map<std::string, Guards> by_variable;
  for (const std::vector<Expr>* guards : {&rule.where, &rule.assume}) {
    for (const Expr& guard : *guards)
      if (const auto name = only_unknown(guard, known)) by_variable[*name].push_back(&guard);
  }
  std::vector<GuardBoundary> out;
  for (const auto& [name, guards] : by_variable) {
    const std::vector<GuardBoundary> some =
        Variable(rules, rule, known, name, guards).boundaries(most);
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

void declare_facts(Graph& graph, const Rule& rule, const Env& bound) {
  for (const std::vector<Expr>* guards : {&rule.where, &rule.assume})
    for (const Expr& guard : *guards) declare_asked(graph, guard, bound);
}

}  // namespace pw

#include "graph/foreign.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/ops/converted_numbers.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

constexpr std::string_view kDefault = ".default";

tl::unexpected<std::string> because(std::string reason) {
  return tl::unexpected<std::string>(std::move(reason));
}

/// Prints values as the other system does: True, None, [1, 2], 'text'.
std::string print_dim(const Context& context, DimId d) { return context.dims.print(d); }

std::string printed(const Context& context, const Attribute& value) {
  if (std::holds_alternative<None>(value)) return "None";
  if (auto b = std::get_if<bool>(&value)) return *b ? "True" : "False";
  if (auto text = std::get_if<std::string>(&value)) return "'" + *text + "'";
  return context.attributes.print(value);
}

std::string printed(const Context& context, const ForeignValue& argument) {
  if (!argument.other.empty()) return argument.other;
  const Binding& value = argument.value;
  if (std::holds_alternative<Absent>(value)) return "None";
  if (auto a = std::get_if<Attribute>(&value)) return printed(context, *a);
  if (auto d = std::get_if<DimId>(&value)) return print_dim(context, *d);
  if (auto s = std::get_if<Shape>(&value)) return context.types.print(*s);
  if (auto t = std::get_if<DTypeBinding>(&value)) return std::string(name(t->dtype));
  return std::holds_alternative<ValueId>(value) ? "a tensor" : "a list of tensors";
}

std::optional<double> number_of(const Context& context, const Binding& value) {
  if (auto d = std::get_if<DimId>(&value)) {
    if (auto v = context.dims.value(*d)) return static_cast<double>(*v);
    return std::nullopt;
  }
  auto a = std::get_if<Attribute>(&value);
  if (!a) return std::nullopt;
  if (auto i = std::get_if<std::int64_t>(a)) return static_cast<double>(*i);
  if (auto x = std::get_if<double>(a)) return *x;
  return std::nullopt;
}

bool is_none(const Binding& value) {
  auto a = std::get_if<Attribute>(&value);
  return std::holds_alternative<Absent>(value) || (a && std::holds_alternative<None>(*a));
}

bool same_value(const Context& context, const Binding& a, const Binding& b) {
  if (is_none(a) || is_none(b)) return is_none(a) && is_none(b);
  auto x = number_of(context, a), y = number_of(context, b);
  if (x || y) return x == y;
  return a == b;
}

bool is_of_kind(const Context& context, const Binding& value, std::string_view kind) {
  auto a = std::get_if<Attribute>(&value);
  const bool truth = a && std::holds_alternative<bool>(*a);
  if (kind == "bool") return truth;
  if (kind == "str") return a && std::holds_alternative<std::string>(*a);
  if (kind == "float") return a && std::holds_alternative<double>(*a);
  const bool whole =
      std::holds_alternative<DimId>(value) || (a && std::holds_alternative<std::int64_t>(*a));
  if (kind == "int") return whole;
  return truth || whole || number_of(context, value).has_value();  // number
}

/// Binds a parameter. A name that holds None cannot be distinguished from one without a tensor
/// otherwise. A number is bound as an attribute, and so is a list of numbers.
void bind_value(Env& env, const ForeignParameter& parameter, const Binding& value) {
  env.insert_or_assign(parameter.names.front(), value);
}

/// Returns the op's results once built: values by name, in the order of return.
OrReason<ForeignResults> collect(const ForeignOp& op, const Env& env) {
  ForeignResults out;
  for (const std::string& name : op.returns) {
    auto it = env.find(name);
    const auto* value = it == env.end() ? nullptr : std::get_if<ValueId>(&it->second);
    const auto* list = it == env.end() ? nullptr : std::get_if<std::vector<ValueId>>(&it->second);
    if (value && value->valid())
      out.returned.push_back(*value);
    else if (list)
      out.returned.insert(out.returned.end(), list->begin(), list->end());
    else
      return because("`" + name + "` is not a tensor");
  }
  out.tuple = out.returned.size() != 1;
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    if (!op.parameters[i].written()) continue;
    auto it = env.find(op.parameters[i].names.front());
    const auto* value = it == env.end() ? nullptr : std::get_if<ValueId>(&it->second);
    if (!value || !value->valid()) continue;  // None was given
    out.written.emplace_back(i, *value);
  }
  return out;
}

void erase_from(Graph& graph, std::size_t before) {
  for (std::size_t n = graph.node_bound(); n > before; --n)
    if (graph.alive(NodeId(n - 1))) graph.erase(NodeId(n - 1));
}

Expr path_to(std::string name, Span span) {
  Expr e;
  e.kind = Expr::Kind::path;
  e.text = std::move(name);
  e.span = span;
  return e;
}

}  // namespace

bool ForeignParameter::called(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view foreign_target(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (target.starts_with(kOps)) target.remove_prefix(kOps.size());
  if (target.ends_with(kDefault)) target.remove_suffix(kDefault.size());
  return target;
}

std::string_view torch_name(std::string_view target) {
  target = foreign_target(target);
  if (const bool aten = target.starts_with("aten.") || target.starts_with("prims."); aten) {
    target.remove_prefix(target.find('.') + 1);
    target = target.substr(0, target.find('.'));
  }
  if (const std::size_t dot = target.rfind('.'); dot != std::string_view::npos)
    target.remove_prefix(dot + 1);
  return target.starts_with("_") ? target.substr(1) : target;
}

void ForeignOps::add(Items items) {
  std::map<std::string, Items, std::less<>> fresh;
  for (auto& item : items) {
    const Items* known = find(item->target);
    const bool there = known && std::any_of(known->begin(), known->end(),
                                            [&](const auto& k) { return k->text == item->text; });
    if (!there) fresh[item->target].push_back(std::move(item));
  }
  for (auto& [target, list] : fresh) {
    Items& all = by_target[target];
    all.insert(all.begin(), list.begin(), list.end());
  }
}

const ForeignOps::Items* ForeignOps::find(std::string_view target) const {
  auto it = by_target.find(foreign_target(target));
  return it == by_target.end() ? nullptr : &it->second;
}

std::vector<std::string> ForeignOps::called(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [target, items] : by_target)
    if (torch_name(target) == name) out.push_back(target);
  return out;
}

namespace {

/// Adds a parameter for an operand, and passes it to the call.
void pass_operand(const OperandDecl& operand, ForeignOp& out, Statement& call) {
  ForeignParameter p;
  p.names = {operand.name};
  p.span = operand.span;
  p.mut = operand.mut;
  p.out = operand.out;
  p.used = true;
  if (operand.optional) p.default_value = Absent{};
  Expr argument = path_to(operand.name, operand.span);
  if (operand.variadic) {
    Expr spread;
    spread.kind = Expr::Kind::spread;
    spread.span = operand.span;
    spread.args.push_back(std::move(argument));
    argument = std::move(spread);
  }
  call.value.args.push_back(std::move(argument));
  out.parameters.push_back(std::move(p));
}

/// Adds a parameter for an attribute, and passes it to the call.
void pass_attribute(const AttributeDecl& attribute, ForeignOp& out, Statement& call) {
  ForeignParameter p;
  p.names = {attribute.name};
  p.span = attribute.span;
  p.used = true;
  p.kind = "attribute";
  if (attribute.default_value)
    p.default_value = *attribute.default_value;
  else if (attribute.nullable)
    p.default_value = Attribute(None{});
  call.value.attributes.push_back({attribute.name, attribute.span, {}});
  out.parameters.push_back(std::move(p));
}

/// Binds a result of the call to the operand that it replaces, or returns it.
void bind_result(const Op& op, std::size_t i, ForeignOp& out, Statement& call) {
  const ResultDecl& result = op.results[i];
  Binder binder;
  binder.span = result.span;
  binder.spread = result.variadic;
  const OperandDecl* from =
      result.from ? &op.operands[static_cast<std::size_t>(*result.from)] : nullptr;
  if (from && (from->mut || from->out)) {
    binder.name = from->name;
  } else {
    binder.name = fmt::format("={}", i);
    out.returns.push_back(binder.name);
  }
  call.binders.push_back(std::move(binder));
}

}  // namespace

std::shared_ptr<const ForeignOp> declared_foreign(Context& context, std::string_view target) {
  target = foreign_target(target);
  if (target.find('.') == std::string_view::npos) return nullptr;
  OpId id = context.ops.find(target);
  if (!id.valid() || context.ops[id].imported)
    id = context.ops.find(std::string(target) + std::string(kDefault));
  if (!id.valid() || context.ops[id].imported) return nullptr;
  const Op& op = context.ops[id];
  auto out = std::make_shared<ForeignOp>();
  out->target = target;
  out->span = op.span;
  out->op = op.name;
  out->by_kind = true;
  Statement call;
  call.span = op.span;
  call.value.kind = Expr::Kind::call;
  call.value.text = op.name;
  call.value.span = op.span;
  for (const OperandDecl& operand : op.operands) pass_operand(operand, *out, call);
  for (const AttributeDecl& attribute : op.attributes) pass_attribute(attribute, *out, call);
  for (std::size_t i = 0; i < op.results.size(); ++i) bind_result(op, i, *out, call);
  out->body.push_back(std::move(call));
  return out;
}

namespace {

/// Assigns tensors, and None for optional operands, to the operands in order, and the rest to the
/// attributes.
OrReason<ForeignValues> bind_by_kind(const ForeignOp& op, const ForeignArguments& arguments) {
  ForeignValues out(op.parameters.size());
  std::size_t operand = 0, attribute = 0;
  const auto is_operand = [&](std::size_t i) { return op.parameters[i].kind.empty(); };
  const std::size_t operands = static_cast<std::size_t>(
      std::count_if(op.parameters.begin(), op.parameters.end(),
                    [](const ForeignParameter& p) { return p.kind.empty(); }));
  attribute = operands;
  for (const ForeignValue& value : arguments.positional) {
    const bool tensor = std::holds_alternative<ValueId>(value.value) ||
                        std::holds_alternative<std::vector<ValueId>>(value.value);
    const bool absent = std::holds_alternative<Absent>(value.value) && value.other.empty();
    const bool may_be_absent =
        absent && operand < operands && is_operand(operand) && op.parameters[operand].default_value;
    const bool as_number =
        !tensor && !absent && attribute >= op.parameters.size() && operand < operands;
    if (tensor || may_be_absent || as_number) {
      if (operand >= operands) return because("there are more tensors than operands");
      out[operand++] = value;
    } else {
      if (attribute >= op.parameters.size())
        return because("there are more arguments than operands and attributes");
      out[attribute++] = value;
    }
  }
  return out;
}

}  // namespace

OrReason<ForeignValues> bind_foreign(const Context& context, const ForeignOp& op,
                                     const ForeignArguments& arguments) {
  (void)context;
  ForeignValues out(op.parameters.size());
  if (op.by_kind) {
    auto bound = bind_by_kind(op, arguments);
    if (!bound) return bound;
    out = std::move(*bound);
  } else {
    if (arguments.positional.size() > op.parameters.size())
      return because(fmt::format("there are {} arguments, but its declaration has {}",
                                 arguments.positional.size(), op.parameters.size()));
    for (std::size_t i = 0; i < arguments.positional.size(); ++i) out[i] = arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.keywords) {
    auto it = std::find_if(op.parameters.begin(), op.parameters.end(),
                           [&](const ForeignParameter& p) { return p.called(name); });
    if (it == op.parameters.end())
      return because(fmt::format("its declaration has no argument `{}`", name));
    auto& slot = out[static_cast<std::size_t>(it - op.parameters.begin())];
    if (slot) return because(fmt::format("argument `{}` is given twice", name));
    slot = value;
  }
  return out;
}

namespace {

/// Returns why PyTorch raises for a number among the arguments; empty if it does not.
std::string beyond_range(const Graph& graph, const ForeignOp& op, const ForeignValues& values) {
  std::optional<DType> result;
  for (const std::optional<ForeignValue>& value : values) {
    const ValueId* tensor = value ? std::get_if<ValueId>(&value->value) : nullptr;
    if (tensor == nullptr || !tensor->valid()) continue;
    if (graph.type(*tensor) == Types::unknown()) return {};
    const DType dtype = graph.context().types[graph.type(*tensor)].dtype;
    result = result ? promote(*result, false, dtype, false) : dtype;
  }
  if (!result) return {};
  return number_beyond_range(op.target, *result, [&](std::string_view name) {
    std::optional<double> out;
    for (std::size_t i = 0; i < op.parameters.size(); ++i)
      if (values[i] && op.parameters[i].called(name))
        out = number_of(graph.context(), values[i]->value);
    return out;
  });
}

}  // namespace

OrReason<Env> match_foreign(Graph& graph, const ForeignOp& op, const ForeignValues& values) {
  Context& context = graph.context();
  Env env;
  const auto at_fault = [&](const ForeignParameter& p, const ForeignValue& v) {
    return because(fmt::format("its declaration does not accept argument `{}` = {}",
                               p.names.front(), printed(context, v)));
  };
  for (std::size_t i = 0; i < op.parameters.size(); ++i) {
    const ForeignParameter& p = op.parameters[i];
    const std::optional<ForeignValue>& given = values[i];
    if (p.ignored) continue;
    if (!given) {
      if (p.default_value)
        bind_value(env, p, *p.default_value);
      else if (p.out)
        bind_value(env, p, Absent{});
      else
        return because(fmt::format("argument `{}` is missing", p.names.front()));
      continue;
    }
    if (!given->other.empty()) return at_fault(p, *given);
    const bool tensor = std::holds_alternative<ValueId>(given->value);
    if (!p.used && !p.written() &&
        !(p.default_value && same_value(context, given->value, *p.default_value)))
      return at_fault(p, *given);
    if (p.mut && !tensor) return at_fault(p, *given);
    if (!p.kind.empty() && p.kind != "attribute" && !is_of_kind(context, given->value, p.kind))
      return at_fault(p, *given);
    if (p.kind == "attribute" && tensor) return at_fault(p, *given);
    if (p.type) {
      if (!tensor) return at_fault(p, *given);
      const TypeId type = graph.type(std::get<ValueId>(given->value));
      std::string why;
      if (type == Types::unknown())
        return because(fmt::format("the type of argument `{}` is not known", p.names.front()));
      if (!unify(context, *p.type, type, env, &why))
        return because(fmt::format("argument `{}` is {}, but its declaration takes {}: {}",
                                   p.names.front(), context.types.print(type), print(*p.type),
                                   why));
    }
    bind_value(env, p, given->value);
  }
  for (const Expr& guard : op.where) {
    std::string why;
    Result<Truth> truth = evaluate_guard(context, &graph, guard, env, graph.facts, &why);
    if (!truth) return because(truth.error().front().message);
    if (*truth != Truth::yes)
      return because(why.empty() ? "`" + print(guard) + "` does not hold" : why);
  }
  if (std::string why = beyond_range(graph, op, values); !why.empty()) return because(why);
  return env;
}

OrReason<ForeignResults> build_foreign(Graph& graph, const ForeignOp& op, Env env,
                                       const BuildOptions& options) {
  const std::size_t before = graph.node_bound();
  auto built = build_statements(graph, op.body, env, options);
  OrReason<ForeignResults> results =
      built ? collect(op, env) : OrReason<ForeignResults>(because(built.error().front().message));
  if (!results) {
    erase_from(graph, before);
    return results;
  }
  const OpId last = graph.context().ops.find(op.op);
  if (last.valid() && op.returns.size() == 1 && !graph.context().ops[last].results.empty() &&
      graph.context().ops[last].results.back().variadic)
    results->tuple = true;
  for (std::size_t n = before; n < graph.node_bound(); ++n)
    if (graph.alive(NodeId(n))) results->nodes.push_back(NodeId(n));
  return results;
}

}  // namespace pw

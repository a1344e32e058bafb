#include "dsl/syntax/walk.hpp"

#include <array>

#include "graph/dtype.hpp"

namespace pw {
namespace {

std::string_view head(std::string_view path) { return path.substr(0, path.find('.')); }

bool reads_a_value(std::string_view function) {
  constexpr std::array<std::string_view, 7> kNames{"size",   "rank",     "count", "replicated",
                                                   "weight", "constant", "users"};
  for (auto name : kNames) {
    if (function == name) return true;
  }
  return false;
}

void visit_path(const Expr& expr, Place place, bool bare, const Visit& visit) {
  const bool dotted = expr.text.find('.') != std::string::npos;
  visit({head(expr.text), expr.span, dotted ? Place::property : place, bare && !dotted, &expr});
}

/// Visits `xs...` as an operand or in a list; for `relu(x)...` each member.
Visit of_spread(const Expr& spread, const Visit& visit) {
  const bool plain = spread.args.front().kind == Expr::Kind::path;
  return [&spread, &visit, plain](Occurrence o) {
    if (plain && o.expr == &spread.args.front()) o.spread = true;
    if (!plain && o.members == nullptr) o.members = &spread;
    visit(o);
  };
}

Visit of_element(const Visit& visit) {
  return [&visit](Occurrence o) {
    o.element = true;
    visit(o);
  };
}

Visit of_members(const Expr& members, const Visit& visit) {
  return [&members, &visit](Occurrence o) {
    o.members = &members;
    visit(o);
  };
}

void visit_function(const Expr& expr, Place place, const Visit& visit) {
  visit({expr.text, expr.span, Place::function, false, &expr});
  const Visit counted = [&](Occurrence o) {
    o.spread = true;
    visit(o);
  };
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    const bool value = i == 0 && reads_a_value(expr.text);
    visit_scalar(expr.args[i], value ? Place::property : place,
                 expr.text == "count" ? counted : visit, false);
  }
}

void visit_attributes(const Expr& call, const Visit& visit) {
  for (const AttributeArg& argument : call.attributes) {
    if (argument.value.empty()) {
      visit({argument.name, argument.span, Place::attribute, true});
    } else {
      visit_scalar(argument.value.front(), Place::attribute, visit);
    }
  }
}

void visit_calls_in(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  if (expr.kind == Expr::Kind::call) visit(expr);
  for (const Expr& arg : expr.args) visit_calls_in(arg, visit);
}

}  // namespace

void visit_scalar(const Expr& expr, Place place, const Visit& visit, bool bare) {
  switch (expr.kind) {
    case Expr::Kind::path: visit_path(expr, place, bare, visit); return;
    case Expr::Kind::star:
      if (!expr.text.empty()) visit({expr.text, expr.span, Place::sequence, true, &expr});
      return;
    case Expr::Kind::call: visit_function(expr, place, visit); return;
    case Expr::Kind::list:
      for (const Expr& element : expr.args) visit_scalar(element, place, visit, bare);
      return;
    case Expr::Kind::spread:
      visit_scalar(expr.args.front(), place, of_spread(expr, visit), bare);
      return;
    case Expr::Kind::index:
      visit_scalar(expr.args[0], place, of_element(visit), false);
      visit_scalar(expr.args[1], place == Place::property ? Place::guard : place, visit, false);
      return;
    case Expr::Kind::integer:
    case Expr::Kind::real:
    case Expr::Kind::string:
    case Expr::Kind::boolean:
    case Expr::Kind::none:
    case Expr::Kind::negate:
    case Expr::Kind::not_:
    case Expr::Kind::binary:
    case Expr::Kind::in_set:
    case Expr::Kind::in_range:
    case Expr::Kind::fuse:
      for (const Expr& arg : expr.args) visit_scalar(arg, place, visit, false);
      return;
  }
}

void visit_operand(const Expr& expr, const Visit& visit) {
  if (expr.kind == Expr::Kind::spread) {
    const Visit each = of_spread(expr, visit);
    visit_operand(expr.args.front(), each);
    for (const TypeExpr& type : expr.type) visit_type(type, each);
    return;
  }
  if (expr.kind == Expr::Kind::index) {
    visit_operand(expr.args[0], of_element(visit));
    visit_scalar(expr.args[1], Place::attribute, visit, false);
    for (const TypeExpr& type : expr.type) visit_type(type, visit);
    return;
  }
  if (expr.kind == Expr::Kind::path) {
    visit_path(expr, Place::operand, true, visit);
  } else if (expr.kind == Expr::Kind::call) {
    visit({expr.text, expr.span, Place::callee, false, &expr});
  }
  for (const Expr& arg : expr.args) visit_operand(arg, visit);
  if (expr.kind == Expr::Kind::call) visit_attributes(expr, visit);
  for (const TypeExpr& type : expr.type) visit_type(type, visit);
}

void visit_type(const TypeExpr& type, const Visit& visit) {
  for (const Expr& dtype : type.dtype) visit_scalar(dtype, Place::dtype, visit);
  for (const Expr& dim : type.dims) visit_scalar(dim, Place::dim, visit);
}

void visit_statement(const Statement& statement, const Visit& visit) {
  const Visit inside = statement.many ? of_members(statement.value, visit) : visit;
  for (const Binder& binder : statement.binders) {
    inside({binder.name, binder.span, Place::binder, true, nullptr, &binder, binder.spread});
    for (const TypeExpr& type : binder.type) visit_type(type, inside);
  }
  visit_operand(statement.value, inside);
}

void visit_calls(const Statement& statement, const std::function<void(const Expr&)>& visit) {
  visit_calls_in(statement.value, visit);
}

void collect_paths(const Expr& expr, std::vector<std::string>& names) {
  if (expr.kind == Expr::Kind::path && !dtype_named(expr.text) &&
      expr.text.find('.') == std::string::npos)
    names.push_back(expr.text);
  for (const Expr& arg : expr.args) collect_paths(arg, names);
}

std::string_view primitive_of_infix(std::string_view symbol) {
  if (symbol == "+") return "add";
  if (symbol == "-") return "sub";
  if (symbol == "*") return "mul";
  if (symbol == "/") return "div";
  return {};
}

}  // namespace pw

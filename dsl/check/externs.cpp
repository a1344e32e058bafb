#include <optional>

#include "dsl/build/declare_op.hpp"
#include "dsl/natives.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

/// Returns the kind of a literal; nothing for names and expressions.
std::optional<AttributeKind> literal_kind(const Expr& expr) {
  if (expr.kind == Expr::Kind::integer) return AttributeKind::int_;
  if (expr.kind == Expr::Kind::real) return AttributeKind::float_;
  if (expr.kind == Expr::Kind::string) return AttributeKind::str;
  if (expr.kind == Expr::Kind::boolean) return AttributeKind::bool_;
  return {};
}

bool may_be(AttributeKind literal, AttributeKind wanted) {
  if (literal == wanted) return true;
  return literal == AttributeKind::int_ &&
         (wanted == AttributeKind::float_ || wanted == AttributeKind::axis);
}

class ExternCheck {
 public:
  ExternCheck(const Context& context, const Program& program, Diagnostics& out)
      : context_(context), program_(program), out_(out) {}

  void run() {
    for (const auto& [name, item] : program_.externs) declaration(*item);
    for (const RuleDecl& decl : program_.rules) {
      body(decl.rule->body);
      for (const Statement& s : decl.rule->replacement) expression(s.value);
    }
    for (const auto& [name, pattern] : program_.patterns) {
      for (const ast::Body& alternative : pattern->alternatives) body(alternative);
    }
  }

 private:
  void declaration(const ast::Extern& item) {
    for (const auto& [name, kind] : item.parameters) known_kind(item, kind);
    if (!item.predicate) known_kind(item, item.result);
    if (context_.natives.contains(item.name)) return;
    std::vector<std::string> bound;
    for (const auto& [name, native] : context_.natives) bound.push_back(name);
    std::string listed;
    for (const std::string& name : bound) listed += (listed.empty() ? "bound are " : ", ") + name;
    out_.push_back(error_at(item.span, "PW0393", "extern " + in_ticks(item.name) + " is not bound",
                            did_you_mean(item.name, bound, listed)));
  }

  void known_kind(const ast::Extern& item, const std::string& kind) {
    if (attribute_kind_named(kind)) return;
    out_.push_back(error_at(item.span, "PW0395",
                            kind.empty() ? "extern " + in_ticks(item.name) + " has no result"
                                         : in_ticks(kind) + " is not a kind of argument or result",
                            "the kinds are int, float, bool, str, dtype, axis, ints, dims, floats, "
                            "strs; a result is written `-> int`"));
  }

  void body(const ast::Body& body) {
    for (const Statement& s : body.statements) expression(s.value);
    for (const ast::Clause& clause : body.clauses) {
      for (const Expr& guard : clause.guards) expression(guard);
      for (const Statement& s : clause.statements) expression(s.value);
    }
  }

  void expression(const Expr& expr) {
    if (expr.kind == Expr::Kind::call) {
      if (auto it = program_.externs.find(expr.text); it != program_.externs.end())
        call(expr, *it->second);
    }
    for (const Expr& arg : expr.args) expression(arg);
    for (const AttributeArg& argument : expr.attributes) {
      for (const Expr& value : argument.value) expression(value);
    }
  }

  void call(const Expr& call, const ast::Extern& item) {
    const auto report = [&](Span span, std::string message) {
      Diagnostic d = error_at(span, "PW0394", std::move(message));
      d.secondary.push_back({item.span, "declared here"});
      out_.push_back(std::move(d));
    };
    if (call.args.size() != item.parameters.size())
      return report(call.span, in_ticks(item.name) + " takes " +
                                   std::to_string(item.parameters.size()) +
                                   " arguments, here are " + std::to_string(call.args.size()));
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const auto wanted = attribute_kind_named(item.parameters[i].second);
      const auto literal = literal_kind(call.args[i]);
      if (wanted && literal && !may_be(*literal, *wanted))
        report(call.args[i].span, "this argument of " + in_ticks(item.name) + " is of kind " +
                                      in_ticks(item.parameters[i].second) +
                                      ", and the value is not");
    }
  }

  const Context& context_;
  const Program& program_;
  Diagnostics& out_;
};

}  // namespace

void check_externs(const Context& context, const Program& program, Diagnostics& out) {
  ExternCheck(context, program, out).run();
}

}  // namespace pw

#include "dsl/build/pattern_items.hpp"

#include <algorithm>

#include "dsl/build/op_variables.hpp"
#include "dsl/syntax/suggest.hpp"

namespace pw {
namespace {

bool has_types(const std::vector<std::vector<TypeExpr>>& types) {
  return std::any_of(types.begin(), types.end(), [](const auto& type) { return !type.empty(); });
}

bool needs_work(const ast::Pattern& pattern) {
  return has_types(pattern.operand_types) || has_types(pattern.result_types) ||
         std::any_of(pattern.alternatives.begin(), pattern.alternatives.end(),
                     [](const ast::Body& body) { return !body.ops.empty(); });
}

/// Returns the first occurrence of the name as an operand, in text order.
Expr* first_read(Expr& e, const std::string& name) {
  if (e.kind == Expr::Kind::path) return e.text == name ? &e : nullptr;
  for (Expr& arg : e.args)
    if (Expr* found = first_read(arg, name)) return found;
  return nullptr;
}

/// Visits all statements of the pattern itself: absent nodes state no types.
template <class Visitor>
void each_statement(ast::Body& body, const Visitor& visitor) {
  for (Statement& s : body.statements) visitor(s);
  for (ast::Clause& clause : body.clauses)
    if (clause.kind == ast::Clause::Kind::given)
      for (Statement& s : clause.statements) visitor(s);
}

class Settling {
 public:
  Settling(const Context& context, ast::Pattern& pattern, Diagnostics& out)
      : context_(context), pattern_(pattern), out_(out) {}

  void run() {
    std::vector<ast::Body> alternatives;
    for (const ast::Body& body : pattern_.alternatives)
      for (ast::Body& chosen : choose_ops(context_, body, out_)) {
        state_types(chosen);
        alternatives.push_back(std::move(chosen));
      }
    pattern_.alternatives = std::move(alternatives);  // wrong ones have been reported
  }

 private:
  void state_types(ast::Body& body) {
    for (std::size_t i = 0; i < pattern_.operands.size(); ++i)
      for (const TypeExpr& type : pattern_.operand_types[i])
        put_at(operand_in(body, pattern_.operands[i]), type, pattern_.operands[i]);
    for (std::size_t i = 0; i < pattern_.results.size(); ++i)
      for (const TypeExpr& type : pattern_.result_types[i])
        put_at(binder_in(body, pattern_.results[i]), type, pattern_.results[i]);
  }

  static std::vector<TypeExpr>* operand_in(ast::Body& body, const std::string& name) {
    Expr* read = nullptr;
    each_statement(body, [&](Statement& s) {
      if (read == nullptr) read = first_read(s.value, name);
    });
    return read == nullptr ? nullptr : &read->type;
  }

  static std::vector<TypeExpr>* binder_in(ast::Body& body, const std::string& name) {
    std::vector<TypeExpr>* found = nullptr;
    each_statement(body, [&](Statement& s) {
      for (Binder& binder : s.binders)
        if (found == nullptr && binder.name == name) found = &binder.type;
    });
    return found;
  }

  void put_at(std::vector<TypeExpr>* place, const TypeExpr& type, const std::string& name) {
    if (place != nullptr) return place->push_back(type);
    out_.push_back(error_at(type.span, "PW0379",
                            "an alternative of pattern " + in_ticks(pattern_.name) +
                                " has no node that reads " + in_ticks(name) +
                                ", so its type is not checked there",
                            "write the type where the value is read"));
  }

  const Context& context_;
  ast::Pattern& pattern_;
  Diagnostics& out_;
};

}  // namespace

void settle_patterns(const Context& context, Program& program, Diagnostics& out) {
  for (auto& [name, pattern] : program.patterns) {
    if (!needs_work(*pattern)) continue;
    auto settled = std::make_shared<ast::Pattern>(*pattern);
    Settling(context, *settled, out).run();
    program.settled.push_back(settled);
    pattern = settled.get();
  }
}

}  // namespace pw

#include "dsl/build/inline_pattern.hpp"

#include <algorithm>

#include "dsl/syntax/names.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class Inliner {
 public:
  Inliner(const Context& context, const Program& program, const ast::Pattern& pattern,
          std::string suffix)
      : context_(context), program_(program), pattern_(pattern), suffix_(std::move(suffix)) {}

  void run(ast::Body& body, const Site& site, std::size_t alternative, bool members) {
    std::vector<Statement>& statements = site.statements(body);
    const Expr call = site.call(body);
    const Span at = statements[site.statement].span;
    std::vector<Statement> made = bind_operands(call, at);
    bind_attributes(call);
    std::vector<Binder> results = bind_results(call, statements[site.statement], site.top());
    ast::Body inner = pattern_.alternatives[alternative];
    bind_locals(inner);
    deepen(inner, recursion_depth(call));
    rename_.apply(inner);
    for (Statement& s : inner.statements) {
      s.span = at;
      for (Binder& binder : s.binders) take_type(binder, results);
      made.push_back(std::move(s));
    }
    if (members)
      return put_expression(statements[site.statement], site.call(body), made, results.front());
    put_in_place(statements, site, site.call(body), std::move(made), results.front().name);
    for (ast::Clause& clause : inner.clauses) {
      for (Statement& s : clause.statements) {
        s.span = at;
        for (Binder& binder : s.binders) take_type(binder, results);
      }
      body.clauses.push_back(std::move(clause));
    }
  }

 private:
  static void put_in_place(std::vector<Statement>& statements, const Site& site, Expr& call,
                           std::vector<Statement> made, const std::string& result) {
    const auto at = statements.begin() + static_cast<std::ptrdiff_t>(site.statement);
    if (site.top()) {
      statements.insert(statements.erase(at), std::make_move_iterator(made.begin()),
                        std::make_move_iterator(made.end()));
      return;
    }
    Expr value = path_expr(result, call.span);
    value.type = std::move(call.type);
    call = std::move(value);
    statements.insert(at, std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
  }

  /// Folds the statements into one expression, from the result up: each binds a name that is read
  /// once.
  static void put_expression(Statement& statement, Expr& call, std::vector<Statement>& made,
                             const Binder& result) {
    Expr value = path_expr(result.name, call.span);
    fold(value, made);
    std::move(call.type.begin(), call.type.end(), std::back_inserter(value.type));
    const bool top = &call == &statement.value;
    call = std::move(value);
    if (!top) return;
    std::move(call.type.begin(), call.type.end(),
              std::back_inserter(statement.binders.front().type));
    call.type.clear();
  }

  static void fold(Expr& expr, const std::vector<Statement>& made) {
    if (expr.kind == Expr::Kind::path) {
      const auto bound = std::find_if(made.begin(), made.end(), [&](const Statement& s) {
        return s.binders.front().name == expr.text;
      });
      if (bound == made.end()) return;
      std::vector<TypeExpr> types = std::move(expr.type);
      expr = bound->value;
      const std::vector<TypeExpr>& more = bound->binders.front().type;
      types.insert(types.end(), more.begin(), more.end());
      std::move(types.begin(), types.end(), std::back_inserter(expr.type));
    }
    for (Expr& arg : expr.args) fold(arg, made);
  }

  static void take_type(Binder& binder, std::vector<Binder>& results) {
    for (Binder& result : results) {
      if (result.name != binder.name) continue;
      binder.span = result.span;
      std::move(result.type.begin(), result.type.end(), std::back_inserter(binder.type));
      result.type.clear();
    }
  }

  /// Binds the operands of a call. Names and literals are substituted directly; other operands get
  /// statements of their own, which are returned.
  std::vector<Statement> bind_operands(const Expr& call, Span at) {
    std::vector<Statement> made;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const Expr& arg = call.args[i];
      const bool node = arg.kind == Expr::Kind::call || arg.kind == Expr::Kind::binary;
      const bool unnamed = arg.kind == Expr::Kind::path && arg.text == "_";
      const std::string fresh = pattern_.operands[i] + suffix_;
      Expr with = arg;
      if (node || unnamed) {
        with = path_expr(fresh, arg.span);
        with.type = arg.type;
      }
      if (node) {
        Statement s;
        s.span = at;
        s.binders.push_back({fresh, arg.span, false, {}});
        s.value = arg;
        s.value.type.clear();
        made.push_back(std::move(s));
      }
      rename_.put(pattern_.operands[i], std::move(with));
    }
    return made;
  }

  void bind_attributes(const Expr& call) {
    for (const AttributeArg& parameter : pattern_.attributes) {
      Expr with = path_expr(parameter.name + suffix_, parameter.span);
      for (const AttributeArg& a : call.attributes) {
        if (a.name == parameter.name)
          with = a.value.empty() ? path_expr(a.name, a.span) : a.value.front();
      }
      rename_.put(parameter.name, std::move(with));
    }
  }

  std::vector<Binder> bind_results(const Expr& call, const Statement& statement, bool top) {
    std::vector<Binder> results;
    for (std::size_t i = 0; i < pattern_.results.size(); ++i) {
      Binder binder{pattern_.results[i] + suffix_, call.span, false, {}};
      if (top && statement.binders[i].name != "_") binder = statement.binders[i];
      rename_.put(pattern_.results[i], path_expr(binder.name, binder.span));
      results.push_back(std::move(binder));
    }
    return results;
  }

  /// Renames everything else that the alternative names, since it is local.
  void bind_locals(const ast::Body& body) {
    const auto local = [&](const Occurrence& o) {
      const std::string name(o.name);
      const bool own = !name.empty() && name != "_" && !rename_.has(name) && !dtype_named(name) &&
                       !program_.params.contains(name) && o.place != Place::function &&
                       !(o.place == Place::callee &&
                         (context_.ops.find(name).valid() || program_.patterns.contains(name)));
      if (own) rename_.put(name, path_expr(name + suffix_, o.span));
    };
    for (const Statement& s : body.statements) visit_statement(s, local);
    for (const ast::Clause& clause : body.clauses) {
      for (const Expr& guard : clause.guards) visit_scalar(guard, Place::guard, local);
      for (const Statement& s : clause.statements) visit_statement(s, local);
    }
  }

  void deepen(ast::Body& body, std::int64_t depth) const {
    for (Statement& s : body.statements) deepen(s.value, depth);
    for (ast::Clause& clause : body.clauses) {
      for (Statement& s : clause.statements) deepen(s.value, depth);
    }
  }

  void deepen(Expr& expr, std::int64_t depth) const {
    if (expr.kind == Expr::Kind::call) {
      auto it = program_.patterns.find(expr.text);
      if (it != program_.patterns.end())
        expr.integer = depth + (it->second->recursive && pattern_.recursive ? 1 : 0);
    }
    for (Expr& arg : expr.args) deepen(arg, depth);
  }

  const Context& context_;
  const Program& program_;
  const ast::Pattern& pattern_;
  std::string suffix_;
  Rename rename_;
};

bool is_output(const ast::Rule& rule, const std::string& name) {
  return std::any_of(rule.replacement.begin(), rule.replacement.end(), [&](const Statement& s) {
    return std::any_of(s.binders.begin(), s.binders.end(),
                       [&](const Binder& b) { return b.name == name; });
  });
}

/// Returns the index of the first statement that is an alias, or the number of statements.
std::size_t find_alias(const ast::Rule& rule, const std::vector<Statement>& statements) {
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Statement& s = statements[i];
    if (s.binders.size() == 1 && s.value.kind == Expr::Kind::path &&
        s.value.text.find('.') == std::string::npos && !is_drop(s) &&
        !is_output(rule, s.binders.front().name))
      return i;
  }
  return statements.size();
}

/// Resolves aliases in a list of statements. `inner`: nothing outside reads their bindings.
void resolve_in(ast::Rule& rule, std::vector<Statement>& statements, bool inner) {
  for (std::size_t i; (i = find_alias(rule, statements)) != statements.size();) {
    Statement& s = statements[i];
    Rename rename;
    Expr with = s.value;
    std::move(s.binders.front().type.begin(), s.binders.front().type.end(),
              std::back_inserter(with.type));
    rename.put(s.binders.front().name, std::move(with));
    statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
    if (inner) {
      for (Statement& other : statements) rename.apply(other);
      continue;
    }
    rename.apply(rule.body);
    for (Statement& r : rule.replacement) rename.apply(r);
  }
}

}  // namespace

std::vector<Statement>& Site::statements(ast::Body& body) const {
  return clause < 0 ? body.statements : body.clauses[static_cast<std::size_t>(clause)].statements;
}

Expr& Site::call(ast::Body& body) const {
  Expr* expr = &statements(body)[statement].value;
  for (std::size_t i : args) expr = &expr->args[i];
  return *expr;
}

void inline_pattern(const Context& context, const Program& program, ast::Body& body,
                    const Site& site, const ast::Pattern& pattern, std::size_t alternative,
                    const std::string& suffix, bool members) {
  Inliner(context, program, pattern, suffix).run(body, site, alternative, members);
}

bool is_tree(const ast::Body& alternative, const ast::Pattern& pattern, const Expr& call) {
  if (pattern.results.size() != 1) return false;
  std::map<std::string, int, std::less<>> reads;
  for (const Statement& s : alternative.statements) {
    if (s.many || s.binders.size() != 1 || s.binders.front().spread) return false;
    visit_operand(s.value, [&](const Occurrence& o) { ++reads[std::string(o.name)]; });
  }
  for (std::size_t i = 0; i < call.args.size() && i < pattern.operands.size(); ++i)
    if (call.args[i].kind != Expr::Kind::path && reads[pattern.operands[i]] > 1) return false;
  return std::all_of(alternative.statements.begin(), alternative.statements.end(),
                     [&](const Statement& s) {
                       const std::string& name = s.binders.front().name;
                       return name == pattern.results.front() ? reads[name] == 0 : reads[name] == 1;
                     });
}

void resolve_aliases(ast::Rule& rule) {
  resolve_in(rule, rule.body.statements, false);
  for (ast::Clause& clause : rule.body.clauses)
    resolve_in(rule, clause.statements, clause.kind == ast::Clause::Kind::unless);
}

}  // namespace pw

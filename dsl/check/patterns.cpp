#include "dsl/build/patterns.hpp"

#include <algorithm>
#include <set>

#include "dsl/check/call.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class PatternCheck {
 public:
  PatternCheck(const Context& context, const Program& program, Diagnostics& out)
      : context_(context), program_(program), out_(out) {}

  void check(const ast::Pattern& pattern) {
    if (context_.ops.find(pattern.name).valid())
      out_.push_back(error_at(pattern.name_span, "PW0380",
                              "an op is already called " + in_ticks(pattern.name),
                              "rename the pattern"));
    if (pattern.results.empty())
      out_.push_back(error_at(pattern.name_span, "PW0381",
                              "pattern " + in_ticks(pattern.name) + " has no results",
                              "write `-> y`"));
    for (const ast::Body& body : pattern.alternatives) {
      bind(pattern, body);
      for (const Statement& s : body.statements) calls(s);
      for (const ast::Clause& clause : body.clauses) {
        for (const Statement& s : clause.statements) calls(s);
      }
    }
    check_descent(pattern);
  }

  /// Checks that each cycle of calls passes a node, and that some alternative ends.
  void check_descent(const ast::Pattern& pattern) {
    if (!pattern.recursive) return;
    bool ends = false;
    for (const ast::Body& body : pattern.alternatives) {
      const std::set<std::string> called_here = calls_of(body);
      const bool around =
          std::any_of(called_here.begin(), called_here.end(), [&](const std::string& called) {
            return program_.patterns.find(called)->second->recursive;
          });
      ends = ends || !around;
      for (const Statement& s : body.statements) descent(pattern, body, s, s.value, false);
      for (const ast::Clause& clause : body.clauses) {
        for (const Statement& s : clause.statements) descent(pattern, body, s, s.value, false);
      }
    }
    if (!ends)
      out_.push_back(error_at(pattern.name_span, "PW0389",
                              "every alternative of pattern " + in_ticks(pattern.name) +
                                  " calls it again, so it never ends",
                              "add an alternative without a recursive call, as in `y = x`"));
  }

  void visit(const ast::Pattern& pattern) {
    if (done_.contains(pattern.name)) return;
    if (!open_.insert(pattern.name).second) {
      const bool marked =
          std::all_of(path_.begin(), path_.end(), [](const auto* p) { return p->recursive; });
      if (!marked)
        out_.push_back(error_at(pattern.name_span, "PW0382",
                                "pattern " + in_ticks(pattern.name) + " calls itself",
                                "write `pattern rec`, with a node before the call"));
      return;
    }
    path_.push_back(&pattern);
    for (const ast::Body& body : pattern.alternatives) {
      for (const std::string& called : calls_of(body))
        visit(*program_.patterns.find(called)->second);
    }
    path_.pop_back();
    open_.erase(pattern.name);
    done_.insert(pattern.name);
  }

 private:
  void bind(const ast::Pattern& pattern, const ast::Body& body) {
    std::set<std::string> bound;
    for (const Statement& s : body.statements) {
      for (const Binder& binder : s.binders) bound.insert(binder.name);
    }
    for (const ast::Clause& clause : body.clauses) {
      if (clause.kind != ast::Clause::Kind::given) continue;
      for (const Statement& s : clause.statements) {
        for (const Binder& binder : s.binders) bound.insert(binder.name);
      }
    }
    const Span span = body.statements.empty() ? pattern.name_span : body.statements.front().span;
    for (const std::string& result : pattern.results) {
      if (!bound.contains(result))
        out_.push_back(error_at(span, "PW0381",
                                "this alternative of pattern " + in_ticks(pattern.name) +
                                    " does not bind " + in_ticks(result)));
    }
  }

  void calls(const Statement& s) {
    std::set<std::string_view> dtypes;
    visit_statement(s, [&](const Occurrence& o) {
      if (o.place == Place::dtype) dtypes.insert(o.name);
    });
    visit_calls(s, [&](const Expr& call) {
      const bool known = context_.ops.find(call.text).valid() || dtype_named(call.text) ||
                         program_.patterns.contains(call.text) || dtypes.contains(call.text);
      if (!known) out_.push_back(unknown_op(context_, call.text, call.span));
    });
  }

  /// Returns the patterns an alternative calls.
  [[nodiscard]] std::set<std::string> calls_of(const ast::Body& body) const {
    std::set<std::string> called;
    const auto look = [&](const Expr& call) {
      if (program_.patterns.contains(call.text)) called.insert(call.text);
    };
    for (const Statement& s : body.statements) visit_calls(s, look);
    for (const ast::Clause& clause : body.clauses) {
      for (const Statement& s : clause.statements) visit_calls(s, look);
    }
    return called;
  }

  /// Returns true for an op that is present in any case.
  [[nodiscard]] bool is_node(const Expr& e) const {
    if (e.kind == Expr::Kind::binary || e.kind == Expr::Kind::negate) return true;
    return e.kind == Expr::Kind::call && !e.optional && !program_.patterns.contains(e.text);
  }

  void descent(const ast::Pattern& pattern, const ast::Body& body, const Statement& s,
               const Expr& e, bool under_node) {
    const auto it =
        e.kind == Expr::Kind::call ? program_.patterns.find(e.text) : program_.patterns.end();
    if (it != program_.patterns.end() && it->second->recursive && !under_node && !reads_node(e) &&
        !read_by_node(body, s))
      out_.push_back(error_at(
          e.span, "PW0388",
          "this call of " + in_ticks(e.text) + " in the recursive pattern " +
              in_ticks(pattern.name) + " is not deeper than the pattern itself",
          "put a node that is not optional around it, as in `y = reshape(" + e.text + "(x)){..}`"));
    for (const Expr& arg : e.args) descent(pattern, body, s, arg, under_node || is_node(e));
  }

  [[nodiscard]] bool reads_node(const Expr& call) const {
    return std::any_of(call.args.begin(), call.args.end(),
                       [&](const Expr& arg) { return is_node(arg); });
  }

  /// Returns true if a result of the statement is an operand of a node elsewhere.
  [[nodiscard]] bool read_by_node(const ast::Body& body, const Statement& bound) const {
    std::set<std::string_view> names;
    for (const Binder& binder : bound.binders) names.insert(binder.name);
    const auto reads = [&](const Statement& s) {
      if (!is_node(s.value)) return false;
      bool found = false;
      visit_operand(s.value, [&](const Occurrence& o) {
        found = found || (o.place == Place::operand && names.contains(o.name));
      });
      return found;
    };
    return std::any_of(body.statements.begin(), body.statements.end(), reads);
  }

  const Context& context_;
  const Program& program_;
  Diagnostics& out_;
  std::set<std::string> open_, done_;
  std::vector<const ast::Pattern*> path_;  ///< the open ones, outermost first
};

}  // namespace

bool check_patterns(const Context& context, const Program& program, Diagnostics& out) {
  const std::size_t before = out.size();
  PatternCheck check(context, program, out);
  for (const auto& [name, pattern] : program.patterns) check.check(*pattern);
  for (const auto& [name, pattern] : program.patterns) check.visit(*pattern);
  return out.size() == before;
}

}  // namespace pw

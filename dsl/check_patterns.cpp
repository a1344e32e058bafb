// Exports check_patterns.
#include <set>

#include "dsl/check_call.hpp"
#include "dsl/patterns.hpp"
#include "dsl/suggest.hpp"
#include "dsl/walk.hpp"

namespace pw {
namespace {

class PatternCheck {
 public:
  PatternCheck(const Context& context, const Program& program, Diagnostics& out)
      : context_(context), program_(program), out_(out) {}

  void check(const ast::Pattern& pattern) {
    if (context_.ops.find(pattern.name).valid())
      out_.push_back(error_at(pattern.name_span, "PW0380",
                              "there is an op called " + in_ticks(pattern.name),
                              "give the pattern another name"));
    if (pattern.results.empty())
      out_.push_back(error_at(pattern.name_span, "PW0381",
                              "pattern " + in_ticks(pattern.name) + " has no results",
                              "write `-> y`"));
    for (const ast::Body& body : pattern.alternatives) {
      bind(pattern, body);
      for (const Statement& s : body.statements) calls(s);
    }
  }

  void visit(const ast::Pattern& pattern) {
    if (done_.contains(pattern.name)) return;
    if (!open_.insert(pattern.name).second) {
      out_.push_back(error_at(pattern.name_span, "PW0382",
                              "pattern " + in_ticks(pattern.name) + " leads back to itself"));
      return;
    }
    for (const ast::Body& body : pattern.alternatives) {
      for (const Statement& s : body.statements) {
        visit_calls(s, [&](const Expr& call) {
          if (auto it = program_.patterns.find(call.text); it != program_.patterns.end())
            visit(*it->second);
        });
      }
    }
    open_.erase(pattern.name);
    done_.insert(pattern.name);
  }

 private:
  void bind(const ast::Pattern& pattern, const ast::Body& body) {
    std::set<std::string> bound;
    for (const Statement& s : body.statements) {
      for (const Binder& binder : s.binders) bound.insert(binder.name);
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

  const Context& context_;
  const Program& program_;
  Diagnostics& out_;
  std::set<std::string> open_, done_;
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

#include "dsl/build/op_variables.hpp"

#include <algorithm>

#include "dsl/build/declare_op.hpp"
#include "dsl/check/call.hpp"
#include "dsl/same_op.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostChoices = 4096;

/// Statements of a rule or an alternative that contain a variable.
struct Text {
  ast::Body* body = nullptr;
  std::vector<Statement>* replacement = nullptr;  ///< null: of an alternative

  template <class Visitor>
  void each(const Visitor& visitor) const {
    for (Statement& s : body->statements) visitor(s, Side::pattern);
    for (ast::Clause& clause : body->clauses)
      for (Statement& s : clause.statements) visitor(s, Side::pattern);
    if (replacement == nullptr) return;
    for (Statement& s : *replacement) visitor(s, Side::build);
  }
};

void rename_calls(Expr& e, const std::string& variable, const std::string& op) {
  for (Expr& arg : e.args) rename_calls(arg, variable, op);
  if (e.kind == Expr::Kind::call && e.text == variable) e.text = op;
}

/// Returns true if the op can be called with this number of operands and these attributes.
bool takes(const Context& context, const Op& op, const Expr& call, Side side) {
  Diagnostics wrong;
  check_call(context, op, call, side, wrong);
  return !has_errors(wrong);
}

bool gives(const Op& op, const Statement& s, const Expr& call) {
  Diagnostics wrong;
  const bool top = &call == &s.value;
  const bool spread = top && std::any_of(s.binders.begin(), s.binders.end(),
                                         [](const Binder& b) { return b.spread; });
  check_result_count(op, top ? s.binders.size() : 1, spread, s.span, wrong);
  return !has_errors(wrong);
}

class VariableReader {
 public:
  VariableReader(const Context& context, Diagnostics& out) : context_(context), out_(out) {}

  /// Returns the ops that a variable stands for; none after an error, which has been reported.
  std::vector<std::string> ops_of(const ast::OpVariable& variable, const Text& text) {
    if (!is_sound(variable, text)) return {};
    std::vector<std::string> found;
    for (const std::string& name : context_.ops.names()) {
      const Op& op = context_.ops[context_.ops.find(name)];
      // Ops that `fuse` declared while rules were loaded depend on the order of loading.
      if (op.imported || op.local || !has_trait(op, variable.trait)) continue;
      if (fits(op, variable.name, text)) found.push_back(name);
    }
    if (found.empty())
      refuse(variable.span, "PW0378",
             "no op that is " + in_ticks(variable.trait) + " can be called like " +
                 in_ticks(variable.name) + " is here",
             "it must have the operands, results and attributes of every call");
    return found;
  }

  void refuse(Span span, std::string_view code, std::string message, std::string help) {
    out_.push_back(error_at(span, code, std::move(message), std::move(help)));
  }

 private:
  bool is_sound(const ast::OpVariable& variable, const Text& text) {
    if (const OpId op = context_.ops.find(variable.name); op.valid())
      out_.push_back(shadows_library("op variable", variable.name, variable.name_span,
                                     context_.ops[op].span, "rename the variable to call the op"));
    const std::size_t before = out_.size();
    if (!is_trait(variable.trait))
      refuse(variable.trait_span, "PW0210", "unknown trait " + in_ticks(variable.trait),
             did_you_mean(variable.trait, trait_names(),
                          "an op variable stands for the ops that have a trait, as in "
                          "`op f: pointwise`"));
    bool called = false;
    text.each([&](Statement& s, Side side) {
      visit_statement(s, [&](const Occurrence& o) {
        if (o.name != variable.name) return;
        if (o.place == Place::callee)
          called = called || side == Side::pattern;
        else
          refuse(o.span, "PW0377",
                 in_ticks(variable.name) + " is an op here, and can only be called",
                 "rename the value or attribute");
      });
    });
    if (!called && out_.size() == before)
      refuse(variable.span, "PW0377",
             "the pattern does not call " + in_ticks(variable.name) + ", so it could be any op",
             "call it on the left side");
    return out_.size() == before;
  }

  bool fits(const Op& op, const std::string& variable, const Text& text) const {
    bool all = true;
    text.each([&](Statement& s, Side side) {
      visit_calls(s, [&](const Expr& call) {
        if (call.text == variable)
          all = all && takes(context_, op, call, side) && gives(op, s, call);
      });
    });
    return all;
  }

  const Context& context_;
  Diagnostics& out_;
};

/// Returns `r[relu]`; for a row or a direction `r[row_relu]`.
std::string with_op(std::string name, const std::string& op) {
  if (!name.ends_with(']')) return name + "[" + op + "]";
  name.pop_back();
  return name + "_" + op + "]";
}

Text text_of(ast::Rule& rule) { return {&rule.body, &rule.replacement}; }
Text text_of(ast::Body& body) { return {&body, nullptr}; }
ast::Body& body_of(ast::Rule& rule) { return rule.body; }
ast::Body& body_of(ast::Body& body) { return body; }
void note(ast::Rule& rule, const std::string& op) { rule.name = with_op(rule.name, op); }
void note(ast::Body&, const std::string&) {}

template <class T>
std::vector<T> choose(const Context& context, const T& from, Diagnostics& out) {
  std::vector<T> chosen{from};
  std::vector<ast::OpVariable> variables = std::move(body_of(chosen.front()).ops);
  body_of(chosen.front()).ops.clear();
  VariableReader reader(context, out);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const ast::OpVariable& variable = variables[i];
    for (std::size_t k = 0; k < i; ++k)
      if (variables[k].name == variable.name) {
        reader.refuse(variable.name_span, "PW0377", in_ticks(variable.name) + " is declared twice",
                      "leave out one of them");
        return {};
      }
    const std::vector<std::string> ops = chosen.empty()
                                             ? std::vector<std::string>{}
                                             : reader.ops_of(variable, text_of(chosen.front()));
    if (chosen.size() * ops.size() > kMostChoices) {
      reader.refuse(variable.span, "PW0386",
                    "there are more than " + std::to_string(kMostChoices) + " choices of ops",
                    "each variable multiplies their number; write two rules");
      return {};
    }
    std::vector<T> next;
    for (const T& one : chosen) {
      for (const std::string& op : ops) {
        next.push_back(one);
        text_of(next.back()).each([&](Statement& s, Side) {
          rename_calls(s.value, variable.name, op);
        });
        note(next.back(), op);
      }
    }
    chosen = std::move(next);
  }
  return chosen;
}

}  // namespace

std::vector<ast::Rule> choose_ops(const Context& context, const ast::Rule& rule, Diagnostics& out) {
  return choose(context, rule, out);
}
std::vector<ast::Body> choose_ops(const Context& context, const ast::Body& body, Diagnostics& out) {
  return choose(context, body, out);
}

}  // namespace pw

// Exports expand_choices.
#include "dsl/patterns.hpp"

#include <algorithm>

#include "dsl/names.hpp"
#include "dsl/rename.hpp"
#include "dsl/suggest.hpp"
#include "dsl/walk.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostVariants = 64;

/// A call on the left side that leaves a choice: of a pattern, or of an optional op.
struct Site {
  std::vector<Statement>* statements = nullptr;
  std::size_t index = 0;
  Expr* call = nullptr;
  [[nodiscard]] Statement& statement() const { return (*statements)[index]; }
  [[nodiscard]] bool top() const { return call == &statement().value; }
};

class Expansion {
 public:
  Expansion(const Context& context, const Program& program, Diagnostics& out)
      : context_(context), program_(program), out_(out) {}

  std::vector<ast::Rule> run(const ast::Rule& rule) {
    std::vector<ast::Rule> open{rule}, done;
    while (!open.empty()) {
      ast::Rule next = std::move(open.back());
      open.pop_back();
      if (!find(next).call) {
        resolve_aliases(next);
        done.push_back(std::move(next));
      } else if (!choose(next, open)) {
        return {};
      }
      if (done.size() + open.size() > kMostVariants) {
        out_.push_back(
            error_at(rule.name_span, "PW0386",
                     "rule " + in_ticks(rule.name) + " has more than " +
                         std::to_string(kMostVariants) + " variants",
                     "each alternative and each optional node doubles them; write two rules"));
        return {};
      }
    }
    if (done.size() > 1) number(done);
    return done;
  }

 private:
  static void number(std::vector<ast::Rule>& rules) {
    for (std::size_t i = 0; i < rules.size(); ++i)
      rules[i].name += std::string(rules.size() > 10 && i < 10 ? "#0" : "#") + std::to_string(i);
  }

  // ---- finding choices

  [[nodiscard]] bool is_choice(const Expr& e) const {
    return e.kind == Expr::Kind::call && (e.optional || program_.patterns.contains(e.text));
  }

  Expr* find(Expr& e) {
    if (is_choice(e)) return &e;
    for (Expr& arg : e.args) {
      if (Expr* found = find(arg)) return found;
    }
    return nullptr;
  }

  Site find(std::vector<Statement>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (Expr* call = find(statements[i].value)) return {&statements, i, call};
    }
    return {};
  }

  Site find(ast::Rule& rule) {
    Site site = find(rule.body.statements);
    for (std::size_t i = 0; site.call == nullptr && i < rule.body.clauses.size(); ++i)
      site = find(rule.body.clauses[i].statements);
    return site;
  }

  // ---- choosing

  /// Puts a rule for each choice on top of `open`, the first one uppermost.
  bool choose(const ast::Rule& rule, std::vector<ast::Rule>& open) {
    ast::Rule copy = rule;
    const Expr call = *find(copy).call;
    std::vector<ast::Rule> choices;
    if (call.optional) {
      for (bool present : {true, false}) {
        choices.push_back(rule);
        if (!choose_optional(find(choices.back()), present)) return false;
      }
    }
    if (!call.optional && !agrees(find(copy), *program_.patterns.find(call.text)->second))
      return false;
    const std::size_t alternatives =
        call.optional ? 0 : program_.patterns.find(call.text)->second->alternatives.size();
    for (std::size_t i = 0; i < alternatives; ++i) {
      choices.push_back(rule);
      inline_pattern(choices.back(), *program_.patterns.find(call.text)->second, i);
    }
    std::move(choices.rbegin(), choices.rend(), std::back_inserter(open));
    return true;
  }

  bool choose_optional(Site site, bool present) {
    Expr& call = *site.call;
    if (call.args.size() != 1) {
      out_.push_back(
          error_at(call.span, "PW0387",
                   "an optional node has one operand, which stands for it when it is absent"));
      return false;
    }
    if (present) {
      call.optional = false;
      const OpId op = context_.ops.find(call.text);
      const bool attributes = op.valid() && !context_.ops[op].attributes.empty();
      if (!call.braces && attributes) call.braces = call.open = true;
      if (call.attributes.empty()) share(site);
      return true;
    }
    Expr operand = std::move(call.args.front());
    for (TypeExpr& type : call.type) operand.type.push_back(std::move(type));
    call = std::move(operand);
    return true;
  }

  /// An optional node written twice over one value is one node: graphs hold it once. It gets a
  /// statement of its own.
  static void share(Site site) {
    Expr& call = *site.call;
    Expr& operand = call.args.front();
    if (site.top() || operand.kind != Expr::Kind::path) return;
    const std::string name = call.text + "#" + operand.text;
    Expr value = path_expr(name, call.span);
    value.type = std::move(call.type);
    call.type.clear();
    for (std::size_t i = 0; i < site.index; ++i) {
      Statement& earlier = (*site.statements)[i];
      if (earlier.binders.size() != 1 || earlier.binders.front().name != name) continue;
      auto& types = earlier.value.args.front().type;
      types.insert(types.end(), operand.type.begin(), operand.type.end());
      call = std::move(value);
      return;
    }
    Statement made;
    made.span = site.statement().span;
    made.binders.push_back({name, call.span, false, {}});
    made.value = std::move(call);
    call = std::move(value);
    site.statements->insert(site.statements->begin() + static_cast<std::ptrdiff_t>(site.index),
                            std::move(made));
  }

  bool agrees(Site site, const ast::Pattern& pattern) {
    const Expr& call = *site.call;
    const std::size_t before = out_.size();
    const auto report = [&](Span span, std::string message, std::string help = {}) {
      Diagnostic d = error_at(span, "PW0383", std::move(message), std::move(help));
      d.secondary.push_back({pattern.name_span, "declared here"});
      out_.push_back(std::move(d));
    };
    if (call.args.size() != pattern.operands.size())
      report(call.span, "pattern " + in_ticks(pattern.name) + " takes " +
                            std::to_string(pattern.operands.size()) + " operands, here are " +
                            std::to_string(call.args.size()));
    const std::size_t results = site.top() ? site.statement().binders.size() : 1;
    if (results != pattern.results.size())
      report(call.span, "pattern " + in_ticks(pattern.name) + " has " +
                            std::to_string(pattern.results.size()) + " results, here are " +
                            std::to_string(results));
    std::vector<std::string> known;
    for (const AttributeArg& a : pattern.attributes) known.push_back(a.name);
    for (const AttributeArg& a : call.attributes) {
      if (std::find(known.begin(), known.end(), a.name) == known.end())
        report(a.span,
               "pattern " + in_ticks(pattern.name) + " has no attribute " + in_ticks(a.name),
               did_you_mean(a.name, known));
    }
    for (const std::string& name : known) {
      const bool written = std::any_of(call.attributes.begin(), call.attributes.end(),
                                       [&](const AttributeArg& a) { return a.name == name; });
      if (!written && !call.open)
        report(call.span,
               "attribute " + in_ticks(name) + " of pattern " + in_ticks(pattern.name) +
                   " must be written or opened",
               "write `{" + name + "}`, or `{..}`");
    }
    return out_.size() == before;
  }

  // ---- putting a pattern's statements in place of its call

  void inline_pattern(ast::Rule& rule, const ast::Pattern& pattern, std::size_t alternative) {
    const Site site = find(rule);
    const Expr call = *site.call;
    const Span at = site.statement().span;
    const std::string suffix = "#" + std::to_string(++uses_);
    Rename rename;
    std::vector<Statement> made = bind_operands(pattern, call, suffix, at, rename);
    bind_attributes(pattern, call, suffix, rename);
    std::vector<Binder> results = bind_results(pattern, site, suffix, rename);
    ast::Body body = pattern.alternatives[alternative];
    bind_locals(body, suffix, rename);
    rename.apply(body);
    for (Statement& s : body.statements) {
      s.span = at;
      for (Binder& binder : s.binders) take_type(binder, results);
      made.push_back(std::move(s));
    }
    for (ast::Clause& clause : body.clauses) rule.body.clauses.push_back(std::move(clause));
    put_in_place(find(rule), std::move(made), results.front().name);
  }

  /// The site is found again: a clause more may have moved the statements.
  static void put_in_place(Site site, std::vector<Statement> made, const std::string& result) {
    const auto at = static_cast<std::ptrdiff_t>(site.index);
    if (site.top()) {
      site.statements->erase(site.statements->begin() + at);
    } else {
      Expr value = path_expr(result, site.call->span);
      value.type = site.call->type;
      *site.call = std::move(value);
    }
    site.statements->insert(site.statements->begin() + at, made.begin(), made.end());
  }

  static void take_type(Binder& binder, std::vector<Binder>& results) {
    for (Binder& result : results) {
      if (result.name != binder.name) continue;
      binder.span = result.span;
      std::move(result.type.begin(), result.type.end(), std::back_inserter(binder.type));
      result.type.clear();
    }
  }

  /// Names and literals go in as they are; other operands are bound by statements of their own,
  /// which are returned.
  std::vector<Statement> bind_operands(const ast::Pattern& pattern, const Expr& call,
                                       const std::string& suffix, Span at, Rename& rename) const {
    std::vector<Statement> made;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      const Expr& arg = call.args[i];
      const bool node = arg.kind == Expr::Kind::call || arg.kind == Expr::Kind::binary;
      const bool unnamed = arg.kind == Expr::Kind::path && arg.text == "_";
      const std::string fresh = pattern.operands[i] + suffix;
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
      rename.put(pattern.operands[i], std::move(with));
    }
    return made;
  }

  static void bind_attributes(const ast::Pattern& pattern, const Expr& call,
                              const std::string& suffix, Rename& rename) {
    for (const AttributeArg& parameter : pattern.attributes) {
      Expr with = path_expr(parameter.name + suffix, parameter.span);
      for (const AttributeArg& a : call.attributes) {
        if (a.name == parameter.name)
          with = a.value.empty() ? path_expr(a.name, a.span) : a.value.front();
      }
      rename.put(parameter.name, std::move(with));
    }
  }

  static std::vector<Binder> bind_results(const ast::Pattern& pattern, Site site,
                                          const std::string& suffix, Rename& rename) {
    std::vector<Binder> results;
    for (std::size_t i = 0; i < pattern.results.size(); ++i) {
      Binder binder{pattern.results[i] + suffix, site.call->span, false, {}};
      if (site.top() && site.statement().binders[i].name != "_")
        binder = site.statement().binders[i];
      rename.put(pattern.results[i], path_expr(binder.name, binder.span));
      results.push_back(std::move(binder));
    }
    return results;
  }

  /// Everything else the alternative names is its own.
  void bind_locals(const ast::Body& body, const std::string& suffix, Rename& rename) const {
    const auto local = [&](const Occurrence& o) {
      const std::string name(o.name);
      const bool own = !name.empty() && name != "_" && !rename.has(name) && !dtype_named(name) &&
                       !program_.params.contains(name) && o.place != Place::function &&
                       !(o.place == Place::callee &&
                         (context_.ops.find(name).valid() || program_.patterns.contains(name)));
      if (own) rename.put(name, path_expr(name + suffix, o.span));
    };
    for (const Statement& s : body.statements) visit_statement(s, local);
    for (const ast::Clause& clause : body.clauses) {
      for (const Expr& guard : clause.guards) visit_scalar(guard, Place::guard, local);
    }
  }

  // ---- aliases

  /// `y = x` on the left, which an absent optional node leaves, makes y another name of x; an
  /// output keeps its statement, which is then diagnosed.
  static void resolve_aliases(ast::Rule& rule) {
    for (std::size_t i = 0; i < rule.body.statements.size();) {
      const Statement& s = rule.body.statements[i];
      const bool alias = s.binders.size() == 1 && s.value.kind == Expr::Kind::path &&
                         s.value.text.find('.') == std::string::npos && !is_drop(s) &&
                         !is_output(rule, s.binders.front().name);
      if (!alias) {
        ++i;
        continue;
      }
      Rename rename;
      Expr with = s.value;
      std::move(s.binders.front().type.begin(), s.binders.front().type.end(),
                std::back_inserter(with.type));
      rename.put(s.binders.front().name, std::move(with));
      rule.body.statements.erase(rule.body.statements.begin() + static_cast<std::ptrdiff_t>(i));
      rename.apply(rule.body);
      for (Statement& r : rule.replacement) rename.apply(r);
    }
  }

  static bool is_output(const ast::Rule& rule, const std::string& name) {
    return std::any_of(rule.replacement.begin(), rule.replacement.end(), [&](const Statement& s) {
      return std::any_of(s.binders.begin(), s.binders.end(),
                         [&](const Binder& b) { return b.name == name; });
    });
  }

  const Context& context_;
  const Program& program_;
  Diagnostics& out_;
  std::size_t uses_ = 0;
};

}  // namespace

std::vector<ast::Rule> expand_choices(const Context& context, const Program& program,
                                      const ast::Rule& rule, Diagnostics& out) {
  return Expansion(context, program, out).run(rule);
}

}  // namespace pw

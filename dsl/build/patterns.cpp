#include "dsl/build/patterns.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/counted.hpp"
#include "dsl/build/inline_pattern.hpp"
#include "dsl/syntax/names.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostVariants = 4096;

class Expansion {
 public:
  Expansion(const Context& context, const Program& program, std::int64_t levels, Diagnostics& out)
      : context_(context), program_(program), levels_(levels), out_(out) {}

  std::vector<ChosenRule> run(const ast::Rule& rule) {
    std::vector<ast::Rule> open{rule};
    std::vector<ChosenRule> done, frontiers;
    while (!open.empty()) {
      ast::Rule next = std::move(open.back());
      open.pop_back();
      if (std::optional<Site> site = site_of(next)) {
        if (!choose(std::move(next), *site, open)) return {};
      } else if (has_closed(next)) {
        frontiers.push_back({std::move(next), true});
      } else {
        resolve_aliases(next);
        done.push_back({std::move(next), false});
      }
      if (done.size() + open.size() > kMostVariants) return too_many(rule);
    }
    number(done, frontiers);
    std::move(frontiers.begin(), frontiers.end(), std::back_inserter(done));
    return done;
  }

 private:
  std::vector<ChosenRule> too_many(const ast::Rule& rule) {
    out_.push_back(
        error_at(rule.name_span, "PW0386",
                 "rule " + in_ticks(rule.name) + " has more than " + std::to_string(kMostVariants) +
                     " variants",
                 "each alternative and each optional node doubles their number; write two rules"));
    return {};
  }

  /// Numbers the rules: `r#0`, `r#1`, … and frontiers `r#+0`, …; in an opened frontier, `r#+0.0`
  /// and `r#+0+0`.
  static void number(std::vector<ChosenRule>& done, std::vector<ChosenRule>& frontiers) {
    const bool opened = !done.empty() && done.front().rule.name.find('#') != std::string::npos;
    if (done.size() < 2 && frontiers.empty() && !opened) return;
    const auto put = [](std::vector<ChosenRule>& rules, const std::string& sign) {
      const std::size_t width = std::to_string(rules.size() - 1).size();
      for (std::size_t i = 0; i < rules.size(); ++i) {
        const std::string digits = std::to_string(i);
        rules[i].rule.name += sign + std::string(width - digits.size(), '0') + digits;
      }
    };
    put(done, opened ? "." : "#");
    put(frontiers, opened ? "+" : "#+");
  }

  // ---- finding choices

  [[nodiscard]] bool recursive(const Expr& e) const {
    if (e.kind != Expr::Kind::call) return false;
    auto it = program_.patterns.find(e.text);
    return it != program_.patterns.end() && it->second->recursive;
  }
  [[nodiscard]] bool closed(const Expr& e) const {
    return recursive(e) && recursion_depth(e) > levels_;
  }
  [[nodiscard]] bool is_choice(const Expr& e) const {
    return e.kind == Expr::Kind::call && (e.optional || program_.patterns.contains(e.text));
  }

  /// Returns the next call to expand. Recursive calls come first, so that a rule with one that
  /// stays closed is recognised early.
  [[nodiscard]] std::optional<Site> site_of(ast::Rule& rule) const {
    if (auto site = find(rule, [&](const Expr& e) { return recursive(e) && !closed(e); }))
      return site;
    if (has_closed(rule)) return {};
    return find(rule, [&](const Expr& e) { return is_choice(e); });
  }

  [[nodiscard]] bool has_closed(ast::Rule& rule) const {
    return find(rule, [&](const Expr& e) { return closed(e); }).has_value();
  }

  template <class Wanted>
  static std::optional<Site> find(ast::Rule& rule, Wanted wanted) {
    Site site;
    const int clauses = static_cast<int>(rule.body.clauses.size());
    for (site.clause = -1; site.clause < clauses; ++site.clause) {
      const std::vector<Statement>& statements = site.statements(rule.body);
      for (site.statement = 0; site.statement < statements.size(); ++site.statement) {
        if (find(statements[site.statement].value, wanted, site.args)) return site;
      }
    }
    return {};
  }

  template <class Wanted>
  static bool find(const Expr& e, Wanted wanted, std::vector<std::size_t>& path) {
    if (wanted(e)) return true;
    for (std::size_t i = 0; i < e.args.size(); ++i) {
      path.push_back(i);
      if (find(e.args[i], wanted, path)) return true;
      path.pop_back();
    }
    return false;
  }

  // ---- choosing

  /// Pushes a rule for each choice on `open`, the first one on top.
  bool choose(ast::Rule rule, const Site& site, std::vector<ast::Rule>& open) {
    const std::size_t choices = count_choices(rule, site);
    if (choices == 0) return false;
    if (in_negation(rule, site)) return choose_all(std::move(rule), site, choices, open);
    ++uses_;
    for (std::size_t i = choices; i-- > 1;) {
      open.push_back(rule);
      apply(open.back().body, site, i);
    }
    open.push_back(std::move(rule));
    apply(open.back().body, site, 0);
    return true;
  }

  static bool in_negation(const ast::Rule& rule, const Site& site) {
    return site.clause >= 0 && rule.body.clauses[static_cast<std::size_t>(site.clause)].kind ==
                                   ast::Clause::Kind::unless;
  }

  /// Returns true for a place that is matched many times: the statement of a `many`, or an operand
  /// of `...`.
  static bool in_members(ast::Body& body, const Site& site) {
    const Statement& statement = site.statements(body)[site.statement];
    const Expr* expr = &statement.value;
    bool members = statement.many;
    for (std::size_t i : site.args) {
      members = members || is_member_spread(*expr);
      expr = &expr->args[i];
    }
    return members;
  }

  /// Expands a choice in `unless`: every alternative must be absent, so each gets a clause.
  bool choose_all(ast::Rule rule, const Site& site, std::size_t choices,
                  std::vector<ast::Rule>& open) {
    const auto at = static_cast<std::size_t>(site.clause);
    std::vector<ast::Clause> made;
    ++uses_;
    for (std::size_t i = 0; i < choices; ++i) {
      ast::Body body;
      body.clauses.push_back(rule.body.clauses[at]);
      Site here = site;
      here.clause = 0;
      apply(body, here, i);
      if (i > 0)
        rename_bound(rule.body, body.clauses.front(),
                     "#" + std::to_string(uses_) + "_" + std::to_string(i));
      made.push_back(std::move(body.clauses.front()));
    }
    rule.body.clauses[at] = std::move(made.front());
    std::move(made.begin() + 1, made.end(), std::back_inserter(rule.body.clauses));
    open.push_back(std::move(rule));
    return true;
  }

  /// Renames what one clause binds, so that clauses are independent; the pattern's names are the
  /// same in all.
  static void rename_bound(const ast::Body& pattern, ast::Clause& clause,
                           const std::string& suffix) {
    std::set<std::string, std::less<>> outside;
    for (const PatternStatement& p : pattern_statements(pattern))
      visit_statement(*p.statement, [&](const Occurrence& o) { outside.emplace(o.name); });
    Rename rename;
    for (const Statement& s : clause.statements)
      for (const Binder& binder : s.binders)
        if (binder.name != "_" && !outside.contains(binder.name))
          rename.put(binder.name, path_expr(binder.name + suffix, binder.span));
    for (Statement& s : clause.statements) rename.apply(s);
  }

  /// Counts the choices; 0 after an error, which has been reported.
  std::size_t count_choices(ast::Rule& rule, const Site& site) {
    const Expr& call = site.call(rule.body);
    const auto pattern = program_.patterns.find(call.text);
    if (call.optional && call.args.size() != 1) {
      out_.push_back(error_at(
          call.span, "PW0387",
          "an optional node must have exactly one operand, which replaces it when it is absent",
          "write both cases: `pattern p(x, b) -> y { y = add(x, b) | y = x }`"));
      return 0;
    }
    if (call.optional)
      return pattern != program_.patterns.end() && is_identity(*pattern->second) ? 1 : 2;
    if (!agrees(call, site.statements(rule.body)[site.statement], site.top(), *pattern->second) ||
        (in_negation(rule, site) && !may_stand_in(call, *pattern->second, "`unless`")) ||
        (in_members(rule.body, site) &&
         !may_stand_in(call, *pattern->second, "what is matched many times")))
      return 0;
    return pattern->second->alternatives.size();
  }

  /// Returns true if one of its alternatives is its operand, so that the call need not be optional.
  static bool is_identity(const ast::Pattern& pattern) {
    return pattern.operands.size() == 1 && pattern.results.size() == 1 &&
           std::any_of(pattern.alternatives.begin(), pattern.alternatives.end(),
                       [&](const ast::Body& body) {
                         return body.statements.size() == 1 && body.clauses.empty() &&
                                body.statements.front().value.kind == Expr::Kind::path &&
                                body.statements.front().value.text == pattern.operands.front();
                       });
  }

  /// Checks that a call may occur in `where`: members, and absent nodes, must be trees of separate
  /// nodes.
  bool may_stand_in(const Expr& call, const ast::Pattern& pattern, const std::string& where) {
    const auto any = [&](auto has) {
      return std::any_of(pattern.alternatives.begin(), pattern.alternatives.end(), has);
    };
    std::string why;
    if (pattern.recursive)
      why = " is recursive";
    else if (any([](const ast::Body& body) { return !body.clauses.empty(); }))
      why = " has clauses";
    else if (where != "`unless`" &&
             any([&](const ast::Body& body) { return !is_tree(body, pattern, call); }))
      why = " reads a node twice, or has several results";
    if (why.empty()) return true;
    out_.push_back(
        error_at(call.span, "PW0296",
                 "pattern " + in_ticks(pattern.name) + why + ", so it cannot be used in " + where,
                 "write out its nodes"));
    return false;
  }

  void apply(ast::Body& body, const Site& site, std::size_t choice) {
    const Expr& call = site.call(body);
    if (call.optional) return choose_optional(body, site, choice == 0);
    const bool members = in_members(body, site);
    inline_pattern(context_, program_, body, site, *program_.patterns.find(call.text)->second,
                   choice, suffix(), members);
  }

  /// Returns the next suffix, distinct from those of a frontier that is being opened.
  [[nodiscard]] std::string suffix() const {
    const std::string use = std::to_string(uses_);
    return levels_ == kOpenLevels ? "#" + use : "#" + std::to_string(levels_) + "_" + use;
  }

  void choose_optional(ast::Body& body, const Site& site, bool present) const {
    const bool members = in_members(body, site);
    Expr& call = site.call(body);
    if (!present) {
      Expr operand = std::move(call.args.front());
      for (TypeExpr& type : call.type) operand.type.push_back(std::move(type));
      call = std::move(operand);
      return;
    }
    call.optional = false;
    const OpId op = context_.ops.find(call.text);
    const bool attributes = op.valid() && !context_.ops[op].attributes.empty();
    if (!call.braces && attributes) call.braces = call.open = true;
    if (op.valid() && call.attributes.empty() && !members) share(site, site.statements(body), call);
  }

  /// Merges repetitions of an optional node over one value into one node, since graphs hold it
  /// once. It gets its own statement.
  static void share(const Site& site, std::vector<Statement>& statements, Expr& call) {
    Expr& operand = call.args.front();
    if (site.top() || operand.kind != Expr::Kind::path) return;
    const std::string name = call.text + "#" + operand.text;
    Expr value = path_expr(name, call.span);
    value.type = std::move(call.type);
    call.type.clear();
    for (std::size_t i = 0; i < site.statement; ++i) {
      Statement& earlier = statements[i];
      if (earlier.binders.size() != 1 || earlier.binders.front().name != name) continue;
      auto& types = earlier.value.args.front().type;
      types.insert(types.end(), operand.type.begin(), operand.type.end());
      call = std::move(value);
      return;
    }
    Statement made;
    made.span = statements[site.statement].span;
    made.binders.push_back({name, call.span, false, {}});
    made.value = std::move(call);
    call = std::move(value);
    statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(site.statement),
                      std::move(made));
  }

  bool agrees(const Expr& call, const Statement& statement, bool top, const ast::Pattern& pattern) {
    const std::size_t before = out_.size();
    const auto report = [&](Span span, std::string message, std::string help = {}) {
      Diagnostic d = error_at(span, "PW0383", std::move(message), std::move(help));
      d.secondary.push_back({pattern.name_span, "declared here"});
      out_.push_back(std::move(d));
    };
    if (call.args.size() != pattern.operands.size())
      report(call.span, "pattern " + in_ticks(pattern.name) + " takes " +
                            counted(pattern.operands.size(), "operand") + ", here are " +
                            std::to_string(call.args.size()));
    const std::size_t results = top ? statement.binders.size() : 1;
    if (results != pattern.results.size())
      report(call.span, "pattern " + in_ticks(pattern.name) + " has " +
                            counted(pattern.results.size(), "result") + ", here are " +
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

  const Context& context_;
  const Program& program_;
  std::int64_t levels_;
  Diagnostics& out_;
  std::size_t uses_ = 0;
};

}  // namespace

std::vector<ChosenRule> expand_choices(const Context& context, const Program& program,
                                       const ast::Rule& rule, std::int64_t levels,
                                       Diagnostics& out) {
  return Expansion(context, program, levels, out).run(rule);
}

}  // namespace pw

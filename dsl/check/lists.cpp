// Checks that lists occur exactly where a list is expected, and that the members of `many` are
// found from a value that all of them read.
#include <algorithm>
#include <set>

#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

bool is_spread(const Expr& expr) { return expr.kind == Expr::Kind::spread; }

class ListCheck {
 public:
  ListCheck(const CheckedRule& checked, Diagnostics& out) : checked_(checked), out_(out) {}

  void run() {
    for (const PatternStatement& p : pattern_statements(checked_.ast.body)) pattern(*p.statement);
    for (const ast::Clause& clause : checked_.ast.body.clauses) {
      for (const Expr& guard : clause.guards) {
        visit_scalar(guard, Place::guard, [&](const Occurrence& o) { in_guard(o); });
        elements(guard);
      }
      if (clause.kind == ast::Clause::Kind::unless)
        for (const Statement& s : clause.statements) negated(s);
    }
    for (const Statement& s : checked_.ast.replacement) {
      if (!is_drop(s)) right(s);
    }
    for (const auto& [text, name] : checked_.names.names) {
      if (name.list && name.kind == NameKind::dtype)
        say(name.span, "PW0290", in_ticks(text) + " is a dtype, and there are no lists of dtypes",
            "all members have one dtype where it is not read with `...`");
    }
  }

 private:
  void say(Span span, std::string_view code, std::string message, std::string help = {}) {
    out_.push_back(error_at(span, code, std::move(message), std::move(help)));
  }

  // ---- left

  void pattern(const Statement& s) {
    binders(s);
    if (s.many) members(s.value);
    spreads(s.value, s.many);
    visit_statement(s, [&](const Occurrence& o) { in_pattern(o); });
  }

  void binders(const Statement& s) {
    for (std::size_t i = 0; i < s.binders.size(); ++i) {
      const Binder& binder = s.binders[i];
      if (!binder.spread) continue;
      if (i + 1 != s.binders.size())
        say(binder.span, "PW0292", "a list of results must be the last, and the only one");
      if (s.many)
        say(binder.span, "PW0293", "each member would bind a list, and there are no lists of lists",
            "a result of `many` is a list already; remove the `...`");
    }
    if (!s.binders.empty() && s.binders.back().spread) results(s.value, s.binders.back().span);
  }

  /// Checks a list of results: only an op with any number of results can fill it.
  void results(const Expr& value, Span span) {
    const OpId id = value.kind == Expr::Kind::call ? checked_.context.ops.find(value.text) : OpId();
    if (!id.valid()) return;
    const Op& op = checked_.context.ops[id];
    if (op.imported || (!op.results.empty() && op.results.back().variadic)) return;
    say(span, "PW0292", in_ticks(op.name) + " has a fixed number of results", "bind them by name");
  }

  void members(const Expr& value) {
    const bool node = value.kind == Expr::Kind::call || value.kind == Expr::Kind::binary ||
                      value.kind == Expr::Kind::negate;
    if (!node)
      say(value.span, "PW0293", "`many` is followed by an op",
          "write `many y = op(operands){attributes}`");
  }

  /// Checks spreads. `inside`: of `many`, or of another spread.
  void spreads(const Expr& expr, bool inside) {
    count_spreads(expr);
    operand_places(expr);
    for (const Expr& arg : expr.args) {
      if (is_member_spread(arg) && inside)
        say(arg.span, "PW0293", "this is a list within each member of a list",
            "one of the two can be `many` or a spread; write two rules");
      spreads(arg, inside || is_member_spread(arg));
    }
    for (const AttributeArg& attribute : expr.attributes) {
      for (const Expr& value : attribute.value) count_spreads(value);
    }
  }

  void count_spreads(const Expr& list) {
    if (list.kind != Expr::Kind::call && list.kind != Expr::Kind::list) return;
    const Expr* first = nullptr;
    for (const Expr& arg : list.args) {
      const bool any = is_spread(arg) || arg.kind == Expr::Kind::star;
      if (any && first != nullptr) {
        Diagnostic d = error_at(arg.span, "PW0292", "a list has at most one `...`",
                                "the end of the first one would be ambiguous");
        d.secondary.push_back({first->span, "the first one"});
        out_.push_back(std::move(d));
        return;
      }
      if (any) first = &arg;
    }
  }

  void operand_places(const Expr& call) {
    const OpId id = call.kind == Expr::Kind::call ? checked_.context.ops.find(call.text) : OpId();
    if (!id.valid() || checked_.context.ops[id].imported) return;
    const Op& op = checked_.context.ops[id];
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      if (!is_spread(call.args[i])) continue;
      const bool variadic = !op.operands.empty() && op.operands.back().variadic;
      if (variadic && i + 1 >= op.operands.size()) continue;
      say(call.args[i].span, "PW0292",
          "this operand of " + in_ticks(op.name) + " is one value, not a list",
          "`...` is allowed only where an op takes any number of operands");
    }
  }

  void in_pattern(const Occurrence& o) {
    const Name* name = checked_.names.find(o.name);
    if (name == nullptr || !name->list) return;
    if (o.spread && o.members != nullptr && o.place != Place::binder)
      return say(
          o.span, "PW0293",
          in_ticks(o.name) + " would be a list in each member, and there are no lists of lists",
          "name the operands one by one");
    const bool binder = o.place == Place::binder && o.members != nullptr;
    if (o.spread || binder || (o.members != nullptr && o.members == name->members)) return;
    one_value(o, *name);
  }

  // ---- guards, unless

  void in_guard(const Occurrence& o) {
    const Name* name = checked_.names.find(o.name);
    if (name == nullptr) return;
    if (name->negated) return bound_in_unless(o, *name);
    if (name->list && !o.spread && !o.element) one_value(o, *name);
    if (!name->list && (o.spread || o.element) && name->kind == NameKind::value) no_list(o, *name);
  }

  /// Checks elements: the index into a list of values must be known when the rule is read.
  void elements(const Expr& e) {
    for (const Expr& arg : e.args) elements(arg);
    if (e.kind != Expr::Kind::index || e.args[0].kind != Expr::Kind::path) return;
    const Name* name = checked_.names.find(e.args[0].text);
    const bool values = lists_.contains(e.args[0].text) ||
                        (name != nullptr && name->list && name->kind == NameKind::value);
    if (values && !element_of(e))
      say(e.args[1].span, "PW0299", "the index of a list element must be a number",
          "write `" + e.args[0].text + "[0]`, or `" + e.args[0].text + "[-1]` for the last one");
  }

  void negated(const Statement& s) {
    if (s.many)
      say(s.span, "PW0293", "`many` is not allowed in `unless`",
          "one such node already excludes the match");
    spreads(s.value, true);
    visit_statement(s, [&](const Occurrence& o) {
      const Name* name = checked_.names.find(o.name);
      if (name == nullptr) return;
      if (name->list && !o.spread && !name->negated) one_value(o, *name);
      if (o.binder != nullptr && !name->negated && !o.binder->type.empty())
        say(o.span, "PW0295", in_ticks(o.name) + " has its type where the pattern binds it",
            "write the type there, or compare in `where`");
    });
  }

  void bound_in_unless(const Occurrence& o, const Name& name) {
    Diagnostic d =
        error_at(o.span, "PW0295", in_ticks(o.name) + " is bound in `unless`, so it has no value");
    d.secondary.push_back({name.span, "bound here, where no node may match"});
    out_.push_back(std::move(d));
  }

  // ---- right

  void right(const Statement& s) {
    if (s.many)
      say(s.span, "PW0293", "`many` is allowed only on the left side",
          "on the right, `y... = relu(x)...` makes a node for each element");
    mapped(s.value);
    elements(s.value);
    visit_operand(s.value, [&](const Occurrence& o) { in_right(o); });
    for (std::size_t i = 0; i < s.binders.size(); ++i) rebind(s, i);
  }

  /// Checks a node for each element of a list: there must be a list.
  void mapped(const Expr& expr) {
    for (const Expr& arg : expr.args) mapped(arg);
    if (!is_member_spread(expr)) return;
    bool any = false;
    visit_operand(expr.args.front(), [&](const Occurrence& o) {
      if (o.element)
        say(o.span, "PW0299",
            "`...` goes through " + in_ticks(o.name) + " here, element by element",
            "bind the element in an earlier statement: `first = " + std::string(o.name) + "[0]`");
      const Name* name = checked_.names.find(o.name);
      any = any || lists_.contains(o.name) || (name != nullptr && name->list);
    });
    if (!any) say(expr.span, "PW0291", "this contains no list for `...` to expand");
  }

  void in_right(const Occurrence& o) {
    if (lists_.contains(o.name) || singles_.contains(o.name)) {
      if (lists_.contains(o.name) && !o.spread && !o.element && o.members == nullptr)
        say(o.span, "PW0290", in_ticks(o.name) + " is a list", "write " + spread_of(o.name));
      if (singles_.contains(o.name) && o.spread)
        say(o.span, "PW0291", in_ticks(o.name) + " is not a list", "remove the `...`");
      return;
    }
    const Name* name = checked_.names.find(o.name);
    if (name == nullptr) return;
    if (name->negated) return bound_in_unless(o, *name);
    if (name->list && !o.spread && !o.element && o.members == nullptr) one_value(o, *name);
    if (!name->list && o.spread && name->kind != NameKind::sequence) no_list(o, *name);
    if (!name->list && o.element && name->kind == NameKind::value && !name->attribute_variable)
      no_list(o, *name);
  }

  void rebind(const Statement& s, std::size_t i) {
    const Binder& binder = s.binders[i];
    const Name* name = checked_.names.find(binder.name);
    (binder.spread ? lists_ : singles_).insert(binder.name);
    if (binder.spread && s.binders.size() > 1)
      say(binder.span, "PW0292", "a list of results must be the only one",
          "name the results one by one");
    if (is_member_spread(s.value) && !binder.spread)
      say(binder.span, "PW0290", "this makes a list", "write " + spread_of(binder.name));
    if (name == nullptr || name->list == binder.spread) return;
    Diagnostic d = error_at(binder.span, name->list ? "PW0290" : "PW0291",
                            in_ticks(binder.name) + (name->list ? " is a list" : " is not a list"),
                            name->list ? "write " + spread_of(binder.name) : "remove the `...`");
    d.secondary.push_back({name->span, "bound here"});
    out_.push_back(std::move(d));
  }

  // ---- messages

  static std::string spread_of(std::string_view name) { return "`" + std::string(name) + "...`"; }

  void one_value(const Occurrence& o, const Name& name) {
    const bool guard = o.place == Place::guard || o.place == Place::property;
    Diagnostic d = error_at(
        o.span, "PW0290", in_ticks(o.name) + " is a list, and one value is expected here",
        guard ? "`count(" + std::string(o.name) + ")` is its length"
              : "write " + spread_of(o.name) + " where an op takes any number of operands");
    d.secondary.push_back({name.span, "a list from here on"});
    out_.push_back(std::move(d));
  }

  void no_list(const Occurrence& o, const Name& name) {
    const bool shape = o.expr != nullptr && o.expr->text.ends_with(".shape");
    Diagnostic d =
        error_at(o.span, "PW0291", in_ticks(o.name) + " is not a list",
                 shape ? "one size of a tensor is written `size(" + std::string(o.name) + ", 0)`"
                       : "only a name that `many` or `...` on the left binds, and nothing else "
                         "there, is a list");
    d.secondary.push_back({name.span, "bound here"});
    out_.push_back(std::move(d));
  }

  const CheckedRule& checked_;
  Diagnostics& out_;
  std::set<std::string_view, std::less<>> lists_, singles_;  // made on the right
};

/// Returns true if another node outside of `unless` and of these members has the value.
bool known_outside(const Rule& rule, PatternValueId value, MembersId members) {
  const auto has = [&](const std::vector<PatternValueId>& ids) {
    return std::find(ids.begin(), ids.end(), value) != ids.end();
  };
  return std::any_of(rule.nodes.begin(), rule.nodes.end(), [&](const PatternNode& node) {
    return node.negation < 0 && node.members != members &&
           (has(node.operands) || has(node.results));
  });
}

}  // namespace

void check_lists(const CheckedRule& checked, Diagnostics& out) { ListCheck(checked, out).run(); }

void check_members(const CheckedRule& checked, Diagnostics& out) {
  const Rule& rule = *checked.rule;
  bool hangs = std::any_of(rule.nodes.begin(), rule.nodes.end(),
                           [](const PatternNode& n) { return n.own() && !n.members.valid(); });
  for (std::size_t i = 0; i < rule.members.size(); ++i) {
    const MembersId id(i);
    const Members& members = rule.members[id];
    if (members.kind != Members::Kind::many) continue;
    const PatternNode& root = rule.nodes[members.root];
    const bool shared =
        std::any_of(root.operands.begin(), root.operands.end(), [&](PatternValueId v) {
          const PatternValue& value = rule.values[v];
          const bool connects = !value.list && !value.literal && !value.literal_none &&
                                !value.attribute_variable && !value.name.empty();
          return connects && (!hangs || known_outside(rule, v, id));
        });
    hangs = true;
    if (shared) continue;
    out.push_back(error_at(
        members.span, "PW0294",
        "nothing determines where to find these members: no operand is the same for all of them",
        "let the op after `many` read a value that the rest of the pattern has, "
        "or that is not read with `...`"));
  }
}

}  // namespace pw

#include <algorithm>
#include <set>

#include "dsl/check/call.hpp"
#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class ReplacementCheck {
 public:
  ReplacementCheck(const CheckedRule& checked, Diagnostics& out) : checked_(checked), out_(out) {}

  void run() {
    for (const Statement& s : checked_.ast.replacement) {
      if (!is_drop(s)) statement(s);
    }
  }

 private:
  void statement(const Statement& s) {
    visit_operand(s.value, [&](const Occurrence& o) { read(o); });
    visit_calls(s, [&](const Expr& call) {
      const OpId op = checked_.context.ops.find(call.text);
      if (op.valid())
        check_call(checked_.context, checked_.context.ops[op], call, Side::build, out_);
    });
    if (s.value.kind != Expr::Kind::fuse) check_results(s);
    for (const Binder& binder : s.binders) {
      for (const TypeExpr& type : binder.type)
        visit_type(type, [&](const Occurrence& o) { read(o); });
      bind(binder);
    }
  }

  void check_results(const Statement& s) {
    std::size_t count = 1;
    if (s.value.kind == Expr::Kind::call) {
      const OpId op = checked_.context.ops.find(s.value.text);
      if (op.valid())
        return check_result_count(checked_.context.ops[op], s.binders.size(), spread(s), s.span,
                                  out_);
    }
    if (spread(s)) return;
    if (s.binders.size() != count)
      out_.push_back(error_at(s.span, "PW0236",
                              "this has one result, but there are " +
                                  std::to_string(s.binders.size()) + " names for it"));
  }

  static bool spread(const Statement& s) { return !s.binders.empty() && s.binders.back().spread; }

  void read(const Occurrence& o) {
    if (o.name == "_") {
      out_.push_back(
          error_at(o.span, "PW0272", "`_` has no value to read", "give it a name in the pattern"));
      return;
    }
    if (bound_.contains(o.name) || dtype_named(o.name) || checked_.outer.params.contains(o.name))
      return;
    if (o.place == Place::function) return function(o);
    const Name* name = checked_.names.find(o.name);
    if (o.place == Place::callee) {
      const bool variable = name != nullptr && name->kind == NameKind::dtype;
      if (!variable && !checked_.context.ops.find(o.name).valid())
        out_.push_back(unknown_op(checked_.context, o.name, o.span));
      return;
    }
    if (name == nullptr) return unbound(o);
    if (o.place == Place::operand && name->result && !name->given) consumed(o, *name);
  }

  void function(const Occurrence& o) {
    const auto& known = known_functions();
    if (std::find(known.begin(), known.end(), o.name) != known.end() ||
        checked_.program.externs.contains(o.name))
      return;
    out_.push_back(error_at(o.span, "PW0271", "unknown function " + in_ticks(o.name),
                            did_you_mean(o.name, known)));
  }

  void unbound(const Occurrence& o) {
    std::vector<std::string> names;
    for (const auto& [name, info] : checked_.names.names) names.push_back(name);
    for (const auto& name : bound_) names.emplace_back(name);
    out_.push_back(
        error_at(o.span, "PW0273", in_ticks(o.name) + " is not bound",
                 did_you_mean_name(
                     o.name, names,
                     "the right side may read what the pattern or an earlier statement binds")));
    bound_.insert(o.name);  // say it once
  }

  void consumed(const Occurrence& o, const Name& name) {
    Diagnostic d =
        name.rebound
            ? error_at(o.span, "PW0274",
                       in_ticks(o.name) + " is read before the right side binds it again",
                       "read the new value after its statement, or keep the old one in `given { }`")
            : error_at(
                  o.span, "PW0275",
                  in_ticks(o.name) + " is consumed by this rule, so the right side cannot read it",
                  "put its statement in `given { }` to keep it, or bind " + in_ticks(o.name) +
                      " again on the right");
    d.secondary.push_back({name.span, "bound here, on the left only"});
    if (name.rebound) d.secondary.front().text = "bound here";
    out_.push_back(std::move(d));
  }

  void bind(const Binder& binder) {
    if (binder.name == "_") return;
    if (bound_.contains(binder.name))
      out_.push_back(error_at(binder.span, "PW0276",
                              in_ticks(binder.name) + " is bound twice on the right",
                              "rename one of them"));
    std::string what;
    if (dtype_named(binder.name)) what = "a dtype";
    if (checked_.outer.params.contains(binder.name)) what = "a param";
    if (!what.empty())
      out_.push_back(
          error_at(binder.span, "PW0241",
                   in_ticks(binder.name) + " is " + what + ", so it cannot be bound here",
                   "rename the value"));
    if (const Name* name = checked_.names.find(binder.name)) rebind(binder, *name);
    bound_.insert(binder.name);
  }

  void rebind(const Binder& binder, const Name& name) {
    if (name.result && !name.given) return;
    std::string what = name.kind != NameKind::value
                           ? "a name of kind " + std::string(pw::name(name.kind))
                       : name.given ? "a value of `given`, which survives"
                                    : "an input of the pattern";
    Diagnostic d = error_at(binder.span, "PW0277",
                            in_ticks(binder.name) + " is " + what + ", so it cannot be bound again",
                            name.given ? "move its statement out of `given { }` to replace it"
                                       : "rename the new value");
    d.secondary.push_back({name.span, "bound here"});
    out_.push_back(std::move(d));
  }

  const CheckedRule& checked_;
  Diagnostics& out_;
  std::set<std::string_view, std::less<>> bound_;
};

}  // namespace

void check_replacement(const CheckedRule& checked, Diagnostics& out) {
  ReplacementCheck(checked, out).run();
}

void check_opened(const CheckedRule& checked, Diagnostics& out) {
  for (const Statement& s : checked.rule->replacement) {
    visit_calls(s, [&](const Expr& call) {
      if (!call.open) return;
      const OpId op = checked.context.ops.find(call.text);
      const auto sources = std::count_if(
          checked.rule->nodes.begin(), checked.rule->nodes.end(),
          [&](const PatternNode& node) { return node.op == op && node.negation < 0; });
      if (sources == 1) return;
      out.push_back(error_at(call.span, "PW0278",
                             "`..` copies the attributes of the one node " + in_ticks(call.text) +
                                 " of the pattern, and there are " +
                                 (sources == 0 ? "none" : std::to_string(sources)),
                             "capture the attributes by name, and write them here"));
    });
  }
}

}  // namespace pw

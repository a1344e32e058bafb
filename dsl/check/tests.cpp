#include <algorithm>
#include <set>

#include "dsl/build/declare_op.hpp"
#include "dsl/build/params.hpp"
#include "dsl/build/strategies.hpp"
#include "dsl/check/check.hpp"
#include "dsl/dsl.hpp"
#include "dsl/rule_index.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

class TestCheck {
 public:
  TestCheck(const Program& program, const RuleSet& set, Diagnostics& out)
      : program_(program), set_(set), index_(set), out_(out) {}

  void check(const ast::Test& test) {
    reached_.clear();
    applied_ = true;
    for (const auto& [name, span] : test.apply) apply(name, span);
    for (const auto& [name, value] : test.with) with(name, value);
    if (test.graph.empty() && test.file.empty())
      out_.push_back(error_at(test.name_span, "PW0441",
                              "test " + in_ticks(test.name) + " has no graph",
                              "write `graph { … }` or `graph \"file\"`"));
    if (test.expectations.empty())
      out_.push_back(error_at(test.name_span, "PW0442",
                              "test " + in_ticks(test.name) + " expects nothing, so it cannot fail",
                              "state what it shows: `expect rule == 1`"));
    const bool error_expected =
        std::any_of(test.expectations.begin(), test.expectations.end(),
                    [](const auto& e) { return e.kind == ast::Expectation::Kind::error; });
    if (!error_expected) {
      for (const ast::GraphItem& graph : test.graph) build(graph);
    }
    for (const ast::Expectation& e : test.expectations) {
      for (const Expr& guard : e.guard) expectation(guard);
      for (const ast::GraphItem& graph : e.graph) build(graph);
    }
  }

 private:
  void build(const ast::GraphItem& graph) {
    auto built = build_graph(set_.context, graph);
    if (!built) append(out_, std::move(built.error()));
  }

  void apply(const std::string& name, Span span) {
    if (const Strategy* strategy = set_.strategy(name)) {
      for (RuleId id : rules_of(*strategy)) reached_.insert(id);
      return;
    }
    const std::vector<RuleId> rules = index_.resolve(name);
    reached_.insert(rules.begin(), rules.end());
    if (!rules.empty()) return;
    applied_ = false;
    if (program_.declares(name)) return;  // it failed its own checks
    out_.push_back(error_at(span, "PW0443", "no pipeline, pass or rule is called " + in_ticks(name),
                            did_you_mean(name, program_.strategy_names())));
  }

  void with(const std::string& name, const Expr& value) {
    const auto it = set_.params.find(name);
    if (it != set_.params.end()) {
      literal_attribute(value, it->second.kind, false, set_.context->dims, out_);
      return;
    }
    std::vector<std::string> names;
    for (const auto& [known, param] : set_.params) names.push_back(known);
    out_.push_back(
        error_at(value.span, "PW0421", "no param is called " + in_ticks(name),
                 did_you_mean(name, names, "declare it: `param " + name + ": int = 1`")));
  }

  /// Returns `family[row]`, which is parsed as an index.
  static std::string family_row(const Expr& e) {
    const bool paths = e.kind == Expr::Kind::index && e.args.size() == 2 &&
                       e.args[0].kind == Expr::Kind::path && e.args[1].kind == Expr::Kind::path;
    return paths ? e.args[0].text + "[" + e.args[1].text + "]" : "";
  }

  void expectation(const Expr& guard) {
    if (const std::string name = family_row(guard); !name.empty()) return counter(name, guard.span);
    if (guard.kind == Expr::Kind::binary || guard.kind == Expr::Kind::not_ ||
        guard.kind == Expr::Kind::in_range || guard.kind == Expr::Kind::in_set) {
      for (const Expr& arg : guard.args) expectation(arg);
      return;
    }
    visit_scalar(guard, Place::guard, [&](const Occurrence& o) {
      if (o.place == Place::function) return function(o);
      if (in_count_.contains(o.expr)) return;
      counter(o.expr == nullptr ? std::string(o.name) : o.expr->text, o.span);
    });
  }

  /// Checks a function: `count(op)` counts nodes, `diagnostics(code)` warnings, `orders(n)`
  /// results.
  void function(const Occurrence& o) {
    for (const Expr& arg : o.expr->args) in_count_.insert(&arg);
    const Expr::Kind argument =
        o.expr->args.size() == 1 ? o.expr->args.front().kind : Expr::Kind::string;
    if (o.name == "diagnostics" && argument == Expr::Kind::path) return;
    if (o.name == "orders" && argument == Expr::Kind::integer) return;
    if (o.name != "count" || o.expr->args.size() != 1) {
      out_.push_back(error_at(
          o.span, "PW0444",
          "the functions of a test are `count(op)`, which counts nodes, `diagnostics(CODE)`, which "
          "counts warnings, and `orders(20)`, which counts the results of 20 orders of rewrites"));
      return;
    }
    const Expr& op = o.expr->args.front();
    if (op.kind == Expr::Kind::path && set_.context->ops.find(op.text).valid()) return;
    out_.push_back(error_at(op.span, "PW0220", "unknown op " + in_ticks(op.text),
                            did_you_mean(op.text, set_.context->ops.names())));
  }

  void counter(const std::string& name, Span span) {
    if (set_.params.contains(name)) return;
    const std::vector<RuleId> rules = index_.resolve(name);
    if (rules.empty()) {
      if (name == "nodes" || program_.declares(name)) return;
      out_.push_back(error_at(
          span, "PW0445", "no rule, group or param is called " + in_ticks(name),
          did_you_mean(
              name, program_.strategy_names(),
              "an expectation counts rewrites by a rule's name, nodes by `nodes`, and those of "
              "an op by `count(op)`")));
      return;
    }
    const bool reachable =
        std::any_of(rules.begin(), rules.end(), [&](RuleId id) { return reached_.contains(id); });
    if (applied_ && !reachable)
      out_.push_back(error_at(span, "PW0446",
                              "the strategy of this test never runs rule " + in_ticks(name),
                              "apply a pass that contains it, or remove the expectation"));
  }

  const Program& program_;
  const RuleSet& set_;
  RuleIndex index_;
  Diagnostics& out_;
  std::set<RuleId> reached_;
  std::set<const Expr*> in_count_;
  bool applied_ = true;
};

}  // namespace

void check_tests(const Program& program, const RuleSet& set, Diagnostics& out) {
  TestCheck check(program, set, out);
  for (const ast::Test* test : program.tests) check.check(*test);
}

}  // namespace pw

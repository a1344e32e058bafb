#include "dsl/build/strategy_options.hpp"

#include <algorithm>

#include "dsl/cost_tables.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

class OptionCheck {
 public:
  OptionCheck(const Program& program, const RuleSet& set, const ast::Strategy& tree,
              Diagnostics& out)
      : program_(program), set_(set), tree_(tree), out_(out) {}

  void run() {
    if (tree_.fuel && *tree_.fuel < 1) error("PW0413", "`fuel` must be at least 1");
    if (tree_.references.empty() && tree_.parts.empty() && tree_.kind != Kind::sequence)
      error("PW0414", in_ticks(word(tree_.kind)) + " of nothing", "name the rules that it applies");
    for (const Expr& when : tree_.when) check_params(when);
    for (const Expr& ensures : tree_.ensures) check_ensures(ensures);
    check_places();
    if (tree_.kind == Kind::best) check_cost(tree_.by, "by");
    if (tree_.kind == Kind::saturate && !tree_.cost.empty()) check_cost(tree_.cost, "cost");
    if (tree_.kind == Kind::atomic && tree_.ensures.empty())
      out_.push_back(
          warning_at(tree_.span, "PW0419", "`atomic` without `ensures` has no effect",
                     "state what must hold afterwards: `ensures count(all_reduce) == 0`"));
  }

 private:
  void error(std::string_view code, std::string message, std::string help = {}) {
    out_.push_back(error_at(tree_.span, code, std::move(message), std::move(help)));
  }

  void check_places() {
    const auto only = [&](bool present, std::string_view option, Kind kind) {
      if (present && tree_.kind != kind)
        error("PW0416", in_ticks(option) + " belongs to " + in_ticks(word(kind)) + ", not to " +
                            in_ticks(word(tree_.kind)));
    };
    only(!tree_.by.empty(), "by", Kind::best);
    only(tree_.nodes.has_value(), "nodes", Kind::saturate);
    only(tree_.rounds.has_value(), "rounds", Kind::saturate);
    only(!tree_.cost.empty(), "cost", Kind::saturate);
    if (tree_.nodes && *tree_.nodes < 1) error("PW0413", "`nodes` must be at least 1");
    if (tree_.rounds && *tree_.rounds < 1) error("PW0413", "`rounds` must be at least 1");
  }

  void check_cost(const std::string& name, std::string_view option) {
    if (std::find(kCostNames.begin(), kCostNames.end(), name) != kCostNames.end()) return;
    const auto table = program_.tables.find(name);
    if (table != program_.tables.end() && is_cost_table(*table->second))
      return check_cost_table(program_, set_, *table->second, out_);
    const std::string known =
        "the costs are `nodes`, `ops` and `bytes`, and tables with one column, `cost`";
    if (name.empty())
      return error("PW0417", "`best of` has no cost",
                   "write `" + std::string(option) + " nodes` after it; " + known);
    error("PW0417", "no cost is called " + in_ticks(name),
          did_you_mean(name, {kCostNames.begin(), kCostNames.end()}, known));
  }

  void check_params(const Expr& when) {
    visit_scalar(when, Place::guard, [&](const Occurrence& o) {
      if (o.place != Place::function && !known_name(o)) unknown(o, "`when` may read only params");
    });
  }

  /// Checks the names in `ensures`: `nodes`, `count(op)` and params.
  void check_ensures(const Expr& ensures) {
    std::vector<const Expr*> ops;
    visit_scalar(ensures, Place::guard, [&](const Occurrence& o) {
      if (o.place == Place::function) return check_count(o, ops);
      const bool is_op = std::find(ops.begin(), ops.end(), o.expr) != ops.end();
      if (is_op || o.name == "nodes" || known_name(o)) return;
      unknown(o, "`ensures` may read only `nodes`, `count(op)` and params");
    });
  }

  void check_count(const Occurrence& o, std::vector<const Expr*>& ops) {
    if (o.name != "count" || o.expr->args.size() != 1) {
      out_.push_back(error_at(o.span, "PW0418", "the only function of `ensures` is `count(op)`",
                              "it counts the nodes of the graph with that op"));
      for (const Expr& arg : o.expr->args) ops.push_back(&arg);
      return;
    }
    const Expr& op = o.expr->args.front();
    ops.push_back(&op);
    if (op.kind == Expr::Kind::path && set_.context->ops.find(op.text).valid()) return;
    out_.push_back(error_at(op.span, "PW0220", "unknown op " + in_ticks(op.text),
                            did_you_mean(op.text, set_.context->ops.names())));
  }

  [[nodiscard]] bool known_name(const Occurrence& o) const {
    return program_.params.contains(o.name) || dtype_named(o.name).has_value();
  }

  void unknown(const Occurrence& o, const std::string& reads) {
    std::vector<std::string> names;
    for (const auto& [name, param] : program_.params) names.push_back(name);
    out_.push_back(error_at(
        o.span, "PW0415", "no param is called " + in_ticks(o.name),
        did_you_mean(o.name, names,
                     reads + ": `param " + std::string(o.name) + ": int = 1` declares one")));
  }

  const Program& program_;
  const RuleSet& set_;
  const ast::Strategy& tree_;
  Diagnostics& out_;
};

}  // namespace

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::greedy: return "greedy";
    case Kind::once: return "once";
    case Kind::walk: return "walk";
    case Kind::saturate: return "saturate";
    case Kind::atomic: return "atomic";
    case Kind::repeat: return "repeat";
    case Kind::best: return "best of";
    case Kind::sequence: return "sequence";
    case Kind::reference: return "reference";
  }
  return "strategy";
}

void check_strategy_options(const Program& program, const RuleSet& set, const ast::Strategy& tree,
                            Diagnostics& out) {
  OptionCheck(program, set, tree, out).run();
}

void check_ranges(const ast::Pipeline& pipeline, Diagnostics& out) {
  if (pipeline.ranges.empty()) return;
  if (pipeline.ranges_symbol != "tokens")
    out.push_back(
        error_at(pipeline.name_span, "PW0435",
                 "ranges must be over tokens, not over " + in_ticks(pipeline.ranges_symbol),
                 "write `for tokens in ranges(…)`; the graph declares that symbol"));
  std::int64_t last = 0;
  for (std::int64_t end : pipeline.ranges) {
    if (end <= last)
      return out.push_back(error_at(
          pipeline.name_span, "PW0436",
          "ranges rise: " + std::to_string(end) + " does not come after " + std::to_string(last),
          "each number is the last token count of its range"));
    last = end;
  }
}

}  // namespace pw

// A conjunction is split into its parts, and each undecided part becomes one condition. A
// comparison of dims keeps both dims, so that a step can check it and the facts can be narrowed by
// it. Any other guard is kept as text, which no step meets.
#include "rewriter/engine/conditions.hpp"

#include <fmt/format.h>

#include "graph/infer/dim_value.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

class Notes {
 public:
  Notes(Context& context, const Graph& graph, const Env& env, std::vector<Condition>& out)
      : context_(context), graph_(graph), env_(env), out_(out) {}

  void add(const Expr& guard) {
    if (guard.kind == Expr::Kind::binary && guard.text == "and") {
      for (const Expr& part : guard.args)
        if (unknown(part)) add(part);
      return;
    }
    Condition condition;
    condition.span = guard.span;
    condition.text = print(guard);
    if (guard.kind == Expr::Kind::in_range && guard.args.size() == 3) {
      bool low = compare(condition, Compare::ge, guard.args[0], guard.args[1]);
      bool high = compare(condition, Compare::le, guard.args[0], guard.args[2]);
      if (low && high) return;
    } else if (divisibility(guard)) {
      condition.divides = true;
      if (compare(condition, Compare::eq, guard.args[0].args[0], guard.args[0].args[1])) return;
    } else if (std::optional<Compare> op = comparison(guard)) {
      if (compare(condition, *op, guard.args[0], guard.args[1])) return;
    }
    condition.divides = false;
    out_.push_back(std::move(condition));
  }

 private:
  bool unknown(const Expr& guard) const {
    Result<Truth> truth = evaluate_guard(context_, &graph_, guard, env_, graph_.facts);
    return truth && *truth == Truth::unknown;
  }

  /// Returns true for the form `a % b == 0`.
  static bool divisibility(const Expr& e) {
    return e.kind == Expr::Kind::binary && e.text == "==" && e.args[0].kind == Expr::Kind::binary &&
           e.args[0].text == "%" && e.args[1].kind == Expr::Kind::integer && e.args[1].integer == 0;
  }

  static std::optional<Compare> comparison(const Expr& e) {
    if (e.kind != Expr::Kind::binary) return std::nullopt;
    if (e.text == "==") return Compare::eq;
    if (e.text == "!=") return Compare::ne;
    if (e.text == "<") return Compare::lt;
    if (e.text == "<=") return Compare::le;
    if (e.text == ">") return Compare::gt;
    if (e.text == ">=") return Compare::ge;
    return std::nullopt;
  }

  /// Adds the comparison if both sides are dims; omits it if it is proved already.
  bool compare(Condition condition, Compare op, const Expr& a, const Expr& b) {
    std::optional<DimId> left = dim(a), right = dim(b);
    if (!left || !right) return false;
    condition.op = op;
    condition.a = *left;
    condition.b = *right;
    condition.text = condition.divides ? fmt::format("{} % {} == 0", context_.dims.print(*left),
                                                     context_.dims.print(*right))
                                       : fmt::format("{} {} {}", context_.dims.print(*left),
                                                     symbol(op), context_.dims.print(*right));
    const bool known =
        !condition.divides && context_.dims.prove(op, *left, *right, graph_.facts) == Truth::yes;
    if (!known) out_.push_back(std::move(condition));
    return true;
  }

  std::optional<DimId> dim(const Expr& expr) { return dim_value(context_, &graph_, expr, env_); }

  static const char* symbol(Compare op) {
    switch (op) {
      case Compare::eq: return "==";
      case Compare::ne: return "!=";
      case Compare::lt: return "<";
      case Compare::le: return "<=";
      case Compare::gt: return ">";
      case Compare::ge: return ">=";
    }
    return "?";
  }

  Context& context_;
  const Graph& graph_;
  const Env& env_;
  std::vector<Condition>& out_;
};

}  // namespace

void note_conditions(Context& context, const Graph& graph, const Expr& guard, const Env& env,
                     std::vector<Condition>& out) {
  Notes(context, graph, env, out).add(guard);
}

}  // namespace pw

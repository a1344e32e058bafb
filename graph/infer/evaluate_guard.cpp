#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/compare/replication.hpp"
#include "graph/infer/evaluator.hpp"
#include "graph/passes/constancy.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

/// Code of a native that was called with a dim that is not constant yet. Not an error: the result
/// is unknown.
constexpr std::string_view kNotYet = "PW0334";

}  // namespace

Truth GuardEvaluator::equal(const Attribute& a, const Attribute& b) {
  auto x = values_.as_dim(a), y = values_.as_dim(b);
  if (x && y) return context_.dims.prove(Compare::eq, *x, *y, facts_);
  auto p = Evaluator::as_real(a), q = Evaluator::as_real(b);
  if (p && q) return *p == *q ? Truth::yes : Truth::no;
  auto v = std::get_if<std::vector<DimId>>(&a), w = std::get_if<std::vector<DimId>>(&b);
  if (v && w) {
    if (v->size() != w->size()) return Truth::no;
    Truth t = Truth::yes;
    for (std::size_t i = 0; i < v->size(); ++i)
      t = both(t, context_.dims.prove(Compare::eq, (*v)[i], (*w)[i], facts_));
    return t;
  }
  return a == b ? Truth::yes : Truth::no;
}

Result<Truth> GuardEvaluator::compare(const Expr& e, std::string* why, int depth) {
  const Expr &l = e.args.at(0), &r = e.args.at(1);
  // `a % b == 0` is decided as divisibility, which more facts prove than the remainder's value.
  if (e.text == "==" && l.kind == Expr::Kind::binary && l.text == "%" &&
      r.kind == Expr::Kind::integer && r.integer == 0) {
    Attribute a = PW_TRY(values_.value(l.args.at(0), depth + 1));
    Attribute b = PW_TRY(values_.value(l.args.at(1), depth + 1));
    auto x = values_.as_dim(a), y = values_.as_dim(b);
    if (x && y && context_.dims.value(*y) != 0) {
      Truth t = context_.dims.divides(*y, *x, facts_);
      if (t != Truth::yes && why)
        *why =
            fmt::format("`{}` {}: {} % {}", print(e), t == Truth::no ? "is false" : "is not known",
                        context_.dims.print(*x), context_.dims.print(*y));
      return t;
    }
  }
  Attribute a = PW_TRY(values_.value(l, depth + 1));
  Attribute b = PW_TRY(values_.value(r, depth + 1));
  Truth t = Truth::unknown;
  if (e.text == "==" || e.text == "!=") {
    t = equal(a, b);
    if (e.text == "!=") t = negate(t);
  } else {
    Compare op = e.text == "<"    ? Compare::lt
                 : e.text == "<=" ? Compare::le
                 : e.text == ">"  ? Compare::gt
                                  : Compare::ge;
    auto x = values_.as_dim(a), y = values_.as_dim(b);
    auto p = Evaluator::as_real(a), q = Evaluator::as_real(b);
    if (x && y) {
      t = context_.dims.prove(op, *x, *y, facts_);
    } else if (p && q) {
      bool holds = op == Compare::lt   ? *p < *q
                   : op == Compare::le ? *p <= *q
                   : op == Compare::gt ? *p > *q
                                       : *p >= *q;
      t = holds ? Truth::yes : Truth::no;
    } else {
      return values_.error(e, "`" + print(e) + "` compares values that have no order");
    }
  }
  if (t != Truth::yes && why)
    *why = fmt::format("`{}` {}: {} {} {}", print(e), t == Truth::no ? "is false" : "is not known",
                       context_.attributes.print(a), e.text, context_.attributes.print(b));
  return t;
}

Result<Truth> GuardEvaluator::member(const Expr& e, std::string* why, int depth) {
  Attribute x = PW_TRY(values_.value(e.args.at(0), depth + 1));
  Truth t = Truth::no;
  if (e.kind == Expr::Kind::in_range && e.args.size() == 3) {
    Attribute low = PW_TRY(values_.value(e.args[1], depth + 1));
    Attribute high = PW_TRY(values_.value(e.args[2], depth + 1));
    auto d = values_.as_dim(x), a = values_.as_dim(low), b = values_.as_dim(high);
    if (!d || !a || !b) return values_.error(e, "`" + print(e) + "` needs integers");
    t = both(context_.dims.prove(Compare::ge, *d, *a, facts_),
             context_.dims.prove(Compare::le, *d, *b, facts_));
  } else {
    for (std::size_t i = 1; i < e.args.size(); ++i) {
      Attribute item = PW_TRY(values_.value(e.args[i], depth + 1));
      if (auto list_item = std::get_if<std::vector<DimId>>(&item);
          list_item && e.kind == Expr::Kind::in_range) {
        for (DimId d : *list_item) t = either(t, equal(x, values_.dim(d)));
        continue;
      }
      t = either(t, equal(x, item));
    }
  }
  if (t != Truth::yes && why)
    *why = fmt::format("`{}` {}: {} = {}", print(e), t == Truth::no ? "is false" : "is not known",
                       print(e.args[0]), context_.attributes.print(x));
  return t;
}

/// Evaluates `weight(x)` and `constant(x)`.
Result<Truth> GuardEvaluator::lasting(const Expr& e, std::string* why) {
  std::vector<ValueId> values = PW_TRY(values_.tensors(e));
  Truth all = Truth::yes;
  for (ValueId v : values) {
    std::string reason;
    const Truth one = e.text == "weight" ? is_weight(*values_.graph(), v, &reason)
                                         : is_constant(*values_.graph(), v, &reason);
    if (one != Truth::yes && all == Truth::yes && why)
      *why = fmt::format("`{}` {}: {}", print(e), one == Truth::no ? "is false" : "is not known",
                         reason);
    all = both(all, one);
  }
  return all;
}

Result<Truth> GuardEvaluator::replicated(const Expr& e, std::string* why, int depth) {
  if (e.args.size() != 2 || e.args[0].kind != Expr::Kind::path)
    return values_.error(e, "`" + print(e) + "` needs a value and a group of ranks");
  Result<Attribute> group = values_.value(e.args[1], depth + 1);
  if (!group) return forward(group);
  const auto* over = std::get_if<std::string>(&*group);
  if (over == nullptr) return values_.error(e.args[1], "a group of ranks must be a string");
  std::vector<ValueId> values = PW_TRY(values_.tensors(e));
  Truth all = Truth::yes;
  for (ValueId v : values) {
    std::string reason;
    const Truth one = is_replicated(*values_.graph(), v, *over, &reason);
    if (one != Truth::yes && all == Truth::yes && why)
      *why = fmt::format("`{}` {}: {}", print(e), one == Truth::no ? "is false" : "is not known",
                         reason);
    all = both(all, one);
  }
  return all;
}

Result<Truth> GuardEvaluator::truth(const Expr& e, std::string* why, int depth) {
  Result<Truth> decided = decide(e, why, depth);
  if (decided || decided.error().front().code != kNotYet) return decided;
  if (why) *why = decided.error().front().message;
  return Truth::unknown;
}

Result<Truth> GuardEvaluator::decide(const Expr& e, std::string* why, int depth) {
  if (depth > kMaxBodyDepth) return values_.error(e, "the expression is nested too deeply");
  if (e.kind == Expr::Kind::not_) {
    Result<Truth> inner = truth(e.args.at(0), nullptr, depth + 1);
    if (!inner) return inner;
    Truth t = negate(*inner);
    if (t != Truth::yes && why)
      *why = "`" + print(e) + (t == Truth::no ? "` is false" : "` is not known");
    return t;
  }
  if (e.kind == Expr::Kind::binary && (e.text == "and" || e.text == "or")) {
    std::string left_why, right_why;
    Result<Truth> a = truth(e.args.at(0), &left_why, depth + 1);
    if (!a) return a;
    bool decided = e.text == "and" ? *a == Truth::no : *a == Truth::yes;
    if (decided) {
      if (why) *why = left_why;
      return a;
    }
    Result<Truth> b = truth(e.args.at(1), &right_why, depth + 1);
    if (!b) return b;
    Truth t = e.text == "and" ? both(*a, *b) : either(*a, *b);
    if (t != Truth::yes && why)
      *why = *a != Truth::yes && e.text == "and" ? left_why
             : e.text == "and"                   ? right_why
                                                 : left_why + "; " + right_why;
    return t;
  }
  if (e.kind == Expr::Kind::binary && std::string("=!<>").find(e.text[0]) != std::string::npos)
    return compare(e, why, depth);
  if (e.kind == Expr::Kind::in_set || e.kind == Expr::Kind::in_range) return member(e, why, depth);
  if (e.kind == Expr::Kind::call && e.text == "replicated") return replicated(e, why, depth);
  if (e.kind == Expr::Kind::call && (e.text == "weight" || e.text == "constant"))
    return lasting(e, why);
  Attribute v = PW_TRY(values_.value(e, depth + 1));
  if (e.kind == Expr::Kind::call && std::holds_alternative<None>(v)) {
    if (why) *why = "`" + print(e) + "` is not known";
    return Truth::unknown;
  }
  auto b = std::get_if<bool>(&v);
  if (!b)
    return values_.error(e, "`" + print(e) + "` is not a truth value", "compare it with something");
  if (!*b && why) *why = "`" + print(e) + "` is false";
  return *b ? Truth::yes : Truth::no;
}

Result<Truth> evaluate_guard(Context& context, const Graph* graph, const Expr& guard,
                             const Env& env, const Facts& facts, std::string* why) {
  Evaluator values(context, graph, env, facts);
  return GuardEvaluator(values).truth(guard, why);
}

}  // namespace pw

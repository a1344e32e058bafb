// Evaluation of expressions: of values to attributes, and of guards to a three-valued truth. The
// two recurse into each other: a guard compares values, and a value may be a condition.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/build.hpp"

namespace pw {

inline constexpr int kMaxBodyDepth = 200;  ///< of expressions; the grammar limits nesting to less

/// Evaluator of expressions to attributes.
class Evaluator {
 public:
  Evaluator(Context& context, const Graph* graph, const Env& env, const Facts& facts)
      : context_(context), graph_(graph), env_(env), facts_(facts) {}

  Result<Attribute> value(const Expr& e, int depth = 0);
  /// Returns the tensors that the first argument of a call names; none for an absent operand.
  Result<std::vector<ValueId>> tensors(const Expr& call);
  Attribute dim(DimId d) const {
    if (auto v = context_.dims.value(d)) return *v;
    return d;
  }
  std::optional<DimId> as_dim(const Attribute& a) const {
    if (auto i = std::get_if<std::int64_t>(&a)) return context_.dims.constant(*i);
    if (auto b = std::get_if<bool>(&a)) return context_.dims.constant(*b ? 1 : 0);
    if (auto d = std::get_if<DimId>(&a)) return *d;
    return std::nullopt;
  }
  static std::optional<double> as_real(const Attribute& a);
  [[nodiscard]] tl::unexpected<Diagnostics> error(const Expr& e, std::string message,
                                                  std::string help = {}) const {
    return fail(e.span, "PW0301", std::move(message), std::move(help));
  }
  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] const Graph* graph() const { return graph_; }
  [[nodiscard]] const Facts& facts() const { return facts_; }

 private:
  Result<Attribute> path(const Expr& e);
  Result<Attribute> binding(const Expr& e, const Binding& b);
  Result<Attribute> list(const Expr& e, int depth);
  Result<Attribute> arithmetic(const Expr& e, int depth);
  Result<Attribute> repeated(const Expr& e, const Attribute& list, const Attribute& times);
  Result<Attribute> call(const Expr& e, int depth);
  Result<Attribute> axis_size(const Expr& e, int depth);
  Result<Attribute> count_elements(const Expr& e);
  Result<Attribute> count_users(const Expr& e);
  Result<Attribute> extreme(const Expr& e, int depth);
  Result<Attribute> index(const Expr& e, int depth);
  Result<Attribute> native(const Expr& e, const Native& function, int depth);
  Result<Shape> shape_of(const Expr& e);
  [[nodiscard]] std::optional<ValueId> element(const Expr& e);

  Context& context_;
  const Graph* graph_;
  const Env& env_;
  const Facts& facts_;
};

/// Evaluator of guards under facts. `*why`, if given, receives the deciding part of what does not
/// hold.
class GuardEvaluator {
 public:
  explicit GuardEvaluator(Evaluator& values)
      : values_(values), context_(values.context()), facts_(values.facts()) {}

  /// Returns the truth of a predicate; an undecided native gives unknown.
  Result<Truth> truth(const Expr& e, std::string* why, int depth = 0);

 private:
  Result<Truth> replicated(const Expr& e, std::string* why, int depth);
  Result<Truth> lasting(const Expr& e, std::string* why);
  Result<Truth> decide(const Expr& e, std::string* why, int depth);
  Result<Truth> compare(const Expr& e, std::string* why, int depth);
  Result<Truth> member(const Expr& e, std::string* why, int depth);
  Truth equal(const Attribute& a, const Attribute& b);

  Evaluator& values_;
  Context& context_;
  const Facts& facts_;
};

}  // namespace pw

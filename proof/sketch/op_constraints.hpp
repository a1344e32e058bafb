// Constraints of ops on the sizes of their operands and attributes.
#pragma once

#include "proof/sketch/size_equations.hpp"

namespace pw::proof {

class OpConstraints : SketchPart {
 public:
  OpConstraints(SketchState& state, SizeEquations& equations)
      : SketchPart(state), equations_(equations) {}
  /// Derives the operand's sizes from those of a split or reshape, and from each other's.
  void fit_attributes(const Op& op, const NodeRequest& request, std::size_t results);
  /// Imposes the size constraints of an op's body: fractions are integers, parts add up to their
  /// operand, and results have the sizes of the signature.
  void fit_body(const Op& op, const NodeRequest& request);

 private:
  void fit_broadcast(const Op& op, const NodeRequest& request);
  void fit_put(const Op& op, const NodeRequest& request, const Attribute* dim);
  void fit_cat(const Op& op, const NodeRequest& request, const Attribute* dim);
  /// Requires each fraction in an expression to be an integer.
  void whole_fractions(const Expr& expr, const Env& env);
  static const ValueId* value_of(const Expr& arg, const Env& env);
  Result<Attribute> given(const AttributeArg& attribute, const Env& env);
  void fit_called(const Expr& call, const Env& env);
  void fit_call(const Expr& expr, const Env& env);

  SizeEquations& equations_;
};

}  // namespace pw::proof

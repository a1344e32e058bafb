// Builds a general graph of a rule's left side, node by node in text order, with a symbol for each
// free size. If the next node requires two sizes to be equal, a symbol is eliminated and the
// construction restarts with that solution.
#pragma once

#include "proof/sketch/case_attributes.hpp"
#include "proof/sketch/op_constraints.hpp"
#include "proof/sketch/operand_types.hpp"

namespace pw::proof {

class Sketch : SketchPart {
 public:
  /// `state.env` holds the params.
  explicit Sketch(SketchState& state);
  Graph build();
  /// Returns the number of variables with a generic dtype.
  [[nodiscard]] std::size_t any_dtypes() const { return dtypes_.generic(); }

 private:
  [[nodiscard]] bool read(const std::string& param) const;
  void replicate();
  void replicate(const Expr& guard);
  void equal_dims(const Expr& guard, bool early);
  void admit(const Expr& guard);
  [[nodiscard]] std::optional<std::int64_t> number_of(const Expr& expr) const;
  void fit(const TypeExpr& text, TypeId type, Env& env, bool own);
  void fit_dims(const TypeExpr& text, const Shape& shape, Env& env, bool own);
  void add_node(const PatternNode& node);
  void bind_result(PatternValueId id, ValueId value);
  ValueId operand(const PatternNode& node, const Op& op, std::size_t i, Env& local);
  ValueId constant_variable(PatternValueId id);

  SizeEquations equations_;
  AxisSequences sequences_;
  CaseDTypes dtypes_;
  OperandTypes operand_types_;
  CaseAttributes attributes_;
  OpConstraints constraints_;
};

}  // namespace pw::proof

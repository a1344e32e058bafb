// Types of operands that are inputs.
#pragma once

#include "proof/sketch/axis_sequences.hpp"
#include "proof/sketch/case_dtypes.hpp"

namespace pw::proof {

class OperandTypes : SketchPart {
 public:
  OperandTypes(SketchState& state, CaseDTypes& dtypes, AxisSequences& sequences)
      : SketchPart(state), dtypes_(dtypes), sequences_(sequences) {}
  /// Returns the type of operand i; binds what the op names in `local`.
  TypeId type_of(const PatternValue& pattern, const PatternNode& node, const Op& op, std::size_t i,
                 Env& local);

 private:
  void choose_like(const std::string& name, const PatternNode&, Env& local);
  std::optional<Shape> signature_shape(const TypeExpr& text, const PatternNode& node, const Op& op,
                                       std::size_t i, Env& local);
  Shape open_shape(const PatternNode& node, const Op& op, std::size_t i);
  std::optional<Shape> but_along_axes(const PatternNode& node, const Op& op, Shape shape,
                                      const std::string& base);
  std::string name_of(PatternValueId id, std::size_t i) const;
  Shape broadcastable(Shape shape, const std::string& base, bool variadic);
  Shape by_axes(const PatternNode& node, const Op& op, const std::string& base);
  [[nodiscard]] bool rank_is_fixed(const PatternNode& node) const;

  CaseDTypes& dtypes_;
  AxisSequences& sequences_;
};

}  // namespace pw::proof

// Attributes of the pattern's nodes.
#pragma once

#include "proof/sketch/axis_sequences.hpp"
#include "proof/sketch/case_dtypes.hpp"

namespace pw::proof {

class CaseAttributes : SketchPart {
 public:
  CaseAttributes(SketchState& state, CaseDTypes& dtypes, AxisSequences& sequences)
      : SketchPart(state), dtypes_(dtypes), sequences_(sequences) {}
  /// Binds integer attributes that the node writes, also in `local`, before its operands exist.
  void bind_attributes(const PatternNode& node, const Op& op, Env& local);
  /// Adds the attributes of a node to its request.
  void add(const PatternNode& node, const Op& op, NodeRequest& request);
  /// Returns a number that no rule contains.
  double any_number();

 private:
  Attribute written_value(const PatternAttribute& attribute, const AttributeDecl* decl,
                          const NodeRequest& request, std::size_t results);
  void bind_list(const PatternAttribute& attribute, const NodeRequest& request);
  Attribute any_step(const std::string& name, std::string_view attribute);
  static bool is_step(std::string_view attribute);
  Attribute any_attribute(const std::string& name, const AttributeDecl& decl,
                          const NodeRequest& request, std::size_t results);
  void may_be_zero(const std::string& attribute, DimId dim);
  void bind_attribute_names(const Expr& value, const std::string& attribute);

  CaseDTypes& dtypes_;
  AxisSequences& sequences_;
  int numbers_ = 0;
};

}  // namespace pw::proof

// Types that nobody wrote, of names in rules and graphs, for editors.
#pragma once

#include <string>
#include <vector>

#include "dsl/check/check.hpp"

namespace pw {

/// `type` in terms of the rule's variables, as in `T[*b, d]`.
struct InferredType {
  Span span;  ///< of the binder
  std::string name, type;
};

/// Of the values that statements of a rule bind, on both sides, as far as it can be told: from
/// symbolic instances of the pattern's variables. A dtype is a variable's where it follows that
/// variable from one dtype to another.
void infer_rule_types(const CheckedRule& checked, std::vector<InferredType>& out);
/// Of the values of graphs in tests; graphs that do not build are passed over.
void infer_graph_types(const ContextPtr& context, const ast::File& file,
                       std::vector<InferredType>& out);

}  // namespace pw

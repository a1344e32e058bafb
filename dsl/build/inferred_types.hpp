// Infers unwritten types of names in rules and graphs, for editors.
#pragma once

#include <string>
#include <vector>

#include "dsl/check/check.hpp"

namespace pw {

/// Inferred type of a name; `type` uses the rule's variables, as in `T[*b, d]`.
struct InferredType {
  Span span;  ///< of the binder
  std::string name, type;
};

/// Infers the types of values that statements of a rule bind, on both sides, from symbolic
/// instances of the pattern's variables. A dtype is a variable's if it follows that variable from
/// one dtype to another.
void infer_rule_types(const CheckedRule& checked, std::vector<InferredType>& out);
/// Infers the types of values of graphs in tests; graphs that do not build are skipped.
void infer_graph_types(const ContextPtr& context, const ast::File& file,
                       std::vector<InferredType>& out);

}  // namespace pw

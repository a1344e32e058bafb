// Params: declared with a kind and a default, set by -D.
#pragma once

#include "dsl/program.hpp"

namespace pw {

void build_params(const Program& program, RuleSet& set, Diagnostics& out);
/// Parses `text` as a value of the kind: 2, 0.5, true, bf16, any text for str.
std::optional<Attribute> parse_param(AttributeKind kind, std::string_view text);
/// Returns the binding by which guards read a param.
Binding binding_of(const Attribute& value);

}  // namespace pw

// Params: declared with a kind and a default, set by -D.
#pragma once

#include "dsl/program.hpp"

namespace pw {

void build_params(const Program& program, RuleSet& set, Diagnostics& out);
/// `text` as a value of the kind: 2, 0.5, true, bf16, any text for str.
std::optional<Attribute> parse_param(AttributeKind kind, std::string_view text);
/// What guards see of a param of that value.
Binding binding_of(const Attribute& value);

}  // namespace pw

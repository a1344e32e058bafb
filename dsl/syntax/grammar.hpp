// The grammar of the language over tokens. Only grammar.cpp includes Boost.Spirit X3.
#pragma once

#include "dsl/actions/builder.hpp"

namespace pw {

/// Parses one item (not a group) that starts at `begin`; the tokens end with Tok::end. Returns the
/// token after it, or null after a syntax error: the builder then holds the place and the expected
/// tokens. Throws Refused from the builder's actions.
const Token* parse_item(const Token* begin, const Token* end, Builder& builder);

/// Returns true if an item starts here, by its first tokens: `rule name`, `graph {`, `use "…"`.
bool starts_item(const Token* t);

}  // namespace pw

// Colours the language without parsing it: classes of characters, and the patterns by which an
// editor finds them. Both are made from the token table of token.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/syntax/token.hpp"

namespace pw {

enum class LexicalClass : std::uint8_t {
  comment,
  string,
  escape,   ///< in a string or a quoted name
  quoted,   ///< `any text` as a name
  number,   ///< including `inf` and `nan`
  literal,  ///< true, false, none
  reserved,
  contextual,  ///< a word of the language where it may be meant as one
  dtype,
  call,  ///< a name before `(`
  name,
  operation,
  bracket,
  invalid,  ///< characters with which no token begins, or ends
};
[[nodiscard]] std::string_view name(LexicalClass c);

struct LexicalSpan {
  std::uint32_t begin = 0, end = 0;
  LexicalClass kind = LexicalClass::name;
};
/// Returns every non-blank character of the text, in order, by the parser's own tokens.
std::vector<LexicalSpan> lexical_spans(std::string_view text);

/// Pattern that matches all of one class at one place: a regular expression that Oniguruma and
/// Python read alike. The first match counts.
struct LexicalRule {
  LexicalClass kind = LexicalClass::name;
  std::string pattern;
  bool escapes = false;  ///< inside of it, escape_rules() apply
};
std::vector<LexicalRule> lexical_rules();
std::vector<LexicalRule> escape_rules();

}  // namespace pw

#include "cli/help/grammar.hpp"

#include <fmt/format.h>

#include "dsl/syntax/lexical.hpp"
#include "graph/dtype.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kPythonColumns = 150;

std::string_view pygments_token(LexicalClass kind) {
  switch (kind) {
    case LexicalClass::comment: return "Comment.Single";
    case LexicalClass::string: return "String.Double";
    case LexicalClass::escape: return "String.Escape";
    case LexicalClass::quoted: return "Name.Label";
    case LexicalClass::number: return "Number";
    case LexicalClass::literal: return "Keyword.Constant";
    case LexicalClass::reserved: return "Keyword";
    case LexicalClass::contextual: return "Keyword.Pseudo";
    case LexicalClass::dtype: return "Keyword.Type";
    case LexicalClass::call: return "Name.Function";
    case LexicalClass::name: return "Name";
    case LexicalClass::operation: return "Operator";
    case LexicalClass::bracket: return "Punctuation";
    case LexicalClass::invalid: return "Error";
  }
  return "";
}

/// Returns a raw string in the style of black. No pattern contains both quotes.
std::string python_raw(const std::string& pattern) {
  const char quote = pattern.find('"') == std::string::npos ? '"' : '\'';
  return fmt::format("r{0}{1}{0}", quote, pattern);
}

std::string python_rows(const std::vector<LexicalRule>& rules, const std::string& otherwise) {
  std::string out;
  for (const LexicalRule& rule : rules) {
    const std::string pattern = python_raw(rule.pattern);
    const std::string token = rule.escapes
                                  ? fmt::format("using(this, state=\"{}\")", name(rule.kind))
                                  : std::string(pygments_token(rule.kind));
    const bool fits = pattern.size() + token.size() + 17 <= kPythonColumns;
    out += fits ? fmt::format("            ({}, {}),\n", pattern, token)
                : fmt::format(
                      "            (\n                {},\n                {},\n            ),\n",
                      pattern, token);
  }
  return out + otherwise;
}

std::string lisp_words(std::string_view name, const std::vector<std::string_view>& words) {
  std::string out = fmt::format("(defconst {}\n  '(", name);
  for (std::size_t i = 0; i < words.size(); ++i)
    out += fmt::format("{}\"{}\"", i == 0 ? "" : i % 8 == 0 ? "\n    " : " ", words[i]);
  return out + "))\n";
}

#define PW_TEXT_OF(name, text) text,
const std::vector<std::string_view> kContextualTexts{PW_CONTEXTUAL(PW_TEXT_OF)};
const std::vector<std::string_view> kReservedTexts{PW_RESERVED(PW_TEXT_OF)};
#undef PW_TEXT_OF

}  // namespace

std::string pygments_lexer() {
  const auto inside = [](LexicalClass kind) {
    return fmt::format("            (r\"[^\\\\]+\", {}),\n", pygments_token(kind));
  };
  return "\"\"\"Highlights rules and graphs with Pygments: the lexer `pwr`. Made by `pwr grammar "
         "pygments`.\"\"\"\n"
         "from pygments.lexer import RegexLexer, this, using\n"
         "from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, "
         "String, Whitespace\n"
         "\n__all__ = [\"PwrLexer\"]\n\n\n"
         "class PwrLexer(RegexLexer):\n"
         "    \"\"\"The texts that `pwr` reads: .pwr and .pwg.\"\"\"\n\n"
         "    name = \"Piecewise rules\"\n"
         "    aliases = [\"pwr\", \"pwg\"]\n"
         "    filenames = [\"*.pwr\", \"*.pwg\"]\n"
         "    tokens = {\n"
         "        \"root\": [\n"
         "            (r\"[ \\t\\r\\n]+\", Whitespace),\n" +
         python_rows(lexical_rules(), "        ],\n") + "        \"string\": [\n" +
         python_rows(escape_rules(), inside(LexicalClass::string) + "        ],\n") +
         "        \"quoted\": [\n" +
         python_rows(escape_rules(), inside(LexicalClass::quoted) + "        ],\n") + "    }\n";
}

std::string emacs_words() {
  std::vector<std::string_view> dtypes;
  for (int i = 0; i < kDTypeCount; ++i) dtypes.push_back(name(static_cast<DType>(i)));
  return ";;; pwr-words.el --- the words of Piecewise rules, made by `pwr grammar emacs` -*- "
         "lexical-binding: t -*-\n\n" +
         lisp_words("pwr-reserved-words", kReservedTexts) + "\n" +
         lisp_words("pwr-contextual-words", kContextualTexts) + "\n" +
         lisp_words("pwr-dtypes", dtypes) + "\n(provide 'pwr-words)\n;;; pwr-words.el ends here\n";
}

}  // namespace pw::cli

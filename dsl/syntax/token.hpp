// Tokens of the language. The lexer refuses what no grammar could accept (size, nesting, stray
// bytes, numbers out of range), so that the grammar works on a flat array of bounded depth and
// never sees a byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "dsl/syntax/ast.hpp"

namespace pw {

inline constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
inline constexpr int kMaxNesting = 64;      ///< of brackets of all kinds
inline constexpr unsigned kMaxDepth = 256;  ///< of one expression's or strategy's tree

// clang-format off: tables

// Name in C++, text in the language. Reserved words cannot be names; contextual ones can.
#define PW_PUNCTUATION(X)                                                                         \
  X(lparen, "(") X(rparen, ")") X(lbracket, "[") X(rbracket, "]") X(lbrace, "{") X(rbrace, "}")   \
  X(comma, ",") X(colon, ":") X(semicolon, ";") X(question, "?") X(dot, ".") X(dotdot, "..")      \
  X(ellipsis, "...") X(at_sign, "@") X(bar, "|") X(assign, "=") X(arrow, "->") X(implies, "=>")   \
  X(equivalent, "<=>") X(eq, "==") X(ne, "!=") X(le, "<=") X(ge, ">=") X(lt, "<") X(gt, ">")      \
  X(plus, "+") X(minus, "-") X(star, "*") X(slash, "/") X(percent, "%")
#define PW_RESERVED(X)                                                                            \
  X(where, "where") X(assume, "assume") X(given, "given") X(unless, "unless") X(many, "many")     \
  X(and_, "and") X(or_, "or") X(not_, "not") X(in, "in") X(out, "out") X(true_, "true")           \
  X(false_, "false") X(none, "none")
#define PW_CONTEXTUAL(X)                                                                          \
  X(use, "use") X(param, "param") X(extern_, "extern") X(pred, "pred") X(fn, "fn") X(op, "op")    \
  X(table, "table") X(pattern, "pattern") X(rec, "rec") X(rule, "rule") X(for_, "for")            \
  X(over, "over") X(group, "group") X(pass, "pass") X(pipeline, "pipeline") X(ranges, "ranges")   \
  X(split, "split") X(at, "at") X(capture, "capture") X(sizes, "sizes") X(mode, "mode")           \
  X(by, "by") X(test, "test") X(graph, "graph") X(apply, "apply") X(with, "with")                 \
  X(expect, "expect") X(numeric, "numeric") X(within, "within") X(error, "error")                 \
  X(because, "because") X(mut, "mut") X(from, "from") X(commutative, "commutative")               \
  X(associative, "associative") X(view, "view") X(collective, "collective") X(effect, "effect")   \
  X(splitting, "splitting") X(rowwise, "rowwise") X(greedy, "greedy") X(once, "once")             \
  X(walk, "walk") X(saturate, "saturate") X(atomic, "atomic") X(repeat, "repeat")                 \
  X(best, "best") X(of, "of") X(fuel, "fuel") X(when, "when") X(ensures, "ensures")               \
  X(nodes, "nodes") X(rounds, "rounds") X(cost, "cost") X(symbol, "symbol") X(tokens, "tokens")   \
  X(role, "role") X(weight, "weight") X(buffer, "buffer") X(replicated, "replicated")             \
  X(foreign, "foreign") X(write, "write") X(pointwise, "pointwise") X(explore, "explore")          \
  X(orders, "orders") X(before, "before") X(subsets, "subsets") X(sample, "sample")                \
  X(seed, "seed")
// clang-format on

enum class Tok : std::uint8_t {
  end,
  integer,
  real,
  string,
  quoted,  ///< `any text` as a name
  word,    ///< a name that is not a word of the language
#define PW_TOKEN(name, text) name,
  PW_CONTEXTUAL(PW_TOKEN) PW_RESERVED(PW_TOKEN) PW_PUNCTUATION(PW_TOKEN)
#undef PW_TOKEN
      count
};

struct Token {
  std::uint32_t begin = 0;
  std::uint32_t length = 0;
  Tok kind = Tok::end;
  bool first_on_line = false;
  [[nodiscard]] std::uint32_t end() const { return begin + length; }
};

/// Returns true if the token may be a name.
constexpr bool is_name(Tok t) { return t >= Tok::quoted && t < Tok::where; }
/// Returns true for a name or a reserved word: attribute names and the later parts of paths.
constexpr bool is_word(Tok t) { return t >= Tok::quoted && t < Tok::lparen; }
constexpr bool is_reserved(Tok t) { return t >= Tok::where && t < Tok::lparen; }

/// Returns "`=>`", "a name", "the end of the file".
std::string describe(Tok kind);

struct Lexed {
  std::vector<Token> tokens;  ///< the last one is Tok::end
  std::vector<ast::Comment> comments;
  Diagnostics diagnostics;
  Span unclosed;       ///< the innermost bracket still open at the end
  bool fatal = false;  ///< too large or too deep: do not parse
};
Lexed lex(std::string_view text, SourceId source);

/// Returns the text of a string or quoted-name token. lex() has diagnosed bad escapes, which stay
/// unchanged.
std::string unescape(std::string_view literal);

}  // namespace pw

// The token that a semantic action of the grammar sees, and its text.
#pragma once

#include <string>
#include <string_view>

#include "dsl/syntax/token.hpp"

namespace pw {

/// Thrown by an action and caught in parse_item: text that is grammatical but refused.
struct Refused {
  Diagnostic diagnostic;
};
[[noreturn]] void refuse(Span at, std::string_view code, std::string message, std::string help);

/// Place of an action in the tokens: the one just matched is the last.
class TokenCursor {
 public:
  TokenCursor(std::string_view text, SourceId source, const Token* begin)
      : text_(text), source_(source), at_(begin) {}

  void move_to(const Token* next) { at_ = next; }  ///< one past the token just matched

  [[nodiscard]] const Token* next() const { return at_; }
  [[nodiscard]] const Token& last() const { return at_[-1]; }
  [[nodiscard]] const Token& before_last() const { return at_[-2]; }

  [[nodiscard]] std::string_view text(Span s) const {
    return text_.substr(s.begin, s.end - s.begin);
  }
  [[nodiscard]] std::string_view text() const { return text(span()); }
  [[nodiscard]] Span span(const Token& t) const { return {source_, t.begin, t.end()}; }
  [[nodiscard]] Span span() const { return span(last()); }
  /// Returns the span from a place to the end of the last token.
  [[nodiscard]] Span since(std::uint32_t begin) const { return {source_, begin, last().end()}; }

  // ---- values of the last token
  [[nodiscard]] std::string word() const;  ///< a name or a reserved word, unquoted
  [[nodiscard]] std::string string() const { return unescape(text()); }
  [[nodiscard]] double real() const;
  /// Refuses a number that does not fit into 64 signed bits.
  [[nodiscard]] std::int64_t integer(bool negative = false) const;

 private:
  std::string_view text_;
  SourceId source_;
  const Token* at_;
};

}  // namespace pw

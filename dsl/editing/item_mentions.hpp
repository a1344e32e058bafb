// The tokens of the current item of a text, and the mentions that are read off them.
#pragma once

#include <string>
#include <string_view>

#include "dsl/editing/mentions.hpp"

namespace pw {

[[nodiscard]] inline bool opens(Tok t) {
  return t == Tok::lparen || t == Tok::lbracket || t == Tok::lbrace;
}
[[nodiscard]] inline bool closes(Tok t) {
  return t == Tok::rparen || t == Tok::rbracket || t == Tok::rbrace;
}
/// Returns true if an expression may end with the token: a name after it begins something else.
[[nodiscard]] bool ends_expression(Tok t);

/// Cursor over the tokens of one item, which adds its mentions to those of the file.
class ItemMentions {
 public:
  ItemMentions(std::string_view text, Mentions& out) : text_(text), out_(out) {}

  /// Goes to an item, which ends before the token `end`, outside of any scope.
  void begin_item(std::size_t item, std::size_t end);

  // ---- tokens; after the end of the item, Tok::end

  [[nodiscard]] std::size_t end() const { return end_; }
  [[nodiscard]] const Token& token(std::size_t i) const { return out_.tokens[i]; }
  [[nodiscard]] Tok kind(std::size_t i) const;
  [[nodiscard]] std::string_view spelling(std::size_t i) const;
  [[nodiscard]] std::string word(std::size_t i) const;
  /// Returns the token after the bracket that closes the one at `i`; without one, the end of the
  /// item.
  [[nodiscard]] std::size_t after(std::size_t i) const;
  [[nodiscard]] std::size_t path_end(std::size_t i) const;
  /// Returns true for `mut` or `out` before an operand.
  [[nodiscard]] bool modifier(std::size_t i) const;

  // ---- mentions

  Mention& put(std::size_t i, MentionKind k);
  Mention& put_name(std::size_t i, NamePlace place, bool declares = false);
  /// Adds a path from `i` on as one mention; returns the token after it.
  std::size_t put_path(std::size_t i, MentionKind k, bool declares = false);

  // ---- the item

  [[nodiscard]] OutlineItem& outline() const { return out_.items[item_]; }
  /// Adds the name of the item itself.
  void declare(std::size_t i, MentionKind k);
  void name_item(std::size_t i);
  /// Names the item, whose name begins as set, by the last mention.
  void name_item_by_last();
  void add_use(std::size_t i);

  // ---- scopes

  /// Opens a scope; returns the outer one.
  std::uint32_t open_scope(std::size_t begin, std::size_t end);
  void restore_scope(std::uint32_t outer) { scope_ = outer; }
  [[nodiscard]] bool in_scope() const { return scope_ != kNoScope; }
  [[nodiscard]] NameScope& scope() const { return out_.scopes[scope_]; }

 private:
  std::string_view text_;
  Mentions& out_;
  std::uint32_t item_ = 0, scope_ = kNoScope;
  std::size_t end_ = 0;
};

}  // namespace pw

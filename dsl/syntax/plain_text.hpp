// A cursor over the text of a graph, for read_plain_graph: it reads the parts of plain statements,
// and returns false for all others. Spaces and comments before a part are skipped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pw {

/// A name, or a path of names without spaces. In backquotes, it may be any text without escapes.
struct PlainWord {
  std::string_view text;
  bool quoted = false;
};

class PlainText {
 public:
  explicit PlainText(std::string_view text) : text_(text) {}

  [[nodiscard]] std::string_view all() const { return text_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }
  /// Returns the start of the first line whose first word is this; npos if there is none.
  [[nodiscard]] std::size_t first_line_of(std::string_view word) const;
  [[nodiscard]] bool at_end() {
    skip();
    return at_ == text_.size();
  }

  void skip() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/')
        at_ = std::min(text_.find('\n', at_), text_.size() - 1);
      else if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
        return;
    }
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  /// Takes `=`, but not a longer sign.
  bool take_assign() {
    if (!take('=')) return false;
    const char c = here();
    return c != '=' && c != '>';
  }
  bool word(PlainWord& out) {
    const char c = next();
    if (c == '`') return quoted_word(out);
    if (!is(c, kLetter)) return false;
    const std::size_t begin = at_;
    skip_word();
    out = {text_.substr(begin, at_ - begin), false};
    return true;
  }
  /// Takes exactly this word, or nothing.
  bool take_word(std::string_view wanted);
  [[nodiscard]] bool at_word() {
    const char c = next();
    return c == '`' || is(c, kLetter);
  }
  [[nodiscard]] bool at_call() {
    const char c = next();
    return c == '(' || c == '.';
  }
  [[nodiscard]] bool at_string() { return next() == '"'; }
  /// Takes `.b.c` after `a`.
  bool rest_of_path(PlainWord& word);
  /// Takes a string without its quotes.
  bool string(std::string_view& out);
  /// Takes `bf16[n, 64]`, or the dtype alone.
  bool type(std::string_view& out);
  /// Takes `{…}`; empty if there is none.
  bool attributes(std::string_view& out);
  /// Takes ` replicated "a" "b"`, if it is there.
  bool take_replicated(std::vector<std::string>& out);
  /// Returns true if `write name =` is next.
  [[nodiscard]] bool at_write();

 private:
  enum : std::uint8_t { kLetter = 1, kDigit = 2, kInType = 4 };
  static constexpr std::array<std::uint8_t, 256> kClasses = [] {
    std::array<std::uint8_t, 256> out{};
    for (int c = 'a'; c <= 'z'; ++c) out[c] = kLetter | kInType;
    for (int c = 'A'; c <= 'Z'; ++c) out[c] = kLetter | kInType;
    for (int c = '0'; c <= '9'; ++c) out[c] = kDigit | kInType;
    out['_'] = kLetter | kInType;
    for (const char c : {' ', ',', '*', '+', '-', '/', '%', '(', ')'})
      out[static_cast<unsigned char>(c)] = kInType;
    return out;
  }();
  static bool is(char c, unsigned classes) {
    return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
  }
  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    skip();
    return here();
  }
  void skip_word() {
    while (at_ < text_.size() && is(text_[at_], kLetter | kDigit)) ++at_;
  }
  bool quoted_word(PlainWord& out);
  /// Takes the text between the quote and the one that ends it; it contains no escapes.
  bool between(char quote, std::string_view& out);

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace pw

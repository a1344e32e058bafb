#include "dsl/syntax/plain_text.hpp"

#include <algorithm>

#include "base/characters.hpp"

namespace pw {

std::size_t PlainText::first_line_of(std::string_view word) const {
  for (std::size_t line = 0; line < text_.size();) {
    const std::size_t begin = text_.find_first_not_of(" \t", line);
    if (begin == std::string_view::npos) break;
    const std::string_view rest = text_.substr(begin);
    if (rest.size() > word.size() && rest.starts_with(word) &&
        !is(rest[word.size()], kLetter | kDigit))
      return begin;
    line = text_.find('\n', begin);
    if (line == std::string_view::npos) break;
    ++line;
  }
  return std::string_view::npos;
}

bool PlainText::take_word(std::string_view wanted) {
  skip();
  const std::size_t begin = at_;
  PlainWord found;
  if (word(found) && !found.quoted && found.text == wanted) return true;
  at_ = begin;
  return false;
}

bool PlainText::between(char quote, std::string_view& out) {
  const std::size_t begin = ++at_, end = end_of_plain_quote(text_, begin, quote);
  if (end == std::string_view::npos) return false;
  out = text_.substr(begin, end - begin);
  at_ = end + 1;
  return true;
}

bool PlainText::quoted_word(PlainWord& out) {
  out.quoted = true;
  return between('`', out.text) && !out.text.empty();
}

bool PlainText::string(std::string_view& out) { return at_string() && between('"', out); }

bool PlainText::rest_of_path(PlainWord& word) {
  if (word.quoted) return true;
  const std::size_t begin = at_ - word.text.size();
  while (here() == '.') {
    ++at_;
    if (!is(here(), kLetter)) return false;
    skip_word();
  }
  word.text = text_.substr(begin, at_ - begin);
  return true;
}

bool PlainText::type(std::string_view& out) {
  if (!is(next(), kLetter)) return false;
  const std::size_t begin = at_;
  skip_word();
  if (here() == '[') {
    for (++at_; is(here(), kInType); ++at_)
      if (here() == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') return false;
    if (here() != ']') return false;
    ++at_;
  }
  out = text_.substr(begin, at_ - begin);
  return true;
}

bool PlainText::attributes(std::string_view& out) {
  out = {};
  const std::size_t end = at_;
  if (next() != '{') {
    at_ = end;
    return true;
  }
  const std::size_t begin = at_;
  int open = 0;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '`' || (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/')) return false;
    if (c == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\n') return false;
        if (text_[at_] == '\\') ++at_;
      }
    } else if (c == '{' || c == '[' || c == '(') {
      ++open;
    } else if ((c == '}' || c == ']' || c == ')') && --open == 0) {
      ++at_;
      out = text_.substr(begin, at_ - begin);
      return c == '}';
    }
  }
  return false;
}

bool PlainText::take_replicated(std::vector<std::string>& out) {
  skip();
  const std::size_t begin = at_;
  if (!take_word("replicated") || !at_string()) {
    at_ = begin;
    return true;
  }
  while (at_string()) {
    std::string_view group;
    if (!between('"', group)) return false;
    out.emplace_back(group);
  }
  return true;
}

bool PlainText::at_write() {
  const std::size_t begin = at_;
  PlainWord name;
  const bool found = take_word("write") && word(name) && take_assign();
  at_ = begin;
  return found;
}

}  // namespace pw

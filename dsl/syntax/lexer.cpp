#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/characters.hpp"
#include "dsl/syntax/token.hpp"

namespace pw {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(Tok::count)> kTexts = {
    "the end of the file",
    "an integer",
    "a number",
    "a string",
    "a name",
    "a name",
#define PW_TEXT(name, text) text,
    PW_CONTEXTUAL(PW_TEXT) PW_RESERVED(PW_TEXT) PW_PUNCTUATION(PW_TEXT)
#undef PW_TEXT
};

/// Words and punctuation by their first character; longer ones first.
using Buckets = std::array<std::vector<std::pair<std::string_view, Tok>>, 128>;

const Buckets kBuckets = [] {
  Buckets out;
  for (std::size_t i = static_cast<std::size_t>(Tok::word) + 1; i < kTexts.size(); ++i)
    out[static_cast<std::size_t>(kTexts[i][0])].emplace_back(kTexts[i], static_cast<Tok>(i));
  for (auto& bucket : out)
    std::sort(bucket.begin(), bucket.end(),
              [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  return out;
}();
const std::vector<std::pair<std::string_view, Tok>>& bucket_of(char c) {
  static const std::vector<std::pair<std::string_view, Tok>> kEmpty;
  const auto byte = static_cast<unsigned char>(c);
  return byte < kBuckets.size() ? kBuckets[byte] : kEmpty;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  Lexer(std::string_view text, SourceId source) : text_(text), source_(source) {}

  Lexed run() && {
    if (text_.size() > kMaxFileBytes) {
      out_.fatal = true;
      report(0, 0, "PW0100", "the file is larger than 64 MiB",
             "split it, or use the JSON form for a graph of this size");
      return std::move(out_);
    }
    out_.tokens.reserve(text_.size() / 4 + 2);
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
    while (!out_.fatal && skip_space()) token();
    push(Tok::end, text_.size());
    if (!open_.empty()) {
      const Token& bracket = out_.tokens[open_.back()];
      out_.unclosed = span(bracket.begin, bracket.end());
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  [[nodiscard]] Span span(std::size_t begin, std::size_t end) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  void report(std::size_t begin, std::size_t end, std::string_view code, std::string message,
              std::string help) {
    if (out_.diagnostics.size() < kMaxReports)
      out_.diagnostics.push_back(
          error_at(span(begin, end), code, std::move(message), std::move(help)));
  }
  void push(Tok kind, std::size_t begin) {
    out_.tokens.push_back({static_cast<std::uint32_t>(begin),
                           static_cast<std::uint32_t>(at_ - begin), kind, fresh_line_});
    fresh_line_ = false;
  }

  /// Skips blanks and comments; returns false at the end of the text.
  bool skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        fresh_line_ = true;
      } else if (c == '/' && peek(1) == '/') {
        comment();
        --at_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return true;
      }
    }
    return false;
  }

  void comment() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find('\n', at_), text_.size());
    std::size_t end = at_;
    while (end > begin + 2 &&
           (text_[end - 1] == ' ' || text_[end - 1] == '\t' || text_[end - 1] == '\r'))
      --end;
    out_.comments.push_back(
        {span(begin, end), std::string(text_.substr(begin + 2, end - begin - 2)), fresh_line_});
  }

  void token() {
    const char c = peek();
    if (begins_name(c)) return word();
    if (is_digit(c)) return number();
    if (c == '"' || c == '`') return string(c);
    punctuation();
  }

  void word() {
    const std::size_t begin = at_;
    while (is_in_name(peek())) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (text == "inf" || text == "nan") return push(Tok::real, begin);
    Tok kind = Tok::word;
    for (const auto& [known, tok] : bucket_of(text[0]))
      if (text == known) kind = tok;
    push(kind, begin);
  }

  void number() {
    const std::size_t begin = at_;
    bool real = false;
    while (is_digit(peek())) ++at_;
    if (peek() == '.' && is_digit(peek(1))) {  // `1..256` is a range
      real = true;
      for (++at_; is_digit(peek());) ++at_;
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 2 : 1;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign))) {
      real = true;
      for (at_ += sign; is_digit(peek());) ++at_;
    }
    check_number(begin, real);
    push(real ? Tok::real : Tok::integer, begin);
  }

  void check_number(std::size_t begin, bool real) {
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (begins_name(peek())) {
      while (is_in_name(peek())) ++at_;
      report(begin, at_, "PW0104", "a number runs into a name",
             "put a `*` or a space between them");
      return;
    }
    double r = 0;
    std::uint64_t i = 0;
    const std::errc code = real ? std::from_chars(text.data(), text.data() + text.size(), r).ec
                                : std::from_chars(text.data(), text.data() + text.size(), i).ec;
    if (code != std::errc() || i > std::uint64_t{1}
                                       << 63)  // 2^63 itself may follow a minus; the builder checks
      report(begin, at_, "PW0104", "the number is out of range",
             real ? "real numbers are 64-bit floats" : "integers are signed, with 64 bits");
  }

  void string(char quote) {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && peek() != quote && peek() != '\n') escape_or_byte();
    if (peek() == quote && at_ < text_.size()) {
      ++at_;
    } else {
      report(begin, at_, "PW0102",
             quote == '"' ? "the string is not closed on its line"
                          : "the quoted name is not closed on its line",
             std::string("close it with ") + quote + "; a newline inside it is written \\n");
    }
    push(quote == '"' ? Tok::string : Tok::quoted, begin);
  }

  void escape_or_byte() {
    if (peek() != '\\') {
      ++at_;
      return;
    }
    const char c = peek(1);
    const bool hex = c == 'x' && hex_digit(peek(2)) >= 0 && hex_digit(peek(3)) >= 0;
    if (hex) {
      at_ += 4;
    } else if (c != '\0' && std::string_view("ntr0\"\\`").find(c) != std::string_view::npos) {
      at_ += 2;
    } else if (at_ + 1 == text_.size() || c == '\n') {
      ++at_;  // the string is unclosed, which is reported anyway
    } else {
      report(at_, std::min(at_ + 2, text_.size()), "PW0103", "unknown escape in a string",
             "the escapes are \\n \\t \\r \\0 \\\" \\` \\\\ and \\xNN");
      ++at_;
    }
  }

  void punctuation() {
    const std::string_view rest = text_.substr(at_, 3);
    for (const auto& [text, kind] : bucket_of(rest[0])) {
      if (!rest.starts_with(text)) continue;
      at_ += text.size();
      push(kind, at_ - text.size());
      return bracket(kind);
    }
    stray();
  }

  void bracket(Tok kind) {
    if (kind == Tok::lparen || kind == Tok::lbracket || kind == Tok::lbrace) {
      open_.push_back(out_.tokens.size() - 1);
      if (open_.size() <= kMaxNesting) return;
      out_.fatal = true;
      report(at_ - 1, at_, "PW0106", "brackets are nested more than 64 deep",
             "give the inner parts their own names");
    } else if ((kind == Tok::rparen || kind == Tok::rbracket || kind == Tok::rbrace) &&
               !open_.empty()) {
      open_.pop_back();
    }
  }

  void stray() {
    const std::size_t begin = at_;
    const auto known = [](char c) {
      return is_in_name(c) ||
             std::string_view(" \t\r\n\"`()[]{},:;?.@|=<>!+-*/%").find(c) != std::string_view::npos;
    };
    do ++at_;
    while (at_ < text_.size() && !known(text_[at_]));
    const bool printable = text_[begin] > ' ' && text_[begin] < 127;
    report(begin, at_, "PW0105",
           printable ? "this character is not allowed here"
                     : "a byte that is not plain text is not allowed outside a string",
           text_[begin] == '#' ? "comments begin with `//`"
           : printable         ? ""
                       : "other alphabets are allowed in strings, `quoted names` and comments");
  }

  static constexpr std::size_t kMaxReports = 100;
  std::string_view text_;
  SourceId source_;
  std::size_t at_ = 0;
  bool fresh_line_ = true;
  std::vector<std::size_t> open_;
  Lexed out_;
};

}  // namespace

std::string describe(Tok kind) {
  const std::string text(kTexts[static_cast<std::size_t>(kind)]);
  return kind <= Tok::word ? text : "`" + text + "`";
}

Lexed lex(std::string_view text, SourceId source) { return Lexer(text, source).run(); }

std::string unescape(std::string_view literal) {
  if (literal.size() < 2) return {};
  const bool closed = literal.back() == literal.front();
  const std::string_view text = literal.substr(1, literal.size() - (closed ? 2 : 1));
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    if (c == 'n')
      out += '\n';
    else if (c == 't')
      out += '\t';
    else if (c == 'r')
      out += '\r';
    else if (c == '0')
      out += '\0';
    else if (c == 'x' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
             hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace pw

#include "dsl/syntax/lexical.hpp"

#include <algorithm>
#include <array>

#include "base/characters.hpp"
#include "graph/dtype.hpp"

namespace pw {
namespace {

struct Spelt {
  Tok kind;
  std::string_view text;
};
#define PW_ROW(name, text) {Tok::name, text},
constexpr Spelt kContextualWords[] = {PW_CONTEXTUAL(PW_ROW)};
constexpr Spelt kReservedWords[] = {PW_RESERVED(PW_ROW)};
constexpr Spelt kPunctuation[] = {PW_PUNCTUATION(PW_ROW)};
#undef PW_ROW

constexpr std::string_view kKnownEscapes = "ntr0\"\\`";
/// Characters that follow a name and not a word of the language.
constexpr std::string_view kAfterName = "=,)}]:.?(+-*%|;<>!";

constexpr bool is_bracket(Tok t) {
  return t == Tok::lparen || t == Tok::rparen || t == Tok::lbracket || t == Tok::rbracket ||
         t == Tok::lbrace || t == Tok::rbrace;
}
constexpr bool is_literal(Tok t) { return t == Tok::true_ || t == Tok::false_ || t == Tok::none; }

// ---- from tokens

class Spans {
 public:
  Spans(std::string_view text, const Lexed& lexed) : text_(text), lexed_(lexed) {}

  std::vector<LexicalSpan> run() {
    for (std::size_t i = 0; i + 1 < lexed_.tokens.size(); ++i) token(i);
    for (const ast::Comment& c : lexed_.comments)
      put(c.span.begin, c.span.end, LexicalClass::comment);
    for (const Diagnostic& d : lexed_.diagnostics)
      if (d.code == "PW0105") put(d.span.begin, d.span.end, LexicalClass::invalid);
    std::stable_sort(out_.begin(), out_.end(),
                     [](const LexicalSpan& a, const LexicalSpan& b) { return a.begin < b.begin; });
    return std::move(out_);
  }

 private:
  void put(std::uint32_t begin, std::uint32_t end, LexicalClass kind) {
    if (begin < end) out_.push_back({begin, end, kind});
  }

  void token(std::size_t i) {
    const Token& t = lexed_.tokens[i];
    if (t.kind == Tok::string || t.kind == Tok::quoted) return quoted(t);
    put(t.begin, t.end(), kind_of(i));
  }

  [[nodiscard]] LexicalClass kind_of(std::size_t i) const {
    const Token& t = lexed_.tokens[i];
    const std::string_view text = text_.substr(t.begin, t.length);
    if (t.kind == Tok::integer || t.kind == Tok::real) {
      const bool sound = !is_digit(text.front()) || (is_digit(text.back()) && is_number(text));
      return sound ? LexicalClass::number : LexicalClass::invalid;
    }
    if (is_literal(t.kind)) return LexicalClass::literal;
    if (is_reserved(t.kind)) return LexicalClass::reserved;
    if (is_bracket(t.kind)) return LexicalClass::bracket;
    if (!is_name(t.kind)) return LexicalClass::operation;
    if (t.kind == Tok::word && dtype_named(text) && !after_dot(i)) return LexicalClass::dtype;
    if (t.kind != Tok::word && !after_dot(i) && meant(i)) return LexicalClass::contextual;
    return called(i) ? LexicalClass::call : LexicalClass::name;
  }

  /// Returns true if no name adjoins a text that begins and ends with a digit.
  static bool is_number(std::string_view text) {
    bool exponent = false;
    for (const char c : text) {
      const bool sign = (c == '+' || c == '-') && exponent;
      if ((c == 'e' || c == 'E') && !exponent)
        exponent = true;
      else if (!is_digit(c) && c != '.' && !sign)
        return false;
    }
    return true;
  }

  [[nodiscard]] bool after_dot(std::size_t i) const {
    const std::uint32_t begin = lexed_.tokens[i].begin;
    return begin > 0 && text_[begin - 1] == '.';
  }
  /// Returns the next character on the line that is not a blank; a line end if there is none, or if
  /// a comment begins.
  [[nodiscard]] char next(std::uint32_t& at) const {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    if (at == text_.size() || text_[at] == '\r') return '\n';
    return text_[at] == '/' && at + 1 < text_.size() && text_[at + 1] == '/' ? '\n' : text_[at];
  }
  [[nodiscard]] bool meant(std::size_t i) const {
    std::uint32_t at = lexed_.tokens[i].end();
    const char c = next(at);
    return c != '/' && kAfterName.find(c) == std::string_view::npos;
  }
  [[nodiscard]] bool called(std::size_t i) const {
    std::uint32_t at = lexed_.tokens[i].end();
    char c = next(at);
    if (c == '?') c = next(++at);
    return c == '(';
  }

  void quoted(const Token& t) {
    const std::string_view text = text_.substr(t.begin, t.length);
    const bool closed = is_closed(text);
    if (!closed) return put(t.begin, t.end(), LexicalClass::invalid);
    const LexicalClass kind = t.kind == Tok::string ? LexicalClass::string : LexicalClass::quoted;
    std::uint32_t from = t.begin;
    for (std::uint32_t i = 1; i + 1 < text.size();) {
      if (text[i] != '\\') {
        ++i;
        continue;
      }
      const std::uint32_t length = text[i + 1] == 'x' && is_hex(text, i) ? 4 : 2;
      const bool known = length == 4 || kKnownEscapes.find(text[i + 1]) != std::string_view::npos;
      put(from, t.begin + i, kind);
      const std::uint32_t shown = known ? length : 1;
      put(t.begin + i, t.begin + i + shown, known ? LexicalClass::escape : LexicalClass::invalid);
      i += shown;
      from = t.begin + i;
    }
    put(from, t.end(), kind);
  }
  static bool is_hex(std::string_view text, std::size_t i) {
    constexpr std::string_view kHex = "0123456789abcdefABCDEF";
    return i + 3 < text.size() && kHex.find(text[i + 2]) != std::string_view::npos &&
           kHex.find(text[i + 3]) != std::string_view::npos;
  }
  static bool is_closed(std::string_view text) {
    std::size_t i = 1;
    while (i < text.size() && text[i] != text[0]) i += text[i] == '\\' ? 2 : 1;
    return i + 1 == text.size();
  }

  std::string_view text_;
  const Lexed& lexed_;
  std::vector<LexicalSpan> out_;
};

// ---- patterns

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    const bool plain = is_in_name(c) || c == ' ' || c == '"' || c == '`';
    if (!plain) out += '\\';
    out += c;
  }
  return out;
}

/// Returns a pattern for any of the texts. Longer ones come first, so that `<=>` is not read as
/// `<=`.
std::string any_of_texts(std::vector<std::string_view> texts) {
  std::stable_sort(texts.begin(), texts.end(),
                   [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
  std::string out;
  for (std::string_view text : texts) out += (out.empty() ? "" : "|") + escaped(text);
  return "(?:" + out + ")";
}

constexpr std::string_view kWordEnds = "(?![A-Za-z0-9_])";
constexpr std::string_view kNoDot = "(?<!\\.)";

template <class Keep>
std::string words(const std::vector<Spelt>& table, Keep keep) {
  std::vector<std::string_view> texts;
  for (const Spelt& row : table)
    if (keep(row.kind)) texts.push_back(row.text);
  return any_of_texts(std::move(texts)) + std::string(kWordEnds);
}

std::string dtypes() {
  std::vector<std::string_view> texts;
  for (int i = 0; i < kDTypeCount; ++i) texts.push_back(name(static_cast<DType>(i)));
  return any_of_texts(std::move(texts)) + std::string(kWordEnds);
}

}  // namespace

std::string_view name(LexicalClass c) {
  switch (c) {
    case LexicalClass::comment: return "comment";
    case LexicalClass::string: return "string";
    case LexicalClass::escape: return "escape";
    case LexicalClass::quoted: return "quoted";
    case LexicalClass::number: return "number";
    case LexicalClass::literal: return "literal";
    case LexicalClass::reserved: return "reserved";
    case LexicalClass::contextual: return "contextual";
    case LexicalClass::dtype: return "dtype";
    case LexicalClass::call: return "call";
    case LexicalClass::name: return "name";
    case LexicalClass::operation: return "operation";
    case LexicalClass::bracket: return "bracket";
    case LexicalClass::invalid: return "invalid";
  }
  return "";
}

std::vector<LexicalSpan> lexical_spans(std::string_view text) {
  const Lexed lexed = lex(text, SourceId());
  return Spans(text, lexed).run();
}

std::vector<LexicalRule> lexical_rules() {
  const std::vector<Spelt> contextual(std::begin(kContextualWords), std::end(kContextualWords));
  const std::vector<Spelt> reserved(std::begin(kReservedWords), std::end(kReservedWords));
  const std::vector<Spelt> signs(std::begin(kPunctuation), std::end(kPunctuation));
  const auto all = [](Tok) { return true; };
  const std::string dot(kNoDot);
  const std::string after = "(?![ \\t]*(?:[" + escaped(kAfterName) + "]|/(?!/)))";
  const std::string digits = "[0-9]+(?:\\.[0-9]+)?", exponent = "[eE][+\\-]?[0-9]+";
  const std::string letter = "[A-Za-z_]", word = letter + "[A-Za-z0-9_]*";
  using C = LexicalClass;
  std::vector<LexicalRule> out{
      {C::comment, "//.*"},
      {C::string, "\"(?:[^\"\\\\\\n]|\\\\.)*\"", true},
      {C::quoted, "`(?:[^`\\\\\\n]|\\\\.)*`", true},
      {C::invalid, "[\"`].*"},
      {C::invalid, digits + "(?!" + exponent + ")" + word},
      {C::invalid, digits + exponent + word},
      {C::number, digits + "(?:" + exponent + ")?"},
      {C::number, "(?:inf|nan)" + std::string(kWordEnds)},
      {C::literal, words(reserved, is_literal)},
      {C::reserved, words(reserved, [](Tok t) { return !is_literal(t); })},
      {C::dtype, dot + dtypes()},
      {C::contextual, dot + words(contextual, all) + after},
      {C::call, word + "(?=[ \\t]*(?:\\?[ \\t]*)?\\()"},
      {C::name, word},
  };
  std::vector<std::string_view> brackets, operations;
  for (const Spelt& sign : signs)
    (is_bracket(sign.kind) ? brackets : operations).push_back(sign.text);
  out.push_back({C::operation, any_of_texts(std::move(operations))});
  out.push_back({C::bracket, any_of_texts(std::move(brackets))});
  out.push_back({C::invalid, "[^ \\t\\r\\n]"});
  return out;
}

std::vector<LexicalRule> escape_rules() {
  return {
      {LexicalClass::escape, "\\\\(?:x[0-9a-fA-F][0-9a-fA-F]|[" + escaped(kKnownEscapes) + "])"},
      {LexicalClass::invalid, "\\\\"}};
}

}  // namespace pw

// The lines that nearly all of a dump is made of, without the grammar. `name: "type" = target(…); a
// = b = None`, where arguments are names, numbers, texts and lists of them, and `name = tuple[1]`.
#include <array>
#include <charconv>

#include "base/characters.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {
namespace {

constexpr int kMostNested = 8;

class PlainLine {
 public:
  PlainLine(std::string_view text, SourceId source, const Line& line)
      : text_(text), source_(source), at_(line.begin), end_(line.end) {}

  bool read(Statement& out) { return statement(out) && releases(); }

 private:
  enum : std::uint8_t { kHead = 1, kDigit = 2 };
  static constexpr std::array<std::uint8_t, 256> kClasses = [] {
    std::array<std::uint8_t, 256> out{};
    for (int c = 'a'; c <= 'z'; ++c) out[c] = kHead;
    for (int c = 'A'; c <= 'Z'; ++c) out[c] = kHead;
    for (int c = '0'; c <= '9'; ++c) out[c] = kDigit;
    out['_'] = kHead;
    return out;
  }();
  static bool is(char c, unsigned classes) {
    return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
  }
  [[nodiscard]] char here() const { return at_ < end_ ? text_[at_] : '\0'; }
  char next() {
    while (at_ < end_ && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return here();
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool equals() {
    if (!take('=')) return false;
    return here() != '=';
  }
  [[nodiscard]] Span span(std::size_t begin) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at_)};
  }
  bool word(std::string_view& out) {
    if (!is(next(), kHead)) return false;
    const std::size_t begin = at_;
    while (is(here(), kHead | kDigit)) ++at_;
    out = text_.substr(begin, at_ - begin);
    return out != "not";
  }
  bool path(std::string_view& out) {
    const std::size_t before = at_;
    std::string_view first;
    if (!word(first)) return at_ = before, false;
    const std::size_t begin = at_ - first.size();
    while (here() == '.') {
      ++at_;
      if (!is(here(), kHead)) return false;
      while (is(here(), kHead | kDigit)) ++at_;
    }
    out = text_.substr(begin, at_ - begin);
    return true;
  }
  /// Reads a string without escapes.
  bool string(std::string_view& out) {
    const char quote = next();
    if (quote != '"' && quote != '\'') return false;
    const std::size_t begin = ++at_, end = end_of_plain_quote(text_.substr(0, end_), begin, quote);
    if (end == std::string_view::npos) return false;
    out = text_.substr(begin, end - begin);
    at_ = end + 1;
    return true;
  }

  bool statement(Statement& out) {
    std::string_view name;
    if (!word(name) || name == "return") return false;
    const std::size_t begin = at_ - name.size();
    Expr& target = out.targets.emplace_back();
    set_name(target, name, begin);
    if (take(':')) {
      std::string_view type;
      if (!string(type)) return false;
      out.type = type;
      const auto from = static_cast<std::uint32_t>(type.data() - text_.data());
      out.type_span = {source_, from, from + static_cast<std::uint32_t>(type.size())};
    }
    if (!equals() || !value(out.value)) return false;
    out.kind = Statement::Kind::assign;
    out.span = span(begin);
    out.span.end = out.value.span.end;
    return out.value.kind == Expr::Kind::call || out.value.kind == Expr::Kind::index;
  }

  /// Reads `a = b = None`, each after a semicolon, up to the end of the line.
  bool releases() {
    while (take(';')) {
      if (next() == '\0') break;
      std::string_view name;
      if (!word(name) || name == "None" || !equals()) return false;
      do {
        if (!word(name)) return false;
      } while (name != "None" && equals());
      if (name != "None") return false;
    }
    return next() == '\0' && at_ == end_;
  }

  /// Reads a call, or a part of a tuple.
  bool value(Expr& out) {
    std::string_view name;
    next();
    const std::size_t begin = at_;
    if (!path(name)) return false;
    if (here() == '(') return call(out, name, begin, 0);
    if (here() != '[') return false;
    Expr& base = out.args.emplace_back();
    set_name(base, name, begin);
    ++at_;
    if (!is(next(), kDigit) || !number(out.args.emplace_back()) || !take(']')) return false;
    out.kind = Expr::Kind::index;
    out.span = span(begin);
    return ends();
  }
  /// Returns true if no operator, subscript or attribute follows a value.
  bool ends() {
    const char c = next();
    return c == ',' || c == ')' || c == ']' || c == ';' || c == '\0';
  }

  void set_name(Expr& e, std::string_view name, std::size_t begin) const {
    e.kind = name == "None"                      ? Expr::Kind::none
             : name == "True" || name == "False" ? Expr::Kind::boolean
                                                 : Expr::Kind::name;
    e.integer = name == "True" ? 1 : 0;
    e.text = name;
    e.span = span(begin);
  }

  bool call(Expr& out, std::string_view callee, std::size_t begin, int depth) {
    if (callee == "getattr" || depth == kMostNested) return false;
    out.kind = Expr::Kind::call;
    out.integer = callee == "True" ? 1 : 0;
    out.text = callee;
    out.args.reserve(4);
    ++at_;
    while (!take(')')) {
      if (!argument(out, depth)) return false;
      if (take(',')) continue;
      if (!take(')')) return false;
      break;
    }
    out.span = span(begin);
    return ends();
  }
  bool argument(Expr& call, int depth) {
    next();
    const std::size_t begin = at_;
    std::string_view name;
    if (is(here(), kHead) && word(name) && equals()) {
      call.keywords.emplace_back(name);
      return expression(call.args.emplace_back(), depth);
    }
    at_ = begin;
    return call.keywords.empty() && expression(call.args.emplace_back(), depth);
  }

  bool expression(Expr& out, int depth) {
    const char c = next();
    const std::size_t begin = at_;
    if (is(c, kHead)) {
      std::string_view name;
      if (!path(name)) return false;
      if (here() == '(') return call(out, name, begin, depth + 1);
      set_name(out, name, begin);
      return ends();
    }
    if (c == '"' || c == '\'') {
      std::string_view text;
      if (!string(text)) return false;
      out.kind = Expr::Kind::string;
      out.text = text;
      out.span = span(begin);
      return ends();
    }
    return c == '[' ? list(out, depth + 1) : number(out) && ends();
  }

  bool list(Expr& out, int depth) {
    if (depth == kMostNested) return false;
    const std::size_t begin = at_++;
    out.kind = Expr::Kind::list;
    out.args.reserve(4);
    while (!take(']')) {
      if (!expression(out.args.emplace_back(), depth)) return false;
      if (take(',')) continue;
      if (!take(']')) return false;
      break;
    }
    out.span = span(begin);
    return ends();
  }

  bool number(Expr& out) {
    const std::size_t begin = at_;
    if (here() == '-') ++at_;
    if (!digits()) return false;
    bool real = false;
    if (here() == '.') {
      real = true;
      ++at_;
      while (is(here(), kDigit)) ++at_;
    }
    if (here() == 'e' || here() == 'E') {
      real = true;
      ++at_;
      if (here() == '+' || here() == '-') ++at_;
      if (!digits()) return false;
    }
    if (is(here(), kHead)) return false;
    const char *from = text_.data() + begin, *to = text_.data() + at_;
    out.kind = real ? Expr::Kind::real : Expr::Kind::integer;
    const auto [stop, error] =
        real ? std::from_chars(from, to, out.real) : std::from_chars(from, to, out.integer);
    out.span = span(begin);
    return error == std::errc() && stop == to;
  }
  bool digits() {
    const std::size_t begin = at_;
    while (is(here(), kDigit)) ++at_;
    return at_ > begin;
  }

  std::string_view text_;
  SourceId source_;
  std::size_t at_, end_;
};

}  // namespace

bool parse_plain_line(std::string_view text, SourceId source, const Line& line, Statement& out) {
  return PlainLine(text, source, line).read(out);
}

}  // namespace pw::fx

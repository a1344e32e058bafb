// Parses one item after the other, and continues after an error: at most one syntax error per item.
#include <algorithm>
#include <array>
#include <optional>

#include "dsl/dsl.hpp"
#include "dsl/syntax/draft.hpp"
#include "dsl/syntax/grammar.hpp"

namespace pw {
namespace {

constexpr std::size_t kMaxErrors = 100;

const std::vector<std::string> kItemWords = {
    "use",   "param", "extern",   "op",    "foreign", "table",   "pattern", "rule",
    "group", "pass",  "pipeline", "split", "capture", "explore", "test",    "graph"};

bool item_word(Tok t) {
  static constexpr std::array<Tok, 16> kWords = {
      Tok::use,     Tok::param,   Tok::extern_, Tok::op,   Tok::foreign,  Tok::table,
      Tok::pattern, Tok::rule,    Tok::group,   Tok::pass, Tok::pipeline, Tok::split,
      Tok::capture, Tok::explore, Tok::test,    Tok::graph};
  return std::find(kWords.begin(), kWords.end(), t) != kWords.end();
}

/// Describes the tokens expected at one place: "`,` or `)`", "an expression", "a name or `}`".
std::string expectations(Builder::Expected set) {
  const auto has = [&](Tok t) { return set.test(static_cast<std::size_t>(t)); };
  const auto drop = [&](std::initializer_list<Tok> list) {
    for (Tok t : list) set.reset(static_cast<std::size_t>(t));
  };
  std::vector<std::string> words;
  const bool expression = has(Tok::integer) && has(Tok::string) && has(Tok::lparen);
  if (expression) {
    words.emplace_back("an expression");
    drop({Tok::integer, Tok::real, Tok::string, Tok::true_, Tok::false_, Tok::none, Tok::lbracket,
          Tok::lparen, Tok::word, Tok::minus, Tok::not_, Tok::star, Tok::out});
  }
  const bool continued =
      has(Tok::plus) ||
      has(Tok::ellipsis);  // after an expression: operators and suffixes are implied
  drop({Tok::eq, Tok::ne, Tok::le, Tok::ge, Tok::lt, Tok::gt, Tok::plus, Tok::minus, Tok::star,
        Tok::slash, Tok::percent, Tok::and_, Tok::or_});
  if (continued)
    drop(
        {Tok::lbracket, Tok::ellipsis, Tok::question, Tok::lparen, Tok::dot, Tok::in, Tok::lbrace});
  for (std::size_t i = 0; i < set.size(); ++i)
    if (set.test(i) && static_cast<Tok>(i) != Tok::end)
      words.push_back(describe(static_cast<Tok>(i)));
  if (words.empty()) return continued ? "an operator or the end of the expression" : "";
  std::string out = words[0];
  for (std::size_t i = 1; i < words.size(); ++i)
    out += (i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

class Parser {
 public:
  Parser(std::string_view text, SourceId source, Lexed lexed)
      : text_(text),
        source_(source),
        lexed_(std::move(lexed)),
        at_(lexed_.tokens.data()),
        end_(at_ + lexed_.tokens.size() - 1) {}

  RecoveredFile run() && {
    diagnostics_ = std::move(lexed_.diagnostics);
    while (!lexed_.fatal && at_ != end_ && diagnostics_.size() < kMaxErrors) step();
    if (group_) end_group_silently();
    file_.source = source_;
    file_.comments = std::move(lexed_.comments);
    return {std::move(file_), std::move(diagnostics_)};
  }

 private:
  void step() {
    if (group_ && at_->kind == Tok::rbrace) return end_group();
    if (!item_word(at_->kind) || (group_ && at_->kind != Tok::rule && outside_group()))
      return stray();
    if (at_->kind == Tok::group) return begin_group();
    Builder builder(text_, source_, at_);
    const Token* begin = at_;
    try {
      const Token* next = parse_item(begin, end_, builder);
      if (!next) return syntax_error(builder, begin);
      at_ = next;
    } catch (Refused& refused) {
      diagnostics_.push_back(std::move(refused.diagnostic));
      return recover(begin);
    }
    for (ast::Item& item : builder.items()) add(std::move(item));
  }

  void add(ast::Item item) {
    if (!group_)
      file_.items.push_back(std::move(item));
    else if (auto* rule = std::get_if<ast::Rule>(&item))
      group_->rules.push_back(std::move(*rule));
  }

  // ---- groups: their rules are parsed one by one, so that each can have its own error

  void begin_group() {
    if (!is_name(at_[1].kind)) return expected(at_ + 1, "a name", at_);
    if (at_[2].kind != Tok::lbrace) return expected(at_ + 2, "`{`", at_);
    group_.emplace();
    group_->name = at_[1].kind == Tok::quoted ? unescape(text(at_[1])) : std::string(text(at_[1]));
    group_->name_span = span(at_[1]);
    group_->span = span(*at_);
    group_begin_ = at_;
    at_ += 3;
  }
  void end_group() {
    group_->span.end = at_->end();
    file_.items.emplace_back(std::move(*group_));
    group_.reset();
    ++at_;
  }
  /// Handles an item other than a rule inside a group: the group was not closed, or the item does
  /// not belong there.
  bool outside_group() {
    if (column(*at_) > column(*group_begin_) || !at_->first_on_line) return true;
    diagnostics_.push_back(error_at(group_->name_span, "PW0108",
                                    "the group is not closed before the next item", "add a `}`"));
    end_group_silently();
    return false;
  }
  void end_group_silently() {
    file_.items.emplace_back(std::move(*group_));
    group_.reset();
  }

  // ---- errors

  void stray() {
    const Token* begin = at_;
    if (group_) return expected(at_, "`rule` or `}`", group_begin_);
    if (at_->kind == Tok::rbrace || at_->kind == Tok::rparen || at_->kind == Tok::rbracket) {
      diagnostics_.push_back(error_at(
          span(*at_), "PW0108", "this " + describe(at_->kind) + " closes nothing", "remove it"));
    } else {
      const std::string near = at_->kind == Tok::word ? nearest(text(*at_), kItemWords) : "";
      diagnostics_.push_back(error_at(
          span(*at_), "PW0110", "expected an item, found " + found(*at_),
          near.empty() ? "items start with use, param, extern, op, foreign, table, pattern, rule, "
                         "group, pass, pipeline, split, capture, explore, test or graph"
                       : "did you mean `" + near + "`?"));
    }
    recover(begin);
  }

  void syntax_error(const Builder& builder, const Token* begin) {
    const Token* where = builder.furthest();
    const Builder::Expected& set = builder.expected();
    if (is_reserved(where->kind) && set.test(static_cast<std::size_t>(Tok::word)) &&
        !starts_clause(where->kind)) {
      diagnostics_.push_back(
          error_at(span(*where), "PW0109",
                   "`" + std::string(text(*where)) + "` is a reserved word, not a name",
                   "to use it as a name, write `" + std::string(text(*where)) + "` in backquotes"));
      return recover(begin);
    }
    const bool condition = where > begin && text(where[-1]) == "if" && where[-1].first_on_line;
    expected(where, expectations(set), begin,
             condition ? "a condition is written `where …`" : help_for(where, begin, set));
  }
  static bool starts_clause(Tok t) {
    return t == Tok::where || t == Tok::assume || t == Tok::given || t == Tok::unless;
  }

  void expected(const Token* where, const std::string& what, const Token* begin,
                std::string help = {}) {
    Diagnostic d =
        error_at(span(*where), "PW0101",
                 (what.empty() ? "unexpected " : "expected " + what + ", found ") + found(*where));
    if (!what.empty()) d.label = "expected " + what;
    if (where == end_ && lexed_.unclosed.valid()) {
      d.code = "PW0108";
      d.secondary.push_back({lexed_.unclosed, "this bracket is never closed"});
    }
    if (begin != where)
      d.secondary.push_back({span(*begin), "while reading this " + std::string(text(*begin))});
    d.help = std::move(help);
    diagnostics_.push_back(std::move(d));
    recover(begin);
  }

  /// Returns a hint for operators of Python.
  [[nodiscard]] std::string python_help(const Token* where, const Token* begin) const {
    const Tok before = where > begin ? where[-1].kind : Tok::end;
    if (where->kind == Tok::star && before == Tok::star)
      return "a power is written `pow(x, 3)`, a square `mul(x, x)`";
    if (where->kind == Tok::bar) return "conditions are joined by `or` and `and`";
    if (where->kind == Tok::none && where > begin && text(where[-1]) == "is")
      return "equality is written `==`, as in `eps == none`";
    if (where->kind == Tok::where && where[1].kind == Tok::lparen &&
        (before == Tok::assign || before == Tok::lparen || before == Tok::comma))
      return "a choice by elements is written `select(mask, x, y)`";
    if (where->kind == Tok::colon && (before == Tok::lbracket || before == Tok::comma))
      return "a slice is written `slice(x){dim = 0, start = 1, end = 3}`";
    return {};
  }

  /// Returns a hint for the kind of an input in the wrong place.
  [[nodiscard]] std::string input_help(const Token* where, const Token* begin,
                                       const Builder::Expected& set) const {
    const bool declares = set.test(static_cast<std::size_t>(Tok::colon)) &&
                          !set.test(static_cast<std::size_t>(Tok::rparen));
    if (!declares || !is_name(where->kind) || where - begin < 2) return {};
    const std::string kind(text(where[-1]));
    if (kind == "weight" || kind == "buffer")
      return "each kind of input has its own `in`: `in " + kind + " " + std::string(text(*where)) +
             ": …`";
    if (text(where[-2]) == "in")
      return "an input is a weight, a buffer, or neither: `in weight w: …`";
    return {};
  }

  /// Returns a hint for frequent mistakes.
  std::string help_for(const Token* where, const Token* begin, const Builder::Expected& set) const {
    if (std::string help = python_help(where, begin); !help.empty()) return help;
    if (std::string help = input_help(where, begin, set); !help.empty()) return help;
    const auto wanted = [&](Tok t) { return set.test(static_cast<std::size_t>(t)); };
    const Tok found = where->kind;
    if (found == Tok::eq && wanted(Tok::assign)) return "a binding is written with one `=`";
    if (found == Tok::assign && wanted(Tok::rparen) && wanted(Tok::comma))
      return "attributes are written in braces after the operands, as in `amax(x){dim = -1}`";
    if (found == Tok::assign && wanted(Tok::eq)) return "equality is written `==`";
    if (found == Tok::at_sign && wanted(Tok::star))
      return "a product of matrices is written `mm(x, w)`";
    if (found == Tok::comma && wanted(Tok::greedy) && wanted(Tok::rbrace))
      return "rules that run together are written `greedy { r, s }`; steps need no comma";
    if (found == Tok::arrow && wanted(Tok::implies)) return "the right side of a rule follows `=>`";
    if (found == Tok::rbrace && wanted(Tok::implies))
      return "a rule needs a right side: `=> y = …`";
    if (found == Tok::rbrace && wanted(Tok::out))
      return "a graph must end with `out` and its outputs";
    if (found == Tok::colon && wanted(Tok::implies))
      return "write the type of a result after its name, as in `y: T[n] = …`, that of an operand "
             "in a call, as in `y = add(x, b: T[m])`";
    if (found == Tok::colon && wanted(Tok::rparen))
      return "write the type of an operand after the whole operand, as in `add(x, b: T[n])`";
    if (found == Tok::semicolon) return "statements need no separator";
    return {};
  }

  /// Continues at the next line that begins with an item's first words and is indented no deeper
  /// than the failed item.
  void recover(const Token* failed) {
    const std::uint32_t depth = failed->first_on_line ? column(*failed) : kAnyColumn;
    for (at_ = failed + 1; at_ < end_; ++at_) {
      if (!at_->first_on_line) continue;
      const std::uint32_t here = column(*at_);
      if (group_ && at_->kind == Tok::rbrace && here <= column(*group_begin_)) return;
      if (here > depth || !resembles_item(at_)) continue;
      if (group_ && at_->kind != Tok::rule && here <= column(*group_begin_)) end_group_silently();
      return;
    }
    at_ = end_;
    group_.reset();
  }

  /// Returns true for an item's first word that begins no statement, or for `rulee name {`: a
  /// misspelt item.
  static bool resembles_item(const Token* p) {
    if (starts_item(p)) return true;
    const Tok next = p[1].kind;
    if (item_word(p[0].kind)) return is_word(next) || next == Tok::string || next == Tok::lbrace;
    return p[0].kind == Tok::word && is_name(next) && p[2].kind == Tok::lbrace;
  }

  [[nodiscard]] std::string found(const Token& t) const {
    if (t.kind == Tok::end) return describe(t.kind);
    if (t.kind == Tok::string) return "a string";
    const std::string_view word = text(t);
    return "`" + std::string(word.substr(0, 40)) + (word.size() > 40 ? "…`" : "`");
  }
  [[nodiscard]] std::string_view text(const Token& t) const {
    return text_.substr(t.begin, t.length);
  }
  [[nodiscard]] Span span(const Token& t) const { return {source_, t.begin, t.end()}; }
  [[nodiscard]] std::uint32_t column(const Token& t) const {
    std::uint32_t begin = t.begin;
    while (begin > 0 && text_[begin - 1] != '\n') --begin;
    return t.begin - begin;
  }

  static constexpr std::uint32_t kAnyColumn = ~0u;
  std::string_view text_;
  SourceId source_;
  Lexed lexed_;
  const Token* at_;
  const Token* end_;
  std::optional<ast::Group> group_;
  const Token* group_begin_ = nullptr;
  ast::File file_;
  Diagnostics diagnostics_;
};

}  // namespace

RecoveredFile recover_file(const SourceMap& sources, SourceId source) {
  const std::string_view text = sources.text(source);
  Lexed lexed = lex(text, source);
  if (lexed.tokens.empty()) return {{}, std::move(lexed.diagnostics)};
  return Parser(text, source, std::move(lexed)).run();
}

Result<ast::File> parse_file(SourceMap& sources, SourceId source) {
  auto [file, diagnostics] = recover_file(sources, source);
  if (has_errors(diagnostics)) return tl::unexpected<Diagnostics>(std::move(diagnostics));
  return std::move(file);
}

}  // namespace pw

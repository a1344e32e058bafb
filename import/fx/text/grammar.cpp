// The grammar of one logical line of FX text. The only file of the importer that sees Spirit.
// Nesting is bounded by cut_lines before a line gets here.
#include <charconv>
#include <limits>
#include <map>

#include <boost/spirit/home/x3.hpp>

#include "base/try.hpp"
#include "import/fx/text/ast.hpp"

// An expected token with an action is described by the token.
namespace boost::spirit::x3 {
template <class Subject, class Action>
struct get_info<action<Subject, Action>> {
  using result_type = std::string;
  std::string operator()(const action<Subject, Action>& parser) const {
    return what(parser.subject);
  }
};
}  // namespace boost::spirit::x3

namespace pw::fx {
namespace {

constexpr std::size_t kMaxOperators = 64;  // in one expression
constexpr std::size_t kMaxSigns = 8;       // before one operand
constexpr std::size_t kMaxChain = 64;      // of attributes and methods
constexpr std::size_t kMaxDepth = 400;     // of an expression

namespace x3 = boost::spirit::x3;
using x3::_attr;
using x3::_val;
using x3::char_;
using x3::lexeme;
using x3::lit;
using x3::raw;

struct PlaceTag;  // what a Span needs: where the text begins, and which source it is
struct Place {
  const char* begin;
  SourceId source;
};

/// A statement before classification: `a = b = c` has three parts.
struct Raw {
  Span span;
  bool returns = false;
  std::string augmented;  ///< of `a += b`: the operator
  std::vector<Expr> parts;
  std::string type;
  Span type_span;
};

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char c = text[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }
  return out;
}

bool read_number(std::string_view text, Expr& out) {
  const char* end = text.data() + text.size();
  bool real = text.find_first_of(".eE") != std::string_view::npos;
  out.kind = real ? Expr::Kind::real : Expr::Kind::integer;
  auto [stop, error] = real ? std::from_chars(text.data(), end, out.real)
                            : std::from_chars(text.data(), end, out.integer);
  return error == std::errc() && stop == end;
}

// getattr(self.layers, "0") is the path self.layers.0.
void fold_getattr(Expr& e) {
  if (e.kind != Expr::Kind::call || e.text != "getattr" || e.args.size() != 2 ||
      !e.keywords.empty() || e.args[0].kind != Expr::Kind::name ||
      e.args[1].kind != Expr::Kind::string)
    return;
  if (e.args[0].text != "self" && !e.args[0].text.starts_with("self.")) return;
  Expr path = std::move(e.args[0]);
  path.text += "." + e.args[1].text;
  path.span = e.span;
  e = std::move(path);
}

int precedence(std::string_view op) {
  if (op == "**") return 7;
  if (op == "*" || op == "/" || op == "//" || op == "%" || op == "@") return 6;
  if (op == "+" || op == "-") return 5;
  if (op == "<<" || op == ">>") return 4;
  if (op == "&") return 3;
  if (op == "^") return 2;
  if (op == "|") return 1;
  return 0;  // comparisons
}

// a + b * c: operands and the operators between them, as a tree; `**` binds to the right. A
// comparison of a comparison means something else in Python, and stays out by its operands.
Expr by_precedence(Expr flat) {
  std::vector<Expr> operands;
  std::vector<std::string> operators;
  auto reduce = [&] {
    Expr e;
    e.kind = Expr::Kind::binary;
    e.text = std::move(operators.back());
    operators.pop_back();
    Expr right = std::move(operands.back());
    operands.pop_back();
    e.span = operands.back().span;
    e.span.end = right.span.end;
    e.args.push_back(std::move(operands.back()));
    e.args.push_back(std::move(right));
    operands.back() = std::move(e);
  };
  operands.push_back(std::move(flat.args[0]));
  for (std::size_t i = 0; i < flat.keywords.size(); ++i) {
    const int level = precedence(flat.keywords[i]);
    while (!operators.empty() && (precedence(operators.back()) > level ||
                                  (precedence(operators.back()) == level && level != 7)))
      reduce();
    operators.push_back(std::move(flat.keywords[i]));
    operands.push_back(std::move(flat.args[i + 1]));
  }
  while (!operators.empty()) reduce();
  return std::move(operands[0]);
}

template <class Range>
std::string_view view_of(const Range& range) {
  return {range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
}

// ---- rules; what can be expected has a name that reads well after "expected"
const x3::rule<struct WordId, std::string> word = "a name";
const x3::rule<struct PathId, std::string> path = "a name";
const x3::rule<struct StringId, std::string> string_literal = "a string";
const x3::rule<struct NumberId, Expr> number = "a number";
const x3::rule<struct CloseParenId> close_paren = "`,` or `)`";
const x3::rule<struct CloseBracketId> close_bracket = "`,` or `]`";
const x3::rule<struct EqualsId> equals = "`=`";
const x3::rule<struct OperatorId, std::string> infix = "an operator";
const x3::rule<struct ExprId, Expr> expr = "an expression";
const x3::rule<struct UnaryId, Expr> unary = "an expression";
const x3::rule<struct SignId, std::string> sign = "a sign";
const x3::rule<struct PostfixId, Expr> postfix = "an expression";
const x3::rule<struct DictId, Expr> dict = "a dict";
const x3::rule<struct EntryId, Expr> entry = "`key: value`";
const x3::rule<struct ColonId> colon = "`:`";
const x3::rule<struct CloseBraceId> close_brace = "`,` or `}`";
const x3::rule<struct AugmentedId, std::string> augmented = "an operator";
const x3::rule<struct BracketsId> brackets = "`[…]`";
const x3::rule<struct PrimaryId, Expr> primary = "an expression";
const x3::rule<struct NameId, Expr> name_or_call = "a name";
const x3::rule<struct ListId, Expr> list = "a list";
const x3::rule<struct TupleId, Expr> tuple = "a tuple";
const x3::rule<struct SliceId, Expr> subscript_item = "a subscript";
const x3::rule<struct SubscriptId, Expr> subscript = "a subscript";
const x3::rule<struct ArgumentId, Expr> argument = "an argument";
const x3::rule<struct ParameterId, Parameter> parameter = "a parameter";
const x3::rule<struct TypeId, Parameter> stated_type = "a type";
const x3::rule<struct HeaderId, std::vector<Parameter>> header = "`def forward(…):`";
const x3::rule<struct StatementId, Raw> statement = "a statement";
const x3::rule<struct LineId, std::vector<Raw>> statements = "a statement";
const x3::rule<struct ParametersOpenId> parameters_open = "`(`";
const x3::rule<struct HeaderEndId> header_end = "`:` at the end of the header";

// ---- actions
// Spirit's own annotation does not reach rules with actions, so these two record positions.
const auto begin_here = [](auto& c) {
  const Place& place = x3::get<PlaceTag>(c);
  const char* at = x3::_where(c).begin();
  while (at != x3::_where(c).end() && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
    ++at;
  auto offset = static_cast<std::uint32_t>(at - place.begin);
  _val(c).span = {place.source, offset, offset};
};
const auto end_here = [](auto& c) {
  const Place& place = x3::get<PlaceTag>(c);
  const char* at = x3::_where(c).begin();
  const char* begin = place.begin + _val(c).span.begin;
  while (at > begin && (at[-1] == ' ' || at[-1] == '\t' || at[-1] == '\n' || at[-1] == '\r')) --at;
  _val(c).span.end = static_cast<std::uint32_t>(at - place.begin);
};
const auto set = [](auto& c) {
  Span place = _val(c).span;
  _val(c) = std::move(_attr(c));
  if (!_val(c).span.valid()) _val(c).span = place;
};
const auto set_text = [](auto& c) { _val(c) = std::string(view_of(_attr(c))); };
const auto set_unescaped = [](auto& c) { _val(c) = unescape(view_of(_attr(c))); };
const auto set_not = [](auto& c) { _val(c) = "!"; };
const auto set_number = [](auto& c) {
  if (!read_number(view_of(_attr(c)), _val(c)))
    throw x3::expectation_failure<const char*>(_attr(c).begin(), "a number that fits 64 bits");
};
const auto set_minus_infinity = [](auto& c) {
  _val(c).kind = Expr::Kind::real;
  _val(c).real = -std::numeric_limits<double>::infinity();
};
const auto set_string = [](auto& c) {
  _val(c).kind = Expr::Kind::string;
  _val(c).text = std::move(_attr(c));
};
const auto set_name = [](auto& c) {
  Expr& e = _val(c);
  e.text = _attr(c);
  e.kind = e.text == "None"                        ? Expr::Kind::none
           : e.text == "True" || e.text == "False" ? Expr::Kind::boolean
                                                   : Expr::Kind::name;
  e.integer = e.text == "True" ? 1 : 0;
};
const auto make_call = [](auto& c) { _val(c).kind = Expr::Kind::call; };
const auto make_list = [](auto& c) { _val(c).kind = Expr::Kind::list; };
const auto make_slice = [](auto& c) { _val(c).kind = Expr::Kind::slice; };
const auto make_tuple = [](auto& c) { _val(c).kind = Expr::Kind::tuple; };
const auto push = [](auto& c) { _val(c).args.push_back(std::move(_attr(c))); };
const auto push_none = [](auto& c) { _val(c).args.emplace_back(); };
// An argument travels as an Expr whose text is the keyword, if any, and whose one argument is the
// value.
const auto keyword_argument = [](auto& c) { _val(c).text = _attr(c); };
const auto plain_argument = [](auto& c) {
  _val(c).text.clear();
  _val(c).args.push_back(std::move(_attr(c)));
};
const auto push_argument = [](auto& c) {
  Expr& holder = _attr(c);
  Expr& call = _val(c);
  if (holder.text.empty() && !call.keywords.empty()) {
    x3::_pass(c) = false;  // positional after a keyword
    return;
  }
  if (!holder.text.empty()) call.keywords.push_back(std::move(holder.text));
  call.args.push_back(std::move(holder.args[0]));
};
const auto close_tuple = [](auto& c) {  // (x) is x; (), (x,) and (x, y) are tuples
  Expr& e = _val(c);
  if (e.kind == Expr::Kind::tuple || e.args.size() != 1) {
    e.kind = Expr::Kind::tuple;
    return;
  }
  Expr inner = std::move(e.args[0]);
  e = std::move(inner);
};
const auto push_subscript = [](auto& c) {  // a chain of subscripts grows flat, not deep
  Expr& e = _val(c);
  if (e.kind != Expr::Kind::index) {
    Expr base = std::move(e);
    e = Expr();
    e.kind = Expr::Kind::index;
    e.span = base.span;
    e.args.push_back(std::move(base));
  }
  e.args.push_back(std::move(_attr(c)));
};
// Operands and operators gather in a flat `binary`, which the end of the expression makes a tree.
const auto push_operator = [](auto& c) {
  Expr& e = _val(c);
  if (e.kind != Expr::Kind::binary || e.keywords.empty()) {
    Expr left = std::move(e);
    e = Expr();
    e.span = left.span;
    e.kind = Expr::Kind::binary;
    e.args.push_back(std::move(left));
  }
  e.keywords.push_back(_attr(c));
  if (e.keywords.size() > kMaxOperators) x3::_pass(c) = false;
};
const auto push_operand = [](auto& c) { _val(c).args.push_back(std::move(_attr(c))); };
const auto close_binary = [](auto& c) {
  Expr& e = _val(c);
  if (e.kind == Expr::Kind::binary && !e.keywords.empty()) e = by_precedence(std::move(e));
};
const auto begin_operand = [](auto& c) { _val(c).text.clear(); };
const auto push_sign = [](auto& c) {
  _val(c).text += _attr(c);
  if (_val(c).text.size() > kMaxSigns) x3::_pass(c) = false;
};
const auto set_signed = [](auto& c) {
  const std::string signs = _val(c).text;
  const Span place = _val(c).span;
  _val(c) = std::move(_attr(c));
  for (auto at = signs.rbegin(); at != signs.rend(); ++at) {
    Expr call;
    call.kind = Expr::Kind::call;
    call.span = place;
    call.text = *at == '-'   ? "operator.neg"
                : *at == '+' ? "operator.pos"
                : *at == '~' ? "operator.invert"
                             : "operator.not_";
    call.args.push_back(std::move(_val(c)));
    _val(c) = std::move(call);
  }
};
// `x.shape` of a value that is not a name: getattr(x, "shape").
const auto take_attribute = [](auto& c) {
  std::size_t chain = 0;
  for (const Expr* e = &_val(c); e->kind == Expr::Kind::call && !e->args.empty(); e = &e->args[0])
    if (++chain > kMaxChain) {
      x3::_pass(c) = false;
      return;
    }
  Expr base = std::move(_val(c)), named;
  named.kind = Expr::Kind::string;
  named.text = _attr(c);
  _val(c) = Expr();
  _val(c).kind = Expr::Kind::call;
  _val(c).span = base.span;
  _val(c).text = "getattr";
  _val(c).args.push_back(std::move(base));
  _val(c).args.push_back(std::move(named));
  fold_getattr(_val(c));
};
// … and then `(…)`: a method of it, or a submodule's call.
const auto make_method = [](auto& c) {
  Expr& e = _val(c);
  if (e.kind == Expr::Kind::call && e.text == "getattr" && e.args.size() == 2) {
    e.text = "." + e.args[1].text;
    e.args.pop_back();
  }
  e.kind = Expr::Kind::call;
};
const auto close_call = [](auto& c) { fold_getattr(_val(c)); };
const auto make_dict = [](auto& c) {
  _val(c).kind = Expr::Kind::call;
  _val(c).text = "dict";
};
// `key: value`: the key travels as the text of the holder.
const auto set_key_text = [](auto& c) { _val(c).text = _attr(c); };
const auto set_number_key = [](auto& c) { _val(c).text = std::to_string(_attr(c).integer); };
const auto push_entry = [](auto& c) {
  _val(c).keywords.push_back(std::move(_attr(c).text));
  _val(c).args.push_back(std::move(_attr(c).args[0]));
};
const auto augments = [](auto& c) { _val(c).augmented = _attr(c); };
const auto make_targets = [](auto& c) {  // a, b = …
  Raw& r = _val(c);
  Expr several;
  several.kind = Expr::Kind::tuple;
  several.span = r.parts.back().span;
  several.args.push_back(std::move(r.parts.back()));
  r.parts.back() = std::move(several);
};
const auto push_target = [](auto& c) { _val(c).parts.back().args.push_back(std::move(_attr(c))); };
const auto set_type_text = [](auto& c) {
  std::string_view text = view_of(_attr(c));
  bool quoted = text.front() == '"' || text.front() == '\'';
  if (quoted) text = text.substr(1, text.size() - 2);
  _val(c).type = quoted ? unescape(text) : std::string(text);
  const Place& place = x3::get<PlaceTag>(c);
  auto begin = static_cast<std::uint32_t>(text.data() - place.begin);
  _val(c).type_span = {place.source, begin, begin + static_cast<std::uint32_t>(text.size())};
};
const auto take_type = [](auto& c) {
  _val(c).type = std::move(_attr(c).type);
  _val(c).type_span = _attr(c).type_span;
};
const auto set_parameter_name = [](auto& c) { _val(c).name = _attr(c); };
const auto returns = [](auto& c) { _val(c).returns = true; };
const auto push_part = [](auto& c) { _val(c).parts.push_back(std::move(_attr(c))); };
const auto push_item = [](auto& c) { _val(c).push_back(std::move(_attr(c))); };

const auto here = x3::eps[begin_here];
const auto done = x3::eps[end_here];

// ---- tokens
const auto word_char = char_("A-Za-z0-9_");
const auto word_head = char_("A-Za-z_");
const auto digits = +char_("0-9");
const auto word_def = raw[lexeme[word_head >> *word_char]][set_text];
const auto path_def =
    raw[lexeme[word_head >> *word_char >> *(lit('.') >> word_head >> *word_char)]][set_text];
const auto string_literal_def =
    lexeme[lit('"') >> raw[*((lit('\\') >> char_) | (char_ - '"'))][set_unescaped] >> lit('"')] |
    lexeme[lit('\'') >> raw[*((lit('\\') >> char_) | (char_ - '\''))][set_unescaped] >> lit('\'')];
const auto number_def =
    lexeme[lit("-inf") >> !word_char][set_minus_infinity] |
    raw[lexeme[-lit('-') >> digits >> -(lit('.') >> *char_("0-9")) >>
               -(char_("eE") >> -char_("+-") >> digits) >> !word_char]][set_number];
const auto close_paren_def = lit(')');
const auto close_bracket_def = lit(']');
const auto equals_def = lit('=') >> !lit('=');
const auto infix_def =
    raw[lexeme[lit("==") | lit("!=") | lit("<=") | lit(">=") |
               ((lit("//") | lit("**") | lit("<<") | lit(">>") | char_("-+*/%<>&|^@")) >>
                !lit('='))]][set_text];
const auto augmented_def =
    raw[lexeme[(lit("//") | lit("**") | lit("<<") | lit(">>") | char_("-+*/%&|^@")) >>
               &(lit('=') >> !lit('='))]][set_text] >>
    lit('=');
const auto sign_def =
    raw[lexeme[char_("-+~")]][set_text] | raw[lexeme[lit("not") >> !word_char]][set_not];
const auto colon_def = lit(':');
const auto close_brace_def = lit('}');
const auto brackets_def = lit('[') >> *(brackets | (char_ - lit('[') - lit(']'))) >> lit(']');

// ---- expressions
const auto argument_def = ((word[keyword_argument] >> equals) > expr[push]) | expr[plain_argument];
const auto arguments_tail = -(argument[push_argument] % ',') > -lit(',') > close_paren;
const auto name_or_call_def = path[set_name] >>
                              -(lit('(')[make_call] > arguments_tail > x3::eps[close_call]);
const auto entry_def = (string_literal[set_key_text] | path[set_key_text] |
                        number[set_number_key]) > colon > expr[push];
const auto dict_def = lit('{')[make_dict] > -(entry[push_entry] % ',') > -lit(',') > close_brace;
const auto list_def = lit('[')[make_list] > -(expr[push] % ',') > -lit(',') > close_bracket;
const auto tuple_def = lit('(') > -(expr[push] >> *(lit(',')[make_tuple] >>
                                                    -expr[push])) > close_paren[close_tuple];
const auto primary_def = here >> (string_literal[set_string] | number[set] | list[set] |
                                  tuple[set] | dict[set] | name_or_call[set]) >>
                         done;
const auto bound = expr[push] | x3::eps[push_none];
const auto slice_rest = lit(':')[make_slice] >> bound >> ((lit(':') >> bound) | x3::eps[push_none]);
const auto subscript_item_def =
    (expr[push] >> (slice_rest | x3::eps[close_tuple])) | (x3::eps[push_none] >> slice_rest);
const auto subscript_def = subscript_item[push] >>
                           *(lit(',')[make_tuple] >> -subscript_item[push]) >> x3::eps[close_tuple];
const auto postfix_def = primary[set] >> *((lit('[') > subscript[push_subscript] > close_bracket) |
                                           (lit('.') > word[take_attribute] >>
                                            -(lit('(')[make_method] > arguments_tail))) >>
                         done;
const auto unary_def =
    here >>
    (postfix[set] | (x3::eps[begin_operand] >> +sign[push_sign] > postfix[set_signed])) >> done;
const auto expr_def =
    unary[set] >> *(infix[push_operator] > unary[push_operand]) >> x3::eps[close_binary] >> done;

// ---- lines
const auto stated_type_def =
    raw[string_literal][set_type_text] | raw[path >> *brackets >> -path][set_type_text];
const auto parameter_def = here >> word[set_parameter_name] >>
                           -(lit(':') > stated_type[take_type]) >>
                           -(lit('=') > x3::omit[expr]) >> done;
const auto parameters_open_def = lit('(');
const auto header_end_def = -(lit("->") >> x3::omit[stated_type]) >> lit(':');
const auto header_def = lexeme[lit("def") >> !word_char] > x3::omit[word] > parameters_open >
                        -(parameter[push_item] % ',') > -lit(',') > close_paren > header_end;
const auto statement_def =
    here >> ((lexeme[lit("return") >> !word_char][returns] > -(expr[push_part] % ',') > -lit(',')) |
             (expr[push_part] >>
              ((augmented[augments] > expr[push_part]) |
               (-(lit(',')[make_targets] >> -(expr[push_target] % ',') >> -lit(',')) >>
                -(lit(':') > stated_type[take_type]) >> *(equals > expr[push_part]))))) >>
    done;
const auto statements_def = statement[push_item] % lit(';') >> -lit(';');

BOOST_SPIRIT_DEFINE(word, path, string_literal, number, close_paren, close_bracket, equals, infix)
BOOST_SPIRIT_DEFINE(unary, sign, dict, entry, colon, close_brace, augmented, brackets)
BOOST_SPIRIT_DEFINE(expr, postfix, primary, name_or_call, list, tuple, subscript_item, subscript,
                    argument)
BOOST_SPIRIT_DEFINE(parameter, stated_type, header, statement, statements, parameters_open,
                    header_end)

// Comments may occur inside a statement that spans several lines.
const auto blank = char_(" \t\r\n") | (lit('#') >> *(char_ - '\n'));

template <class Rule, class Out>
Status run(const Rule& rule, std::string_view text, SourceId source, const Line& line, Out& out) {
  const char* at = text.data() + line.begin;
  const char* end = text.data() + line.end;
  auto fail_at = [&](const char* where, const std::string& expected) {
    while (where != end && (*where == ' ' || *where == '\t')) ++where;
    auto begin = static_cast<std::uint32_t>(where - text.data());
    std::string found = where == end ? "the end of the line" : "`" + std::string(1, *where) + "`";
    return fail(Span{source, begin, begin + 1}, "PW0501",
                "expected " + expected + ", found " + found);
  };
  try {
    bool ok =
        x3::phrase_parse(at, end, x3::with<PlaceTag>(Place{text.data(), source})[rule], blank, out);
    if (!ok) return fail_at(at, "a statement");
  } catch (const x3::expectation_failure<const char*>& failure) {
    return fail_at(failure.where(), failure.which());
  }
  if (at != end) return fail_at(at, "`;` or the end of the line");
  return {};
}

Expr call_of(std::string text, Span span, std::vector<Expr> args) {
  Expr call;
  call.kind = Expr::Kind::call;
  call.text = std::move(text);
  call.span = span;
  call.args = std::move(args);
  return call;
}

const std::map<std::string_view, std::string_view> kInPlace = {
    {"+", "operator.iadd"},     {"-", "operator.isub"},       {"*", "operator.imul"},
    {"/", "operator.itruediv"}, {"//", "operator.ifloordiv"}, {"%", "operator.imod"},
    {"**", "operator.ipow"},    {"&", "operator.iand"},       {"|", "operator.ior"},
    {"^", "operator.ixor"},     {"@", "operator.imatmul"},    {"<<", "operator.ilshift"},
    {">>", "operator.irshift"},
};

// `x[i] = y` and `x += y` are calls of what Python calls for them; the latter's result is x.
Statement statement_of(Raw& raw_statement) {
  Statement s;
  s.span = raw_statement.span;
  s.type = std::move(raw_statement.type);
  s.type_span = raw_statement.type_span;
  std::vector<Expr>& parts = raw_statement.parts;
  if (raw_statement.returns) {
    s.kind = Statement::Kind::return_;
    if (parts.size() == 1) {
      s.value = std::move(parts[0]);
    } else {
      s.value.kind = Expr::Kind::tuple;
      s.value.span = s.span;
      s.value.args = std::move(parts);
    }
    return s;
  }
  s.kind = parts.size() == 1 ? Statement::Kind::expression : Statement::Kind::assign;
  s.value = std::move(parts.back());
  parts.pop_back();
  s.targets = std::move(parts);
  if (!raw_statement.augmented.empty()) {
    std::vector<Expr> args = {s.targets[0], std::move(s.value)};
    s.value = call_of(std::string(kInPlace.at(raw_statement.augmented)), s.span, std::move(args));
  }
  if (s.targets.size() == 1 && s.targets[0].kind == Expr::Kind::index) {
    Expr target = std::move(s.targets[0]);
    Expr at = std::move(target.args.back());
    target.args.pop_back();
    Expr of = target.args.size() == 1 ? std::move(target.args[0]) : std::move(target);
    std::vector<Expr> args;
    args.push_back(std::move(of));
    args.push_back(std::move(at));
    args.push_back(std::move(s.value));
    s.value = call_of("operator.setitem", s.span, std::move(args));
    s.targets.clear();
    s.kind = Statement::Kind::expression;
  }
  return s;
}

bool only_releases(const Statement& s) {
  return s.kind == Statement::Kind::assign && s.value.kind == Expr::Kind::none && s.type.empty();
}

// Returns true if expressions nest so deep that reading them could exhaust the stack.
bool too_deep(const Expr& root) {
  std::vector<std::pair<const Expr*, std::size_t>> work = {{&root, 0}};
  while (!work.empty()) {
    const auto [e, depth] = work.back();
    work.pop_back();
    if (depth > kMaxDepth) return true;
    for (const Expr& part : e->args) work.emplace_back(&part, depth + 1);
  }
  return false;
}

}  // namespace

Result<std::vector<Statement>> parse_line(std::string_view text, SourceId source,
                                          const Line& line) {
  std::vector<Raw> raws;
  PW_TRY(run(statements, text, source, line, raws));
  std::vector<Statement> out;
  for (Raw& r : raws) {
    Statement s = statement_of(r);
    if (too_deep(s.value))
      return fail(s.span, "PW0503",
                  "expressions are nested deeper than " + std::to_string(kMaxDepth));
    if (!only_releases(s)) out.push_back(std::move(s));
  }
  return out;
}

Result<std::vector<Parameter>> parse_header(std::string_view text, SourceId source,
                                            const Line& line) {
  std::vector<Parameter> out;
  PW_TRY(run(header, text, source, line, out));
  if (!out.empty() && out.front().name == "self") out.erase(out.begin());
  return out;
}

}  // namespace pw::fx

// A predictive parser (LL with bounded lookahead) over a token array, written with Boost.Spirit X3.
// Each alternative is decided by its first token, or by a `peek` of two or three. From there on `>`
// commits. Invariant: an action runs only after its alternative is decided, so none is ever undone.
// Errors are reported at the furthest token that any parser inspected; Spirit's own exception only
// ends the parse. Linear in the tokens; nesting is bounded by the lexer.
#include "dsl/syntax/grammar.hpp"

#include <boost/spirit/home/x3.hpp>

namespace pw {
namespace {

namespace x3 = boost::spirit::x3;
using Names = NameActions;
using Operands = OperandActions;
using Operators = OperatorActions;
using Attributes = AttributeActions;
using Types = TypeActions;
using Statements = StatementActions;
using Clauses = ClauseActions;
using Uses = UseActions;
using Params = ParamActions;
using Externs = ExternActions;
using Tables = TableActions;
using Ops = OpActions;
using Foreigns = ForeignActions;
using Patterns = PatternActions;
using Rules = RuleActions;
using Strategies = StrategyActions;
using Passes = PassActions;
using Pipelines = PipelineActions;
using Splits = SplitActions;
using Captures = CaptureActions;
using Explores = ExploreActions;
using Graphs = GraphActions;
using Expectations = ExpectationActions;
using Tests = TestActions;

struct builder_tag;

/// One token of a kind.
struct TokenParser : x3::parser<TokenParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static bool const has_attribute = false;
  Tok kind;
  explicit constexpr TokenParser(Tok k) : kind(k) {}
  template <class It, class Context, class RuleContext, class Attribute>
  bool parse(It& first, It const&, Context const& context, RuleContext&, Attribute&) const {
    if (first->kind == kind) return ++first, true;
    x3::get<builder_tag>(context).missing(first, kind);
    return false;
  }
};

/// One token of a class of kinds, reported as a name.
struct ClassParser : x3::parser<ClassParser> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static bool const has_attribute = false;
  bool (*accepts)(Tok);
  explicit constexpr ClassParser(bool (*f)(Tok)) : accepts(f) {}
  template <class It, class Context, class RuleContext, class Attribute>
  bool parse(It& first, It const&, Context const& context, RuleContext&, Attribute&) const {
    if (accepts(first->kind)) return ++first, true;
    x3::get<builder_tag>(context).missing(first, Tok::word);
    return false;
  }
};

/// Lookahead without consuming; `report` is the expected token if it fails (Tok::count: not worth
/// reporting).
struct Peek : x3::parser<Peek> {
  using attribute_type = x3::unused_type;
  [[maybe_unused]] static bool const has_attribute = false;
  bool (*holds)(const Token*);
  Tok report;
  explicit constexpr Peek(bool (*f)(const Token*), Tok r = Tok::count) : holds(f), report(r) {}
  template <class It, class Context, class RuleContext, class Attribute>
  bool parse(It& first, It const&, Context const& context, RuleContext&, Attribute&) const {
    if (holds(first)) return true;
    if (report != Tok::count) x3::get<builder_tag>(context).missing(first, report);
    return false;
  }
};

/// Calls an action of the builder.
template <auto Member>
struct Do {
  template <class Context>
  void operator()(Context const& context) const {
    x3::get<builder_tag>(context).act(Member, x3::_where(context).begin());
  }
};
template <auto Member>
constexpr Do<Member> act{};

constexpr TokenParser t(Tok kind) { return TokenParser(kind); }
const ClassParser name(is_name);
const ClassParser word(is_word);

const auto list_of = [](auto p) { return -(p >> *(t(Tok::comma) >> p) >> -t(Tok::comma)); };
const auto some_of = [](auto p) { return p >> *(t(Tok::comma) >> p) >> -t(Tok::comma); };

// ---- lookahead

bool peek_binder(const Token* p) {
  return is_name(p[0].kind) && (p[1].kind == Tok::assign || p[1].kind == Tok::comma ||
                                p[1].kind == Tok::colon || p[1].kind == Tok::ellipsis);
}
bool peek_statement(const Token* p) { return is_name(p->kind); }
bool peek_call(const Token* p) {
  if (!is_name(p->kind)) return false;
  for (++p; p->kind == Tok::dot && is_word(p[1].kind);) p += 2;
  return p->kind == Tok::lparen;
}
bool peek_row(const Token* p) { return is_word(p[0].kind) && p[1].kind == Tok::colon; }
bool peek_modified(const Token* p) { return p[0].kind == Tok::mut && is_name(p[1].kind); }
bool peek_named_result(const Token* p) {
  return is_name(p[0].kind) && (p[1].kind == Tok::colon || p[1].kind == Tok::ellipsis);
}
/// Returns true for any word, so that the checker can name a misspelt trait, but not for the start
/// of what may follow an op.
bool peek_trait(const Token* p) {
  return is_name(p->kind) && p->kind != Tok::from && !starts_item(p) && !peek_binder(p) &&
         !peek_call(p);
}
bool peek_recursive(const Token* p) { return p[0].kind == Tok::rec && is_name(p[1].kind); }
bool peek_symbol(const Token* p) { return p[0].kind == Tok::symbol && is_name(p[1].kind); }
bool peek_write(const Token* p) {
  return p[0].kind == Tok::write && is_name(p[1].kind) && p[2].kind == Tok::assign;
}
bool no_write(const Token* p) { return !peek_write(p); }
bool peek_op(const Token* p) { return p[0].kind == Tok::op && is_name(p[1].kind); }
bool peek_op_variable(const Token* p) {
  return p[0].kind == Tok::op && is_name(p[1].kind) && p[2].kind == Tok::colon;
}
bool peek_input_kind(const Token* p) {
  return (p->kind == Tok::weight || p->kind == Tok::buffer) && is_name(p[1].kind);
}
bool peek_tokens(const Token* p) {
  return p->kind == Tok::tokens && !peek_binder(p) && !peek_call(p);
}
bool peek_replicated(const Token* p) {
  return p[0].kind == Tok::replicated && p[1].kind == Tok::string;
}
bool peek_role(const Token* p) { return p[0].kind == Tok::role && p[1].kind == Tok::string; }
bool peek_for_tokens(const Token* p) {
  return p[0].kind == Tok::for_ && is_name(p[1].kind) && p[2].kind == Tok::in;
}
bool peek_graph_file(const Token* p) { return p[0].kind == Tok::graph && p[1].kind == Tok::string; }
bool peek_graph(const Token* p) {
  return p[0].kind == Tok::graph &&
         (p[1].kind == Tok::lbrace || (is_name(p[1].kind) && p[2].kind == Tok::lbrace));
}
bool peek_numeric(const Token* p) { return p[0].kind == Tok::numeric && p[1].kind == Tok::within; }
bool peek_error(const Token* p) { return p[0].kind == Tok::error && p[1].kind == Tok::string; }
bool peek_code(const Token* p) { return p->kind == Tok::word; }
bool peek_strategy(const Token* p) { return !starts_item(p); }

// ---- rules

#define PW_RULE(n) \
  const x3::rule<struct n##_id> n { #n }
// clang-format off
PW_RULE(path); PW_RULE(expr); PW_RULE(and_expr); PW_RULE(not_expr); PW_RULE(comparison);
PW_RULE(sum); PW_RULE(term); PW_RULE(unary); PW_RULE(primary); PW_RULE(call); PW_RULE(element);
PW_RULE(arg); PW_RULE(setting); PW_RULE(attrs); PW_RULE(type); PW_RULE(dims); PW_RULE(binder);
PW_RULE(binding); PW_RULE(stmt); PW_RULE(stmts); PW_RULE(body); PW_RULE(reference);
PW_RULE(operand); PW_RULE(attr_decl); PW_RULE(result); PW_RULE(op_decl); PW_RULE(rule_item);
PW_RULE(foreign_item);
PW_RULE(pattern_item); PW_RULE(table_item); PW_RULE(small_item); PW_RULE(seq); PW_RULE(strat);
PW_RULE(core); PW_RULE(option); PW_RULE(strategy_item); PW_RULE(deploy_item); PW_RULE(graph_block);
PW_RULE(explore_clause); PW_RULE(explore_item); PW_RULE(test_clause); PW_RULE(test_item); PW_RULE(item);
// clang-format on
#undef PW_RULE

// ---- expressions

const auto path_def = (name | t(Tok::out))[act<&Operands::path>] >>
                      *(t(Tok::dot) >> (word | t(Tok::star))[act<&Operands::extend_path>]);

const auto expr_def = and_expr >> *(t(Tok::or_)[act<&Operators::push>] >
                                    and_expr[act<&Operators::fold_binary>]);
const auto and_expr_def = not_expr >> *(t(Tok::and_)[act<&Operators::push>] >
                                        not_expr[act<&Operators::fold_binary>]);
const auto not_expr_def =
    +t(Tok::not_)[act<&Operators::push_prefix>] > comparison[act<&Operators::fold_not>] |
    comparison;
const auto comparison_def =
    sum >> -((t(Tok::eq) | t(Tok::ne) | t(Tok::le) | t(Tok::ge) | t(Tok::lt) |
              t(Tok::gt))[act<&Operators::push>] > sum[act<&Operators::fold_binary>] |
             t(Tok::in) > (t(Tok::lbrace)[act<&ValueStacks::open>] > list_of(expr) >
                               t(Tok::rbrace)[act<&Operators::close_in_set>] |
                           sum >> (t(Tok::dotdot) > sum[act<&Operators::fold_in_range>] |
                                   x3::eps[act<&Operators::fold_in_name>])));
const auto sum_def = term >> *((t(Tok::plus) | t(Tok::minus))[act<&Operators::push>] >
                               term[act<&Operators::fold_binary>]);
const auto term_def = unary >>
                      *((t(Tok::star) | t(Tok::slash) | t(Tok::percent))[act<&Operators::push>] >
                        unary[act<&Operators::fold_binary>]);
const auto unary_def =
    +t(Tok::minus)[act<&Operators::push_prefix>] > primary[act<&Operators::fold_unary>] | primary;
const auto primary_def =
    (t(Tok::integer)[act<&Operands::integer>] | t(Tok::real)[act<&Operands::real>] |
     t(Tok::string)[act<&Operands::string>] | t(Tok::true_)[act<&Operands::true_value>] |
     t(Tok::false_)[act<&Operands::false_value>] | t(Tok::none)[act<&Operands::none>] |
     (t(Tok::lbracket)[act<&ValueStacks::open>] > list_of(element) >
      t(Tok::rbracket)[act<&Operands::close_list>]) |
     (t(Tok::lparen)[act<&ValueStacks::open>] > expr >
      t(Tok::rparen)[act<&Operands::close_parens>]) |
     call) >>
    *(t(Tok::lbracket)[act<&ValueStacks::open>] > (t(Tok::star)[act<&Operands::star>] | expr) >
      t(Tok::rbracket)[act<&Operands::close_index>]) >>
    -t(Tok::ellipsis)[act<&Operands::spread>];
const auto call_def = path >> -t(Tok::question)[act<&Operands::mark_optional>] >>
                      -(t(Tok::lparen)[act<&ValueStacks::open>] > list_of(arg) >
                        t(Tok::rparen)[act<&Operands::close_call>] > -attrs);
const auto element_def =
    t(Tok::star)[act<&Operands::star>] >> -name[act<&Operands::name_star>] | expr;
const auto arg_def = element >> -(t(Tok::colon) > type[act<&Types::annotate>]);
const auto setting_def = t(Tok::dotdot)[act<&Attributes::open_rest>] |
                         word[act<&Attributes::push>] >>
                             -(t(Tok::assign) > expr[act<&Attributes::set>]);
const auto attrs_def = t(Tok::lbrace)[act<&ValueStacks::open>] > list_of(setting) >
                       t(Tok::rbrace)[act<&Attributes::close>];

// ---- types, statements

const auto dims_def = t(Tok::lbracket)[act<&ValueStacks::open>] > list_of(element) >
                      t(Tok::rbracket)[act<&Types::close_dims>];
const auto type_def = (path >> -(t(Tok::lparen)[act<&ValueStacks::open>] > list_of(arg) >
                                 t(Tok::rparen)[act<&Operands::close_call>]) >>
                       x3::eps[act<&Types::begin>] >> -dims) |
                      (t(Tok::lbracket)[act<&Types::begin_bare>] > list_of(element) >
                       t(Tok::rbracket)[act<&Types::close_dims>]);

const auto binder_def = name[act<&Statements::push_binder>] >>
                        -t(Tok::ellipsis)[act<&Statements::spread_binder>] >>
                        -(t(Tok::colon) > type[act<&Statements::type_binder>]);
const auto binding_def = binder >> *(t(Tok::comma) > binder) >
                         t(Tok::assign) > expr[act<&Statements::end>];
const auto stmt_def =
    t(Tok::many)[act<&ValueStacks::open>] > x3::eps[act<&Statements::set_many>] > binding |
    Peek(peek_call) >> x3::eps[act<&ValueStacks::open_next>] > call[act<&Statements::end>] |
    Peek(peek_statement, Tok::word) >> x3::eps[act<&ValueStacks::open_next>] > binding;
const auto stmts_def = t(Tok::lbrace) > +stmt > t(Tok::rbrace);
const auto body_def =
    +((t(Tok::where) | t(Tok::assume))[act<&ValueStacks::open>] > some_of(expr) >
          x3::eps[act<&Clauses::end_guards>] |
      (t(Tok::given) | t(Tok::unless))[act<&ValueStacks::open>] > stmts >
          x3::eps[act<&Clauses::end_block>] |
      Peek(peek_op_variable) >> t(Tok::op)[act<&ValueStacks::open>] >
          name[act<&Clauses::op_variable>] > t(Tok::colon) > name[act<&Clauses::end_op_variable>] |
      stmt);
const auto reference_def = name[act<&Names::push>] >>
                           *(t(Tok::dot) > (word | t(Tok::star))[act<&Names::extend>]) >>
                           -(t(Tok::lbracket)[act<&Names::extend>] >
                             (word | t(Tok::star) | t(Tok::integer))[act<&Names::extend>] >
                             t(Tok::rbracket)[act<&Names::extend>]);

// ---- ops

const auto operand_def = (Peek(peek_modified) >> t(Tok::mut) > name[act<&Ops::operand_mut>] |
                          t(Tok::out) > name[act<&Ops::operand_out>] | name[act<&Ops::operand>]) >>
                         -t(Tok::ellipsis)[act<&Ops::operand_spread>] >>
                         -t(Tok::question)[act<&Ops::operand_optional>] >>
                         -(t(Tok::colon) > type[act<&Ops::operand_type>] >
                           -t(Tok::question)[act<&Ops::operand_optional>]);
const auto attr_decl_def = word[act<&Ops::attribute_name>] >
                           t(Tok::colon) > word[act<&Ops::attribute_kind>] >
                           -t(Tok::question)[act<&Ops::attribute_nullable>] >
                           -(t(Tok::assign) > expr[act<&Ops::attribute_default>]);
const auto result_def = (Peek(peek_named_result) >> name[act<&Ops::result_word>] >
                             -t(Tok::ellipsis)[act<&Ops::result_spread>] >
                             -(t(Tok::colon) > type[act<&Ops::result_type>]) |
                         type[act<&Ops::result_word_or_type>]) >>
                        -(t(Tok::from) > name[act<&Ops::result_from>]);
const auto op_decl_def = t(Tok::op)[act<&ValueStacks::open>] > path[act<&Ops::name>] >
                         t(Tok::lparen) >
                         (t(Tok::ellipsis)[act<&Ops::imported>] | list_of(operand)) >
                         t(Tok::rparen) > -(t(Tok::lbrace) > list_of(attr_decl) > t(Tok::rbrace)) >
                         -(t(Tok::arrow) >
                           (t(Tok::lparen) > list_of(result) > t(Tok::rparen) | result)) >
                         *(Peek(peek_trait) >> name[act<&Ops::trait>]) > -stmts
                         > x3::eps[act<&Ops::end>];

const auto foreign_parameter = (Peek(peek_modified) >> t(Tok::mut) >
                                    name[act<&Foreigns::parameter_mut>] |
                                t(Tok::out) > name[act<&Foreigns::parameter_out>] |
                                name[act<&Foreigns::parameter>]) >>
                               *(t(Tok::bar) > word[act<&Foreigns::alias>]) >>
                               -(t(Tok::colon) > type[act<&Foreigns::type>]) >>
                               -(t(Tok::assign) > expr[act<&Foreigns::default_value>]);
const auto foreign_guard = -(t(Tok::where) > some_of(expr) > x3::eps[act<&Foreigns::where>]);
const auto foreign_item_def = t(Tok::foreign)[act<&ValueStacks::open>] >
                              (t(Tok::string)[act<&Foreigns::string>] |
                               path[act<&Foreigns::path>]) > t(Tok::lparen) >
                              list_of(foreign_parameter) > t(Tok::rparen) >
                              (t(Tok::assign) > expr[act<&Foreigns::expression>] > foreign_guard |
                               -(t(Tok::arrow) > some_of(name[act<&Foreigns::return_name>])) >
                                   foreign_guard >
                                   stmts[act<&Foreigns::block>]) > x3::eps[act<&Foreigns::end>];

// ---- rules, patterns, tables, small items

const auto rule_item_def = t(Tok::rule)[act<&ValueStacks::open>] > name[act<&Names::push>] >
                           -(t(Tok::for_) > name[act<&Names::push>] > t(Tok::in) >
                             path[act<&Rules::variant>]) >
                           -(t(Tok::over) > some_of(reference[act<&Rules::over>])) >
                           t(Tok::lbrace) > body >
                           (t(Tok::implies) | t(Tok::equivalent))[act<&Rules::arrow>] > +stmt >
                           t(Tok::rbrace)[act<&Rules::end>];

const auto alternative =
    x3::eps[act<&ValueStacks::open_next>] > body > x3::eps[act<&Patterns::end_alternative>];
const auto typed_name = name[act<&Names::push>] >> -(t(Tok::colon) > type[act<&Patterns::type>]);
const auto names = list_of(typed_name);
const auto pattern_item_def = t(Tok::pattern)[act<&ValueStacks::open>] >
                              -(Peek(peek_recursive) >>
                                t(Tok::rec)[act<&Patterns::recursive>]) > name[act<&Names::push>] >
                              t(Tok::lparen) > names > t(Tok::rparen)[act<&Patterns::operands>] >
                              -(t(Tok::lbrace)[act<&ValueStacks::open>] > list_of(setting) >
                                t(Tok::rbrace)[act<&Patterns::attributes>]) > t(Tok::arrow) >
                              (t(Tok::lparen) > names > t(Tok::rparen) | some_of(typed_name)) >
                              t(Tok::lbrace)[act<&Patterns::results>] >
                              (alternative >> *(t(Tok::bar) > alternative)) >
                              t(Tok::rbrace)[act<&Patterns::end>];

const auto cell = !Peek(peek_row) >> expr;
const auto factor = name[act<&Names::push>] >> x3::eps[act<&Tables::factor>];
const auto table_item_def = t(Tok::table)[act<&ValueStacks::open>] > name[act<&Names::push>] >
                            (t(Tok::assign)[act<&Tables::product>] > factor >
                                 +(t(Tok::star) > factor) > x3::eps[act<&Tables::end>] |
                             t(Tok::lparen) > some_of(word[act<&Names::push>]) >
                                 t(Tok::rparen)[act<&Tables::columns>] > t(Tok::lbrace) >
                                 *(word[act<&Tables::row>] > t(Tok::colon) > list_of(cell) >
                                   x3::eps[act<&Tables::end_row>]) >
                                 t(Tok::rbrace)[act<&Tables::end>]);

const auto parameter = (Peek(peek_row) >> word[act<&Externs::parameter_name>] > t(Tok::colon) >
                        word[act<&Externs::parameter>]) |
                       word[act<&Externs::parameter>];
const auto small_item_def =
    t(Tok::use)[act<&ValueStacks::open>] > t(Tok::string)[act<&Uses::end>] |
    t(Tok::param)[act<&ValueStacks::open>] > name[act<&Names::push>] >
        t(Tok::colon) > word[act<&Params::kind>] >
        -(t(Tok::assign) > expr[act<&Params::value>]) > x3::eps[act<&Params::end>] |
    t(Tok::extern_)[act<&ValueStacks::open>] >
        (t(Tok::pred)[act<&Externs::predicate>] | t(Tok::fn)) > name[act<&Names::push>] >
        t(Tok::lparen) > list_of(parameter) > t(Tok::rparen) >
        -(t(Tok::arrow) > word[act<&Externs::result>]) > x3::eps[act<&Externs::end>];

// ---- strategies

const auto references = t(Tok::lbrace) > list_of(reference) >
                        t(Tok::rbrace)[act<&Strategies::close_simple>];
const auto whole_seq =
    x3::eps[act<&ValueStacks::open_next>] > seq > x3::eps[act<&Strategies::end_sequence>];
const auto seq_def = strat >> *(-t(Tok::semicolon) >> strat);
const auto strat_def = Peek(peek_strategy) >>
                       (+(t(Tok::atomic) | t(Tok::repeat))[act<&Operators::push_prefix>] >
                            core[act<&Strategies::end_prefixes>] |
                        core) >>
                       *option;
const auto core_def = (t(Tok::greedy) | t(Tok::once) | t(Tok::walk) |
                       t(Tok::saturate))[act<&ValueStacks::open>] > references |
                      t(Tok::best)[act<&ValueStacks::open>] > t(Tok::of) > t(Tok::lbrace) >
                          (whole_seq >> *(t(Tok::bar) > whole_seq)) >
                          t(Tok::rbrace)[act<&Strategies::close_best>] |
                      t(Tok::lparen)[act<&ValueStacks::open>] > seq >
                          t(Tok::rparen)[act<&Strategies::close_sequence>] |
                      reference[act<&Strategies::reference>];
const auto option_def = t(Tok::fuel) > t(Tok::integer)[act<&Strategies::fuel>] |
                        t(Tok::nodes) > t(Tok::integer)[act<&Strategies::nodes>] |
                        t(Tok::rounds) > t(Tok::integer)[act<&Strategies::rounds>] |
                        t(Tok::when) > expr[act<&Strategies::when>] |
                        t(Tok::ensures) > expr[act<&Strategies::ensures>] |
                        t(Tok::by) > name[act<&Strategies::by>] |
                        t(Tok::cost) > name[act<&Strategies::cost>];

const auto maybe_seq =
    x3::eps[act<&ValueStacks::open_next>] > -seq > x3::eps[act<&Strategies::end_sequence>];
const auto strategy_item_def =
    t(Tok::pass)[act<&ValueStacks::open>] > name[act<&Names::push>] > t(Tok::assign) > whole_seq
        > x3::eps[act<&Passes::end>] |
    t(Tok::pipeline)[act<&ValueStacks::open>] > name[act<&Names::push>] > t(Tok::lbrace) >
        (Peek(peek_for_tokens) >> t(Tok::for_) > name[act<&Pipelines::symbol>] > t(Tok::in) >
             t(Tok::ranges) > t(Tok::lparen) > some_of(t(Tok::integer)[act<&Pipelines::range>]) >
             t(Tok::rparen) > t(Tok::lbrace) > maybe_seq > t(Tok::rbrace) |
         maybe_seq) > t(Tok::rbrace)[act<&Pipelines::end>];

// ---- split, capture

const auto at_clause = t(Tok::at)[act<&ValueStacks::open>] >
                       (path[act<&Splits::at>] >> *(t(Tok::comma) > path[act<&Splits::at>])) >
                       -(t(Tok::when) > expr) > x3::eps[act<&Splits::end_at>];
const auto size = t(Tok::integer)[act<&Captures::size_first>] >>
                  -(t(Tok::dotdot) > t(Tok::integer)[act<&Captures::size_last>] >
                    -(t(Tok::by) > t(Tok::integer)[act<&Captures::size_step>]));
const auto deploy_item_def = t(Tok::split)[act<&ValueStacks::open>] > name[act<&Names::push>] >
                                 t(Tok::lbrace) > *at_clause > t(Tok::rbrace)[act<&Splits::end>] |
                             t(Tok::capture)[act<&ValueStacks::open>] > t(Tok::lbrace) >
                                 *(t(Tok::sizes) > some_of(size) |
                                   t(Tok::mode) > name[act<&Captures::mode>]) >
                                 t(Tok::rbrace)[act<&Captures::end>];

// ---- explore

const auto token_range = t(Tok::integer)[act<&Explores::first>] > t(Tok::dotdot) >
                         t(Tok::integer)[act<&Explores::last>];
const auto explore_clause_def =
    (t(Tok::of)[act<&ValueStacks::open>] > reference |
     t(Tok::orders)[act<&ValueStacks::open>] > some_of(reference) |
     t(Tok::before)[act<&ValueStacks::open>] > some_of(reference > t(Tok::colon) > reference) |
     t(Tok::subsets)[act<&ValueStacks::open>] |
     t(Tok::over)[act<&ValueStacks::open>] > some_of(reference) |
     t(Tok::with)[act<&ValueStacks::open>] > name[act<&Names::push>] > t(Tok::in) > some_of(expr) |
     t(Tok::tokens)[act<&ValueStacks::open>] > t(Tok::in) > some_of(token_range) |
     (t(Tok::sample) | t(Tok::seed))[act<&ValueStacks::open>] >
         t(Tok::integer)[act<&Explores::first>] |
     t(Tok::by)[act<&ValueStacks::open>] > some_of(name[act<&Names::push>])) >>
    x3::eps[act<&Explores::end_clause>];
const auto explore_item_def = t(Tok::explore)[act<&ValueStacks::open>] > name[act<&Names::push>] >
                              t(Tok::lbrace) > *explore_clause >
                              t(Tok::rbrace)[act<&Explores::end>];

// ---- graphs, tests

const auto symbol_decl =
    t(Tok::symbol) > name[act<&Graphs::symbol_name>] > t(Tok::in) > -t(Tok::minus) >
    t(Tok::integer)[act<&Graphs::symbol_min>] > t(Tok::dotdot) > -t(Tok::minus) >
    t(Tok::integer)[act<&Graphs::symbol_max>] >
    -(t(Tok::by) > t(Tok::integer)[act<&Graphs::symbol_multiple>]) >
    -(Peek(peek_tokens, Tok::tokens) >> t(Tok::tokens)[act<&Graphs::symbol_tokens>] |
      Peek(peek_role) >> t(Tok::role) > t(Tok::string)[act<&Graphs::symbol_role>]);
const auto inputs =
    t(Tok::in) >
    -(Peek(peek_input_kind) >> (t(Tok::weight) | t(Tok::buffer))[act<&Graphs::input_kind>]) >
    list_of(name[act<&Graphs::input_name>] > t(Tok::colon) >
            (t(Tok::question)[act<&Graphs::no_input_type>] | type[act<&Graphs::input_type>]) >
            -(Peek(peek_replicated) >> t(Tok::replicated) >
              +t(Tok::string)[act<&Graphs::input_replicated>])) > x3::eps[act<&Graphs::end_inputs>];
const auto graph_block_def =
    t(Tok::graph)[act<&Graphs::open>] > -name[act<&Graphs::name>] > t(Tok::lbrace) >
    *(inputs | Peek(peek_symbol) >> symbol_decl | Peek(peek_op) >> op_decl[act<&Graphs::op>]) >
    *(stmt[act<&Graphs::node>] >> -(t(Tok::at_sign) > t(Tok::string)[act<&Graphs::node_group>] >
                                    -t(Tok::string)[act<&Graphs::node_source>])) > t(Tok::out) >
    -(Peek(no_write) >> list_of(name[act<&Graphs::output>])) >
    *(Peek(peek_write) >> t(Tok::write) > name[act<&Graphs::written>] > t(Tok::assign) >
      name[act<&Graphs::write>]) > t(Tok::rbrace)[act<&Graphs::end>];

const auto expectation_clause = t(Tok::none)[act<&Expectations::none>] |
                                Peek(peek_numeric) >> t(Tok::numeric) > t(Tok::within) >
                                    (t(Tok::integer) | t(Tok::real))[act<&Expectations::numeric>] |
                                Peek(peek_error) >> t(Tok::error) >
                                    t(Tok::string)[act<&Expectations::error>] |
                                Peek(peek_graph) >> graph_block[act<&Expectations::graph>] |
                                some_of(expr[act<&Expectations::guard>] >>
                                        -(t(Tok::in) > sum > t(Tok::dotdot) >
                                          sum[act<&Expectations::count_range>]));
const auto because = t(Tok::because) >
                     (Peek(peek_code, Tok::word) >> word[act<&Expectations::because_code>] >
                          -t(Tok::string)[act<&Expectations::because_text>] |
                      t(Tok::string)[act<&Expectations::because_text>]);
const auto test_clause_def = Peek(peek_graph_file) >> t(Tok::graph) >
                                 t(Tok::string)[act<&Tests::file>] |
                             graph_block[act<&Tests::graph>] |
                             t(Tok::apply) > some_of(reference[act<&Tests::apply>]) >
                                 -(t(Tok::with) > some_of(name[act<&Names::push>] > t(Tok::assign) >
                                                          expr[act<&Tests::with>])) |
                             t(Tok::expect)[act<&Expectations::open>] > expectation_clause >
                                 -because > x3::eps[act<&Expectations::end>];
const auto test_item_def = t(Tok::test)[act<&ValueStacks::open>] > name[act<&Names::push>] >
                           t(Tok::lbrace) > *test_clause > t(Tok::rbrace)[act<&Tests::end>];

const auto item_def = op_decl | foreign_item | rule_item | pattern_item | table_item | small_item |
                      strategy_item | deploy_item | explore_item | test_item | graph_block;

BOOST_SPIRIT_DEFINE(path, expr, and_expr, not_expr, comparison, sum, term, unary, primary, call,
                    element, arg, setting, attrs, type, dims)
BOOST_SPIRIT_DEFINE(binder, binding, stmt, stmts, body, reference, operand, attr_decl, result,
                    op_decl, foreign_item, rule_item, pattern_item, table_item)
BOOST_SPIRIT_DEFINE(small_item, seq, strat, core, option, strategy_item, deploy_item,
                    explore_clause, explore_item, graph_block, test_clause, test_item, item)

}  // namespace

bool starts_item(const Token* p) {
  if (p->kind == Tok::end) return false;
  const Tok first = p->kind, next = p[1].kind;
  if (first == Tok::use) return next == Tok::string;
  if (first == Tok::foreign)
    return next == Tok::string ||
           (is_name(next) && (p[2].kind == Tok::dot || p[2].kind == Tok::lparen));
  if (first == Tok::extern_) return next == Tok::pred || next == Tok::fn;
  if (first == Tok::param) return is_name(next) && p[2].kind == Tok::colon;
  if (first == Tok::pass) return is_name(next) && p[2].kind == Tok::assign;
  if (first == Tok::capture) return next == Tok::lbrace;
  if (first == Tok::graph) return peek_graph(p);
  const bool named = first == Tok::op || first == Tok::table || first == Tok::pattern ||
                     first == Tok::rule || first == Tok::group || first == Tok::pipeline ||
                     first == Tok::split || first == Tok::explore || first == Tok::test;
  return named && is_name(next);
}

const Token* parse_item(const Token* begin, const Token* end, Builder& builder) {
  const Token* at = begin;
  try {
    return x3::parse(at, end, x3::with<builder_tag>(builder)[item]) ? at : nullptr;
  } catch (const x3::expectation_failure<const Token*>&) {
    return nullptr;
  }
}

}  // namespace pw

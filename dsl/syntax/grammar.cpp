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
using B = Builder;

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

/// Action that calls a member of the builder.
template <auto Member>
struct Do {
  template <class Context>
  void operator()(Context const& context) const {
    Builder& builder = x3::get<builder_tag>(context);
    builder.move_to(x3::_where(context).begin());
    (builder.*Member)();
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

const auto path_def = (name | t(Tok::out))[act<&B::push_path>] >>
                      *(t(Tok::dot) >> (word | t(Tok::star))[act<&B::extend_path>]);

const auto expr_def = and_expr >>
                      *(t(Tok::or_)[act<&B::push_operator>] > and_expr[act<&B::fold_binary>]);
const auto and_expr_def = not_expr >>
                          *(t(Tok::and_)[act<&B::push_operator>] > not_expr[act<&B::fold_binary>]);
const auto not_expr_def =
    +t(Tok::not_)[act<&B::push_prefix>] > comparison[act<&B::fold_not>] | comparison;
const auto comparison_def = sum >>
                            -((t(Tok::eq) | t(Tok::ne) | t(Tok::le) | t(Tok::ge) | t(Tok::lt) |
                               t(Tok::gt))[act<&B::push_operator>] > sum[act<&B::fold_binary>] |
                              t(Tok::in) > (t(Tok::lbrace)[act<&B::open>] > list_of(expr) >
                                                t(Tok::rbrace)[act<&B::close_in_set>] |
                                            sum >> (t(Tok::dotdot) > sum[act<&B::fold_in_range>] |
                                                    x3::eps[act<&B::fold_in_name>])));
const auto sum_def = term >> *((t(Tok::plus) | t(Tok::minus))[act<&B::push_operator>] >
                               term[act<&B::fold_binary>]);
const auto term_def = unary >>
                      *((t(Tok::star) | t(Tok::slash) | t(Tok::percent))[act<&B::push_operator>] >
                        unary[act<&B::fold_binary>]);
const auto unary_def =
    +t(Tok::minus)[act<&B::push_prefix>] > primary[act<&B::fold_unary>] | primary;
const auto primary_def =
    (t(Tok::integer)[act<&B::push_integer>] | t(Tok::real)[act<&B::push_real>] |
     t(Tok::string)[act<&B::push_string>] | t(Tok::true_)[act<&B::push_true>] |
     t(Tok::false_)[act<&B::push_false>] | t(Tok::none)[act<&B::push_none>] |
     (t(Tok::lbracket)[act<&B::open>] > list_of(element) > t(Tok::rbracket)[act<&B::close_list>]) |
     (t(Tok::lparen)[act<&B::open>] > expr > t(Tok::rparen)[act<&B::close_parens>]) | call) >>
    *(t(Tok::lbracket)[act<&B::open>] > (t(Tok::star)[act<&B::push_star>] | expr) >
      t(Tok::rbracket)[act<&B::close_index>]) >>
    -t(Tok::ellipsis)[act<&B::spread>];
const auto call_def = path >> -t(Tok::question)[act<&B::mark_optional>] >>
                      -(t(Tok::lparen)[act<&B::open>] > list_of(arg) >
                        t(Tok::rparen)[act<&B::close_call>] > -attrs);
const auto element_def = t(Tok::star)[act<&B::push_star>] >> -name[act<&B::name_star>] | expr;
const auto arg_def = element >> -(t(Tok::colon) > type[act<&B::annotate>]);
const auto setting_def = t(Tok::dotdot)[act<&B::open_attributes>] |
                         word[act<&B::push_attribute>] >>
                             -(t(Tok::assign) > expr[act<&B::set_attribute>]);
const auto attrs_def = t(Tok::lbrace)[act<&B::open>] > list_of(setting) >
                       t(Tok::rbrace)[act<&B::close_attributes>];

// ---- types, statements

const auto dims_def = t(Tok::lbracket)[act<&B::open>] > list_of(element) >
                      t(Tok::rbracket)[act<&B::close_dims>];
const auto type_def = (path >> -(t(Tok::lparen)[act<&B::open>] > list_of(arg) >
                                 t(Tok::rparen)[act<&B::close_call>]) >>
                       x3::eps[act<&B::begin_type>] >> -dims) |
                      (t(Tok::lbracket)[act<&B::begin_bare_type>] > list_of(element) >
                       t(Tok::rbracket)[act<&B::close_dims>]);

const auto binder_def = name[act<&B::push_binder>] >> -t(Tok::ellipsis)[act<&B::spread_binder>] >>
                        -(t(Tok::colon) > type[act<&B::type_binder>]);
const auto binding_def = binder >> *(t(Tok::comma) > binder) >
                         t(Tok::assign) > expr[act<&B::end_statement>];
const auto stmt_def =
    t(Tok::many)[act<&B::open>] > x3::eps[act<&B::set_many>] > binding |
    Peek(peek_call) >> x3::eps[act<&B::open_next>] > call[act<&B::end_statement>] |
    Peek(peek_statement, Tok::word) >> x3::eps[act<&B::open_next>] > binding;
const auto stmts_def = t(Tok::lbrace) > +stmt > t(Tok::rbrace);
const auto body_def = +(
    (t(Tok::where) | t(Tok::assume))[act<&B::open>] > some_of(expr) > x3::eps[act<&B::end_guards>] |
    (t(Tok::given) | t(Tok::unless))[act<&B::open>] > stmts > x3::eps[act<&B::end_block>] |
    Peek(peek_op_variable) >> t(Tok::op)[act<&B::open>] > name[act<&B::op_variable>] >
        t(Tok::colon) > name[act<&B::end_op_variable>] |
    stmt);
const auto reference_def = name[act<&B::push_name>] >>
                           *(t(Tok::dot) > (word | t(Tok::star))[act<&B::extend_name>]) >>
                           -(t(Tok::lbracket)[act<&B::extend_name>] >
                             (word | t(Tok::star) | t(Tok::integer))[act<&B::extend_name>] >
                             t(Tok::rbracket)[act<&B::extend_name>]);

// ---- ops

const auto operand_def = (Peek(peek_modified) >> t(Tok::mut) > name[act<&B::operand_mut>] |
                          t(Tok::out) > name[act<&B::operand_out>] | name[act<&B::operand>]) >>
                         -t(Tok::ellipsis)[act<&B::operand_spread>] >>
                         -t(Tok::question)[act<&B::operand_optional>] >>
                         -(t(Tok::colon) > type[act<&B::operand_type>] >
                           -t(Tok::question)[act<&B::operand_optional>]);
const auto attr_decl_def = word[act<&B::attribute_name>] >
                           t(Tok::colon) > word[act<&B::attribute_kind>] >
                           -t(Tok::question)[act<&B::attribute_nullable>] >
                           -(t(Tok::assign) > expr[act<&B::attribute_default>]);
const auto result_def = (Peek(peek_named_result) >> name[act<&B::result_word>] >
                             -t(Tok::ellipsis)[act<&B::result_spread>] >
                             -(t(Tok::colon)[act<&B::result_colon>] > type[act<&B::result_type>]) |
                         type[act<&B::result_word_or_type>]) >>
                        -(t(Tok::from) > name[act<&B::result_from>]);
const auto op_decl_def = t(Tok::op)[act<&B::open>] > path[act<&B::op_name>] > t(Tok::lparen) >
                         (t(Tok::ellipsis)[act<&B::op_imported>] | list_of(operand)) >
                         t(Tok::rparen) > -(t(Tok::lbrace) > list_of(attr_decl) > t(Tok::rbrace)) >
                         -(t(Tok::arrow) > (t(Tok::lparen) > list_of(result) > t(Tok::rparen) |
                                            result)) > *(Peek(peek_trait) >> name[act<&B::trait>]) >
                         -stmts > x3::eps[act<&B::end_op>];

const auto foreign_parameter = (Peek(peek_modified) >> t(Tok::mut) > name[act<&B::foreign_mut>] |
                                t(Tok::out) > name[act<&B::foreign_out>] |
                                name[act<&B::foreign_parameter>]) >>
                               *(t(Tok::bar) > word[act<&B::foreign_alias>]) >>
                               -(t(Tok::colon) > type[act<&B::foreign_type>]) >>
                               -(t(Tok::assign) > expr[act<&B::foreign_default>]);
const auto foreign_guard = -(t(Tok::where) > some_of(expr) > x3::eps[act<&B::foreign_where>]);
const auto foreign_item_def = t(Tok::foreign)[act<&B::open>] >
                              (t(Tok::string)[act<&B::foreign_string>] |
                               path[act<&B::foreign_path>]) > t(Tok::lparen) >
                              list_of(foreign_parameter) > t(Tok::rparen) >
                              (t(Tok::assign) > expr[act<&B::foreign_expression>] > foreign_guard |
                               -(t(Tok::arrow) > some_of(name[act<&B::foreign_return>])) >
                                   foreign_guard >
                                   stmts[act<&B::foreign_block>]) > x3::eps[act<&B::end_foreign>];

// ---- rules, patterns, tables, small items

const auto rule_item_def = t(Tok::rule)[act<&B::open>] > name[act<&B::push_name>] >
                           -(t(Tok::for_) > name[act<&B::push_name>] > t(Tok::in) >
                             path[act<&B::rule_variant>]) >
                           -(t(Tok::over) > some_of(reference[act<&B::rule_over>])) >
                           t(Tok::lbrace) > body >
                           (t(Tok::implies) | t(Tok::equivalent))[act<&B::rule_arrow>] > +stmt >
                           t(Tok::rbrace)[act<&B::end_rule>];

const auto alternative = x3::eps[act<&B::open_next>] > body > x3::eps[act<&B::end_alternative>];
const auto typed_name = name[act<&B::push_name>] >> -(t(Tok::colon) > type[act<&B::pattern_type>]);
const auto names = list_of(typed_name);
const auto pattern_item_def =
    t(Tok::pattern)[act<&B::open>] >
    -(Peek(peek_recursive) >> t(Tok::rec)[act<&B::pattern_recursive>]) > name[act<&B::push_name>] >
    t(Tok::lparen) > names > t(Tok::rparen)[act<&B::pattern_operands>] >
    -(t(Tok::lbrace)[act<&B::open>] > list_of(setting) >
      t(Tok::rbrace)[act<&B::pattern_attributes>]) > t(Tok::arrow) >
    (t(Tok::lparen) > names > t(Tok::rparen) | some_of(typed_name)) >
    t(Tok::lbrace)[act<&B::pattern_results>] > (alternative >> *(t(Tok::bar) > alternative)) >
    t(Tok::rbrace)[act<&B::end_pattern>];

const auto cell = !Peek(peek_row) >> expr;
const auto factor = name[act<&B::push_name>] >> x3::eps[act<&B::table_factor>];
const auto table_item_def = t(Tok::table)[act<&B::open>] > name[act<&B::push_name>] >
                            (t(Tok::assign)[act<&B::table_product>] > factor >
                                 +(t(Tok::star) > factor) > x3::eps[act<&B::end_table>] |
                             t(Tok::lparen) > some_of(word[act<&B::push_name>]) >
                                 t(Tok::rparen)[act<&B::table_columns>] > t(Tok::lbrace) >
                                 *(word[act<&B::table_row>] > t(Tok::colon) > list_of(cell) >
                                   x3::eps[act<&B::end_row>]) > t(Tok::rbrace)[act<&B::end_table>]);

const auto parameter = (Peek(peek_row) >> word[act<&B::extern_parameter_name>] > t(Tok::colon) >
                        word[act<&B::extern_parameter>]) |
                       word[act<&B::extern_parameter>];
const auto small_item_def =
    t(Tok::use)[act<&B::open>] > t(Tok::string)[act<&B::end_use>] |
    t(Tok::param)[act<&B::open>] > name[act<&B::push_name>] >
        t(Tok::colon) > word[act<&B::param_kind>] >
        -(t(Tok::assign) > expr[act<&B::param_value>]) > x3::eps[act<&B::end_param>] |
    t(Tok::extern_)[act<&B::open>] >
        (t(Tok::pred)[act<&B::extern_predicate>] | t(Tok::fn)) > name[act<&B::push_name>] >
        t(Tok::lparen) > list_of(parameter) > t(Tok::rparen) >
        -(t(Tok::arrow) > word[act<&B::extern_result>]) > x3::eps[act<&B::end_extern>];

// ---- strategies

const auto references = t(Tok::lbrace) > list_of(reference) > t(Tok::rbrace)[act<&B::close_simple>];
const auto whole_seq = x3::eps[act<&B::open_next>] > seq > x3::eps[act<&B::end_sequence>];
const auto seq_def = strat >> *(-t(Tok::semicolon) >> strat);
const auto strat_def = Peek(peek_strategy) >>
                       (+(t(Tok::atomic) | t(Tok::repeat))[act<&B::push_prefix>] >
                            core[act<&B::end_prefixes>] |
                        core) >>
                       *option;
const auto core_def = (t(Tok::greedy) | t(Tok::once) | t(Tok::walk) |
                       t(Tok::saturate))[act<&B::open>] > references |
                      t(Tok::best)[act<&B::open>] > t(Tok::of) > t(Tok::lbrace) >
                          (whole_seq >> *(t(Tok::bar) > whole_seq)) >
                          t(Tok::rbrace)[act<&B::close_best>] |
                      t(Tok::lparen)[act<&B::open>] > seq >
                          t(Tok::rparen)[act<&B::close_sequence>] |
                      reference[act<&B::reference>];
const auto option_def = t(Tok::fuel) > t(Tok::integer)[act<&B::fuel>] |
                        t(Tok::nodes) > t(Tok::integer)[act<&B::nodes>] |
                        t(Tok::rounds) > t(Tok::integer)[act<&B::rounds>] |
                        t(Tok::when) > expr[act<&B::when>] |
                        t(Tok::ensures) > expr[act<&B::ensures>] | t(Tok::by) > name[act<&B::by>] |
                        t(Tok::cost) > name[act<&B::cost>];

const auto maybe_seq = x3::eps[act<&B::open_next>] > -seq > x3::eps[act<&B::end_sequence>];
const auto strategy_item_def =
    t(Tok::pass)[act<&B::open>] > name[act<&B::push_name>] > t(Tok::assign) > whole_seq
        > x3::eps[act<&B::end_pass>] |
    t(Tok::pipeline)[act<&B::open>] > name[act<&B::push_name>] > t(Tok::lbrace) >
        (Peek(peek_for_tokens) >> t(Tok::for_) > name[act<&B::pipeline_symbol>] > t(Tok::in) >
             t(Tok::ranges) > t(Tok::lparen) > some_of(t(Tok::integer)[act<&B::pipeline_range>]) >
             t(Tok::rparen) > t(Tok::lbrace) > maybe_seq > t(Tok::rbrace) |
         maybe_seq) > t(Tok::rbrace)[act<&B::end_pipeline>];

// ---- split, capture

const auto at_clause = t(Tok::at)[act<&B::open>] >
                       (path[act<&B::split_at>] >> *(t(Tok::comma) > path[act<&B::split_at>])) >
                       -(t(Tok::when) > expr[act<&B::split_when>]) > x3::eps[act<&B::end_at>];
const auto size = t(Tok::integer)[act<&B::size_first>] >>
                  -(t(Tok::dotdot) > t(Tok::integer)[act<&B::size_last>] >
                    -(t(Tok::by) > t(Tok::integer)[act<&B::size_step>]));
const auto deploy_item_def = t(Tok::split)[act<&B::open>] > name[act<&B::push_name>] >
                                 t(Tok::lbrace) > *at_clause > t(Tok::rbrace)[act<&B::end_split>] |
                             t(Tok::capture)[act<&B::open>] > t(Tok::lbrace) >
                                 *(t(Tok::sizes) > some_of(size) |
                                   t(Tok::mode) > name[act<&B::capture_mode>]) >
                                 t(Tok::rbrace)[act<&B::end_capture>];

// ---- explore

const auto token_range = t(Tok::integer)[act<&B::explore_first>] > t(Tok::dotdot) >
                         t(Tok::integer)[act<&B::explore_last>];
const auto explore_clause_def =
    (t(Tok::of)[act<&B::open>] > reference | t(Tok::orders)[act<&B::open>] > some_of(reference) |
     t(Tok::before)[act<&B::open>] > some_of(reference > t(Tok::colon) > reference) |
     t(Tok::subsets)[act<&B::open>] | t(Tok::over)[act<&B::open>] > some_of(reference) |
     t(Tok::with)[act<&B::open>] > name[act<&B::push_name>] > t(Tok::in) > some_of(expr) |
     t(Tok::tokens)[act<&B::open>] > t(Tok::in) > some_of(token_range) |
     (t(Tok::sample) | t(Tok::seed))[act<&B::open>] > t(Tok::integer)[act<&B::explore_first>] |
     t(Tok::by)[act<&B::open>] > some_of(name[act<&B::push_name>])) >>
    x3::eps[act<&B::end_explore_clause>];
const auto explore_item_def = t(Tok::explore)[act<&B::open>] > name[act<&B::push_name>] >
                              t(Tok::lbrace) > *explore_clause >
                              t(Tok::rbrace)[act<&B::end_explore>];

// ---- graphs, tests

const auto symbol_decl = t(Tok::symbol) > name[act<&B::symbol_name>] > t(Tok::in) > -t(Tok::minus) >
                         t(Tok::integer)[act<&B::symbol_min>] > t(Tok::dotdot) > -t(Tok::minus) >
                         t(Tok::integer)[act<&B::symbol_max>] >
                         -(t(Tok::by) > t(Tok::integer)[act<&B::symbol_multiple>]) >
                         -(Peek(peek_tokens, Tok::tokens) >>
                               t(Tok::tokens)[act<&B::symbol_tokens>] |
                           Peek(peek_role) >> t(Tok::role) > t(Tok::string)[act<&B::symbol_role>]);
const auto inputs =
    t(Tok::in) >
    -(Peek(peek_input_kind) >> (t(Tok::weight) | t(Tok::buffer))[act<&B::input_kind>]) >
    list_of(name[act<&B::input_name>] > t(Tok::colon) >
            (t(Tok::question)[act<&B::no_input_type>] | type[act<&B::input_type>]) >
            -(Peek(peek_replicated) >> t(Tok::replicated) >
              +t(Tok::string)[act<&B::input_replicated>])) > x3::eps[act<&B::end_inputs>];
const auto graph_block_def =
    t(Tok::graph)[act<&B::open_graph>] > -name[act<&B::graph_name>] > t(Tok::lbrace) >
    *(inputs | Peek(peek_symbol) >> symbol_decl | Peek(peek_op) >> op_decl[act<&B::graph_op>]) >
    *(stmt[act<&B::graph_node>] >> -(t(Tok::at_sign) > t(Tok::string)[act<&B::node_group>] >
                                     -t(Tok::string)[act<&B::node_source>])) > t(Tok::out) >
    -(Peek(no_write) >> list_of(name[act<&B::graph_output>])) >
    *(Peek(peek_write) >> t(Tok::write) > name[act<&B::graph_written>] > t(Tok::assign) >
      name[act<&B::graph_write>]) > t(Tok::rbrace)[act<&B::end_graph>];

const auto expectation_clause = t(Tok::none)[act<&B::expect_none>] |
                                Peek(peek_numeric) >> t(Tok::numeric) > t(Tok::within) >
                                    (t(Tok::integer) | t(Tok::real))[act<&B::expect_numeric>] |
                                Peek(peek_error) >> t(Tok::error) >
                                    t(Tok::string)[act<&B::expect_error>] |
                                Peek(peek_graph) >> graph_block[act<&B::expect_graph>] |
                                some_of(expr[act<&B::expect_guard>] >>
                                        -(t(Tok::in) > sum > t(Tok::dotdot) >
                                          sum[act<&B::expect_count_range>]));
const auto because = t(Tok::because) > (Peek(peek_code, Tok::word) >> word[act<&B::because_code>] >
                                            -t(Tok::string)[act<&B::because_text>] |
                                        t(Tok::string)[act<&B::because_text>]);
const auto test_clause_def = Peek(peek_graph_file) >> t(Tok::graph) >
                                 t(Tok::string)[act<&B::test_file>] |
                             graph_block[act<&B::test_graph>] |
                             t(Tok::apply) > some_of(reference[act<&B::test_apply>]) >
                                 -(t(Tok::with) >
                                   some_of(name[act<&B::push_name>] > t(Tok::assign) >
                                           expr[act<&B::test_with>])) |
                             t(Tok::expect)[act<&B::open_expect>] > expectation_clause > -because
                                 > x3::eps[act<&B::end_expect>];
const auto test_item_def = t(Tok::test)[act<&B::open>] > name[act<&B::push_name>] > t(Tok::lbrace) >
                           *test_clause > t(Tok::rbrace)[act<&B::end_test>];

const auto item_def = op_decl[act<&B::item_op>] | foreign_item | rule_item | pattern_item |
                      table_item | small_item | strategy_item | deploy_item | explore_item |
                      test_item | graph_block[act<&B::item_graph>];

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

// The tree under construction: the grammar's actions push parts on stacks, and a closing action
// folds everything above the last mark. A production sets its mark only after its first token has
// matched, so that no action is ever undone; after an error the whole builder is discarded. Depths
// are counted as trees grow, so that no tree is too deep to copy or destroy.
#pragma once

#include <bitset>
#include <string>
#include <utility>
#include <vector>

#include "dsl/syntax/token.hpp"

namespace pw {

/// Thrown by an action and caught in parse_item: text that is grammatical but refused.
struct Refused {
  Diagnostic diagnostic;
};

class Builder {
 public:
  Builder(std::string_view text, SourceId source, const Token* begin)
      : text_(text), source_(source), at_(begin), furthest_(begin) {}

  // ---- for the grammar: the place of an action, and the expected tokens that were not found
  void move_to(const Token* next) { at_ = next; }  ///< one past the token just matched
  void missing(const Token* at, Tok kind) {
    if (at < furthest_) return;
    if (at > furthest_) expected_.reset();
    furthest_ = at;
    expected_.set(static_cast<std::size_t>(kind));
  }
  [[nodiscard]] const Token* furthest() const { return furthest_; }
  using Expected = std::bitset<static_cast<std::size_t>(Tok::count)>;
  [[nodiscard]] const Expected& expected() const { return expected_; }

  // ---- actions, in the order of the grammar
  void open();       ///< the token just matched begins a production
  void open_next();  ///< the next token begins a production
  void push_path();
  void extend_path();
  void push_operator();
  void fold_binary();
  void push_prefix();
  void fold_not();
  void close_in_set();
  void fold_in_range();
  void fold_in_name();
  void fold_unary();
  void push_integer();
  void push_real();
  void push_string();
  void push_true();
  void push_false();
  void push_none();
  void close_list();
  void close_parens();
  void push_star();
  void close_index();
  void spread();
  void mark_optional();
  void close_call();
  void name_star();
  void annotate();
  void open_attributes();
  void push_attribute();
  void set_attribute();
  void close_attributes();
  void close_dims();
  void begin_type();
  void begin_bare_type();
  void push_binder();
  void spread_binder();
  void type_binder();
  void end_statement();
  void set_many();
  void end_guards();
  void end_block();
  void push_name();
  void extend_name();
  void operand_mut();
  void operand_out();
  void operand();
  void operand_spread();
  void operand_optional();
  void operand_type();
  void attribute_name();
  void attribute_kind();
  void attribute_nullable();
  void attribute_default();
  void result_word();
  void result_spread();
  void result_colon();
  void result_type();
  void result_word_or_type();
  void result_from();
  void op_name();
  void op_imported();
  void trait();
  void end_op();
  void foreign_path();
  void foreign_string();
  void foreign_parameter();
  void foreign_mut();
  void foreign_out();
  void foreign_alias();
  void foreign_type();
  void foreign_default();
  void foreign_expression();
  void foreign_return();
  void foreign_where();
  void foreign_block();
  void end_foreign();
  void rule_variant();
  void rule_over();
  void rule_arrow();
  void op_variable();
  void end_op_variable();
  void end_rule();
  void end_alternative();
  void pattern_recursive();
  void pattern_operands();
  void pattern_type();
  void pattern_attributes();
  void pattern_results();
  void end_pattern();
  void table_columns();
  void table_product();
  void table_factor();
  void table_row();
  void end_row();
  void end_table();
  void extern_parameter_name();
  void extern_parameter();
  void end_use();
  void param_kind();
  void param_value();
  void end_param();
  void extern_predicate();
  void extern_result();
  void end_extern();
  void close_simple();
  void end_sequence();
  void end_prefixes();
  void close_best();
  void close_sequence();
  void reference();
  void fuel();
  void nodes();
  void rounds();
  void when();
  void ensures();
  void by();
  void cost();
  void end_pass();
  void pipeline_symbol();
  void pipeline_range();
  void end_pipeline();
  void split_at();
  void split_when();
  void end_at();
  void size_first();
  void size_last();
  void size_step();
  void end_split();
  void capture_mode();
  void end_capture();
  void explore_first();
  void explore_last();
  void end_explore_clause();
  void end_explore();
  void symbol_name();
  void symbol_min();
  void symbol_max();
  void symbol_multiple();
  void symbol_tokens();
  void symbol_role();
  void input_kind();
  void input_name();
  void input_type();
  void no_input_type();
  void input_replicated();
  void end_inputs();
  void open_graph();
  void graph_name();
  void graph_op();
  void graph_node();
  void node_group();
  void node_source();
  void graph_output();
  void graph_written();
  void graph_write();
  void end_graph();
  void expect_none();
  void expect_numeric();
  void expect_error();
  void expect_graph();
  void expect_guard();
  void expect_count_range();
  void because_code();
  void because_text();
  void test_file();
  void test_graph();
  void test_apply();
  void test_with();
  void open_expect();
  void end_expect();
  void end_test();
  void item_op();
  void item_graph();

  std::vector<ast::Item> items;  ///< none or one

 private:
  template <class T>
  struct Deep {
    T value;
    unsigned depth = 0;
    bool closed = false;  ///< in parentheses
  };
  struct Named {
    std::string text;
    Span span;
  };
  struct Operator {
    Token token;
    bool prefix = false;
  };
  struct Mark {
    const Token* begin = nullptr;
    std::size_t names = 0, expressions = 0, types = 0, attributes = 0, binders = 0, statements = 0,
                clauses = 0, operators = 0, strategies = 0;
    bool open = false, many = false;
  };

  [[nodiscard]] const Token& last() const { return at_[-1]; }
  [[nodiscard]] std::string_view text(const Token& t) const {
    return text_.substr(t.begin, t.length);
  }
  [[nodiscard]] Span span(const Token& t) const { return {source_, t.begin, t.end()}; }
  [[nodiscard]] Span since(const Mark& m) const { return {source_, m.begin->begin, last().end()}; }
  [[nodiscard]] std::string word(const Token& t) const;
  [[noreturn]] static void refuse(Span at, std::string_view code, std::string message,
                                  std::string help);
  std::int64_t integer(bool negative = false) const;
  Mark close();
  void push(Expr e, unsigned depth);
  Deep<Expr> pop();
  Expr pop_expression() { return std::move(pop().value); }
  TypeExpr pop_type();
  Named pop_name();
  Named pop_path();
  static void check_depth(Span at, unsigned depth);
  void refuse_open_type(const Expr& e) const;
  void fold_prefix(Tok kind);
  bool negate_literal(Expr& e) const;
  void fold_in(Expr::Kind kind, std::size_t operands);
  void extend_strategy();
  std::vector<Expr> take_expressions(std::size_t mark, unsigned& depth);
  std::vector<std::string> take_words(std::size_t mark);
  std::vector<std::vector<TypeExpr>> take_pattern_types(std::size_t count);
  std::vector<std::pair<std::string, Span>> take_names(std::size_t mark);
  Expr leaf(Expr::Kind kind) const;
  ast::Strategy& strategy() { return strategies_.back().value; }
  void push_strategy(ast::Strategy s, std::size_t mark);
  ast::Expectation& expectation(ast::Expectation::Kind kind);

  std::string_view text_;
  SourceId source_;
  const Token* at_;
  const Token* furthest_;
  Expected expected_;

  std::vector<Mark> marks_;
  std::vector<Named> names_;
  std::vector<Deep<Expr>> expressions_;
  std::vector<Deep<TypeExpr>> types_;
  std::vector<Deep<AttributeArg>> attributes_;
  std::vector<Binder> binders_;
  std::vector<Statement> statements_;
  std::vector<ast::Clause> clauses_;
  std::vector<Operator> operators_;
  std::vector<Deep<ast::Strategy>> strategies_;

  ast::Param param_;
  ast::Extern extern_;
  ast::OpItem op_;
  ast::ForeignItem foreign_;
  ast::Table table_;
  ast::Pattern pattern_;
  std::vector<std::pair<std::size_t, TypeExpr>> pattern_types_;  ///< by the place of its name
  std::vector<ast::OpVariable> op_variables_;
  ast::Rule rule_;
  ast::Pipeline pipeline_;
  ast::Split split_;
  ast::Capture capture_;
  ast::Explore explore_;
  std::vector<std::pair<std::int64_t, std::int64_t>> explore_numbers_;  ///< of the current clause
  ast::GraphItem graph_;
  ast::Test test_;
  std::size_t expectations_ = 0;  ///< of test_, before the current `expect`
  std::string because_code_, because_text_, input_kind_;
};

}  // namespace pw

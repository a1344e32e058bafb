// Reads names off the tokens of one item: in code, graphs and op declarations. Private to
// mentions.cpp, which handles the items.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dsl/editing/mentions.hpp"

namespace pw {

class MentionReader {
 protected:
  explicit MentionReader(std::string_view text);

  // ---- tokens, of the current item only

  [[nodiscard]] Tok kind(std::size_t i) const;
  [[nodiscard]] std::string_view spelling(std::size_t i) const;
  [[nodiscard]] std::string word(std::size_t i) const;
  [[nodiscard]] std::uint32_t column_of(const Token& t) const;
  static bool opens(Tok t) { return t == Tok::lparen || t == Tok::lbracket || t == Tok::lbrace; }
  static bool closes(Tok t) { return t == Tok::rparen || t == Tok::rbracket || t == Tok::rbrace; }
  /// Returns true if an expression may end with the token: a name after it begins something else.
  static bool ends_expression(Tok t);
  /// Returns the token after the bracket that closes the one at `i`; without one, the end of the
  /// item.
  [[nodiscard]] std::size_t behind(std::size_t i) const;
  /// Returns true for `mut` or `out` before an operand.
  [[nodiscard]] bool modifier(std::size_t i) const;

  // ---- one mention

  Mention& put(std::size_t i, MentionKind k);
  Mention& put_name(std::size_t i, NamePlace place, bool declares = false);
  /// Adds a path from `i` on as one mention; returns the token after it.
  std::size_t put_path(std::size_t i, MentionKind k, bool declares = false);
  /// Adds the name of the item itself.
  void declare(std::size_t i, MentionKind k);
  void name_item(std::size_t i);
  void open_scope(std::size_t begin) { open_scope(begin, end_); }
  void open_scope(std::size_t begin, std::size_t end);

  // ---- all mentions of a part; those that return a number return the token after it

  enum class In : std::uint8_t {
    block,
    call,
    operands,  ///< of a declaration
    parens,
    attributes,
    dims,
    index,
    list,
    set
  };
  /// Reads statements, expressions and types: the tokens from `i` to `end`, inside `outer`. `type`:
  /// they begin with a type.
  void code(std::size_t i, std::size_t end, In outer, NamePlace place, bool graph = false,
            bool type = false);
  /// Reads `graph name {`.
  std::size_t graph(std::size_t i);
  /// Reads an op declaration after `op`.
  std::size_t op(std::size_t i);
  std::size_t type(std::size_t i, std::size_t end);

  std::string_view text_;
  Mentions out_;
  std::uint32_t item_ = 0, scope_ = kNoScope;
  std::size_t end_ = 0;   // of the current item; 0 before the first
  std::string variable_;  // of a family

 private:
  struct Frame {
    In in = In::block;
    std::string callee;     // of a call and of attributes
    std::size_t begin = 0;  // the first token inside
    bool guard = false;     // of a block: in `where` or `assume`
    bool binding = false;   // of a block: left of `=`
    bool type = false;      // of a call: it is the dtype of a type
  };
  enum class Lines : std::uint8_t { statements, inputs, outputs };  // lines of a graph
  struct Reading {
    std::vector<Frame> stack;
    NamePlace place = NamePlace::value;  // of a name without another place
    bool graph = false;
    Lines lines = Lines::statements;
    std::string callee;        // of the next call, or of the one that has just ended
    bool type_next = false;    // after a colon
    std::size_t type_end = 0;  // after a dtype: a `[` there opens dims
  };

  [[nodiscard]] std::size_t end_limit() const { return end_ == 0 ? out_.tokens.size() : end_; }
  [[nodiscard]] std::size_t path_end(std::size_t i) const;

  std::size_t step(std::size_t i, Reading& at);
  static void mark_clause(Tok t, Frame& block);
  /// Returns true for `op f: pointwise`.
  [[nodiscard]] bool is_op_variable(std::size_t i) const;
  std::size_t op_variable(std::size_t i, Frame& block);
  std::size_t enter(std::size_t i, Reading& at);
  std::size_t leave(std::size_t i, Reading& at);
  std::size_t named(std::size_t i, Reading& at);
  std::size_t callee(std::size_t i, std::size_t end, bool optional, Reading& at);
  /// Returns true for `mut x` in an op's declaration: not a name.
  [[nodiscard]] bool modifies(std::size_t i) const;
  /// Returns true if the right side of a rule is one new op.
  [[nodiscard]] bool is_fuse(std::size_t i) const;
  std::size_t head_and_tail(std::size_t i, std::size_t end, NamePlace place);
  static NamePlace place_in(const Reading& at);
  [[nodiscard]] bool starts_element(std::size_t i, const Frame& top) const;
  [[nodiscard]] bool starts_statement(std::size_t i, const Frame& top) const;
  /// Reads `{eps}` or `{eps = least}`.
  std::size_t attribute(std::size_t i, const std::string& of);

  /// Reads the beginning of a line of a graph's text other than a statement.
  std::size_t graph_line(std::size_t i, Lines& lines);
  [[nodiscard]] bool input_kind(std::size_t i) const;
  std::size_t symbol(std::size_t i);
  std::size_t local_op(std::size_t i);

  void attribute_declarations(std::size_t i, std::size_t end);
  std::size_t results(std::size_t i);
};

}  // namespace pw

// Reads names off the tokens of code, graphs and op declarations.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dsl/editing/item_mentions.hpp"

namespace pw {

/// Reader of all mentions of a part; what returns a number returns the token after it.
class CodeReader {
 public:
  explicit CodeReader(ItemMentions& item) : item_(item) {}

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
  void read(std::size_t i, std::size_t end, In outer, NamePlace place, bool graph = false,
            bool type = false);
  /// Reads `graph name {`.
  std::size_t graph(std::size_t i);
  /// Reads an op declaration after `op`.
  std::size_t op(std::size_t i);
  std::size_t type(std::size_t i, std::size_t end);

  /// Reads `k.quant` as a column of the row `k` from here on; empty: of none.
  void set_row(std::string variable) { row_ = std::move(variable); }

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

  ItemMentions& item_;
  std::string row_;  // the variable of a family
};

}  // namespace pw

// The syntax tree of a .pwr or .pwg file: mirrors the text, with nothing resolved. Plain data.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/special_members.hpp"
#include "graph/op.hpp"
#include "graph/statement.hpp"

namespace pw::ast {

struct Use {
  Span span;
  std::string path;
};
struct Param {
  Span span;
  std::string name, kind;  ///< int float bool str dtype
  std::optional<Expr> value;
};
struct Extern {
  Span span;
  bool predicate = false;  ///< `extern pred`, else `extern fn`
  std::string name;
  std::vector<std::pair<std::string, std::string>>
      parameters;      ///< (name, kind); a name may be empty
  std::string result;  ///< kind; empty for predicates
};
struct AttributeDecl {
  Span span;
  std::string name, kind;
  bool nullable = false;
  std::optional<Expr> value;
};
struct OpItem {
  PW_SPECIAL_MEMBERS(OpItem);
  Span span, name_span;
  std::string name;
  std::vector<OperandDecl> operands;
  std::vector<AttributeDecl> attributes;
  std::vector<ResultDecl> results;       ///< `from` not resolved: see `result_from`
  std::vector<std::string> result_from;  ///< an operand name or empty, one a result
  std::vector<std::pair<std::string, Span>> traits;
  std::vector<Statement> body;
  bool imported = false;  ///< `op aten.foo.default(...)`: any operands, attributes and results
};
/// Item `foreign aten.add.Tensor(self, other, alpha = 1) = add(self, other)`, or with a block.
struct ForeignItem {
  PW_SPECIAL_MEMBERS(ForeignItem);
  Span span, name_span;
  std::string target;
  struct Parameter {
    Span span;
    std::vector<std::pair<std::string, Span>> names;
    bool mut = false, out = false;
    std::optional<TypeExpr> type;
    std::optional<Expr> value;
  };
  std::vector<Parameter> parameters;
  std::vector<std::pair<std::string, Span>> returns;  ///< of a block
  std::vector<Expr> where;
  bool block = false;  ///< else one statement, which binds the list `=`
  std::vector<Statement> body;
};
struct Clause {
  enum class Kind : std::uint8_t { where, assume, given, unless } kind = Kind::where;
  Span span;
  std::vector<Expr> guards;           ///< where, assume
  std::vector<Statement> statements;  ///< given, unless
};
/// Variable `op f: pointwise`: f matches each op with the trait.
struct OpVariable {
  Span span;
  std::string name;
  Span name_span;
  std::string trait;
  Span trait_span;
};
struct Body {
  std::vector<Clause> clauses;
  std::vector<Statement> statements;
  std::vector<OpVariable> ops;
};
struct Rule {
  PW_SPECIAL_MEMBERS(Rule);
  Span span, name_span;
  std::string name;
  std::string variant, table;  ///< `for k in Dyn`; empty otherwise
  std::vector<std::pair<std::string, Span>> over;
  Body body;
  bool equivalence = false;  ///< <=>
  std::string direction;     ///< of one half of an equivalence: forward, backward
  std::vector<Statement> replacement;
};
struct Pattern {
  PW_SPECIAL_MEMBERS(Pattern);
  Span span, name_span;
  bool recursive = false;
  std::string name;
  std::vector<std::string> operands;
  std::vector<AttributeArg> attributes;
  std::vector<std::string> results;
  std::vector<std::vector<TypeExpr>> operand_types, result_types;  ///< none or one each
  std::vector<Body> alternatives;
};
struct Table {
  Span span, name_span;
  std::string name;
  std::vector<std::string> columns;
  struct Row {
    Span span;
    std::string name;
    std::vector<Expr> cells;
  };
  std::vector<Row> rows;
  std::vector<std::pair<std::string, Span>> factors;  ///< of `table P = A * B`, which has no rows
};
struct Group {
  Span span, name_span;
  std::string name;
  std::vector<Rule> rules;
};

/// A strategy as written: greedy { a, b } fuel 3 when tp > 1.
struct Strategy {
  PW_SPECIAL_MEMBERS(Strategy);
  enum class Kind : std::uint8_t {
    greedy,
    once,
    walk,
    saturate,
    atomic,
    repeat,
    best,
    sequence,
    reference
  } kind = Kind::sequence;
  Span span;
  std::vector<std::pair<std::string, Span>>
      references;  ///< rule references of greedy/once/walk/saturate; the name of a reference
  std::vector<Strategy> parts;  ///< sequence, atomic, repeat, best
  std::optional<std::int64_t> fuel, nodes, rounds;
  std::vector<Expr> when, ensures;  ///< none or one
  std::string by, cost;
};
struct Pass {
  Span span, name_span;
  std::string name;
  Strategy strategy;
};
struct Pipeline {
  PW_SPECIAL_MEMBERS(Pipeline);
  Span span, name_span;
  std::string name;
  Strategy strategy;                 ///< a sequence
  std::vector<std::int64_t> ranges;  ///< `for tokens in ranges(…)`; empty: none
  std::string ranges_symbol;
};
struct Split {
  Span span;
  std::string name;
  struct At {
    Span span;
    std::vector<std::pair<std::string, Span>> ops;
    std::vector<Expr> when;
  };
  std::vector<At> at;
};
struct Capture {
  Span span;
  struct Sizes {  ///< one size, or first..last by step
    std::int64_t first = 0, last = 0, step = 1;
  };
  std::vector<Sizes> sizes;
  std::string mode;  ///< empty: not stated
};
/// Item `explore name { … }`: a space of pipelines, as a list of clauses.
struct Explore {
  PW_SPECIAL_MEMBERS(Explore);
  struct Clause {
    enum class Kind : std::uint8_t {
      of,
      orders,
      before,
      subsets,
      over,
      with,
      tokens,
      sample,
      seed,
      by
    } kind = Kind::of;
    Span span;
    std::vector<std::pair<std::string, Span>>
        names;                 ///< passes, rules, costs; of `with` the param; of `before` pairs
    std::vector<Expr> values;  ///< of `with`
    std::vector<std::pair<std::int64_t, std::int64_t>>
        numbers;  ///< of `tokens` first and last; of `sample` and `seed` one, twice
  };
  Span span, name_span;
  std::string name;
  std::vector<Clause> clauses;
};
struct GraphItem {
  PW_SPECIAL_MEMBERS(GraphItem);
  Span span;
  std::string name;
  struct Input {
    Span span;
    std::string name;
    TypeExpr type;
    std::string kind;                     ///< "", "weight", "buffer"
    std::vector<std::string> replicated;  ///< groups over which all ranks hold the same
  };
  std::vector<Input> inputs;
  struct Node {  ///< a statement with its provenance comments
    Statement statement;
    std::string group, source;
  };
  std::vector<Node> nodes;
  std::vector<std::pair<std::string, Span>> outputs;
  struct Write {  ///< `write cache = cache_1`
    std::string input, value;
    Span span, value_span;
  };
  std::vector<Write> writes;
  std::vector<std::pair<std::string, SymbolFact>> symbols;  ///< `symbol n in 1..8192 tokens`
  std::vector<OpItem> ops;                                  ///< opaque ops the library lacks
};
struct Expectation {
  PW_SPECIAL_MEMBERS(Expectation);
  enum class Kind : std::uint8_t { guard, count, none, graph, numeric, error } kind = Kind::guard;
  Span span;
  std::vector<Expr> guard;       ///< `add_rms == 2*80`, `count(all_reduce) == 0`
  std::vector<GraphItem> graph;  ///< none or one
  double within = 0;
  std::string error;
  std::string because_code, because_text;
};
struct Test {
  PW_SPECIAL_MEMBERS(Test);
  Span span, name_span;
  std::string name;
  std::vector<GraphItem> graph;  ///< none or one
  std::string file;              ///< graph "file"
  std::vector<std::pair<std::string, Span>> apply;
  std::vector<std::pair<std::string, Expr>> with;  ///< tp = 8
  std::vector<Expectation> expectations;
};

using Item = std::variant<Use, Param, Extern, OpItem, ForeignItem, Table, Pattern, Rule, Group,
                          Pass, Pipeline, Split, Capture, Explore, Test, GraphItem>;

struct Comment {
  Span span;
  std::string text;
  bool own_line = false;
};
struct File {
  PW_SPECIAL_MEMBERS(File);
  SourceId source;
  std::vector<Item> items;
  std::vector<Comment> comments;  ///< in order; the formatter puts them back
};

}  // namespace pw::ast

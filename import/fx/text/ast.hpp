// The tree of an FX text: modules, their functions, parameters and statements. Mirrors the text,
// with nothing resolved. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw::fx {

inline constexpr std::size_t kMaxText = std::size_t{64} << 20;  ///< bytes of a dump
inline constexpr int kMaxNesting = 64;                          ///< brackets inside brackets
inline constexpr std::size_t kMaxDiagnostics = 20;

/// Returns true for an ASCII identifier of Python.
[[nodiscard]] bool is_word(std::string_view text);

struct Expr {
  enum class Kind : std::uint8_t {
    name,     ///< text: "a", "torch.bfloat16", "self.weight"
    integer,  ///< integer
    real,     ///< real
    string,   ///< text, unescaped
    boolean,  ///< integer 0 or 1
    none,
    list,
    tuple,
    call,    ///< text: dotted callee, or `.name` of the first argument, or `dict` of its keywords,
             ///< or operator.… of an operator; args: positional, then one for each of `keywords`
    index,   ///< args[0][args[1]][args[2]]…
    slice,   ///< args: start, end, step; `none` if omitted; not after spell_out
    binary,  ///< text: + - * / // % **, == …; args: two
  };
  Kind kind = Kind::none;
  Span span;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Expr> args;
  std::vector<std::string> keywords;
  [[nodiscard]] std::size_t positional() const { return args.size() - keywords.size(); }
};

struct Parameter {
  std::string name;
  Span span;
  std::string type;  ///< empty: not stated
  Span type_span;
  bool given = false;  ///< the type is stated outside the function
};

/// A call that computes a tuple, and the tuple's name.
struct TupleCall {
  std::string callee, tuple;
};

struct Statement {
  enum class Kind : std::uint8_t { assign, expression, return_ } kind = Kind::assign;
  Span span;
  std::vector<Expr> targets;  ///< assign: at least one
  std::string type;           ///< empty: not stated
  Span type_span;
  Expr value;
  std::string source;  ///< "path:line" of the comment above, or empty
  std::string group;   ///< path of the module that contains it, or empty
  TupleCall first_of;  ///< the original call, if `value` is a renamed one for its first result
};

struct Function {
  Span span;
  std::vector<Parameter> parameters;  ///< without `self`
  std::vector<Statement> statements;
};

/// A class with its `forward`, and its nested classes.
struct Module {
  std::string name;
  Function forward;
  std::vector<Module> children;
};

/// A logical line: a statement, which may span several lines of text while a bracket is open.
struct Line {
  std::uint32_t begin = 0, end = 0;  ///< without indent, comment and line end
  std::uint32_t indent = 0;
  std::string source;  ///< of the last `# File: path:line in …` comment
  std::string group;   ///< of the last `# nn_module_stack: {…}` comment
};

/// Cuts the text into logical lines. Diagnoses unmatched brackets, open strings, nesting, size.
Result<std::vector<Line>> cut_lines(std::string_view text, SourceId source);

/// Parses `a: "type" = f(x);  x = None` into statements; those that only release names are omitted.
/// In grammar.cpp.
Result<std::vector<Statement>> parse_line(std::string_view text, SourceId source, const Line& line);
/// Parses a line with one statement of the most frequent forms, and its releases, without the
/// grammar. Returns false for other forms; `out` is then unspecified. In plain.cpp.
bool parse_plain_line(std::string_view text, SourceId source, const Line& line, Statement& out);
/// Parses `def forward(self, a: "type", b):`.
Result<std::vector<Parameter>> parse_header(std::string_view text, SourceId source,
                                            const Line& line);

/// Parses the output of print_readable() and `gm.code`: a class, or a function alone. Collects the
/// errors of all lines, at most kMaxDiagnostics. `by_grammar`: does not use parse_plain_line.
Result<Module> parse(std::string_view text, SourceId source, bool by_grammar = false);
/// Parses the output of str(graph): `graph():` and one line for each node. In listing.cpp.
Result<Function> parse_listing(std::string_view text, SourceId source);
/// Parses the table of print_tabular(): opcode, name, target, args, kwargs. In listing.cpp.
Result<Function> parse_table(std::string_view text, SourceId source);

/// Returns one function: each call of a submodule is replaced by its statements, whose names are
/// made unique and whose group is the submodule's path. In modules.cpp.
Result<Function> inline_modules(Module module);

/// Groups calls by the modules of the weights that they read, from their names or torch.export's
/// signature. The module's path follows an existing group.
void infer_groups(Function& function, std::string_view signature);

/// Makes parameters of inputs that the first statements unpack from nested arguments, as `a, b, =
/// fx_pytree.tree_flatten_spec(…)`; `a: "f32[4]"` alone is a parameter's type.
void flatten_inputs(Function& function);

/// Rewrites Python notation as calls: `x.view(…)` of a local x is `.view` of it, `x.shape` is
/// getattr, `a:b` in a subscript is slice(a, b, None).
void spell_out(Function& function);

/// Rewrites calls of norms of which only the first result is read as calls of ops with one result:
/// native_layer_norm as layer_norm, _fused_rms_norm as rms_norm.
void name_first_results(Function& function);

}  // namespace pw::fx

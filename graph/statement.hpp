// The statement form: `results = op(operands){attributes}`. Graphs, patterns, replacements and op
// bodies are all lists of Statement, as parsed, with the places they came from. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source.hpp"
#include "base/special_members.hpp"

namespace pw {

struct AttributeArg;
struct TypeExpr;

struct Expr {
  PW_SPECIAL_MEMBERS(Expr);
  enum class Kind : std::uint8_t {
    integer,  ///< integer
    real,     ///< real
    string,   ///< text (unescaped)
    boolean,  ///< integer 0 or 1
    none,
    path,      ///< text: "x", "k.quant", "f.shape"; optional: `x?`
    list,      ///< args; elements may be `star` or `spread`
    call,      ///< text: callee path; args, attributes; optional: `cast?(x)`
    negate,    ///< -args[0]
    not_,      ///< not args[0]
    binary,    ///< text: one of + - * / % // == != <= >= < > and or; args[0], args[1]
    in_set,    ///< args[0] in {args[1..]}
    in_range,  ///< args[0] in args[1]..args[2]; with two args: in a named table or list
    index,     ///< args[0][args[1]]
    spread,    ///< args[0]...
    star,      ///< *text, inside [] only; text may be empty
    fuse,      ///< the word `fuse` alone on a right side
  };
  Kind kind = Kind::none;
  Span span;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Expr> args;
  std::vector<AttributeArg> attributes;
  bool braces = false;         ///< a call that has an attribute list, even an empty one
  bool open = false;           ///< the attribute list has `..`
  bool optional = false;       ///< `?`
  std::vector<TypeExpr> type;  ///< none or one: the annotation of an operand, `x: T[*b, d]`
};

/// Attribute `k = 3`, or `k` alone, which binds (left) or reads (right) a variable of that name.
struct AttributeArg {
  std::string name;
  Span span;
  std::vector<Expr> value;  ///< none or one
};

/// Type expression: `T`, `T[*b, d]`, `[n, 2*d]`, `promote(T, U)[broadcast(*a, *b)]`.
struct TypeExpr {
  PW_SPECIAL_MEMBERS(TypeExpr);
  Span span;
  std::vector<Expr> dtype;  ///< none or one: a path (a dtype or a variable) or a call
  bool any_shape = true;    ///< no brackets
  std::vector<Expr>
      dims;  ///< `star` elements are sequences; a call to a shape function gives a whole shape
};

struct Binder {
  std::string name;  ///< "_" is unnamed
  Span span;
  bool spread = false;
  std::vector<TypeExpr> type;  ///< none or one
};

struct Statement {
  PW_SPECIAL_MEMBERS(Statement);
  Span span;
  bool many = false;
  std::vector<Binder> binders;  ///< may be empty: an op without results
  Expr value;
};

}  // namespace pw

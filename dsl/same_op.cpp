#include "dsl/same_op.hpp"

#include <algorithm>
#include <filesystem>

#include "base/characters.hpp"
#include "dsl/build/declare_op.hpp"
#include "dsl/editing/rename.hpp"
#include "dsl/embedded_rules.hpp"
#include "dsl/syntax/suggest.hpp"
#include "dsl/syntax/walk.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

/// Numbering of the signature's type variables by order of occurrence.
class Numbered {
 public:
  explicit Numbered(Op op) : op_(std::move(op)) {}

  Op run() {
    for (const OperandDecl& operand : op_.operands)
      if (operand.type) note(*operand.type);
    for (const ResultDecl& result : op_.results)
      if (result.type) note(*result.type);
    for (OperandDecl& operand : op_.operands)
      if (operand.type) rename_.apply(*operand.type);
    for (ResultDecl& result : op_.results)
      if (result.type) rename_.apply(*result.type);
    for (Statement& s : op_.body) rename_.apply(s);
    return std::move(op_);
  }

 private:
  void note(const TypeExpr& type) {
    visit_type(type, [&](const Occurrence& o) {
      const std::string name(o.name);
      if (o.place == Place::function || dtype_named(name) || op_.attribute(name) != nullptr ||
          op_.operand_index(name) >= 0 || rename_.has(name))
        return;
      rename_.put(name, path_expr("#" + std::to_string(count_++), o.span));
    });
  }

  Op op_;
  Rename rename_;
  int count_ = 0;
};

template <class Type>
std::string text_of(const std::optional<Type>& type) {
  return type ? print(*type) : std::string();
}

bool same(const OperandDecl& a, const OperandDecl& b) {
  return a.name == b.name && a.mut == b.mut && a.out == b.out && a.variadic == b.variadic &&
         a.optional == b.optional && text_of(a.type) == text_of(b.type);
}
bool same(const AttributeDecl& a, const AttributeDecl& b) {
  return a.name == b.name && a.kind == b.kind && a.nullable == b.nullable &&
         a.default_value == b.default_value;
}
/// Compares results. The name of a result matters only to its body.
bool same(const ResultDecl& a, const ResultDecl& b) {
  return a.variadic == b.variadic && a.from == b.from && text_of(a.type) == text_of(b.type);
}
bool same(const Statement& a, const Statement& b) { return print(a) == print(b); }

template <class T>
bool all_same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

bool has_all_traits(const Op& op, const Op& of) {
  const std::vector<std::string> names = trait_names();
  return std::all_of(names.begin(), names.end(), [&](const std::string& trait) {
    return !has_trait(of, trait) || has_trait(op, trait);
  });
}

bool same_result_names(const Op& a, const Op& b) {
  return std::equal(a.results.begin(), a.results.end(), b.results.begin(), b.results.end(),
                    [](const ResultDecl& x, const ResultDecl& y) { return x.name == y.name; });
}

}  // namespace

bool says_the_same(const Op& library, const Op& mine) {
  const Op a = Numbered(library).run(), b = Numbered(mine).run();
  if (a.imported || b.imported || !all_same(a.operands, b.operands) ||
      !all_same(a.attributes, b.attributes) || !all_same(a.results, b.results))
    return false;
  if (!all_same(a.body, b.body) || (a.has_body() && !same_result_names(a, b))) return false;
  return has_all_traits(library, mine);
}

bool is_in_library(const Context& context, Span span) {
  return span.valid() && context.sources.name(span.source).starts_with(kLibrary);
}

std::string name_beside_library(const Context& context, const std::string& file, const Op& op) {
  std::string stem = as_name(std::filesystem::path(file).stem().string());
  if (stem.empty() || is_digit(stem[0])) stem.insert(0, 1, '_');
  const std::string base = stem + "." + op.name;
  std::string name = base;
  for (int i = 2;; ++i) {
    const OpId known = context.ops.find(name);
    if (!known.valid()) return name;
    Op named = op;
    named.name = name;
    if (says_the_same(context.ops[known], named) && says_the_same(named, context.ops[known]))
      return name;
    name = base + "." + std::to_string(i);
  }
}

Diagnostic shadows_library(const std::string& what, const std::string& name, Span mine,
                           Span library, const std::string& help) {
  Diagnostic out = warning_at(
      mine, "PW0206",
      what + " " + in_ticks(name) + " is not the library's " + what + " of this name", help);
  out.label = "in this file and in files that use it, the name means this op";
  out.secondary.push_back({library, "the library's op, which the library's own files still use"});
  return out;
}

}  // namespace pw

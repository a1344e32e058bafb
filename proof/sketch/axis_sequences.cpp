// A sequence such as `*b` is one axis of unknown extent, with extra axes only where the rule
// distinguishes them: axes that attributes name, and axes that `expand` repeats.
#include "proof/sketch/axis_sequences.hpp"

#include <algorithm>
#include <iterator>

namespace pw::proof {

/// `*r` of the operand of `expand` and `*s` of its result shape; empty if not a sequence.
void AxisSequences::pair() {
  for (const PatternNode& node : rule_.nodes) {
    if (context_.ops[node.op].primitive != Primitive::expand || node.operands.empty()) continue;
    std::string to;
    for (const PatternAttribute& attribute : node.attributes)
      if (attribute.name == "shape" && !attribute.value.args.empty() &&
          attribute.value.args[0].kind == Expr::Kind::star)
        to = attribute.value.args[0].text;
    for (const TypeExpr& type : rule_.values[node.operands[0]].types)
      if (!type.dims.empty() && type.dims[0].kind == Expr::Kind::star && type.dims[0].text != to)
        repeated_.emplace_back(type.dims[0].text, to);
  }
}

/// One axis of unknown extent represents any number of them. The cases for axes that `expand`
/// repeats: equal, one repeated, both preceded by one in either order, and none.
void AxisSequences::bind(const std::string& name) {
  for (const auto& [from, to] : repeated_) {
    if (name != from && name != to) continue;
    if (to.empty()) return bind_repeated(from);
    if (env_.count(from) == 0 && env_.count(to) == 0) return bind_pair(from, to);
    if (name == from) {
      const Shape wanted = std::get<Shape>(env_.at(to));
      if (ask("repeated " + from, 2) == 0) {
        env_.emplace(from, wanted);
      } else {
        env_.emplace(from, Shape(wanted.size(), context_.dims.constant(1)));
      }
      return;
    }
  }
  // One axis for the sequence, plus two for each axis variable that may be inside it.
  Shape shape;
  for (std::size_t n = 0; n < 2 * axis_variables() + 1; ++n)
    shape.push_back(symbol(n == 0 ? name : fmt::format("{}_{}", name, n)));
  env_.emplace(name, std::move(shape));
}

/// Returns the number of axes that the rule names without a number. Within a sequence, these axes
/// and the parts around them are separate axes.
std::size_t AxisSequences::axis_variables() const {
  std::set<std::string> names;
  for (const PatternNode& node : rule_.nodes) {
    for (const PatternAttribute& attribute : node.attributes) {
      const AttributeDecl* decl = context_.ops[node.op].attribute(attribute.name);
      if (decl != nullptr && decl->kind == AttributeKind::axis &&
          attribute.value.kind == Expr::Kind::path)
        names.insert(attribute.value.text);
    }
  }
  return names.size();
}

/// `expand` to a shape that is not a sequence of the pattern: one axis, one that gains two axes of
/// size 1, and none.
void AxisSequences::bind_repeated(const std::string& from) {
  const DimId one = context_.dims.constant(1), kept = symbol(from);
  const Shape shapes[] = {{kept}, {kept, one, one}, {}};
  env_.emplace(from, shapes[ask("repeated " + from, 3)]);
}

/// Row `way` of both tables is one case: the axes before `expand` and those after it.
void AxisSequences::bind_pair(const std::string& from, const std::string& to) {
  granted_.insert("axes that are repeated are one of the cases looked at");
  const DimId one = context_.dims.constant(1), kept = symbol(from), more = symbol(to),
              front = symbol(to + "_front");
  const Shape before[] = {{kept}, {one}, {kept, one}, {one, kept}, {}};
  const Shape after[] = {{kept}, {more}, {front, kept, more}, {front, more, kept}, {front}};
  const std::size_t way = ask("repeated " + from + " " + to, std::size(before));
  env_.emplace(from, before[way]);
  env_.emplace(to, after[way]);
}

/// Returns a shape that `expand` can produce from this one.
Shape AxisSequences::expanded(const Shape& shape, const std::string& base) {
  const DimId one = context_.dims.constant(1);
  const std::size_t way = ask("expanded " + base, 3);
  Shape out = shape;
  for (std::size_t k = 0, widened = 0; k < out.size(); ++k)
    if (out[k] == one && way > 0 && (way == 1 || widened++ == 0))
      out[k] = symbol(fmt::format("{}_{}", base, k));
  if (way == 1) out.insert(out.begin(), symbol(base + "_front"));
  return out;
}

/// Binds the free names of a size expression to symbols.
void AxisSequences::bind_names(const Expr& expr, Env& env, bool own) {
  if (expr.kind == Expr::Kind::star && !expr.text.empty() && env.count(expr.text) == 0) {
    if (own)
      bind(expr.text);
    else
      env.emplace(expr.text, Shape{fresh(expr.text)});
  }
  if (expr.kind == Expr::Kind::path && env.count(expr.text) == 0 && !dtype_named(expr.text) &&
      expr.text.find('.') == std::string::npos)
    env.emplace(expr.text, own ? symbol(expr.text) : fresh(expr.text));
  for (const Expr& arg : expr.args) bind_names(arg, env, own);
  // The numerator of a fraction is a multiple of its denominator.
  if (expr.kind == Expr::Kind::binary && (expr.text == "/" || expr.text == "//")) {
    const auto a = dim_of(expr.args[0], env), b = dim_of(expr.args[1], env);
    if (a && b) equations_.multiple(*a, *b);
  }
}

bool AxisSequences::is_expanded(const std::string& name) const {
  return std::any_of(repeated_.begin(), repeated_.end(),
                     [&](const auto& pair) { return pair.second == name; });
}

}  // namespace pw::proof

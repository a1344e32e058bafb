#include "rewriter/analysis/choices.hpp"

#include <algorithm>

namespace pw {

DimId Choices::symbol(const std::string& name) {
  const std::string base = name.substr(0, name.find('\''));
  std::string free = base;
  for (int i = 1; !taken_.insert(free).second; ++i) free = base + std::to_string(i);
  return context_.dims.symbol(free);
}

DimId Choices::dim(const std::string& name) {
  if (!first_ && !drawn_.empty() && pick(3) == 0) return drawn_[pick(drawn_.size())];
  constexpr std::int64_t kExtents[] = {64, 32, 16, 128, 8};
  const DimId out = symbolic_ ? symbol(name) : context_.dims.constant(kExtents[drawn_.size() % 5]);
  drawn_.push_back(out);
  return out;
}

Shape Choices::rows() {
  const DimId n = context_.dims.symbol("n");
  switch (pick(3)) {
    case 1: return {context_.dims.constant(2), n};
    case 2: return {context_.dims.constant(3)};
    default: return {n};
  }
}

Shape Choices::shape() {
  Shape out = rows();
  if (pick(5) != 1) out.push_back(dim("d"));
  return out;
}

std::vector<DimId> Choices::parts(const Shape& shape, std::size_t count) {
  std::vector<DimId> out;
  const auto total = shape.empty() ? std::nullopt : context_.dims.value(shape.back());
  const std::int64_t each = std::max<std::int64_t>(
      total.value_or(1) / static_cast<std::int64_t>(std::max<std::size_t>(count, 1)), 1);
  for (std::size_t i = 0; i + 1 < count; ++i) out.push_back(context_.dims.constant(each));
  DimId rest = shape.empty() ? context_.dims.constant(1) : shape.back();
  for (DimId part : out) rest = context_.dims.sub(rest, part);
  out.push_back(rest);
  return out;
}

/// Returns a shape with the same number of elements: the last axis split in two, or the last two
/// merged.
std::vector<DimId> Choices::other_shape(const Shape& shape) {
  std::vector<DimId> out(shape.begin(), shape.end());
  const auto last = out.empty() ? std::nullopt : context_.dims.value(out.back());
  if (last && *last % 8 == 0 && pick(3) != 1) {
    out.back() = context_.dims.constant(*last / 8);
    out.push_back(context_.dims.constant(8));
  } else if (out.size() >= 2 && pick(3) != 2) {
    const DimId back = out.back();
    out.pop_back();
    out.back() = context_.dims.mul(out.back(), back);
  }
  return out;
}

Attribute Choices::attribute(const std::string& name, AttributeKind kind,
                             const std::vector<TypeId>& operands, std::size_t results) {
  const bool typed = !operands.empty() && operands[0].valid() && operands[0] != Types::unknown();
  const Shape shape = typed ? context_.types[operands[0]].shape : Shape();
  const std::size_t rank = std::max<std::size_t>(shape.size(), 1);
  switch (kind) {
    case AttributeKind::float_: return one_of({1e-5, 1e-2, 1e-6});
    case AttributeKind::bool_: return pick(2) == 0;
    case AttributeKind::str: return std::string(pick(2) == 0 ? "tp:0" : "layers.0");
    case AttributeKind::dtype: return one_of({DType::f32, DType::bf16, DType::f8e4m3});
    case AttributeKind::axis: return static_cast<std::int64_t>(rank - 1 - pick(rank));
    case AttributeKind::int_:
      if (name == "start") return one_of({std::int64_t{0}, std::int64_t{8}});
      if (name == "world") return one_of({std::int64_t{2}, std::int64_t{1}});
      if (name == "step") return std::int64_t{1};
      if (name == "end" && !shape.empty() && pick(3) != 1) {
        const DimId last = shape[rank - 1 - pick(rank)];
        if (const auto value = context_.dims.value(last)) return *value;
        return last;
      }
      return one_of({std::int64_t{8}, std::int64_t{1}, std::int64_t{64}});
    case AttributeKind::ints:
    case AttributeKind::dims: return name == "sizes" ? parts(shape, results) : other_shape(shape);
    case AttributeKind::floats: return std::vector<double>(results, 1.0);
    case AttributeKind::strs: return std::vector<std::string>(results, "x");
  }
  return None{};
}

void Choices::bind_dims(const Expr& expr, Env& env) {
  if (expr.kind == Expr::Kind::star) {
    if (!expr.text.empty() && env.count(expr.text) == 0) env.emplace(expr.text, rows());
    return;
  }
  if (expr.kind == Expr::Kind::path && env.count(expr.text) == 0 &&
      expr.text.find('.') == std::string::npos)
    env.emplace(expr.text, dim(expr.text));
  for (const Expr& arg : expr.args) bind_dims(arg, env);
}

void Choices::bind_dims(const TypeExpr& type, Env& env) {
  if (type.dims.size() == 1 && type.dims[0].kind == Expr::Kind::star && !type.dims[0].text.empty())
    env.emplace(type.dims[0].text, shape());
  for (const Expr& expr : type.dims) bind_dims(expr, env);
}

}  // namespace pw

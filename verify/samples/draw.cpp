// Draws shapes, dtypes, and attributes. Extents are drawn from a pool that remembers earlier ones:
// independent draws would rarely satisfy a pattern's equalities. Profiles of a covering design
// (pairwise testing) fix the features of a graph.
#include "verify/samples/draw.hpp"

#include <algorithm>

namespace pw {
namespace {

constexpr std::int64_t kExtents[] = {8, 16, 24, 32, 64};
constexpr std::int64_t kOddExtents[] = {1, 2, 3, 5, 7, 12};

const Shape* shape_of(const Context& context, const std::vector<TypeId>& operands, std::size_t i) {
  if (i >= operands.size() || !operands[i].valid() || operands[i] == Types::unknown())
    return nullptr;
  return &context.types[operands[i]].shape;
}

/// The groups of a convolution, from the channels of its input and weight; 1 if they do not fit.
std::int64_t groups_of(const Context& context, const std::vector<TypeId>& operands) {
  const Shape *x = shape_of(context, operands, 0), *w = shape_of(context, operands, 1);
  if (x == nullptr || w == nullptr || x->size() < 2 || w->size() < 2) return 1;
  const auto all = context.dims.value((*x)[1]), one = context.dims.value((*w)[1]);
  return all && one && *one > 0 && *all % *one == 0 ? std::max<std::int64_t>(*all / *one, 1) : 1;
}

}  // namespace

DimId Draw::constant(std::int64_t value) { return context_.dims.constant(value); }

DimId Draw::remember(DimId dim) {
  if (std::find(drawn_.begin(), drawn_.end(), dim) == drawn_.end()) drawn_.push_back(dim);
  return dim;
}

std::vector<Profile> covering_profiles(bool pairs) {
  constexpr std::size_t kRanks = 5, kKinds = 3;
  std::vector<Profile> out;
  for (std::size_t d = 0; d < kDTypeCount; ++d)
    for (std::size_t r = 0; r < kRanks; ++r) {
      if (!pairs && r != d % kRanks) continue;
      out.push_back({static_cast<DType>(d), r, static_cast<Profile::Sizes>((d + r) % kKinds),
                     static_cast<Profile::Broadcast>((d + 2 * r) % kKinds)});
    }
  return out;
}

DType Draw::any_dtype() { return static_cast<DType>(below(kDTypeCount)); }

DType Draw::float_dtype() {
  if (profile_ != nullptr) return mixed_ && once_in(2) ? any_dtype() : profile_->dtype;
  constexpr DType kFloats[] = {DType::bf16, DType::f16, DType::f32};
  return once_in(12) ? DType::f64 : kFloats[below(3)];
}

DType Draw::dtype() {
  if (profile_ != nullptr) return float_dtype();
  constexpr DType kOthers[] = {DType::f8e4m3, DType::f8e5m2, DType::i64, DType::i32,
                               DType::i8,     DType::u8,     DType::b8};
  return once_in(6) ? kOthers[below(std::size(kOthers))] : float_dtype();
}

DimId Draw::profiled_extent() {
  constexpr std::int64_t kSmall[] = {2, 3, 4, 5, 8};
  if (profile_->sizes == Profile::Sizes::with_one && once_in(2)) return constant(1);
  if (profile_->sizes == Profile::Sizes::with_zero && !has_zero_ && once_in(2)) {
    has_zero_ = true;
    return constant(0);
  }
  return constant(small_ ? kSmall[below(std::size(kSmall))] : kExtents[below(std::size(kExtents))]);
}

DimId Draw::extent() {
  if (profile_ != nullptr) return profiled_extent();
  if (once_in(5)) return constant(kOddExtents[below(std::size(kOddExtents))]);
  return constant(kExtents[below(std::size(kExtents))]);
}

DimId Draw::dim() {
  if (drawn_.empty() || once_in(4)) return remember(extent());
  DimId dim = drawn_[below(drawn_.size())];
  if (once_in(2)) return dim;
  for (std::size_t more = 1 + below(2); more > 0; --more)
    dim = context_.dims.add(dim, drawn_[below(drawn_.size())]);
  return remember(dim);
}

/// A shape that broadcasts to this one: omits leading axes and sets others to 1.
Shape Draw::smaller(const Shape& shape) {
  Shape out(shape.begin() + static_cast<std::ptrdiff_t>(below(shape.size() + 1)), shape.end());
  for (DimId& dim : out)
    if (once_in(3)) dim = constant(1);
  return out;
}

Shape Draw::profiled(std::size_t other_dims) {
  if (whole_.empty())
    for (std::size_t i = 0; i < profile_->rank; ++i)
      whole_.push_back(i == 0 && once_in(4) ? context_.dims.symbol("n") : dim());
  const Shape part(whole_.begin(),
                   whole_.end() - static_cast<std::ptrdiff_t>(std::min(other_dims, whole_.size())));
  const bool first = shapes_++ == 0;
  const bool less =
      profile_->broadcast == (first ? Profile::Broadcast::first : Profile::Broadcast::others);
  return less ? smaller(part) : part;
}

Shape Draw::sequence(std::size_t other_dims) {
  if (profile_ != nullptr) return profiled(other_dims);
  const DimId n = context_.dims.symbol("n");
  switch (below(4)) {
    case 0: return {constant(3)};
    case 1: return {constant(2), n};
    default: return {n};
  }
}

Shape Draw::shape() {
  if (profile_ != nullptr) return profiled(0);
  switch (below(6)) {
    case 0: return {constant(1)};
    case 1: return {dim()};
    case 2: return {context_.dims.symbol("n"), dim(), dim()};
    default: return {context_.dims.symbol("n"), dim()};
  }
}

/// A shape with the same number of elements: splits the last axis, merges the last two, or is
/// unchanged.
std::vector<DimId> Draw::factored(const Shape& shape) {
  std::vector<DimId> other(shape.begin(), shape.end());
  if (other.empty() || once_in(4)) return other;
  const auto last = context_.dims.value(other.back());
  if (other.size() >= 3 && once_in(2)) {
    other[other.size() - 2] = context_.dims.mul(other[other.size() - 2], other.back());
    other.pop_back();
  } else if (last && *last % 8 == 0) {
    other.back() = constant(*last / 8);
    other.push_back(constant(8));
  }
  return other;
}

void Draw::bind_factors(const Expr& list, const Shape& operand, Env& env) {
  std::vector<DimId> left(operand.begin(), operand.end());
  std::vector<std::string> unknown;
  std::int64_t known = 1;
  for (const Expr& element : list.args) {
    const bool name = element.kind == Expr::Kind::path;
    const auto bound = name ? env.find(element.text) : env.end();
    if (name && bound == env.end()) {
      unknown.push_back(element.text);
      continue;
    }
    const auto* dim = bound == env.end() ? nullptr : std::get_if<DimId>(&bound->second);
    if (dim == nullptr) return;
    const auto same = std::find(left.begin(), left.end(), *dim);
    if (same != left.end())
      left.erase(same);
    else if (const auto value = context_.dims.value(*dim))
      known *= *value;
    else
      return;
  }
  std::int64_t count = 1;
  for (DimId dim : left) count *= context_.dims.value(dim).value_or(0);
  if (known < 1 || count < 1 || count % known != 0 || unknown.empty()) return;
  count /= known;
  for (; unknown.size() > 1; unknown.pop_back()) {
    const std::int64_t factor = count % 16 == 0 && once_in(2) ? 16 : count % 8 == 0 ? 8 : 1;
    env.insert_or_assign(unknown.back(), remember(constant(factor)));
    count /= factor;
  }
  env.insert_or_assign(unknown.front(), remember(constant(count)));
}

/// Sizes that add up to the last axis, for split.
std::vector<DimId> Draw::parts(const Shape& shape, std::size_t count) {
  std::vector<DimId> sizes;
  const auto total = shape.empty() ? std::nullopt : context_.dims.value(shape.back());
  std::int64_t left = total.value_or(0);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::int64_t part =
        std::max<std::int64_t>(left / static_cast<std::int64_t>(count - i), 1);
    sizes.push_back(constant(part));
    left -= part;
  }
  sizes.push_back(constant(left));
  return sizes;
}

std::pair<Shape, Shape> Draw::convolution_operands() {
  const auto small = [&](std::int64_t least, std::size_t choices) {
    return least + static_cast<std::int64_t>(below(choices));
  };
  const std::int64_t groups = once_in(3) ? small(2, 2) : 1, channels = small(1, 4);
  Shape x = {once_in(2) ? context_.dims.symbol("n") : constant(small(1, 3)),
             constant(groups * channels)};
  Shape w = {constant(groups * small(1, 4)), constant(channels)};
  for (std::size_t axes = 1 + below(2); axes > 0; --axes) {
    x.push_back(constant(small(5, 4)));
    w.push_back(constant(small(1, 3)));
  }
  return {x, w};
}

/// Strides, dilations or paddings of a window.
std::vector<DimId> Draw::window_steps(const std::string& name, std::size_t axes) {
  const std::int64_t least = name == "padding" ? 0 : 1;
  std::vector<DimId> steps;
  for (; axes > 0; --axes) steps.push_back(constant(least + (once_in(3) ? 1 : 0)));
  return steps;
}

Attribute Draw::attribute(const std::string& name, AttributeKind kind,
                          const std::vector<TypeId>& operands, std::size_t results) {
  const Shape* first = shape_of(context_, operands, 0);
  const std::size_t rank = first == nullptr ? 1 : std::max<std::size_t>(first->size(), 1);
  switch (kind) {
    case AttributeKind::float_: return once_in(2) ? 1e-6 : 1e-2;
    case AttributeKind::bool_: return once_in(2);
    case AttributeKind::str: return std::string(once_in(2) ? "tp:0" : "layers.0");
    case AttributeKind::dtype: return dtype();
    case AttributeKind::axis: return static_cast<std::int64_t>(below(rank));
    case AttributeKind::int_:
      if (name == "world") return world_;
      if (name == "groups") return groups_of(context_, operands);
      if (name == "start" && once_in(2)) return std::int64_t{0};
      if (const auto value = context_.dims.value(dim())) return std::max<std::int64_t>(*value, 1);
      return std::int64_t{8};
    case AttributeKind::ints:
    case AttributeKind::dims:
      if (first == nullptr) return std::vector<DimId>(results, constant(8));
      if (name == "sizes") return parts(*first, results);
      if (rank > 2 && (name == "stride" || name == "padding" || name == "dilation"))
        return window_steps(name, rank - 2);
      return factored(*first);
    case AttributeKind::floats: return std::vector<double>(results, 1.0);
    case AttributeKind::strs: return std::vector<std::string>(results, "x");
  }
  return None{};
}

void Draw::bind_dim(const Expr& expr, Env& env, std::size_t other_dims) {
  if (expr.kind == Expr::Kind::star) {
    if (!expr.text.empty() && env.count(expr.text) == 0)
      env.emplace(expr.text, sequence(other_dims));
    return;
  }
  if (expr.kind == Expr::Kind::path && env.count(expr.text) == 0) env.emplace(expr.text, dim());
  for (const Expr& arg : expr.args) bind_dim(arg, env, other_dims);
}

void Draw::bind_variables(const TypeExpr& type, Env& env, bool floats_only) {
  for (const Expr& expr : type.dtype) {
    if (expr.kind != Expr::Kind::path || dtype_named(expr.text) || env.count(expr.text) != 0)
      continue;
    env.emplace(expr.text, DTypeBinding{floats_only ? float_dtype() : dtype(), false});
  }
  if (type.dims.size() == 1 && type.dims[0].kind == Expr::Kind::star &&
      !type.dims[0].text.empty()) {
    env.emplace(type.dims[0].text, shape());
  }
  for (const Expr& expr : type.dims) bind_dim(expr, env, type.dims.size() - 1);
}

}  // namespace pw

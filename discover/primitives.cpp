#include "discover/primitives.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string_view>

namespace pw::discover {
namespace {

using Extents = std::vector<std::int64_t>;
using Out = std::optional<std::vector<Tensor>>;

std::int64_t count_of(const Extents& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Tensor result_of(const PrimitiveCall& call, std::size_t i = 0) {
  Tensor out{*extents(call.context, call.results[i]), {}};
  out.elements.resize(static_cast<std::size_t>(count_of(out.shape)));
  return out;
}

Out one(Tensor tensor) {
  std::vector<Tensor> out;
  out.push_back(std::move(tensor));
  return out;
}

std::optional<std::int64_t> int_attribute(const PrimitiveCall& call, std::string_view name) {
  const Attribute* found = call.context.attributes.find(call.attributes, name);
  if (!found) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(found)) return *number;
  return std::nullopt;
}

std::optional<std::size_t> axis_attribute(const PrimitiveCall& call, std::string_view name) {
  const std::optional<std::int64_t> axis = int_attribute(call, name);
  const auto rank = static_cast<std::int64_t>(call.operands[0]->shape.size());
  if (!axis || *axis >= rank || *axis < -rank) return std::nullopt;
  return static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis);
}

/// Index of the operand's element that broadcasts to the result's element.
class Broadcast {
 public:
  Broadcast(const Extents& from, const Extents& to) : same_(from == to) {
    if (same_) return;
    strides_.assign(to.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t back = from.size() - 1 - i;
      if (from[back] != 1) strides_[to.size() - 1 - i] = stride;
      stride *= from[back];
    }
    to_ = to;
  }
  [[nodiscard]] std::size_t at(std::size_t i) const {
    if (same_) return i;
    std::int64_t out = 0;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t axis = to_.size(); axis-- > 0; rest /= to_[axis])
      out += rest % to_[axis] * strides_[axis];
    return static_cast<std::size_t>(out);
  }

 private:
  bool same_;
  Extents strides_, to_;
};

template <Residue (*F)(Residue)>
Out unary(const PrimitiveCall& call) {
  Tensor out = result_of(call);
  for (std::size_t i = 0; i < out.elements.size(); ++i)
    out.elements[i] = F(call.operands[0]->elements[i]);
  return one(std::move(out));
}

template <Residue (*F)(Residue, Residue)>
Out binary(const PrimitiveCall& call) {
  Tensor out = result_of(call);
  const Broadcast a(call.operands[0]->shape, out.shape), b(call.operands[1]->shape, out.shape);
  for (std::size_t i = 0; i < out.elements.size(); ++i)
    out.elements[i] = F(call.operands[0]->elements[a.at(i)], call.operands[1]->elements[b.at(i)]);
  return one(std::move(out));
}

Out choose(const PrimitiveCall& call) {
  Tensor out = result_of(call);
  const Broadcast m(call.operands[0]->shape, out.shape), a(call.operands[1]->shape, out.shape),
      b(call.operands[2]->shape, out.shape);
  for (std::size_t i = 0; i < out.elements.size(); ++i)
    out.elements[i] = call.operands[0]->elements[m.at(i)] != 0
                          ? call.operands[1]->elements[a.at(i)]
                          : call.operands[2]->elements[b.at(i)];
  return one(std::move(out));
}

/// Floats of 16 bits or more are exact here; narrower dtypes round in an unknown way.
Out cast(const PrimitiveCall& call) {
  const DType to = call.context.types[call.results[0]].dtype;
  const DType from = call.context.types[call.types[0]].dtype;
  Tensor out = *call.operands[0];
  if (to == from || to == DType::f64 || (is_float(to) && size_of(to) >= 2 && is_float(from)))
    return one(std::move(out));
  for (Residue& element : out.elements)
    element = unknown(hash_text("cast") + static_cast<std::uint64_t>(to), {element});
  return one(std::move(out));
}

struct Folded {
  std::size_t outer = 1, length = 1, inner = 1;
};
std::optional<Folded> folded(const PrimitiveCall& call) {
  const std::optional<std::size_t> axis = axis_attribute(call, "dim");
  if (!axis) return std::nullopt;
  Folded out;
  const Extents& shape = call.operands[0]->shape;
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i < *axis    ? out.outer
     : i == *axis ? out.length
                  : out.inner) *= static_cast<std::size_t>(shape[i]);
  return out;
}

template <Residue (*F)(Residue, Residue), bool kMean>
Out reduce(const PrimitiveCall& call) {
  const std::optional<Folded> fold = folded(call);
  if (!fold || fold->length == 0) return std::nullopt;
  Tensor out = result_of(call);
  const Residue scale = kMean ? inverse(reduced(fold->length)) : 1;
  for (std::size_t o = 0; o < fold->outer; ++o)
    for (std::size_t i = 0; i < fold->inner; ++i) {
      const auto at = [&](std::size_t j) {
        return call.operands[0]->elements[(o * fold->length + j) * fold->inner + i];
      };
      Residue sum = at(0);
      for (std::size_t j = 1; j < fold->length; ++j) sum = F(sum, at(j));
      out.elements[o * fold->inner + i] = times(sum, scale);
    }
  return one(std::move(out));
}

Out same_elements(const PrimitiveCall& call) {
  Tensor out = result_of(call);
  if (out.elements.size() != call.operands[0]->elements.size()) return std::nullopt;
  out.elements = call.operands[0]->elements;
  return one(std::move(out));
}

Out transpose(const PrimitiveCall& call) {
  const std::optional<std::size_t> a = axis_attribute(call, "dim0"),
                                   b = axis_attribute(call, "dim1");
  if (!a || !b) return std::nullopt;
  Tensor out = result_of(call);
  const Extents& from = call.operands[0]->shape;
  Extents strides(from.size(), 1);
  for (std::size_t i = from.size(); i-- > 1;) strides[i - 1] = strides[i] * from[i];
  std::swap(strides[*a], strides[*b]);
  for (std::size_t i = 0; i < out.elements.size(); ++i) {
    std::int64_t at = 0;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t axis = from.size(); axis-- > 0; rest /= out.shape[axis])
      at += rest % out.shape[axis] * strides[axis];
    out.elements[i] = call.operands[0]->elements[static_cast<std::size_t>(at)];
  }
  return one(std::move(out));
}

Out expand(const PrimitiveCall& call) {
  Tensor out = result_of(call);
  const Broadcast from(call.operands[0]->shape, out.shape);
  for (std::size_t i = 0; i < out.elements.size(); ++i)
    out.elements[i] = call.operands[0]->elements[from.at(i)];
  return one(std::move(out));
}

/// Selects `length` elements of an axis from `start`.
void take(const Tensor& from, const Folded& fold, std::size_t start, std::size_t step,
          Tensor& out) {
  const std::size_t length = out.elements.size() / (fold.outer * fold.inner);
  for (std::size_t o = 0; o < fold.outer; ++o)
    for (std::size_t j = 0; j < length; ++j)
      for (std::size_t i = 0; i < fold.inner; ++i)
        out.elements[(o * length + j) * fold.inner + i] =
            from.elements[(o * fold.length + start + j * step) * fold.inner + i];
}

Out slice(const PrimitiveCall& call) {
  const std::optional<Folded> fold = folded(call);
  const auto start = int_attribute(call, "start"), step = int_attribute(call, "step");
  if (!fold || !start || !step || *start < 0 || *step < 1) return std::nullopt;
  Tensor out = result_of(call);
  if (out.elements.empty()) return one(std::move(out));
  take(*call.operands[0], *fold, static_cast<std::size_t>(*start), static_cast<std::size_t>(*step),
       out);
  return one(std::move(out));
}

Out split(const PrimitiveCall& call) {
  const std::optional<Folded> fold = folded(call);
  if (!fold) return std::nullopt;
  std::vector<Tensor> out;
  std::size_t start = 0;
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    out.push_back(result_of(call, i));
    take(*call.operands[0], *fold, start, 1, out.back());
    start += out.back().elements.size() / std::max<std::size_t>(1, fold->outer * fold->inner);
  }
  return out;
}

Out cat(const PrimitiveCall& call) {
  const std::optional<std::size_t> axis = axis_attribute(call, "dim");
  if (!axis) return std::nullopt;
  Tensor out = result_of(call);
  std::size_t outer = 1;
  for (std::size_t i = 0; i < *axis; ++i) outer *= static_cast<std::size_t>(out.shape[i]);
  const std::size_t row = outer == 0 ? 0 : out.elements.size() / outer;
  std::size_t start = 0;
  for (const Tensor* part : call.operands) {
    const std::size_t length = outer == 0 ? 0 : part->elements.size() / outer;
    for (std::size_t o = 0; o < outer; ++o)
      std::copy_n(part->elements.begin() + static_cast<std::ptrdiff_t>(o * length), length,
                  out.elements.begin() + static_cast<std::ptrdiff_t>(o * row + start));
    start += length;
  }
  return one(std::move(out));
}

Out filled(const PrimitiveCall& call) {
  const Attribute* value = call.context.attributes.find(call.attributes, "value");
  const double* number = value ? std::get_if<double>(value) : nullptr;
  if (!number) return std::nullopt;
  Tensor out = result_of(call);
  std::fill(out.elements.begin(), out.elements.end(), residue_of(*number));
  return one(std::move(out));
}

/// Multiplies over the last two axes for each index of the others.
Out product(const PrimitiveCall& call) {
  const Tensor &a = *call.operands[0], &b = *call.operands[1];
  Tensor out = result_of(call);
  const std::size_t rank = out.shape.size();
  const auto n = static_cast<std::size_t>(out.shape[rank - 2]);
  const auto m = static_cast<std::size_t>(out.shape[rank - 1]);
  const auto k = static_cast<std::size_t>(a.shape[rank - 1]);
  const std::size_t batches = n * m == 0 ? 0 : out.elements.size() / (n * m);
  for (std::size_t r = 0; r < batches * n; ++r)
    for (std::size_t j = 0; j < m; ++j) {
      std::uint64_t sum = 0;
      for (std::size_t l = 0; l < k; ++l)
        sum = (sum + std::uint64_t{a.elements[r * k + l]} * b.elements[(r / n * k + l) * m + j]) %
              kPrime;
      out.elements[r * m + j] = static_cast<Residue>(sum);
    }
  return one(std::move(out));
}

Residue quotient(Residue a, Residue b) {
  return b == 0 ? unknown(hash_text("div by 0"), {a}) : times(a, inverse(b));
}
Residue negated(Residue a) { return minus(0, a); }
Residue both_of(Residue a, Residue b) { return a != 0 && b != 0 ? 1 : 0; }
Residue either_of(Residue a, Residue b) { return a != 0 || b != 0 ? 1 : 0; }
Residue equals(Residue a, Residue b) { return a == b ? 1 : 0; }
Residue differ(Residue a, Residue b) { return a != b ? 1 : 0; }
Residue less(Residue a, Residue b) { return rank_of(a) < rank_of(b) ? 1 : 0; }
Residue greater(Residue a, Residue b) { return less(b, a); }
Residue at_most(Residue a, Residue b) { return rank_of(a) <= rank_of(b) ? 1 : 0; }
Residue at_least(Residue a, Residue b) { return at_most(b, a); }
Residue raised(Residue a, Residue b) {
  return b <= 16 ? power(a, b) : unknown(hash_text("pow"), {a, b});
}

using Table = std::map<Primitive, Definition>;
template <std::size_t kName>
Residue any_function(Residue a) {
  return unknown(kName, {a});
}

const Table& table() {
  static const Table all = {
      {Primitive::add, binary<plus>},
      {Primitive::sub, binary<minus>},
      {Primitive::mul, binary<times>},
      {Primitive::div, binary<quotient>},
      {Primitive::pow, binary<raised>},
      {Primitive::maximum, binary<larger>},
      {Primitive::minimum, binary<smaller>},
      {Primitive::eq, binary<equals>},
      {Primitive::ne, binary<differ>},
      {Primitive::lt, binary<less>},
      {Primitive::le, binary<at_most>},
      {Primitive::gt, binary<greater>},
      {Primitive::ge, binary<at_least>},
      {Primitive::bitwise_and, binary<both_of>},
      {Primitive::bitwise_or, binary<either_of>},
      {Primitive::select, choose},
      {Primitive::neg, unary<negated>},
      {Primitive::cast, cast},
      {Primitive::abs, unary<any_function<1>>},
      {Primitive::floor, unary<any_function<2>>},
      {Primitive::ceil, unary<any_function<3>>},
      {Primitive::trunc, unary<any_function<4>>},
      {Primitive::round, unary<any_function<5>>},
      {Primitive::sqrt, unary<any_function<6>>},
      {Primitive::rsqrt, unary<any_function<7>>},
      {Primitive::exp, unary<any_function<8>>},
      {Primitive::log, unary<any_function<9>>},
      {Primitive::tanh, unary<any_function<10>>},
      {Primitive::sin, unary<any_function<11>>},
      {Primitive::cos, unary<any_function<12>>},
      {Primitive::log2, unary<any_function<13>>},
      {Primitive::expm1, unary<any_function<14>>},
      {Primitive::log1p, unary<any_function<15>>},
      {Primitive::sum, reduce<plus, false>},
      {Primitive::mean, reduce<plus, true>},
      {Primitive::amax, reduce<larger, false>},
      {Primitive::amin, reduce<smaller, false>},
      {Primitive::reshape, same_elements},
      {Primitive::detach, same_elements},
      {Primitive::clone, same_elements},
      {Primitive::transpose, transpose},
      {Primitive::slice, slice},
      {Primitive::split, split},
      {Primitive::cat, cat},
      {Primitive::expand, expand},
      {Primitive::constant, filled},
      {Primitive::full, filled},
      {Primitive::mm, product},
      {Primitive::bmm, product},
  };
  return all;
}

}  // namespace

Definition definition_of(Primitive primitive) {
  const auto found = table().find(primitive);
  return found == table().end() ? nullptr : found->second;
}

}  // namespace pw::discover

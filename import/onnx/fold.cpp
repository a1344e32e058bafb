#include "import/onnx/fold.hpp"

#include <algorithm>
#include <array>

#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

using Folded = std::optional<KnownNumbers>;

KnownNumbers row(Shape numbers, DType dtype = DType::i64) {
  return {dtype, {static_cast<std::int64_t>(numbers.size())}, std::move(numbers)};
}

bool is_row(const KnownNumbers* known) { return known != nullptr && known->extents.size() <= 1; }

Folded fold_shape(OnnxCall& c) {
  const Shape shape = c.type(0).shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank);
  };
  const std::int64_t begin = bound(c.integer("start", 0)), end = bound(c.integer("end", rank));
  return row(begin < end ? Shape(shape.begin() + begin, shape.begin() + end) : Shape());
}

Folded fold_size(OnnxCall& c) {
  DimId out = c.dims().constant(1);
  for (const DimId dim : c.type(0).shape) out = out.valid() ? c.dims().mul(out, dim) : out;
  if (!out.valid()) return std::nullopt;
  return KnownNumbers{DType::i64, {}, {out}};
}

Folded fold_same(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  return x != nullptr ? Folded(*x) : std::nullopt;
}

Folded fold_neg(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  if (x == nullptr) return std::nullopt;
  KnownNumbers out = *x;
  for (DimId& dim : out.numbers)
    if (dim = c.dims().sub(c.dims().constant(0), dim); !dim.valid()) return std::nullopt;
  return out;
}

Folded fold_cast(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  const std::optional<DType> to = dtype_of(c.integer("to"));
  c.ignore("saturate");
  if (x == nullptr || (to != DType::i64 && to != DType::i32)) return std::nullopt;
  KnownNumbers out = *x;
  out.dtype = *to;
  for (const DimId dim : out.numbers)
    if (const auto number = c.extent(dim);
        *to == DType::i32 && (!number || *number != static_cast<std::int32_t>(*number)))
      return std::nullopt;
  return out;
}

Folded fold_gather(OnnxCall& c) {
  const KnownNumbers *x = c.known(0), *at = c.known(1);
  if (!is_row(x) || at == nullptr || x->extents.size() != 1) return std::nullopt;
  if (const std::int64_t axis = c.integer("axis", 0); axis != 0 && axis != -1) return std::nullopt;
  KnownNumbers out{x->dtype, at->extents, {}};
  const auto size = static_cast<std::int64_t>(x->numbers.size());
  for (std::int64_t i : c.extents(at->numbers)) {
    if (i < 0) i += size;
    if (i < 0 || i >= size) throw GiveUp{"an index is out of range"};
    out.numbers.push_back(x->numbers[static_cast<std::size_t>(i)]);
  }
  return out;
}

Folded fold_concat(OnnxCall& c) {
  KnownNumbers out = row({});
  for (std::size_t i = 0; i < c.count(); ++i) {
    const KnownNumbers* x = c.known(i);
    if (x == nullptr || x->extents.size() != 1) return std::nullopt;
    out.numbers.insert(out.numbers.end(), x->numbers.begin(), x->numbers.end());
    out.dtype = x->dtype;
  }
  c.ignore("axis");  // there is but one
  return row(std::move(out.numbers), out.dtype);
}

std::vector<std::int64_t> slice_part(OnnxCall& c, std::size_t input, std::string_view attribute,
                                     std::int64_t otherwise) {
  if (c.has(input)) return c.integers(input);
  return c.integers(attribute, {otherwise});
}

Folded fold_slice(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  if (x == nullptr || x->extents.size() != 1) return std::nullopt;
  const auto begins = slice_part(c, 1, "starts", 0), ends = slice_part(c, 2, "ends", 0),
             axes = slice_part(c, 3, "axes", 0), steps = slice_part(c, 4, "steps", 1);
  if (begins.size() != 1 || ends.size() != 1 || axes.size() != 1 || steps.size() != 1 ||
      steps[0] == 0)
    return std::nullopt;
  const auto size = static_cast<std::int64_t>(x->numbers.size());
  const std::int64_t step = std::clamp(steps[0], -size - 1, size + 1), low = step > 0 ? 0 : -1,
                     high = step > 0 ? size : size - 1;
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  Shape out;
  for (std::int64_t i = bound(begins[0]), end = bound(ends[0]); step > 0 ? i < end : i > end;
       i += step)
    out.push_back(x->numbers[static_cast<std::size_t>(i)]);
  return row(std::move(out), x->dtype);
}

// One number, or a row of numbers: only the number of axes changes.
Folded fold_squeeze(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  if (!is_row(x) || x->numbers.size() != 1 || x->extents.empty()) return std::nullopt;
  if (c.has(1)) (void)c.known(1);
  c.ignore("axes");
  return KnownNumbers{x->dtype, {}, x->numbers};
}

Folded fold_unsqueeze(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  if (x == nullptr || !x->extents.empty()) return std::nullopt;
  if (c.has(1) ? c.integers(1).size() != 1 : c.integers("axes", {}).size() != 1)
    return std::nullopt;
  return row(x->numbers, x->dtype);
}

Folded fold_reshape(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  const std::vector<std::int64_t> shape = c.has(1) ? c.integers(1) : c.integers("shape", {});
  const auto size = static_cast<std::int64_t>(x != nullptr ? x->numbers.size() : 0);
  if (x == nullptr || shape.size() > 1 ||
      (shape.size() == 1 && shape[0] != -1 && shape[0] != size) || (shape.empty() && size != 1))
    return std::nullopt;
  c.ignore("allowzero");
  return shape.empty() ? KnownNumbers{x->dtype, {}, x->numbers} : row(x->numbers, x->dtype);
}

Folded fold_fill(OnnxCall& c) {
  const Shape shape = c.dims(0);
  const OnnxAttribute* value = c.find("value");
  if (shape.size() > 1 || value == nullptr || !value->tensor) return std::nullopt;
  ExternalFiles none;
  auto contents = contents_of(*value->tensor, none, "");
  const auto number = contents && *contents ? known_of(**contents, c.dims()) : std::nullopt;
  const std::optional<std::int64_t> count = shape.empty() ? 1 : c.extent(shape[0]);
  if (!number || number->numbers.size() != 1 || !count || *count < 0 || *count > kMostKnown)
    return std::nullopt;
  KnownNumbers out{number->dtype, {}, Shape(static_cast<std::size_t>(*count), number->numbers[0])};
  if (!shape.empty()) out.extents = {*count};
  return out;
}

Folded fold_range(OnnxCall& c) {
  const KnownNumbers* first = c.known(0);
  if (first == nullptr || c.known(1) == nullptr || c.known(2) == nullptr) return std::nullopt;
  const std::int64_t begin = c.integer(0), end = c.integer(1), step = c.integer(2);
  if (step == 0) throw GiveUp{"the step of a range is 0"};
  const auto span = static_cast<__int128>(end) - begin;
  const __int128 count = span / step + (span % step != 0 && (span > 0) == (step > 0) ? 1 : 0);
  if (count > kMostKnown) return std::nullopt;
  Shape out;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    out.push_back(
        c.dims().constant(static_cast<std::int64_t>(begin + static_cast<__int128>(i) * step)));
  return row(std::move(out), first->dtype);
}

Folded fold_product(OnnxCall& c) {
  const KnownNumbers* x = c.known(0);
  if (x == nullptr || x->extents.size() != 1) return std::nullopt;
  DimId out = c.dims().constant(1);
  for (const DimId dim : x->numbers) out = out.valid() ? c.dims().mul(out, dim) : out;
  if (c.has(1)) (void)c.known(1);
  c.ignore("axes");
  c.ignore("noop_with_empty_axes");
  if (!out.valid()) return std::nullopt;
  KnownNumbers one{x->dtype, {}, {out}};
  if (c.integer("keepdims", 1) != 0) one.extents = {1};
  return one;
}

// ---- two operands, or more

/// Combines numbers elementwise; a single number is broadcast. An invalid result means unknown.
using OnDims = DimId (*)(OnnxCall& c, DimId a, DimId b);

Folded fold_pairs(OnnxCall& c, std::size_t first, OnDims op, std::optional<DType> dtype = {}) {
  const KnownNumbers *a = c.known(first), *b = c.known(first + 1);
  if (!is_row(a) || !is_row(b)) return std::nullopt;
  const std::size_t count = std::max(a->numbers.size(), b->numbers.size());
  const auto fits = [&](const KnownNumbers& x) {
    return x.numbers.size() == count || x.numbers.size() == 1;
  };
  if (!fits(*a) || !fits(*b)) return std::nullopt;
  KnownNumbers out = a->extents.size() >= b->extents.size() ? *a : *b;
  out.dtype = dtype.value_or(a->dtype);
  out.numbers.clear();
  for (std::size_t i = 0; i < count; ++i) {
    out.numbers.push_back(op(c, a->numbers[a->numbers.size() == 1 ? 0 : i],
                             b->numbers[b->numbers.size() == 1 ? 0 : i]));
    if (!out.numbers.back().valid()) return std::nullopt;
  }
  if (!out.extents.empty()) out.extents = {static_cast<std::int64_t>(count)};
  return out;
}

DimId plus(OnnxCall& c, DimId a, DimId b) { return c.dims().add(a, b); }
DimId minus(OnnxCall& c, DimId a, DimId b) { return c.dims().sub(a, b); }
DimId times(OnnxCall& c, DimId a, DimId b) { return c.dims().mul(a, b); }
// ONNX rounds to zero, dims round down: the same where nothing is negative.
DimId over(OnnxCall& c, DimId a, DimId b) {
  const DimId zero = c.dims().constant(0);
  const bool plain = c.dims().prove(Compare::ge, a, zero, c.facts()) == Truth::yes &&
                     c.dims().prove(Compare::gt, b, zero, c.facts()) == Truth::yes;
  return plain ? c.dims().div(a, b) : DimId();
}
DimId rest(OnnxCall& c, DimId a, DimId b) {
  const DimId zero = c.dims().constant(0);
  return c.dims().prove(Compare::gt, b, zero, c.facts()) == Truth::yes ? c.dims().mod(a, b)
                                                                       : DimId();
}
DimId larger(OnnxCall& c, DimId a, DimId b) { return c.dims().max(a, b); }
DimId smaller(OnnxCall& c, DimId a, DimId b) { return c.dims().min(a, b); }
template <Compare compare>
DimId holds(OnnxCall& c, DimId a, DimId b) {
  const Truth truth = c.dims().prove(compare, a, b, c.facts());
  return truth == Truth::unknown ? DimId() : c.dims().constant(truth == Truth::yes ? 1 : 0);
}

template <OnDims op>
Folded fold_two(OnnxCall& c) {
  return c.count() == 2 ? fold_pairs(c, 0, op) : std::nullopt;
}
template <Compare compare>
Folded fold_compare(OnnxCall& c) {
  return fold_pairs(c, 0, holds<compare>, DType::b8);
}

Folded fold_where(OnnxCall& c) {
  const KnownNumbers *mask = c.known(0), *a = c.known(1), *b = c.known(2);
  if (!is_row(mask) || !is_row(a) || !is_row(b)) return std::nullopt;
  const std::size_t count = std::max({mask->numbers.size(), a->numbers.size(), b->numbers.size()});
  KnownNumbers out{a->dtype, {}, {}};
  const auto at = [&](const KnownNumbers& x, std::size_t i) {
    return x.numbers.size() == 1 ? x.numbers[0] : x.numbers.at(i);
  };
  for (const KnownNumbers* x : {mask, a, b}) {
    if (x->numbers.size() != count && x->numbers.size() != 1) return std::nullopt;
    if (!x->extents.empty()) out.extents = {static_cast<std::int64_t>(count)};
  }
  for (std::size_t i = 0; i < count; ++i)
    out.numbers.push_back(c.extent(at(*mask, i)) != 0 ? at(*a, i) : at(*b, i));
  return out;
}

struct FoldRow {
  std::string_view op;
  Folded (*fold)(OnnxCall&);
};

constexpr auto kFolds = std::to_array<FoldRow>({
    {"Shape", fold_shape},
    {"Size", fold_size},
    {"Neg", fold_neg},
    {"Identity", fold_same},
    {"Cast", fold_cast},
    {"Gather", fold_gather},
    {"Concat", fold_concat},
    {"Slice", fold_slice},
    {"Squeeze", fold_squeeze},
    {"Unsqueeze", fold_unsqueeze},
    {"Reshape", fold_reshape},
    {"ConstantOfShape", fold_fill},
    {"Range", fold_range},
    {"ReduceProd", fold_product},
    {"Add", fold_two<plus>},
    {"Sub", fold_two<minus>},
    {"Mul", fold_two<times>},
    {"Div", fold_two<over>},
    {"Mod", fold_two<rest>},
    {"Max", fold_two<larger>},
    {"Min", fold_two<smaller>},
    {"Equal", fold_compare<Compare::eq>},
    {"Greater", fold_compare<Compare::gt>},
    {"Less", fold_compare<Compare::lt>},
    {"Where", fold_where},
});

/// Returns true if the inputs of a calculation of numbers may be known; Shape and Size read types.
bool may_be_known(OnnxCall& c, std::string_view op) {
  if (op == "Shape" || op == "Size") return true;
  for (std::size_t i = 0; i < c.count(); ++i)
    if (c.has(i) && c.known(i) == nullptr) return false;
  return c.count() > 0;
}

}  // namespace

std::optional<KnownNumbers> fold(OnnxCall& call) {
  const auto found =
      std::ranges::find_if(kFolds, [&](const FoldRow& r) { return r.op == call.node().op; });
  if (found == kFolds.end() || !may_be_known(call, found->op)) return std::nullopt;
  std::optional<KnownNumbers> out = found->fold(call);
  if (out && static_cast<std::int64_t>(out->numbers.size()) > kMostKnown) return std::nullopt;
  return out;
}

}  // namespace pw::onnx

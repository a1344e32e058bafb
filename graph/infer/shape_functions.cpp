#include "graph/infer/shape_functions.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/infer/dim_value.hpp"
#include "graph/infer/window_shapes.hpp"

namespace pw {
namespace {

using Out = Result<std::optional<Shape>>;
const Facts
    kNoFacts;  // extents are at least 1, nothing more; so a result is the same in every graph

tl::unexpected<Diagnostics> bad(const ShapeCall& call, std::string message) {
  return fail(call.span, "PW0310", std::move(message));
}

Result<Shape> shape_at(const ShapeCall& call, std::size_t i) {
  if (i < call.arguments.size())
    if (auto s = std::get_if<std::vector<DimId>>(&call.arguments[i])) return *s;
  return bad(call, fmt::format("shape function: argument {} is not a sequence of dims", i + 1));
}

Result<std::int64_t> int_at(const ShapeCall& call, std::size_t i) {
  if (i < call.arguments.size()) {
    if (auto v = std::get_if<std::int64_t>(&call.arguments[i])) return *v;
    if (auto b = std::get_if<bool>(&call.arguments[i])) return *b ? 1 : 0;
  }
  return bad(call, fmt::format("shape function: argument {} is not an integer", i + 1));
}

Result<DimId> dim_at(const ShapeCall& call, std::size_t i) {
  if (i < call.arguments.size())
    if (const auto dim = dim_value(call.context.dims, call.arguments[i])) return *dim;
  return bad(call, fmt::format("shape function: argument {} is not a dim", i + 1));
}

Result<std::size_t> axis_at(const ShapeCall& call, std::size_t i, std::size_t rank) {
  Result<std::int64_t> axis = int_at(call, i);
  if (!axis) return forward(axis);
  auto r = static_cast<std::int64_t>(rank);
  if (*axis < -r || *axis >= r)
    return bad(call, fmt::format("axis {} is outside a tensor of rank {}", *axis, rank));
  return static_cast<std::size_t>(*axis < 0 ? *axis + r : *axis);
}

DimId product(Dims& dims, const Shape& shape) {
  DimId p = dims.constant(1);
  for (DimId d : shape) p = dims.mul(p, d);
  return p;
}

/// Widens `out` to the broadcast of it and `s`.
Status widen(const ShapeCall& call, Shape& out, const Shape& s) {
  Dims& dims = call.context.dims;
  Shape wide(std::max(out.size(), s.size()), dims.constant(1));
  std::copy(out.rbegin(), out.rend(), wide.rbegin());
  for (std::size_t i = 0; i < s.size(); ++i) {
    DimId &to = wide[wide.size() - 1 - i], d = s[s.size() - 1 - i];
    if (dims.value(d) == 1 || call.same(to, d)) continue;
    if (dims.value(to) != 1)
      return bad(call, fmt::format("shapes {} and {} do not broadcast: {} is not {}",
                                   call.context.types.print(out), call.context.types.print(s),
                                   dims.print(to), dims.print(d)));
    to = d;
  }
  out = std::move(wide);
  return {};
}

Out broadcast(const ShapeCall& call) {
  Shape out;
  for (std::size_t k = 0; k < call.arguments.size(); ++k) {
    Shape s = PW_TRY(shape_at(call, k));
    PW_TRY(widen(call, out, s));
  }
  return std::optional(std::move(out));
}

Out reduced(const ShapeCall& call) {  // (*s, dim, keepdim)
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  std::int64_t keep = PW_TRY(int_at(call, 2));
  if (keep)
    s[axis] = call.context.dims.constant(1);
  else
    s.erase(s.begin() + static_cast<std::ptrdiff_t>(axis));
  return std::optional(s);
}

Out reshaped(const ShapeCall& call) {  // (*s, shape): one extent may be -1
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  Shape t = PW_TRY(shape_at(call, 1));
  DimId total = product(dims, s), known = dims.constant(1);
  std::optional<std::size_t> hole;
  for (std::size_t i = 0; i < t.size(); ++i) {
    auto v = dims.value(t[i]);
    if (v == -1 && !hole)
      hole = i;
    else if (v && *v < 0)
      return bad(call, fmt::format("shape {} has a negative extent", call.context.types.print(t)));
    else
      known = dims.mul(known, t[i]);
  }
  if (hole) {
    DimId q = dims.value(known) == 0 ? DimId() : dims.div(total, known);
    if (!q.valid() || !call.same(dims.mul(q, known), total))
      return bad(call, fmt::format("cannot view {} as {}: {} is not a multiple of {}",
                                   call.context.types.print(s), call.context.types.print(t),
                                   dims.print(total), dims.print(known)));
    t[*hole] = q;
  } else if (!known.valid() || !call.same(known, total)) {
    return bad(call, fmt::format("cannot view {} as {}: {} elements are not {}",
                                 call.context.types.print(s), call.context.types.print(t),
                                 dims.print(total), dims.print(known)));
  }
  return std::optional(t);
}

Out transposed(const ShapeCall& call) {  // (*s, dim0, dim1)
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t a = PW_TRY(axis_at(call, 1, s.size()));
  std::size_t b = PW_TRY(axis_at(call, 2, s.size()));
  std::swap(s[a], s[b]);
  return std::optional(s);
}

/// Resolves an index by Python's rules for slices: negative counts from the end, beyond the end is
/// the end.
Result<DimId> slice_bound(const ShapeCall& call, DimId index, DimId size) {
  Dims& dims = call.context.dims;
  if (auto v = dims.value(index); v && *v < 0) {
    index = dims.add(size, index);
    if (dims.prove(Compare::lt, index, dims.constant(0), kNoFacts) == Truth::yes)
      index = dims.constant(0);
  }
  if (auto v = dims.value(index); v && *v >= (std::int64_t{1} << 40))
    return size;  // "to the end" in dumps is 2^63 - 1
  if (index == size || dims.prove(Compare::ge, index, size, kNoFacts) == Truth::yes) return size;
  if (auto v = dims.value(index); v == 0) return index;
  if (dims.prove(Compare::le, index, size, kNoFacts) == Truth::yes) return index;
  // The order of symbols depends on their ranges; the index is accepted unchanged.
  return index;
}

Out sliced(const ShapeCall& call) {  // (*s, dim, start, end, step)
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  Result<DimId> start = dim_at(call, 2), end = dim_at(call, 3);
  if (!start) return forward(start);
  if (!end) return forward(end);
  Result<std::int64_t> step = int_at(call, 4);
  if (!step) return forward(step);
  if (*step < 1)
    return bad(call, fmt::format("the step of a slice must be at least 1, not {}", *step));
  DimId size = s[axis];
  start = slice_bound(call, *start, size);
  end = slice_bound(call, *end, size);
  if (!start || !end) return bad(call, "slice bounds are out of range");
  DimId length =
      dims.div(dims.add(dims.sub(*end, *start), dims.constant(*step - 1)), dims.constant(*step));
  if (!length.valid()) return bad(call, "slice bounds are out of range");
  if (auto v = dims.value(length); v && *v < 0) length = dims.constant(0);
  s[axis] = length;
  return std::optional(s);
}

/// Computes one result of (*s, dim, sizes). Results are requested one by one, so the sum is
/// computed once: a value may be cut into a million parts.
Out split_part(const ShapeCall& call) {
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  if (call.arguments.size() < 3 || !std::holds_alternative<Shape>(call.arguments[2]))
    return bad(call, "shape function: argument 3 is not a sequence of dims");
  const auto& sizes = std::get<Shape>(call.arguments[2]);
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  if (call.result_index == 0) {
    DimId sum = dims.constant(0);
    for (DimId d : sizes) sum = dims.add(sum, d);
    if (!call.same(sum, s[axis]))
      return bad(
          call, fmt::format("the sizes {} of a split sum to {}, not {}",
                            call.context.types.print(sizes), dims.print(sum), dims.print(s[axis])));
  }
  auto i = static_cast<std::size_t>(call.result_index);
  if (i >= sizes.size()) return std::optional<Shape>();
  s[axis] = sizes[i];
  return std::optional(s);
}

Out concatenated(const ShapeCall& call) {  // (dim), over all operands
  Dims& dims = call.context.dims;
  if (call.operands.empty()) return bad(call, "nothing to concatenate");
  std::optional<Shape> out;
  std::size_t axis = 0;
  for (TypeId t : call.operands) {
    if (t == Types::unknown()) return bad(call, "an operand's type is not known");
    Shape s = call.context.types[t].shape;
    if (!out) {
      std::size_t a = PW_TRY(axis_at(call, 0, s.size()));
      axis = a;
      out = s;
      continue;
    }
    bool fits = s.size() == out->size();
    for (std::size_t i = 0; fits && i < s.size(); ++i)
      fits = i == axis || call.same(s[i], (*out)[i]);
    if (!fits)
      return bad(call,
                 fmt::format("cannot concatenate {} and {} along axis {}",
                             call.context.types.print(*out), call.context.types.print(s), axis));
    (*out)[axis] = dims.add((*out)[axis], s[axis]);
    if (!(*out)[axis].valid()) return bad(call, "the concatenated extent is out of range");
  }
  return out;
}

Out expanded(const ShapeCall& call) {  // (*s, shape): 1 → d; -1 keeps
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  Shape t = PW_TRY(shape_at(call, 1));
  bool fits = t.size() >= s.size();
  for (std::size_t i = 0; fits && i < s.size(); ++i) {
    DimId& to = t[t.size() - 1 - i];
    DimId from = s[s.size() - 1 - i];
    if (dims.value(to) == -1) to = from;
    fits = dims.value(from) == 1 || call.same(to, from);
  }
  if (!fits)
    return bad(call, fmt::format("cannot expand {} to {}", call.context.types.print(s),
                                 call.context.types.print(t)));
  return std::optional(t);
}

Out scattered(const ShapeCall& call) {  // (*s, dim, world): one rank's part
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  DimId world = PW_TRY(dim_at(call, 2));
  if (dims.divides(world, s[axis], kNoFacts) == Truth::no)
    return bad(call, fmt::format("{} does not divide into {} parts", dims.print(s[axis]),
                                 dims.print(world)));
  s[axis] = dims.div(s[axis], world);
  return std::optional(s);
}

Out gathered(const ShapeCall& call) {  // (*s, dim, world): all ranks' parts in a row
  Dims& dims = call.context.dims;
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  DimId world = PW_TRY(dim_at(call, 2));
  s[axis] = dims.mul(s[axis], world);
  return std::optional(s);
}

/// Returns the shape that index tensors, the operands from `first` on, read of s from `axis` on.
Result<Shape> read_by_indices(const ShapeCall& call, const Shape& s, std::size_t axis,
                              std::size_t first) {
  const std::size_t count = call.operands.size() - std::min(first, call.operands.size());
  if (count == 0) return bad(call, "there is no tensor of indices");
  if (axis + count > s.size())
    return bad(call, fmt::format("{} axes are indexed from axis {} in a tensor of rank {}", count,
                                 axis, s.size()));
  Shape indices;
  for (TypeId t : call.operands.subspan(first)) {
    if (t == Types::unknown()) return bad(call, "the type of an index is not known");
    if (is_float(call.context.types[t].dtype) || call.context.types[t].dtype == DType::b8)
      return bad(call, "an index must be an integer");
    PW_TRY(widen(call, indices, call.context.types[t].shape));
  }
  const auto from = s.begin() + static_cast<std::ptrdiff_t>(axis);
  indices.insert(indices.begin(), s.begin(), from);
  indices.insert(indices.end(), from + static_cast<std::ptrdiff_t>(count), s.end());
  return indices;
}

Out indexed(const ShapeCall& call) {  // (*s, dim), by the operands from the second on
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  Shape out = PW_TRY(read_by_indices(call, s, axis, 1));
  return std::optional(std::move(out));
}

Out index_kept(const ShapeCall& call) {  // (*s, dim): s, which the second operand is put into
  Shape s = PW_TRY(shape_at(call, 0));
  std::size_t axis = PW_TRY(axis_at(call, 1, s.size()));
  Shape part = PW_TRY(read_by_indices(call, s, axis, 2));
  if (call.operands[1] == Types::unknown()) return bad(call, "the type of the values is not known");
  Shape both = part;
  PW_TRY(widen(call, both, call.context.types[call.operands[1]].shape));
  if (both != part)
    return bad(call,
               fmt::format("values {} do not broadcast to {}",
                           call.context.types.print(call.context.types[call.operands[1]].shape),
                           call.context.types.print(part)));
  return std::optional(std::move(s));
}

struct Row {
  std::string_view name;
  ShapeFunction function;
};
constexpr std::array<Row, 19> kTable{{{"broadcast", broadcast},
                                      {"reduced", reduced},
                                      {"reshaped", reshaped},
                                      {"transposed", transposed},
                                      {"sliced", sliced},
                                      {"split_part", split_part},
                                      {"concatenated", concatenated},
                                      {"expanded", expanded},
                                      {"scattered", scattered},
                                      {"gathered", gathered},
                                      {"indexed", indexed},
                                      {"index_kept", index_kept},
                                      {"convolved", convolved},
                                      {"unconvolved", unconvolved},
                                      {"convolving", convolving},
                                      {"pooled", pooled},
                                      {"unpooled", unpooled},
                                      {"resized", resized},
                                      {"upsampled", upsampled}}};

}  // namespace

ShapeFunction shape_function(std::string_view name) {
  for (const Row& row : kTable)
    if (row.name == name) return row.function;
  return nullptr;
}

}  // namespace pw

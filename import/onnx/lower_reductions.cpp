#include <algorithm>
#include <array>
#include <limits>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

std::int64_t whole(std::size_t axis) { return static_cast<std::int64_t>(axis); }

/// Axes of a reduction, the last first; `keepdims` applies to every step.
struct Reduced {
  std::vector<std::size_t> axes;
  bool keep = true;
};

// Axes are an attribute, or the second input since 13 (of ReduceSum) or 18. If omitted, all axes
// are reduced, or none if `noop_with_empty_axes` is set.
Reduced reduced_axes(OnnxCall& c) {
  const std::size_t rank = c.rank(0);
  const std::vector<std::int64_t> given = c.has(1) ? c.integers(1) : c.integers("axes", {});
  Reduced out{{}, c.integer("keepdims", 1) != 0};
  const bool none = c.integer("noop_with_empty_axes", 0) != 0;
  for (const std::int64_t axis : given) out.axes.push_back(axis_in(axis, rank));
  if (given.empty() && !none)
    for (std::size_t i = 0; i < rank; ++i) out.axes.push_back(i);
  std::sort(out.axes.rbegin(), out.axes.rend());
  out.axes.erase(std::unique(out.axes.begin(), out.axes.end()), out.axes.end());
  return out;
}

fx::Value over_axes(OnnxCall& c, fx::Value x, std::string_view op, const Reduced& reduced) {
  for (const std::size_t axis : reduced.axes)
    x = c.op(op, {x}, {{"dim", whole(axis)}, {"keepdim", reduced.keep}});
  return x;
}

/// Computes f16 and bf16 in f32, with one rounding at the end.
fx::Value wide(OnnxCall& c, const fx::Value& x) {
  const DType dtype = c.type(x).dtype;
  return dtype == DType::f16 || dtype == DType::bf16 ? c.cast(x, DType::f32) : x;
}

template <class Before, class After>
ModelValues reduce(OnnxCall& c, std::string_view op, Before before, After after) {
  const fx::Value x = c.tensor(0);
  const Reduced reduced = reduced_axes(c);
  return {c.result(c.cast(after(over_axes(c, before(wide(c, x)), op, reduced)), c.type(x).dtype))};
}
constexpr auto kSame = [](const fx::Value& x) { return x; };

ModelValues lower_reduce_sum(OnnxCall& c) { return reduce(c, "sum", kSame, kSame); }
ModelValues lower_reduce_prod(OnnxCall& c) { return reduce(c, "prod", kSame, kSame); }
ModelValues lower_reduce_l1(OnnxCall& c) {
  return reduce(c, "sum", [&](const fx::Value& x) { return c.op("abs", {x}); }, kSame);
}
ModelValues lower_reduce_square(OnnxCall& c) {
  return reduce(c, "sum", [&](const fx::Value& x) { return c.op("mul", {x, x}); }, kSame);
}
ModelValues lower_reduce_l2(OnnxCall& c) {
  if (!is_float(c.type(0).dtype)) throw GiveUp{"the square root of integers is not supported"};
  return reduce(
      c, "sum", [&](const fx::Value& x) { return c.op("mul", {x, x}); },
      [&](const fx::Value& x) { return c.op("sqrt", {x}); });
}
ModelValues lower_reduce_mean(OnnxCall& c) {
  if (!is_float(c.type(0).dtype)) throw GiveUp{"the mean of integers is not supported"};
  return reduce(c, "mean", kSame, kSame);
}
ModelValues lower_reduce_log_sum(OnnxCall& c) {
  if (!is_float(c.type(0).dtype)) throw GiveUp{"the logarithm of integers is not supported"};
  return reduce(c, "sum", kSame, [&](const fx::Value& x) { return c.op("log", {x}); });
}

// Subtracts the largest element to avoid overflow, or 0 if it is infinite.
ModelValues lower_reduce_log_sum_exp(OnnxCall& c) {
  const fx::Value given = c.tensor(0), x = wide(c, given);
  const DType dtype = c.type(x).dtype;
  if (!is_float(dtype)) throw GiveUp{"the logarithm of integers is not supported"};
  const Reduced reduced = reduced_axes(c);
  const bool empty = std::ranges::any_of(reduced.axes, [&](std::size_t axis) {
    return c.extent(c.type(x).shape[axis]).value_or(0) == 0;
  });
  const auto log_of_sum = [&](const fx::Value& of) {
    return c.op("log", {over_axes(c, c.op("exp", {of}), "sum", reduced)});
  };
  if (empty) return {c.result(c.cast(log_of_sum(x), c.type(given).dtype))};
  fx::Value most = over_axes(c, x, "amax", {reduced.axes, true});
  const fx::Value finite = c.op("eq", {c.op("sub", {most, most}), real(0)});
  most = c.op("select", {finite, most,
                         c.op("full", {}, {{"shape", Shape()}, {"value", 0.0}, {"dtype", dtype}})});
  const fx::Value rest = log_of_sum(c.op("sub", {x, most}));
  const fx::Value out = c.op("add", {rest, c.reshape(most, c.type(rest).shape)});
  return {c.result(c.cast(out, c.type(given).dtype))};
}

/// Returns the extreme for an axis without elements: the least, or the greatest, of the dtype.
double bound_of_dtype(DType dtype, bool largest) {
  if (dtype == DType::b8) return largest ? 0 : 1;
  if (is_float(dtype))
    return largest ? -std::numeric_limits<double>::infinity()
                   : std::numeric_limits<double>::infinity();
  throw GiveUp{"the extreme of an empty integer axis is not defined"};
}

ModelValues extreme(OnnxCall& c, bool largest) {
  const fx::Value x = c.tensor(0);
  const Type type = c.type(x);
  const Reduced reduced = reduced_axes(c);
  const bool empty = std::ranges::any_of(
      reduced.axes, [&](std::size_t axis) { return c.extent(type.shape[axis]) == 0; });
  if (empty) {
    Shape shape = type.shape;
    for (const std::size_t axis : reduced.axes)
      if (reduced.keep)
        shape[axis] = c.dims().constant(1);
      else
        shape.erase(shape.begin() + whole(axis));
    return {c.result(c.op("full", {},
                          {{"shape", shape},
                           {"value", bound_of_dtype(type.dtype, largest)},
                           {"dtype", type.dtype}}))};
  }
  const bool mask = type.dtype == DType::b8;
  const fx::Value out =
      over_axes(c, mask ? c.cast(x, DType::u8) : x, largest ? "amax" : "amin", reduced);
  return {c.result(mask ? c.op("ne", {out, c.number(0)}) : out)};
}
ModelValues lower_reduce_max(OnnxCall& c) { return extreme(c, true); }
ModelValues lower_reduce_min(OnnxCall& c) { return extreme(c, false); }

// ---- places, scans, orders

fx::Value reversed(OnnxCall& c, const fx::Value& x, std::size_t axis) {
  const DimId size = c.type(x).shape[axis];
  const fx::Value up = c.op("iota", {}, {{"shape", Shape{size}}});
  const fx::Value last = c.integer_value(c.dims().sub(size, c.dims().constant(1)));
  if (!c.extent(size)) throw GiveUp{"an axis of symbolic extent cannot be reversed"};
  return c.op("index", {x, c.op("sub", {last, up})}, {{"dim", whole(axis)}});
}

ModelValues arg_extreme(OnnxCall& c, std::string_view op) {
  const fx::Value x = c.tensor(0);
  const std::size_t axis = axis_in(c.integer("axis", 0), c.rank(0));
  const bool keep = c.integer("keepdims", 1) != 0;
  const OnnxCall::OpAttributes attributes{{"dim", whole(axis)}, {"keepdim", keep}};
  if (c.integer("select_last_index", 0) == 0) return {c.result(c.op(op, {x}, attributes))};
  const std::int64_t size = c.extents({c.type(x).shape[axis]})[0];
  const fx::Value from_end = c.op(op, {reversed(c, x, axis)}, attributes);
  return {c.result(c.op("sub", {c.number(size - 1), from_end}))};
}
ModelValues lower_arg_max(OnnxCall& c) { return arg_extreme(c, "argmax"); }
ModelValues lower_arg_min(OnnxCall& c) { return arg_extreme(c, "argmin"); }

ModelValues lower_cumsum(OnnxCall& c) {
  fx::Value x = c.tensor(0);
  const std::size_t axis = axis_in(c.integer(1), c.rank(0));
  const bool reverse = c.integer("reverse", 0) != 0, exclusive = c.integer("exclusive", 0) != 0;
  if (reverse) x = reversed(c, x, axis);
  fx::Value out = c.op("cumsum", {x}, {{"dim", whole(axis)}});
  if (exclusive) {  // shifted by one, after a 0
    Shape one = c.type(x).shape;
    const DimId size = one[axis];
    one[axis] = c.dims().constant(1);
    const fx::Value zero =
        c.op("full", {}, {{"shape", one}, {"value", 0.0}, {"dtype", c.type(x).dtype}});
    const fx::Value most =
        c.slice(out, axis, c.dims().constant(0), c.dims().sub(size, c.dims().constant(1)));
    out = c.op("cat", {zero, most}, {{"dim", whole(axis)}});
  }
  return {c.result(reverse ? reversed(c, out, axis) : out)};
}

ModelValues lower_top_k(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  const std::size_t axis = axis_in(c.integer("axis", -1), c.rank(0));
  const std::int64_t k = c.count() > 1 ? c.integer(1) : c.integer("k");
  const bool largest = c.integer("largest", 1) != 0;
  c.ignore("sorted");  // sorted is one of the orders that unsorted allows
  const auto size = c.extent(c.type(x).shape[axis]);
  if (k < 0 || (size && k > *size)) throw GiveUp{"it selects more elements than the axis has"};
  const auto sorted = c.ops("sort", {x}, {{"dim", whole(axis)}, {"descending", largest}});
  const auto first = [&](const fx::Value& all) {
    return c.result(c.slice(all, axis, c.dims().constant(0), c.dims().constant(k)));
  };
  return {first(sorted.at(0)), first(sorted.at(1))};
}

// ---- distributions

/// Flattens the axes before `axis`, and those from it on, into one each.
fx::Value as_matrix(OnnxCall& c, const fx::Value& x, std::size_t axis) {
  const Shape shape = c.type(x).shape;
  DimId rows = c.dims().constant(1), columns = rows;
  for (std::size_t i = 0; i < shape.size(); ++i)
    (i < axis ? rows : columns) = c.dims().mul(i < axis ? rows : columns, shape[i]);
  return c.reshape(x, {rows, columns});
}

/// Applies `of` to x along an axis, or to all axes from one on, as before version 13.
template <class Of>
ModelValues distribution(OnnxCall& c, Of of) {
  const fx::Value x = c.tensor(0);
  const Type type = c.type(x);
  const bool flat = c.version() < 13;
  const std::size_t axis = axis_in(c.integer("axis", flat ? 1 : -1), type.shape.size());
  if (!flat) return {c.result(c.cast(of(wide(c, x), axis), type.dtype))};
  const fx::Value out = of(wide(c, as_matrix(c, x, axis)), 1);
  return {c.result(c.reshape(c.cast(out, type.dtype), type.shape))};
}

fx::Value less_largest(OnnxCall& c, const fx::Value& x, std::size_t axis) {
  return c.op("sub", {x, c.op("amax", {x}, {{"dim", whole(axis)}, {"keepdim", true}})});
}

ModelValues lower_softmax(OnnxCall& c) {
  return distribution(c, [&](const fx::Value& x, std::size_t axis) {
    const fx::Value e = c.op("exp", {less_largest(c, x, axis)});
    return c.op("div", {e, c.op("sum", {e}, {{"dim", whole(axis)}, {"keepdim", true}})});
  });
}
ModelValues lower_log_softmax(OnnxCall& c) {
  return distribution(c, [&](const fx::Value& x, std::size_t axis) {
    const fx::Value d = less_largest(c, x, axis);
    const fx::Value sum =
        c.op("sum", {c.op("exp", {d})}, {{"dim", whole(axis)}, {"keepdim", true}});
    return c.op("sub", {d, c.op("log", {sum})});
  });
}
// 1 at the first of the largest elements.
ModelValues lower_hardmax(OnnxCall& c) {
  return distribution(c, [&](const fx::Value& x, std::size_t axis) {
    const Type type = c.type(x);
    const fx::Value at = c.op("argmax", {x}, {{"dim", whole(axis)}, {"keepdim", true}});
    Shape along(type.shape.size(), c.dims().constant(1));
    along[axis] = type.shape[axis];
    const fx::Value places =
        c.reshape(c.op("iota", {}, {{"shape", Shape{type.shape[axis]}}}), along);
    return c.cast(c.op("eq", {places, at}), type.dtype);
  });
}

constexpr auto kReductionRows = std::to_array<Lowering>({
    {"ReduceSum", 1, lower_reduce_sum},
    {"ReduceProd", 1, lower_reduce_prod},
    {"ReduceL1", 1, lower_reduce_l1},
    {"ReduceL2", 1, lower_reduce_l2},
    {"ReduceSumSquare", 1, lower_reduce_square},
    {"ReduceMean", 1, lower_reduce_mean},
    {"ReduceLogSum", 1, lower_reduce_log_sum},
    {"ReduceLogSumExp", 1, lower_reduce_log_sum_exp},
    {"ReduceMax", 1, lower_reduce_max},
    {"ReduceMin", 1, lower_reduce_min},
    {"ArgMax", 1, lower_arg_max},
    {"ArgMin", 1, lower_arg_min},
    {"CumSum", 11, lower_cumsum},
    {"TopK", 1, lower_top_k},
    {"Softmax", 1, lower_softmax},
    {"LogSoftmax", 1, lower_log_softmax},
    {"Hardmax", 1, lower_hardmax},
});

}  // namespace

std::span<const Lowering> reduction_lowerings() { return kReductionRows; }

}  // namespace pw::onnx

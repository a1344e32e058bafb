#include <array>

#include "import/onnx/lowering.hpp"
#include "import/onnx/tensors.hpp"

namespace pw::onnx {
namespace {

using NormAxes = std::vector<std::size_t>;

fx::Value mean_over(OnnxCall& c, fx::Value x, const NormAxes& axes) {
  for (const std::size_t axis : axes)
    x = c.op("mean", {x}, {{"dim", static_cast<std::int64_t>(axis)}, {"keepdim", true}});
  return x;
}

NormAxes axes_from(std::size_t first, std::size_t rank) {
  NormAxes out;
  for (std::size_t i = first; i < rank; ++i) out.push_back(i);
  return out;
}

/// Converts f16 and bf16 to f32.
fx::Value in_f32(OnnxCall& c, const fx::Value& x) {
  return c.type(x).dtype == DType::f64 ? x : c.cast(x, DType::f32);
}

/// Result of (x - mean) / sqrt(variance + epsilon), with the mean and the factor.
struct Normed {
  fx::Value y, mean, factor;
};
Normed normed(OnnxCall& c, const fx::Value& x, const NormAxes& axes, double epsilon) {
  const fx::Value mean = mean_over(c, x, axes), d = c.op("sub", {x, mean});
  const fx::Value variance = mean_over(c, c.op("mul", {d, d}), axes);
  const fx::Value factor = c.op("rsqrt", {c.op("add", {variance, real(epsilon)})});
  return {c.op("mul", {d, factor}), mean, factor};
}

void ask_for_reals(OnnxCall& c) {
  if (!is_float(c.type(0).dtype)) throw GiveUp{"its operand is not a float"};
}

ModelValues lower_layer_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value x = c.tensor(0), scale = c.tensor(1);
  const std::size_t rank = c.rank(0);
  if (c.integer("stash_type", 1) != 1) throw GiveUp{"stash_type is not f32"};
  const std::size_t axis = axis_in(c.integer("axis", -1), rank);
  const double epsilon = c.real("epsilon", 1e-5f);
  const bool plain = c.has(2) && axis + 1 == rank && c.node().outputs.size() == 1;
  if (plain && c.type(x).dtype == DType::f32 && c.rank(1) == 1 && c.rank(2) == 1)
    return {c.result(c.op("layer_norm", {x, scale, c.tensor(2)}, {{"eps", epsilon}}))};
  Normed n = normed(c, in_f32(c, x), axes_from(axis, rank), epsilon);
  fx::Value y = c.op("mul", {c.cast(n.y, c.type(x).dtype), scale});
  if (c.has(2)) y = c.op("add", {y, c.tensor(2)});
  return {c.result(y), c.result(n.mean), c.result(n.factor)};
}

ModelValues lower_rms_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const std::size_t rank = c.rank(0);
  if (c.integer("stash_type", 1) != 1) throw GiveUp{"stash_type is not f32"};
  const fx::Value square =
      mean_over(c, c.op("mul", {x, x}), axes_from(axis_in(c.integer("axis", -1), rank), rank));
  const fx::Value factor = c.op("rsqrt", {c.op("add", {square, real(c.real("epsilon", 1e-5f))})});
  return {
      c.result(c.op("mul", {c.cast(c.op("mul", {x, factor}), c.type(given).dtype), c.tensor(1)}))};
}

/// Reshapes a tensor of one axis to axis 1 of `rank`.
fx::Value by_channel(OnnxCall& c, const fx::Value& x, std::size_t rank) {
  const Shape given = c.type(x).shape;
  if (given.size() != 1 || rank < 2) throw GiveUp{"it does not have one number for each channel"};
  Shape shape(rank, c.dims().constant(1));
  shape[1] = given[0];
  return c.reshape(x, shape);
}

// Uses the given statistics or, in training, those of the batch, which update the running ones.
ModelValues lower_batch_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const std::size_t rank = c.rank(0);
  const bool training = c.version() >= 14 && c.integer("training_mode", 0) != 0;
  const double momentum = c.real("momentum", 0.9f), epsilon = c.real("epsilon", 1e-5f);
  if (c.version() < 7 && c.integer("is_test", 0) == 0) throw GiveUp{"it is in training mode"};
  if (c.version() < 9 && c.integer("spatial", 1) != 1)
    throw GiveUp{"it has separate statistics for each element"};
  const auto wide = [&](std::size_t i) { return by_channel(c, in_f32(c, c.tensor(i)), rank); };
  fx::Value mean = wide(3), variance = wide(4);
  ModelValues running;
  if (training) {
    NormAxes axes = axes_from(2, rank);
    axes.insert(axes.begin(), 0);
    const fx::Value now = mean_over(c, x, axes), d = c.op("sub", {x, now}),
                    spread = mean_over(c, c.op("mul", {d, d}), axes);
    const auto moved = [&](const fx::Value& old, const fx::Value& fresh, std::size_t i) {
      const fx::Value out = c.op(
          "add", {c.op("mul", {old, real(momentum)}), c.op("mul", {fresh, real(1 - momentum)})});
      running.push_back(c.result(c.cast(c.reshape(out, c.type(i).shape), c.type(i).dtype)));
    };
    moved(mean, now, 3);
    moved(variance, spread, 4);
    mean = now;
    variance = spread;
  } else if (c.node().outputs.size() > 1) {
    throw GiveUp{"it returns statistics but is not in training mode"};
  }
  const fx::Value deviation = c.op("sqrt", {c.op("add", {variance, real(epsilon)})});
  const fx::Value y = c.op(
      "add", {c.op("mul", {wide(1), c.op("div", {c.op("sub", {x, mean}), deviation})}), wide(2)});
  running.insert(running.begin(), c.result(c.cast(y, c.type(given).dtype)));
  return running;
}

ModelValues lower_instance_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const std::size_t rank = c.rank(0);
  c.ignore("consumed_inputs");
  const fx::Value y = normed(c, x, axes_from(2, rank), c.real("epsilon", 1e-5f)).y;
  const auto wide = [&](std::size_t i) { return by_channel(c, in_f32(c, c.tensor(i)), rank); };
  return {c.result(c.cast(c.op("add", {c.op("mul", {y, wide(1)}), wide(2)}), c.type(given).dtype))};
}

// Scale and bias are one a group before version 21, one a channel since.
ModelValues lower_group_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const Shape shape = c.type(x).shape;
  const std::int64_t groups = c.integer("num_groups");
  if (shape.size() < 3 || groups < 1 || c.integer("stash_type", 1) != 1)
    throw GiveUp{"its rank is below 3, num_groups is below 1, or stash_type is not f32"};
  const DimId g = c.dims().constant(groups), part = c.dims().div(shape[1], g),
              one = c.dims().constant(1);
  Shape grouped = shape;
  grouped[1] = part;
  grouped.insert(grouped.begin() + 1, g);
  const Normed n =
      normed(c, c.reshape(x, grouped), axes_from(2, grouped.size()), c.real("epsilon", 1e-5f));
  const auto wide = [&](std::size_t i) {
    Shape to(grouped.size(), one);
    to[1] = g;
    if (c.version() >= 21) to[2] = part;
    return c.reshape(in_f32(c, c.tensor(i)), to);
  };
  const fx::Value y = c.op("add", {c.op("mul", {n.y, wide(1)}), wide(2)});
  return {c.result(c.cast(c.reshape(y, shape), c.type(given).dtype))};
}

// The operator's definition has no epsilon under the root.
ModelValues lower_mean_variance_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  NormAxes axes;
  for (const std::int64_t axis : c.integers("axes", {0, 2, 3}))
    axes.push_back(axis_in(axis, c.rank(0)));
  const fx::Value mean = mean_over(c, x, axes), square = mean_over(c, c.op("mul", {x, x}), axes);
  const fx::Value deviation = c.op("sqrt", {c.op("sub", {square, c.op("mul", {mean, mean})})});
  const fx::Value y = c.op("div", {c.op("sub", {x, mean}), c.op("add", {deviation, real(1e-9)})});
  return {c.result(c.cast(y, c.type(given).dtype))};
}

ModelValues lower_lp_norm(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const auto axis = static_cast<std::int64_t>(axis_in(c.integer("axis", -1), c.rank(0)));
  const std::int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) throw GiveUp{"p is neither 1 nor 2"};
  const fx::Value sum = c.op("sum", {p == 1 ? c.op("abs", {x}) : c.op("mul", {x, x})},
                             {{"dim", axis}, {"keepdim", true}});
  const fx::Value norm = p == 1 ? sum : c.op("sqrt", {sum});
  const fx::Value quotient = c.op("div", {x, norm});
  const fx::Value zero =
      c.op("full", {}, {{"shape", Shape()}, {"value", 0.0}, {"dtype", c.type(x).dtype}});
  return {c.result(
      c.cast(c.op("select", {c.op("eq", {norm, real(0)}), zero, quotient}), c.type(given).dtype))};
}

// x / (bias + alpha / size · the sum of squares of `size` channels around)^beta
ModelValues lower_lrn(OnnxCall& c) {
  ask_for_reals(c);
  const fx::Value given = c.tensor(0), x = in_f32(c, given);
  const Shape shape = c.type(x).shape;
  const std::int64_t size = c.integer("size"), before = (size - 1) / 2;
  if (shape.size() < 2 || size < 1 || size > kMostKnown)
    throw GiveUp{"its rank is below 2, or its size is out of range"};
  const std::int64_t channels = c.extents({shape[1]})[0];
  const fx::Value square = c.op("mul", {x, x});
  const auto padding = [&](std::int64_t count) {
    Shape pad = shape;
    pad[1] = c.dims().constant(count);
    return c.op("full", {}, {{"shape", pad}, {"value", 0.0}, {"dtype", c.type(x).dtype}});
  };
  const fx::Value wide = c.op("cat", {padding(before), square, padding(size - 1 - before)},
                              {{"dim", std::int64_t{1}}});
  fx::Value sum;
  for (std::int64_t i = 0; i < size; ++i) {
    const fx::Value part = c.slice(wide, 1, c.dims().constant(i), c.dims().constant(i + channels));
    sum = i == 0 ? part : c.op("add", {sum, part});
  }
  const double alpha = c.real("alpha", 1e-4f), beta = c.real("beta", 0.75f),
               bias = c.real("bias", 1);
  const fx::Value base =
      c.op("add", {c.op("mul", {sum, real(alpha / static_cast<double>(size))}), real(bias)});
  return {c.result(c.cast(c.op("div", {x, c.op("pow", {base, real(beta)})}), c.type(given).dtype))};
}

constexpr auto kNormRows = std::to_array<Lowering>({
    {"LayerNormalization", 17, lower_layer_norm},
    {"RMSNormalization", 23, lower_rms_norm},
    {"BatchNormalization", 7, lower_batch_norm},
    {"InstanceNormalization", 1, lower_instance_norm},
    {"GroupNormalization", 18, lower_group_norm},
    {"MeanVarianceNormalization", 9, lower_mean_variance_norm},
    {"LpNormalization", 1, lower_lp_norm},
    {"LRN", 1, lower_lrn},
});

}  // namespace

std::span<const Lowering> norm_lowerings() { return kNormRows; }

}  // namespace pw::onnx

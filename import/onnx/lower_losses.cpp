#include <array>

#include "import/onnx/lowering.hpp"

namespace pw::onnx {
namespace {

/// Inputs of a loss: log probabilities [N, C, …], classes [N, …], and an optional weight for each
/// class.
struct ClassLoss {
  fx::Value log_probability, target;
  std::optional<fx::Value> weight;
  std::optional<std::int64_t> ignored;  ///< a class whose elements count nothing
  std::string reduction;
};

/// Returns the negative log probability of each element's class.
fx::Value picked(OnnxCall& c, const ClassLoss& loss, const fx::Value& target) {
  const Shape shape = c.type(target).shape;
  std::vector<fx::Value> operands{loss.log_probability};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == 1) operands.push_back(target);
    operands.push_back(c.places_along(shape[i], i, shape.size()));
  }
  if (shape.size() == 1) operands.push_back(target);
  return c.op("neg", {c.op("index", operands, {{"dim", std::int64_t{0}}})});
}

fx::Value sum_of(OnnxCall& c, const fx::Value& x) {
  DimId count = c.dims().constant(1);
  for (const DimId d : c.type(x).shape) count = c.dims().mul(count, d);
  return c.op("sum", {c.reshape(x, {count})}, {{"dim", std::int64_t{0}}});
}

fx::Value class_loss(OnnxCall& c, const ClassLoss& loss) {
  const DType dtype = c.type(loss.log_probability).dtype;
  const auto number = [&](double value) {
    return c.op("full", {}, {{"shape", Shape()}, {"value", value}, {"dtype", dtype}});
  };
  fx::Value target = loss.target, gone;
  if (loss.ignored) {
    gone = c.op("eq", {target, c.number(*loss.ignored)});
    target = c.op("select", {gone, c.number(0), target});
  }
  // Selected, not multiplied by 0: scores and weights may be infinite.
  const auto counted = [&](const fx::Value& x) {
    return loss.ignored ? c.op("select", {gone, number(0), x}) : x;
  };
  const fx::Value weight = loss.weight ? c.op("index", {*loss.weight, target})
                                       : c.expand(number(1), c.type(target).shape);
  const fx::Value each = counted(c.op("mul", {picked(c, loss, target), weight}));
  if (loss.reduction == "none") return each;
  if (loss.reduction == "sum") return sum_of(c, each);
  if (loss.reduction == "mean") return c.op("div", {sum_of(c, each), sum_of(c, counted(weight))});
  throw GiveUp{"reduction `" + loss.reduction + "`"};
}

ClassLoss stated_loss(OnnxCall& c, fx::Value log_probability) {
  if (c.rank(0) < 2 || c.rank(1) + 1 != c.rank(0) || !is_float(c.type(0).dtype))
    throw GiveUp{"the ranks of the scores and labels do not fit, or the scores are not floats"};
  ClassLoss out{std::move(log_probability), c.tensor(1), {}, {}, c.text("reduction", "mean")};
  if (c.has(2)) out.weight = c.tensor(2);
  if (c.has("ignore_index")) out.ignored = c.integer("ignore_index");
  return out;
}

ModelValues lower_nll(OnnxCall& c) {
  return {c.result(class_loss(c, stated_loss(c, c.tensor(0))))};
}

ModelValues lower_cross_entropy(OnnxCall& c) {
  const fx::Value x = c.tensor(0);
  const OnnxCall::OpAttributes classes{{"dim", std::int64_t{1}}, {"keepdim", true}};
  const fx::Value d = c.op("sub", {x, c.op("amax", {x}, classes)});
  const fx::Value log_probability =
      c.op("sub", {d, c.op("log", {c.op("sum", {c.op("exp", {d})}, classes)})});
  return {c.result(class_loss(c, stated_loss(c, log_probability))), c.result(log_probability)};
}

constexpr auto kLossRows = std::to_array<Lowering>({
    {"NegativeLogLikelihoodLoss", 12, lower_nll},
    {"SoftmaxCrossEntropyLoss", 12, lower_cross_entropy},
});

}  // namespace

std::span<const Lowering> loss_lowerings() { return kLossRows; }

}  // namespace pw::onnx

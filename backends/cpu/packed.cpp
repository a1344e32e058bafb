#include "backends/cpu/packed.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "backends/eager/channel_kernel.hpp"
#include "backends/windows.hpp"
#include "graph/passes/constancy.hpp"
#include "tensor/instruction_set.hpp"
#include "tensor/linalg/blas.hpp"
#include "tensor/linalg/choices.hpp"
#include "tensor/linalg/panels.hpp"
#include "tensor/linalg/winograd.hpp"
#include "tensor/parallel.hpp"

namespace pw::cpu {
namespace {

constexpr std::string_view kPrefix = "packed ";

/// An op with a weight and the indices of its operands; -1 if absent.
struct Form {
  Primitive op;
  int x, weight, bias, other;
  Then then;
  bool convolves;
};
constexpr Form kForms[] = {
    {Primitive::mm, 0, 1, -1, -1, Then::nothing, false},
    {Primitive::addmm, 1, 2, 0, -1, Then::nothing, false},
    {Primitive::addmm_gelu, 1, 2, 0, -1, Then::gelu, false},
    {Primitive::convolution, 0, 1, 2, -1, Then::nothing, true},
    {Primitive::convolution_relu, 0, 1, 2, -1, Then::relu, true},
    {Primitive::convolution_gelu, 0, 1, 2, -1, Then::gelu, true},
    {Primitive::convolution_add_relu, 0, 1, 2, 3, Then::relu, true},
};

const Form* form_of(Primitive op) {
  const auto* const found = std::find_if(std::begin(kForms), std::end(kForms),
                                         [&](const Form& form) { return form.op == op; });
  return found == std::end(kForms) ? nullptr : found;
}

const Form* packed_form(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op_of(node).name;
  return op.substr(0, kPrefix.size()) == kPrefix
             ? form_of(primitive_named(op.substr(kPrefix.size())))
             : nullptr;
}

bool is_f32(const Graph& graph, ValueId value) {
  return graph.type(value) != Types::unknown() &&
         graph.context().types[graph.type(value)].dtype == DType::f32;
}

/// Returns true for one group, and for groups of one channel that have one output each and no
/// residual sum; other kernels handle the rest.
bool has_packed_groups(const Graph& graph, NodeId node, const Form& form) {
  const Attribute* groups = graph.attribute(node, "groups");
  const auto* number = groups == nullptr ? nullptr : std::get_if<std::int64_t>(groups);
  if (groups == nullptr || (number != nullptr && *number == 1)) return true;
  if (number == nullptr || form.other >= 0 || form.then == Then::gelu) return false;
  const Context& context = graph.context();
  const TypeId type = graph.type(graph.operand(node, static_cast<std::size_t>(form.weight)));
  const Shape& w = context.types[type].shape;
  return context.dims.value(w[0]) == *number && context.dims.value(w[1]) == 1;
}

/// The dims from the outermost in memory to the innermost: batch, axes, channels.
std::vector<std::size_t> channels_last_order(std::size_t rank) {
  std::vector<std::size_t> order{0};
  for (std::size_t i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  return order;
}

/// Allocates [n, c, axes…] with the channels of a place contiguous.
Array make_channels_last(const Extents& extents) {
  const std::vector<std::size_t> order = channels_last_order(extents.size());
  Extents turned;
  for (const std::size_t dim : order) turned.push_back(extents[dim]);
  Array out = make_array(DType::f32, turned);
  const Extents strides = out.strides;
  out.extents = extents;
  for (std::size_t i = 0; i < order.size(); ++i) out.strides[order[i]] = strides[i];
  return out;
}

/// Returns true if the channels of each place are contiguous, and the places have no gaps.
bool is_channels_last(const Array& x) {
  std::int64_t step = 1;
  const std::vector<std::size_t> order = channels_last_order(x.extents.size());
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    if (x.extents[*dim] != 1 && x.strides[*dim] != step) return false;
    step *= x.extents[*dim];
  }
  return true;
}

Array channels_last(const Array& x) {
  if (is_channels_last(x)) return x;
  Array out = make_channels_last(x.extents);
  copy(x, out);
  return out;
}

const float* floats(const Array& x) { return reinterpret_cast<const float*>(x.data); }
float* floats(Array& x) { return reinterpret_cast<float*>(x.data); }
Matrix matrix_of(const Array& x) {
  return {x.dtype, x.data, x.extents[0], x.extents[1], x.strides[0], x.strides[1]};
}

/// Weights of groups of one channel: [kernel][channels].
struct ChannelWeights {
  std::vector<float> values;
};
/// A matrix for the lent library: packed for one number of rows, or not at all. It is needed for
/// other numbers of rows, when the operand may be gone.
struct LentWeight {
  BlasPanels packed;
  Array matrix;
};
using Weight = std::variant<Panels, WinogradWeights, ChannelWeights, LentWeight>;

Weight weight_of(const Convolution& c, const Array& w) {
  const Array row_major = contiguous(w);
  if (c.groups > 1) {
    const std::int64_t taps = c.window.kernel_count();
    ChannelWeights out{std::vector<float>(static_cast<std::size_t>(c.groups * taps))};
    for (std::int64_t i = 0; i < c.groups * taps; ++i)
      out.values[static_cast<std::size_t>(i % taps * c.groups + i / taps)] = floats(row_major)[i];
    return out;
  }
  if (suits_winograd(c))
    if (auto points = winograd_weights(c, floats(row_major))) return std::move(*points);
  return panels_of(c, floats(row_major));
}

/// Convolves groups of one channel, row by row of places.
void convolve_channels(const Pixels& x, const ChannelWeights& weights, const Finish& finish,
                       float* y) {
  constexpr std::int64_t kWorthAThread = 1 << 15;  // multiplications
  const auto convolve = for_this_machine<void(const ChannelRows&)>(PW_VARIANTS(convolve_rows));
  const Window& w = x.window;
  const std::int64_t heights = w.out[0] * w.out[1],
                     work = w.out[2] * w.kernel_count() * x.channels + 1;
  parallel_for(
      x.batch * heights, 1 + kWorthAThread / work, [&](std::int64_t begin, std::int64_t end) {
        std::vector<ChannelRow> rows;
        for (std::int64_t i = begin; i < end; ++i) {
          rows.clear();
          const std::int64_t image = i / heights, place = i % heights;
          for (std::int64_t k = 0; k < w.kernel[0] * w.kernel[1]; ++k) {
            const std::int64_t z = w.source(0, place / w.out[1], k / w.kernel[1]),
                               v = w.source(1, place % w.out[1], k % w.kernel[1]);
            if (z < 0 || z >= w.in[0] || v < 0 || v >= w.in[1]) continue;
            rows.push_back({x.data + ((image * w.in[0] + z) * w.in[1] + v) * w.in[2] * x.step,
                            weights.values.data() + k * w.kernel[2] * x.channels});
          }
          convolve({rows.data(), static_cast<std::int64_t>(rows.size()), finish.bias,
                    y + i * w.out[2] * x.channels, x.channels, w.in[2], w.out[2], w.kernel[2],
                    w.stride[2], w.padding[2], w.dilation[2], finish.then == Then::relu});
        }
      });
}

/// y (row-major) = x · w, then the epilogue.
struct Product {
  Matrix x, w;
  const float* bias;
  Then then;
  float* y;
};

void multiply(const Product& p, const Weight& weight) {
  if (const auto* panels = std::get_if<Panels>(&weight))
    return pw::multiply(
        rows_of(reinterpret_cast<const float*>(p.x.data), p.x.rows, p.x.columns, p.x.row_step),
        *panels, {p.bias, nullptr, p.then}, p.y);
  const auto& lent = std::get<LentWeight>(weight);
  if (!blas_gemm(p.x, lent.packed, p.bias, p.y))
    fastest_gemm(p.x, p.w.data != nullptr ? p.w : matrix_of(lent.matrix), p.bias, p.y);
  constexpr std::int64_t kWorthAThread = 1 << 13;
  if (p.then == Then::gelu)
    parallel_for(p.x.rows * p.w.columns, kWorthAThread, [&](std::int64_t begin, std::int64_t end) {
      panel_kernels().gelu(p.y + begin, end - begin);
    });
}

constexpr std::string_view kPackedTorchKernel = "PyTorch, packed";

/// Returns the form of w that a kernel multiplies with; nothing if the kernel does not take it.
std::optional<Weight> form_for(std::string_view kernel, const Product& p, const Array& w) {
  if (kernel == kOwnKernel) return panels_of(p.w);
  if (kernel == kTorchKernel) return LentWeight{{}, w};
  BlasPanels packed = blas_panels(p.x.rows, p.w);
  if (packed.data == nullptr) return std::nullopt;
  return LentWeight{std::move(packed), w};
}

/// Computes a product with the fastest form of w, and returns that.
Weight multiply_fastest(const Product& p, const Array& w) {
  static const std::array<std::string_view, 3> kernels =
      is_intel() ? std::array{kPackedTorchKernel, kOwnKernel, kTorchKernel}
                 : std::array{kOwnKernel, kPackedTorchKernel, kTorchKernel};
  const KernelClass operands{"product of f32 with a frozen matrix",
                             {p.x.rows, p.x.columns, p.w.columns},
                             {p.bias == nullptr ? "" : "bias", p.then == Then::gelu ? "gelu" : ""},
                             p.x.rows * p.x.columns * p.w.columns};
  std::array<std::optional<Weight>, 3> forms;
  std::size_t used = 0;
  run_fastest(operands, kernels, [&](std::size_t i) {
    if (!forms[i]) forms[i] = form_for(kernels[i], p, w);
    if (!forms[i]) return false;
    used = i;
    multiply(p, *forms[i]);
    return true;
  });
  return std::move(*forms[used]);
}

class PackedCall {
 public:
  /// Creates the call; without a slot the weight is packed in every run.
  PackedCall(const Form& form, std::optional<std::size_t> slot) : form_(form), slot_(slot) {}

  Status operator()(Call& call) const {
    return form_.convolves ? convolve(call) : multiply_matrix(call);
  }

 private:
  [[nodiscard]] FrozenRun* frozen(const Call& call) const {
    return slot_ ? call.context.frozen : nullptr;
  }
  /// Returns the stored packed weight, or null.
  [[nodiscard]] const Weight* stored(const Call& call) const {
    return frozen(call) == nullptr ? nullptr : frozen(call)->find<Weight>(*slot_);
  }
  /// Stores a packed weight if this run fills the cache, otherwise returns `fresh`.
  const Weight& keep(const Call& call, Weight& fresh) const {
    const bool fills = frozen(call) != nullptr && frozen(call)->fills();
    return fills ? frozen(call)->keep(*slot_, std::move(fresh)) : fresh;
  }

  [[nodiscard]] const Array* operand(const Call& call, int i) const {
    return i < 0 || static_cast<std::size_t>(i) >= call.operands.size()
               ? nullptr
               : call.operands[static_cast<std::size_t>(i)];
  }

  Status multiply_matrix(Call& call) const {
    const Array& w = *operand(call, form_.weight);
    Array x = *operand(call, form_.x);
    if (x.extents[1] > 1 && x.strides[1] != 1) x = contiguous(x);
    Array bias;
    if (const Array* given = operand(call, form_.bias)) bias = contiguous(*given);
    const Product product{matrix_of(x), matrix_of(w), bias.data == nullptr ? nullptr : floats(bias),
                          form_.then, floats(call.result())};
    if (const Weight* weight = stored(call)) {
      multiply(product, *weight);
    } else {
      Weight fresh = multiply_fastest(product, w);
      keep(call, fresh);
    }
    return {};
  }

  Status convolve(Call& call) const {
    const Array& w = *operand(call, form_.weight);
    const Convolution c =
        convolution_of(call, operand(call, form_.x)->extents, w.extents, call.extents[0]);
    Weight fresh;
    const Weight* kept = stored(call);
    if (kept == nullptr) fresh = weight_of(c, w);
    const Weight& weight = kept != nullptr ? *kept : keep(call, fresh);
    const Array x = channels_last(*operand(call, form_.x));
    Finish finish;
    Array bias, other;
    if (const Array* given = operand(call, form_.bias)) {
      bias = contiguous(*given);
      finish.bias = floats(bias);
    }
    if (const Array* given = operand(call, form_.other)) {
      Array whole = *given;  // broadcast as by `+`
      whole.strides = broadcast_strides(whole, call.extents[0]);
      whole.extents = call.extents[0];
      other = channels_last(whole);
      finish.other = floats(other);
    }
    finish.then = form_.then;
    Array y = make_channels_last(call.extents[0]);
    const std::int64_t channels = c.groups * c.channels;
    const Pixels pixels{floats(x), channels, channels, c.batch, c.window};
    if (const auto* channel = std::get_if<ChannelWeights>(&weight)) {
      convolve_channels(pixels, *channel, finish, floats(y));
    } else if (const auto* points = std::get_if<WinogradWeights>(&weight)) {
      pw::convolve(pixels, *points, finish, floats(y));
    } else {
      multiply(pixels, std::get<Panels>(weight), finish, floats(y));
    }
    call.set_result(std::move(y));
    return {};
  }

  const Form& form_;
  std::optional<std::size_t> slot_;
};

/// Computes the maxima under a window for all channels at once.
void pool_channels(const Window& w, const float* x, std::int64_t channels, std::int64_t row,
                   float* y) {
  const Axes place{row / (w.out[1] * w.out[2]) % w.out[0], row / w.out[2] % w.out[1],
                   row % w.out[2]};
  std::fill_n(y, channels, -std::numeric_limits<float>::infinity());
  for (std::int64_t tap = 0; tap < w.kernel_count(); ++tap) {
    const Axes taps{tap / (w.kernel[1] * w.kernel[2]), tap / w.kernel[2] % w.kernel[1],
                    tap % w.kernel[2]};
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t index = w.source(axis, place[axis], taps[axis]);
      inside = inside && index >= 0 && index < w.in[axis];
      at = at * w.in[axis] + index;
    }
    if (!inside) continue;
    const float* const from = x + at * channels;
    for (std::int64_t i = 0; i < channels; ++i)
      y[i] = from[i] > y[i] || from[i] != from[i] ? from[i] : y[i];
  }
}

/// Returns true for a max_pool whose indices are unused.
Status pool(Call& call, const RunCall& otherwise) {
  constexpr std::int64_t kWorthIt = 16, kWorthAThread = 1 << 15;
  const Array& x = call.operand(0);
  const bool fits = x.rank() >= 3 && x.extents[1] >= kWorthIt && is_channels_last(x) &&
                    !x.contiguous() && (call.places.empty() || call.places[0] == nullptr);
  if (!fits) return otherwise(call);
  const Window w = window_of(call, call.dims("kernel"), x.extents, call.extents[0]);
  if (w.out_count() > 0 && w.has_padding_alone()) return otherwise(call);
  Array y = make_channels_last(call.extents[0]);
  const std::int64_t channels = x.extents[1], places = w.out_count();
  parallel_for(x.extents[0] * places, 1 + kWorthAThread / (channels * w.kernel_count()),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i)
                   pool_channels(w, floats(x) + i / places * w.in_count() * channels, channels,
                                 i % places, floats(y) + i * channels);
               });
  call.results[0] = std::move(y);
  call.result(1);
  return {};
}

}  // namespace

OpId packed_op(const Graph& graph, NodeId node) {
  const Form* form = form_of(graph.op_of(node).primitive);
  if (form == nullptr) return {};
  const std::vector<ValueId> operands = graph.operands(node);
  for (ValueId operand : operands)
    if (operand.valid() && !is_f32(graph, operand)) return {};
  if (!has_packed_groups(graph, node, *form)) return {};
  const ValueId weight = operands[static_cast<std::size_t>(form->weight)];
  if (!is_f32(graph, graph.result(node)) || is_constant(graph, weight) != Truth::yes) return {};
  const std::string packed = std::string(kPrefix) + std::string(name(form->op));
  Context& context = graph.context();
  if (const OpId known = context.ops.find(packed); known.valid()) return known;
  Op op;
  op.name = packed;
  op.imported = true;
  return context.ops.declare(std::move(op)).value();
}

std::optional<std::size_t> packed_operand(const Graph& graph, NodeId node) {
  const Form* form = packed_form(graph, node);
  if (form == nullptr) return std::nullopt;
  return static_cast<std::size_t>(form->weight);
}

RunCall packed_call(const Graph& graph, NodeId node, const ConstantParts& parts, FrozenSlots& slots,
                    RunCall otherwise) {
  if (const Form* form = packed_form(graph, node)) {
    const auto& inputs =
        parts.inputs_of(graph.operand(node, static_cast<std::size_t>(form->weight)));
    return PackedCall(*form, inputs ? std::optional(slots.add(*inputs)) : std::nullopt);
  }
  const bool pools = graph.op_of(node).primitive == Primitive::max_pool && otherwise &&
                     is_f32(graph, graph.operand(node, 0)) && graph.unused(graph.result(node, 1));
  if (!pools) return otherwise;
  return [otherwise = std::move(otherwise)](Call& call) { return pool(call, otherwise); };
}

}  // namespace pw::cpu

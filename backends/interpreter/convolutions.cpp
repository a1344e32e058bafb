#include <vector>

#include "backends/interpreter/kernels.hpp"
#include "backends/windows.hpp"

namespace pw {
namespace {

/// Calls visit(output place, image place, tap) for all elements under the kernel except padding.
template <class Visit>
void over_places(const Window& w, const Visit& visit) {
  const auto at = [](const Axes& extents, std::int64_t z, std::int64_t y, std::int64_t x) {
    return (z * extents[1] + y) * extents[2] + x;
  };
  for (std::int64_t place = 0; place < w.out_count(); ++place) {
    for (std::int64_t tap = 0; tap < w.kernel_count(); ++tap) {
      const std::int64_t z = w.source(0, place / w.out[2] / w.out[1],
                                      tap / w.kernel[2] / w.kernel[1]),
                         y = w.source(1, place / w.out[2] % w.out[1],
                                      tap / w.kernel[2] % w.kernel[1]),
                         x = w.source(2, place % w.out[2], tap % w.kernel[2]);
      if (z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1] && x >= 0 && x < w.in[2])
        visit(place, at(w.in, z, y, x), tap);
    }
  }
}

/// Calls visit(element of y, element of x, element of w) for all products of a convolution.
template <class Visit>
void over_products(const Convolution& c, const Visit& visit) {
  const Window& w = c.window;
  for (std::int64_t plane = 0; plane < c.batch * c.groups; ++plane) {
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      for (std::int64_t channel = 0; channel < c.channels; ++channel) {
        const std::int64_t y = (plane * c.outputs + o) * w.out_count(),
                           x = (plane * c.channels + channel) * w.in_count(),
                           k = ((plane % c.groups * c.outputs + o) * c.channels + channel) *
                               w.kernel_count();
        over_places(w, [&](std::int64_t to, std::int64_t from, std::int64_t tap) {
          visit(static_cast<std::size_t>(y + to), static_cast<std::size_t>(x + from),
                static_cast<std::size_t>(k + tap));
        });
      }
    }
  }
}

/// Returns the result's initial elements: the bias of each channel, or 0.
template <class Real>
std::vector<Real> start_of(const Call& call, const Array& y, std::size_t operand) {
  std::vector<Real> out(static_cast<std::size_t>(y.count()), Real(0));
  if (operand >= call.operands.size() || call.operands[operand] == nullptr || out.empty())
    return out;
  const std::vector<Real> bias = elements_of<Real>(call.operand(operand));
  const std::size_t plane = out.size() / static_cast<std::size_t>(y.extents[0] * y.extents[1]);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bias[i / plane % bias.size()];
  return out;
}

template <class Real>
Status stored(Call& call, Array& y, std::vector<Real>& values) {
  store_declared(call.result_dtype(), y, 0, 1, y.count(), values.data());
  return {};
}

template <class Real>
Status convolution(Call& call) {
  Array& y = call.result();
  const Convolution c =
      convolution_of(call, call.operand(0).extents, call.operand(1).extents, y.extents);
  const std::vector<Real> x = elements_of<Real>(call.operand(0)),
                          w = elements_of<Real>(call.operand(1));
  std::vector<Real> out = start_of<Real>(call, y, 2);
  over_products(
      c, [&](std::size_t to, std::size_t from, std::size_t k) { out[to] += x[from] * w[k]; });
  return stored(call, y, out);
}

template <class Real>
Status transposed_convolution(Call& call) {
  Array& x = call.result();
  const Convolution c =
      convolution_of(call, x.extents, call.operand(1).extents, call.operand(0).extents);
  const std::vector<Real> y = elements_of<Real>(call.operand(0)),
                          w = elements_of<Real>(call.operand(1));
  std::vector<Real> out = start_of<Real>(call, x, 2);
  over_products(
      c, [&](std::size_t from, std::size_t to, std::size_t k) { out[to] += y[from] * w[k]; });
  return stored(call, x, out);
}

template <class Real>
Status convolution_weight_gradient(Call& call) {
  Array& w = call.result();
  const Convolution c =
      convolution_of(call, call.operand(1).extents, w.extents, call.operand(0).extents);
  const std::vector<Real> y = elements_of<Real>(call.operand(0)),
                          x = elements_of<Real>(call.operand(1));
  std::vector<Real> out(static_cast<std::size_t>(w.count()), Real(0));
  over_products(
      c, [&](std::size_t from, std::size_t image, std::size_t k) { out[k] += y[from] * x[image]; });
  return stored(call, w, out);
}

template <class Real>
constexpr KernelEntry kConvolutions[] = {
    {Primitive::convolution, convolution<Real>},
    {Primitive::transposed_convolution, transposed_convolution<Real>},
    {Primitive::convolution_weight_gradient, convolution_weight_gradient<Real>}};

}  // namespace

template <class Real>
KernelTable interpreter_convolutions() {
  return kConvolutions<Real>;
}
template KernelTable interpreter_convolutions<float>();
template KernelTable interpreter_convolutions<double>();

}  // namespace pw

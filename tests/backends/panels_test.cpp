// Matmuls and convolutions of packed weights, against sums in double: tiles and panels that are not
// full, what follows the sums, Winograd's tiles over the edges, infinities and NaN.
#include "tensor/linalg/panels.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "tensor/linalg/winograd.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

std::vector<float> drawn(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = draw(random);
  return out;
}

double finished(double sum, double other, Then then) {
  const double x = sum + other;
  if (then == Then::relu) return x < 0 ? 0 : x;
  return then == Then::gelu ? x * std::erfc(-x / std::sqrt(2.0)) / 2 : x;
}

/// A convolution with channels last, one element after another.
std::vector<double> expected(const Convolution& c, const std::vector<float>& x,
                             const std::vector<float>& w, const Finish& finish) {
  const Window& a = c.window;
  std::vector<double> out;
  const std::int64_t places = a.out_count(), taps = a.kernel_count();
  for (std::int64_t row = 0; row < c.batch * places; ++row) {
    const std::int64_t at = row % places;
    const Axes place{at / (a.out[1] * a.out[2]), at / a.out[2] % a.out[1], at % a.out[2]};
    for (std::int64_t o = 0; o < c.outputs; ++o) {
      double sum = finish.bias == nullptr ? 0 : finish.bias[o];
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t y = a.source(1, place[1], tap / a.kernel[2]),
                           z = a.source(2, place[2], tap % a.kernel[2]);
        if (y < 0 || y >= a.in[1] || z < 0 || z >= a.in[2]) continue;
        const std::int64_t element = (row / places * a.in[1] + y) * a.in[2] + z;
        for (std::int64_t i = 0; i < c.channels; ++i)
          sum += static_cast<double>(x[static_cast<std::size_t>(element * c.channels + i)]) *
                 w[static_cast<std::size_t>((o * c.channels + i) * taps + tap)];
      }
      const auto index = static_cast<std::size_t>(row * c.outputs + o);
      out.push_back(finished(sum, finish.other == nullptr ? 0 : finish.other[index], finish.then));
    }
  }
  return out;
}

bool same_kind(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || (std::isfinite(a) && std::isfinite(b));
}

void check(const std::vector<float>& got, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!same_kind(got[i], wanted[i]) ||
        (std::isfinite(wanted[i]) &&
         std::fabs(got[i] - wanted[i]) > tolerance * std::max(1.0, std::fabs(wanted[i]))))
      ++wrong;
  CHECK(wrong == 0);
}

Convolution convolution(std::int64_t batch, std::int64_t height, std::int64_t width,
                        std::int64_t channels, std::int64_t outputs, std::int64_t kernel,
                        std::int64_t stride, std::int64_t padding) {
  Convolution c;
  c.batch = batch;
  c.channels = channels;
  c.outputs = outputs;
  const auto places = [&](std::int64_t in) { return (in + 2 * padding - kernel) / stride + 1; };
  c.window.kernel = {1, kernel, kernel};
  c.window.stride = {1, stride, stride};
  c.window.padding = {0, padding, padding};
  c.window.in = {1, height, width};
  c.window.out = {1, places(height), places(width)};
  return c;
}

Pixels pixels(const Convolution& c, const std::vector<float>& x) {
  return {x.data(), c.channels, c.channels, c.batch, c.window};
}

std::int64_t inputs(const Convolution& c) { return c.batch * c.window.in_count() * c.channels; }
std::int64_t results(const Convolution& c) { return c.batch * c.window.out_count() * c.outputs; }
std::int64_t weights(const Convolution& c) { return c.taps() * c.outputs; }

/// Every operation that may follow the sums.
template <class Run>
void for_each_finish(const Convolution& c, const Run& run) {
  const std::vector<float> bias = drawn(c.outputs, 3), other = drawn(results(c), 4);
  for (const Then then : {Then::nothing, Then::relu, Then::gelu})
    for (const bool with : {false, true}) {
      Finish finish;
      finish.then = then;
      if (with) finish.bias = bias.data(), finish.other = other.data();
      run(finish);
    }
}

}  // namespace

TEST_CASE("panels: convolutions by im2col are sums of products", "[backends]") {
  // Batch, height, width, channels, outputs, kernel, stride, padding.
  for (const Convolution& c :
       {convolution(1, 9, 11, 3, 20, 3, 2, 1), convolution(2, 7, 5, 16, 33, 1, 1, 0),
        convolution(1, 12, 12, 3, 70, 4, 4, 0), convolution(1, 6, 6, 5, 64, 5, 1, 2),
        convolution(1, 5, 40, 48, 32, 3, 1, 1), convolution(3, 4, 4, 100, 40, 3, 1, 1)}) {
    const std::vector<float> x = drawn(inputs(c), 1), w = drawn(weights(c), 2);
    const Panels b = panels_of(c, w.data());
    for_each_finish(c, [&](const Finish& finish) {
      std::vector<float> y(static_cast<std::size_t>(results(c)));
      multiply(pixels(c, x), b, finish, y.data());
      check(y, expected(c, x, w, finish), 1e-4);
    });
  }
}

TEST_CASE("panels: matmuls in several blocks of rows and of depth", "[backends]") {
  for (const auto& [rows, depth, columns] : {std::tuple{1, 1, 1},
                                             {7, 20, 100},
                                             {500, 33, 65},
                                             {30, 1700, 40},
                                             {300, 800, 96},
                                             {460, 800, 96}}) {
    INFO(rows << " x " << depth << " x " << columns);
    Convolution c;  // of one place a row
    c.batch = rows, c.channels = depth, c.outputs = columns;
    const std::vector<float> x = drawn(inputs(c), 1), w = drawn(weights(c), 2);
    const Panels b = panels_of(
        Matrix{DType::f32, reinterpret_cast<const std::byte*>(w.data()), depth, columns, 1, depth});
    for_each_finish(c, [&](const Finish& finish) {
      std::vector<float> y(static_cast<std::size_t>(results(c)));
      multiply(rows_of(x.data(), rows, depth, depth), b, finish, y.data());
      check(y, expected(c, x, w, finish), 1e-4);
    });
  }
}

TEST_CASE("winograd: convolutions of 3 x 3 are sums of products", "[backends]") {
  for (const Convolution& c :
       {convolution(1, 12, 10, 16, 32, 3, 1, 1), convolution(2, 9, 11, 32, 64, 3, 1, 1),
        convolution(1, 15, 13, 48, 32, 3, 1, 0), convolution(3, 6, 7, 16, 96, 3, 1, 2)}) {
    REQUIRE(suits_winograd(c));
    const std::vector<float> x = drawn(inputs(c), 1), w = drawn(weights(c), 2);
    const auto points = winograd_weights(c, w.data());
    REQUIRE(points);
    for_each_finish(c, [&](const Finish& finish) {
      std::vector<float> y(static_cast<std::size_t>(results(c)));
      convolve(pixels(c, x), *points, finish, y.data());
      check(y, expected(c, x, w, finish), 1e-4);
    });
  }
}

TEST_CASE("winograd: infinities and NaN stay in their places", "[backends]") {
  const Convolution c = convolution(1, 12, 12, 16, 32, 3, 1, 1);
  std::vector<float> x = drawn(inputs(c), 1), w = drawn(weights(c), 2);
  const auto points = winograd_weights(c, w.data());
  REQUIRE(points);
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> changed = x;
    changed[static_cast<std::size_t>(5 * 12 + 4) * 16 + 3] = value;
    changed[static_cast<std::size_t>(5 * 12 + 6) * 16 + 3] = value;
    std::vector<float> y(static_cast<std::size_t>(results(c)));
    convolve(pixels(c, changed), *points, {}, y.data());
    check(y, expected(c, changed, w, {}), 1e-4);
  }
  w[7] = std::numeric_limits<float>::infinity();
  CHECK(!winograd_weights(c, w.data()));
}

TEST_CASE("winograd: other strides, kernels, groups and channels are left to im2col",
          "[backends]") {
  CHECK(!suits_winograd(convolution(1, 12, 12, 16, 32, 3, 2, 1)));
  CHECK(!suits_winograd(convolution(1, 12, 12, 16, 32, 5, 1, 1)));
  CHECK(!suits_winograd(convolution(1, 12, 12, 20, 32, 3, 1, 1)));
  CHECK(!suits_winograd(convolution(1, 12, 12, 16, 20, 3, 1, 1)));
  CHECK(!suits_winograd(convolution(1, 4, 4, 16, 32, 3, 1, 1)));
  Convolution grouped = convolution(1, 12, 12, 16, 32, 3, 1, 1);
  grouped.groups = 2;
  CHECK(!suits_winograd(grouped));
}

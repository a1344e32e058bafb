// The polynomials of single precision against the C library in double precision.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/hash.hpp"
#include "graph/ops/scalar_functions.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

/// How far off, in units in the last place of the float next to `exact`.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return got == nearest ? 0 : 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(got) - exact) /
         std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// The worst over numbers of every exponent and sign.
double worst(float (*got)(float), double (*exact)(double)) {
  double most = 0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4999) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    most = std::max(most, ulps(got(x), exact(static_cast<double>(x))));
  }
  return most;
}

}  // namespace

TEST_CASE("single: functions of one number are within two units of the last place everywhere",
          "[cpu]") {
  CHECK(worst(single::exp, [](double x) { return std::exp(x); }) < 2);
  CHECK(worst(single::log, [](double x) { return std::log(x); }) < 2);
  CHECK(worst(single::tanh, [](double x) { return std::tanh(x); }) < 2);
  CHECK(worst(single::sin, [](double x) { return std::sin(x); }) < 2);
  CHECK(worst(single::cos, [](double x) { return std::cos(x); }) < 2);
}

TEST_CASE("single: sin and cos next to their zeros, which no float is", "[cpu]") {
  // Near multiples of a quarter turn, all that is left of the angle is what its reduction keeps.
  double most = 0;
  for (int exponent = 0; exponent < 128; ++exponent) {
    for (int k = 1; k <= 400; ++k) {
      const double angle = std::ldexp(k * 1.5707963267948966 / 256, exponent);
      const double nearest = std::nearbyint(angle / 1.5707963267948966) * 1.5707963267948966;
      for (const double at : {angle, nearest}) {
        const auto x = static_cast<float>(at);
        if (!std::isfinite(x)) continue;
        const auto exact = static_cast<double>(x);
        most = std::max(
            {most, ulps(single::sin(x), std::sin(exact)), ulps(single::cos(-x), std::cos(exact))});
      }
    }
  }
  CHECK(most < 2);
  // The float that comes nearest to a multiple of a quarter turn.
  const auto hardest = std::ldexp(16367173.0f, 72);
  CHECK(ulps(single::cos(hardest), std::cos(static_cast<double>(hardest))) < 2);
}

TEST_CASE("single: pow is rounded to within a unit of the last place", "[cpu]") {
  double most = 0;
  Random random(7);
  const auto any = [&](int exponents) {
    const double m = 1 + random.uniform();
    const auto e =
        static_cast<int>(random.below(static_cast<std::uint64_t>(exponents) * 2)) - exponents;
    return static_cast<float>(std::ldexp(random.below(2) == 0 ? m : -m, e));
  };
  const auto check = [&](float a, float b) {
    const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
    const double off = ulps(single::pow(a, b), exact);
    if (off > 1) INFO(a << " ^ " << b);
    CHECK(off <= 1);
    most = std::max(most, off);
  };
  for (int i = 0; i < 40000; ++i) {
    check(std::fabs(any(140)), any(8));                              // most leave the range
    check(std::fabs(any(2)), any(7));                                // most do not
    check(any(6), static_cast<float>(random.below(41)) - 20);        // whole
    check(any(6), (static_cast<float>(random.below(41)) - 20) / 2);  // and half
    check(1 + any(1) * 1e-6f, any(24));                              // near 1
  }
  CHECK(most > 0.4);  // something was measured
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const float ends[] = {0.0f,        -0.0f,     1,          -1,     0.5f,        -0.5f,
                        2,           -2,        3,          -3,     2.5f,        -2.5f,
                        1e-45f,      -1e-45f,   3e38f,      -3e38f, 16777215.0f, -16777215.0f,
                        16777216.0f, kInfinity, -kInfinity, kNan};
  for (const float a : ends) {
    for (const float b : ends) {
      INFO(a << " ^ " << b);
      const float got = single::pow(a, b), wanted = std::pow(a, b);
      CHECK(ulps(got, static_cast<double>(wanted)) <= 1);
      if (!std::isnan(wanted)) CHECK(std::signbit(got) == std::signbit(wanted));
    }
  }
}

TEST_CASE("single: ends and signs are those of the C library", "[cpu]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(single::exp(0) == 1);
  CHECK(single::exp(kInfinity) == kInfinity);
  CHECK(single::exp(-kInfinity) == 0);
  CHECK(single::exp(88.73f) == kInfinity);
  CHECK(single::exp(-103.9f) > 0);
  CHECK(single::exp(-104.5f) == 0);
  CHECK(single::log(1) == 0);
  CHECK(single::log(0) == -kInfinity);
  CHECK(std::isnan(single::log(-1)));
  CHECK(single::log(kInfinity) == kInfinity);
  CHECK(single::tanh(kInfinity) == 1);
  CHECK(single::tanh(-kInfinity) == -1);
  CHECK(std::signbit(single::tanh(-0.0f)));
  CHECK(std::signbit(single::sin(-0.0f)));
  CHECK(single::cos(-0.0f) == 1);
  CHECK(std::isnan(single::sin(kInfinity)));
  CHECK(std::isnan(single::cos(-kInfinity)));
  for (auto* f : {single::exp, single::log, single::tanh, single::sin, single::cos})
    CHECK(std::isnan(f(std::numeric_limits<float>::quiet_NaN())));
}

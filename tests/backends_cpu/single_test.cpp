// The polynomials of single precision against the C library in double precision.
#include "backends/single.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

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

TEST_CASE("single: exp, log and tanh are within two units of the last place everywhere", "[cpu]") {
  CHECK(worst(single::exp, [](double x) { return std::exp(x); }) < 2);
  CHECK(worst(single::log, [](double x) { return std::log(x); }) < 2);
  CHECK(worst(single::tanh, [](double x) { return std::tanh(x); }) < 2);
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
  for (auto* f : {single::exp, single::log, single::tanh})
    CHECK(std::isnan(f(std::numeric_limits<float>::quiet_NaN())));
}

// An output compared with that of another system: by RMS unless tolerances are given.
#include "verify/expected.hpp"

#include <cmath>

#include "base/hash.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"

namespace {

using namespace pw;

constexpr std::int64_t kCount = 4096;

/// Around one, with what a long computation in a coarse dtype leaves of it.
Tensor noisy(DType dtype, double noise, std::uint64_t seed) {
  Random random(seed);
  Tensor out(dtype, {kCount});
  for (std::int64_t i = 0; i < kCount; ++i) {
    const double right = std::sin(static_cast<double>(i)) * 2;
    const double off = (static_cast<double>(random.below(2001)) / 1000 - 1) * noise;
    store(dtype, out.data(), i, right + off);
  }
  return out;
}

ExpectedCheck check(const Tensor& got, const Tensor& expected, const Tensor& before) {
  const Tensor reference = noisy(DType::f64, 0, 1);
  return check_expected("y", got.view(), expected.view(),
                        OutputYardstick{reference.view(), before.view()});
}

}  // namespace

TEST_CASE("expected: two right runs are as far apart as rounding puts them", "[verify]") {
  const Tensor got = noisy(DType::bf16, 0.05, 2), other = noisy(DType::bf16, 0.05, 3);
  const ExpectedCheck by_element = check_expected("y", got.view(), other.view(), Tolerance{});
  CHECK(!by_element.passed);  // near zero one rounding is more than any share of the value
  const ExpectedCheck by_rms = check(got, other, got);
  CHECK(by_rms.passed);
  CHECK(by_rms.rms_error > 0);
  CHECK(by_rms.rms_error <= by_rms.bound);
  CHECK(by_rms.largest > by_rms.rms_error);
  CHECK(by_rms.outside == by_element.outside);
}

TEST_CASE("expected: what rounding does not explain fails, and both figures are reported",
          "[verify]") {
  const Tensor got = noisy(DType::bf16, 0.01, 2);
  for (const Tensor& wrong : {noisy(DType::bf16, 0.3, 3), noisy(DType::f32, 0.3, 3)}) {
    const ExpectedCheck one = check(got, wrong, got);
    CHECK(!one.passed);
    CHECK(one.reason.find("RMS") != std::string::npos);
    CHECK(one.reason.find("the largest is") != std::string::npos);
    CHECK(!check(wrong, got, got).passed);  // whichever of the two is wrong
  }
  const Tensor exact = noisy(DType::f32, 0, 1);
  CHECK(check(exact, exact, exact).passed);
  CHECK(!check(exact, noisy(DType::f32, 1e-4, 3), exact).passed);
}

TEST_CASE("expected: a coarser dtype may round, but neither integers nor NaN", "[verify]") {
  const Tensor got = noisy(DType::f32, 0, 1);
  CHECK(check(got, noisy(DType::bf16, 0, 1), got).passed);
  Tensor odd = noisy(DType::f32, 0, 1);
  store(DType::f32, odd.data(), 7, std::nan(""));
  CHECK(!check(got, odd, got).passed);
  CHECK(!check(odd, got, got).passed);
  Tensor ids(DType::i32, {2}), others(DType::i32, {2}), reference(DType::f64, {2});
  for (std::int64_t i = 0; i < 2; ++i) {
    store(DType::i32, ids.data(), i, 1000000);
    store(DType::i32, others.data(), i, 1000001);
    store(DType::f64, reference.data(), i, 1000000);
  }
  const OutputYardstick yardstick{reference.view(), ids.view()};
  CHECK(check_expected("y", ids.view(), ids.view(), yardstick).passed);
  CHECK(!check_expected("y", ids.view(), others.view(), yardstick).passed);
}

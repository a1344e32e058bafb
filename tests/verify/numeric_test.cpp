// The numeric comparison: what it accepts, what it refuses, and that a wrong body of a fused op
// exceeds it.
#include "verify/numeric.hpp"

#include <cmath>
#include <limits>

#include "backends/eager/eager.hpp"
#include "rewriter/rewriter.hpp"
#include "tensor/numerics.hpp"
#include "tests/verify/rules.hpp"
#include "verify/samples/sample.hpp"

namespace {

using namespace pw;
using namespace pw::test;

Tensor filled(DType dtype, const std::vector<double>& values) {
  Tensor made(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    store(dtype, made.data(), static_cast<std::int64_t>(i), values[i]);
  return made;
}
OutputCheck check(DType dtype, const std::vector<double>& reference,
                  const std::vector<double>& before, const std::vector<double>& after) {
  return check_output("y", filled(DType::f64, reference).view(), filled(dtype, before).view(),
                      filled(dtype, after).view());
}
std::vector<double> ramp(std::size_t n, double shift = 0) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i)
    values.push_back(std::sin(static_cast<double>(i)) * 4 + shift);
  return values;
}

const double kNaN = std::nan("");
const double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("numeric: equal runs pass, and the errors are measured against the reference",
          "[verify]") {
  const OutputCheck same = check(DType::bf16, ramp(100), ramp(100), ramp(100));
  CHECK(same.passed);
  CHECK(same.before_error == same.after_error);
  CHECK(same.before_error > 0);
  CHECK(same.before_error < 0.02);
  CHECK(same.reference_rms == Approx(std::sqrt(8.0)).epsilon(0.05));
  CHECK(same.bound == Approx(1.5 * same.before_error + std::ldexp(1.0, 1 - 7)));
}

TEST_CASE("numeric: an error beyond the bound fails, one within passes", "[verify]") {
  CHECK(check(DType::bf16, ramp(100), ramp(100), ramp(100, 0.01)).passed);
  const OutputCheck off = check(DType::bf16, ramp(100), ramp(100), ramp(100, 0.05));
  CHECK(!off.passed);
  CHECK(off.reason.find("RMS") != std::string::npos);
  CHECK(check(DType::bf16, ramp(100), ramp(100, 0.05), ramp(100, 0.05)).passed);
}

TEST_CASE("numeric: NaN and infinity must stand where the other run or the reference has them",
          "[verify]") {
  CHECK(!check(DType::f32, {1, 2}, {1, 2}, {1, kNaN}).passed);
  CHECK(!check(DType::f32, {1, 2}, {1, 2}, {1, kInfinity}).passed);
  CHECK(!check(DType::f32, {1, kNaN}, {1, kNaN}, {1, 2}).passed);
  CHECK(!check(DType::f32, {1, kInfinity}, {1, kInfinity}, {1, -kInfinity}).passed);
  CHECK(check(DType::f32, {1, kNaN}, {1, kNaN}, {1, kNaN}).passed);
  CHECK(check(DType::f32, {1, kInfinity}, {1, kInfinity}, {1, kInfinity}).passed);
  CHECK(check(DType::f16, {1, 1e6}, {1, 65504}, {1, kInfinity})
            .passed);  // the reference is beyond f16
}

TEST_CASE("numeric: an output without a finite element fails", "[verify]") {
  for (const double nothing : {kNaN, kInfinity}) {
    const std::vector<double> all(4, nothing);
    const OutputCheck none = check(DType::f32, all, all, all);
    CHECK(!none.passed);
    CHECK(none.left_out == 4);
    CHECK(none.reason.find("none of its 4 elements") != std::string::npos);
  }
  const OutputCheck some = check(DType::f32, {1, kNaN}, {1, kNaN}, {1, kNaN});
  CHECK(some.passed);
  CHECK(some.left_out == 1);
  CHECK(check(DType::f32, {}, {}, {}).passed);
}

TEST_CASE("numeric: what equals the original run passes, whatever the reference overflows to",
          "[verify]") {
  CHECK(check(DType::f16, {1, 70000}, {1, 65504}, {1, 65504}).passed);
  CHECK(check(DType::f16, {1, 65519}, {1, 65504}, {1, kInfinity}).passed);  // one step beyond
  CHECK(check(DType::f16, {1, 66000}, {1, kInfinity}, {1, 65504}).passed);
  CHECK(!check(DType::f16, {1, 66000}, {1, kInfinity}, {1, 60000}).passed);
  CHECK(!check(DType::f16, {1, 1e9}, {1, kInfinity}, {1, 100}).passed);
  CHECK(!check(DType::f16, {1, 1e9}, {1, kInfinity}, {1, kNaN}).passed);
  CHECK(!check(DType::f32, {1, 1e38}, {1, 1e38}, {1, kInfinity}).passed);
}

TEST_CASE("numeric: errors are measured at both ends of f64", "[verify]") {
  for (const double unit : {1e-320, 1e-300, 1e-170, 1e160, 1e200, 1e307}) {
    INFO(unit);
    const std::vector<double> values{unit, -3 * unit, 2 * unit};
    const OutputCheck same = check(DType::f64, values, values, values);
    CHECK(same.passed);
    CHECK(same.reference_rms == Approx(unit * std::sqrt(14.0 / 3)).epsilon(1e-3));
    CHECK(!check(DType::f64, values, values, {unit, -3 * unit, 2.01 * unit}).passed);
  }
}

TEST_CASE("numeric: fp8 may be one step apart on one element in a hundred", "[verify]") {
  std::vector<double> values(200, 16);
  std::vector<double> two = values, three = values, far = values, exact = values;
  two[0] = two[1] = three[0] = three[1] = three[2] = 18;
  far[0] = 20;
  CHECK(check(DType::f8e4m3, values, values, two).passed);
  const OutputCheck many = check(DType::f8e4m3, values, values, three);
  CHECK(!many.passed);
  CHECK(many.one_step == 3);
  const OutputCheck apart = check(DType::f8e4m3, values, values, far);
  CHECK(!apart.passed);
  CHECK(apart.more_steps == 1);
  // A result nearer to the reference than the original run is accepted.
  CHECK(check(DType::f8e4m3, three, values, three).passed);
}

TEST_CASE("numeric: integers must be equal, and types must not change", "[verify]") {
  CHECK(check(DType::i64, {1, 2}, {1, 2}, {1, 2}).passed);
  CHECK(!check(DType::i64, {1, 2}, {1, 2}, {1, 3}).passed);
  // Neighbours that are one number in f64.
  Tensor large(DType::i64, {1}), next(DType::i64, {1});
  *reinterpret_cast<std::int64_t*>(large.data()) = (std::int64_t{1} << 53) + 1;
  *reinterpret_cast<std::int64_t*>(next.data()) = std::int64_t{1} << 53;
  const Tensor exact = filled(DType::f64, {0x1p53});
  CHECK(check_output("y", exact.view(), large.view(), large.view()).passed);
  CHECK(!check_output("y", exact.view(), large.view(), next.view()).passed);
  const Tensor a = filled(DType::f32, {1}), b = filled(DType::bf16, {1}),
               reference = filled(DType::f64, {1});
  CHECK(!check_output("y", reference.view(), a.view(), b.view()).passed);
}

TEST_CASE("numeric: a planted wrong body exceeds the check", "[verify]") {
  const std::string rule = R"(
    op scaled_sum(x: T[*s], r: T[*s]) -> y: T[*s] { y = x SIGN r * 0.5 }
    rule fuse_sum { y = add(x, mul(r, 0.5)) => y = scaled_sum(x, r) }
    pass fuse_all = greedy { fuse_sum }
    test t { graph { in x: bf16[n, 64], r: bf16[n, 64]  y = x + r * 0.5  out y }  apply fuse_all  expect fuse_sum == 1 }
  )";
  for (const std::string sign : {"+", "-"}) {
    std::string text = rule;
    text.replace(text.find("SIGN"), 4, sign);
    const RuleSet rules = rules_of(text);
    const auto& test = std::get<ast::Test>(rules.files.back().items.back());
    const Graph before = build_graph(rules.context, test.graph.front()).value();
    Graph after = before.compact();
    REQUIRE(run_pipeline(after, rules, "fuse_all", bind_params(rules, {}).value())
                .value()
                .journal.total() == 1);
    const auto backend = make_eager();
    const Symbols symbols = sample_symbols(before, 7);
    const Step step = sample_step(before, symbols);
    Weights weights(before, 1);
    const auto outputs = run_whole(after, *backend, weights, step, symbols);
    REQUIRE(outputs);
    const auto report = check_against(before, *backend, weights, step, *outputs, symbols);
    REQUIRE(report);
    CHECK(report->passed() == (sign == "+"));
  }
}

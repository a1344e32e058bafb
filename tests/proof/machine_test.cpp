// Rules that are right or wrong because of how the machine computes: integers wrap around, floats
// overflow, casts narrow.
#include <string>
#include <vector>

#include "proof/prove.hpp"
#include "tests/verify/rules.hpp"

namespace {

using namespace pw;
using namespace pw::test;

proof::Proof proof_of(const std::string& text) {
  const RuleSet rules = rules_of("rule r { " + text + " }");
  const Env params = bind_params(rules, {}).value();
  proof::Prover prover(rules, params);
  return prover.prove(rules.resolve("r").at(0));
}

/// With each `W` as an integer dtype.
std::vector<std::string> of_widths(const std::vector<std::string>& texts,
                                   const std::vector<std::string>& widths) {
  std::vector<std::string> out;
  for (const std::string& text : texts)
    for (const std::string& width : widths) {
      std::string rule = text;
      for (std::size_t at = rule.find('W'); at != std::string::npos; at = rule.find('W'))
        rule.replace(at, 1, width);
      out.push_back(rule);
    }
  return out;
}

void expect_all(const std::vector<std::string>& texts, RuleVerdict verdict) {
  for (const std::string& text : texts) {
    const proof::Proof proof = proof_of(text);
    INFO(text << "\n" << name(proof.verdict) << ": " << proof.reason << " " << proof.element);
    CHECK(proof.verdict == verdict);
    if (verdict == RuleVerdict::may_overflow) CHECK(!proof.element.empty());
  }
}

const std::vector<std::string> kWidths = {"i8", "u8", "i32", "i64"};

}  // namespace

TEST_CASE("machine: sums and products of integers reassociate and distribute", "[proof]") {
  expect_all(of_widths(
                 {
                     "y = add(add(a: W[n], b: W[n]), c: W[n]) => y = add(a, add(b, c))",
                     "y = mul(mul(a: W[n], b: W[n]), c: W[n]) => y = mul(a, mul(b, c))",
                     "y = mul(a: W[n], add(b: W[n], c: W[n])) => y = add(mul(a, b), mul(a, c))",
                     "y = sub(a: W[n], b: W[n]) => y = neg(sub(b, a))",
                     "y = sub(add(a: W[n], b: W[n]), b) => y = a",
                     "y = eq(add(a: W[n], 1), add(b: W[n], 1)) => y = eq(a, b)",
                     "y = mul(abs(a: W[n]), abs(a)) => y = mul(a, a)",
                     "y = maximum(a: W[n], maximum(b: W[n], a)) => y = maximum(a, b)",
                     "y = bitwise_not(a: W[n]) => y = sub(neg(a), 1)",
                     "y = sum(add(a: W[n, m], b: W[n, m])){dim = 1}"
                     " => y = add(sum(a){dim = 1}, sum(b){dim = 1})",
                     "y = minimum(maximum(a: W[n], 3), 100) => y = maximum(minimum(a, 100), 3)",
                     "y = shift_right(shift_right(a: W[n], 1), 2) => y = shift_right(a, 3)",
                     "y = maximum(bitwise_not(mul(a: W[n], b: W[n])), bitwise_not(b))"
                     " => y = bitwise_not(minimum(mul(a, b), b))",
                     "y = amax(amax(a: W[n, m]){dim = 1}){dim = 0}"
                     " => y = amax(amax(a){dim = 0}){dim = 0}",
                 },
                 kWidths),
             RuleVerdict::same_bits);
}

TEST_CASE("machine: sums of sums and products of matrices of integers", "[proof]") {
  expect_all(
      {
          "y = sum(sum(a: i32[n, m]){dim = 1}){dim = 0}"
          " => y = sum(reshape(a){shape = [n * m]}){dim = 0}",
          "y = mm(mm(a: i32[n, k], b: i32[k, m]), c: i32[m, p]) => y = mm(a, mm(b, c))",
          "y = mm(a: i64[n, k], add(b: i64[k, m], c: i64[k, m])) => y = add(mm(a, b), mm(a, c))",
          "y = mul(sum(a: i8[n, m]){dim = 1}, c: i8[]) => y = sum(mul(a, c)){dim = 1}",
          "y = i32(sum(i64(add(a: i32[n, m], b: i32[n, m]))){dim = 1})"
          " => y = sum(add(a, b)){dim = 1}",
          "y = i8(mul(i32(add(a: i8[n], b: i8[n])), i32(a))) => y = mul(add(a, b), a)",
          "y = sum(abs(a: u8[n, m])){dim = 1} => y = abs(sum(a){dim = 1})",
          "y = amax(maximum(mul(a: i64[n, m], a), b: i64[n, m])){dim = 1}"
          " => y = maximum(amax(mul(a, a)){dim = 1}, amax(b){dim = 1})",
          "y = amin(add(i32(a: i8[n, m]), 3)){dim = 1} => y = add(i32(amin(a){dim = 1}), 3)",
          "y = mm(transpose(b: i32[k, m]){dim0 = 0, dim1 = 1}, a: i32[k, n])"
          " => y = transpose(mm(transpose(a){dim0 = 0, dim1 = 1}, b)){dim0 = 0, dim1 = 1}",
      },
      RuleVerdict::same_bits);
}

TEST_CASE("machine: casts and orders of integers in proved ranges", "[proof]") {
  expect_all(
      {
          "y = i8(add(a: i32[n], b: i32[n])) => y = add(i8(a), i8(b))",
          "y = i8(mul(a: i64[n], b: i64[n])) => y = mul(i8(a), i8(b))",
          "y = u8(sub(a: i32[n], b: i32[n])) => y = sub(u8(a), u8(b))",
          "y = i8(i64(a: i8[n])) => y = a",
          "y = i8(u8(a: i8[n])) => y = a",
          "y = add(i32(a: i8[n]), i32(b: i8[n])) => y = i32(add(i64(a), i64(b)))",
          "y = mul(i32(a: i8[n]), i32(b: u8[n])) => y = i32(mul(i64(a), i64(b)))",
          "y = lt(add(i32(a: i8[n]), 1), add(i32(b: i8[n]), 1)) => y = lt(a, b)",
          "y = lt(neg(i32(a: i8[n])), neg(i32(b: i8[n]))) => y = lt(b, a)",
          "y = lt(i32(a: u8[n]), 256) => y = eq(a, a)",
          "y = le(0, i32(a: u8[n])) => y = eq(a, a)",
          "y = maximum(i32(a: i8[n]), i32(b: i8[n])) => y = i32(maximum(a, b))",
          "y = maximum(abs(i32(a: i8[n])), 0) => y = abs(i32(a))",
          "y = remainder(add(i32(a: i8[n]), 3), 3) => y = remainder(i32(a), 3)",
          "y = div(mul(a: i8[n], 1), 1) => y = a",
          "y = maximum(add(i32(a: i8[n]), 1), add(i32(b: i8[n]), 1))"
          " => y = add(i32(maximum(a, b)), 1)",
          "y = abs(a: u8[n]) => y = a",
          "y = abs(neg(a: i8[n])) => y = abs(a)",
          "y = abs(neg(a: i64[n])) => y = abs(a)",
          "y = maximum(a: u8[n], 0) => y = a",
          "y = fmod(a: u8[n], 16) => y = remainder(a, 16)",
          "y = f32(add(i32(a: i8[n]), i32(b: i8[n]))) => y = f32(add(i64(a), i64(b)))",
          "y = i32(f64(a: i32[n])) => y = a",
          "y = i8(f16(a: i8[n])) => y = a",
          "y = bitwise_and(a: b8[n], bitwise_or(a, b: b8[n])) => y = a",
          "y = bitwise_not(bitwise_and(a: b8[n], b: b8[n]))"
          " => y = bitwise_or(bitwise_not(a), bitwise_not(b))",
          "y = select(c: b8[n], add(a: i8[n], 1), add(b: i8[n], 1)) => y = add(select(c, a, b), 1)",
          "y = ne(a: i32[n], b: i32[n]) => y = bitwise_not(eq(b, a))",
          "y = le(a: i32[n], b: i32[n]) => y = bitwise_not(lt(b, a))",
      },
      RuleVerdict::same_bits);
}

TEST_CASE("machine: integers that wrap around refute laws of the reals", "[proof]") {
  expect_all(of_widths(
                 {
                     "y = lt(a: W[n], add(a, 1)) => y = eq(a, a)",
                     "y = maximum(a: W[n], add(a, 1)) => y = add(a, 1)",
                     "y = lt(neg(a: W[n]), neg(b: W[n])) => y = lt(b, a)",
                     "y = div(mul(a: W[n], 2), 2) => y = a",
                     "y = remainder(add(a: W[n], 3), 3) => y = remainder(a, 3)",
                     "y = maximum(add(a: W[n], 1), add(b: W[n], 1)) => y = add(maximum(a, b), 1)",
                     "y = lt(sub(a: W[n], b: W[n]), 0) => y = lt(a, b)",
                     "y = minimum(mul(a: W[n], 3), mul(b: W[n], 3)) => y = mul(minimum(a, b), 3)",
                     "y = f64(add(a: W[n], b: W[n])) => y = add(f64(a), f64(b))",
                     "y = abs(sub(a: W[n], b: W[n])) => y = sub(maximum(a, b), minimum(a, b))",
                     "y = le(a: W[n], mul(a, a)) => y = eq(a, a)",
                     "y = amax(add(a: W[n, m], 1)){dim = 1} => y = add(amax(a){dim = 1}, 1)",
                 },
                 kWidths),
             RuleVerdict::unknown);
}

TEST_CASE("machine: casts, orders and divisions that are wrong at the ends", "[proof]") {
  expect_all(
      {
          "y = i32(add(a: i8[n], b: i8[n])) => y = add(i32(a), i32(b))",
          "y = i64(mul(a: i32[n], b: i32[n])) => y = mul(i64(a), i64(b))",
          "y = i32(neg(a: i8[n])) => y = neg(i32(a))",
          "y = i32(abs(a: i8[n])) => y = abs(i32(a))",
          "y = abs(neg(a: u8[n])) => y = abs(a)",
          "y = i32(neg(a: u8[n])) => y = neg(i32(a))",
          "y = i32(u8(a: i8[n])) => y = i32(a)",
          "y = i32(i8(a: i32[n])) => y = a",
          "y = i64(sum(a: i32[n, m]){dim = 1}) => y = sum(i64(a)){dim = 1}",
          "y = maximum(abs(a: i8[n]), 0) => y = abs(a)",
          "y = maximum(abs(a: i32[n]), 0) => y = abs(a)",
          "y = maximum(abs(a: i64[n]), 0) => y = abs(a)",
          "y = lt(a: i32[n], 0) => y = gt(neg(a), 0)",
          "y = maximum(mul(a: i8[n], a), 0) => y = mul(a, a)",
          "y = div(a: i32[n], 2) => y = mul(a, div(1, 2))",
          "y = fmod(a: i8[n], 3) => y = remainder(a, 3)",
          "y = div(div(a: i8[n], b: i8[n]), c: i8[n]) => y = div(a, mul(b, c))",
          "y = f32(i64(f32(a: i64[n]))) => y = f32(i32(a))",
          "y = i64(f32(a: i64[n])) => y = a",
          "y = i32(f32(a: i32[n])) => y = a",
          "y = i32(f16(a: i32[n])) => y = a",
          "y = f32(i32(a: f32[n])) => y = trunc(a)",
          "y = lt(i32(a: f32[n]), i32(b: f32[n])) => y = lt(a, b)",
          "y = i8(maximum(a: i32[n], b: i32[n])) => y = maximum(i8(a), i8(b))",
          "y = lt(i8(a: i32[n]), i8(b: i32[n])) => y = lt(a, b)",
          "y = eq(i8(a: i32[n]), i8(b: i32[n])) => y = eq(a, b)",
          "y = lt(mul(a: f32[n], 0.1) * 0.3, b: f32[n]) => y = lt(mul(a, 0.03), b)",
          "y = i32(mul(a: f32[n], 0.1) * 0.3) => y = i32(mul(a, 0.03))",
          "y = mean(a: i32[n, m]){dim = 1} => y = div(sum(a){dim = 1}, extent(){value = m})",
      },
      RuleVerdict::unknown);
}

TEST_CASE("machine: floats that overflow on one side only", "[proof]") {
  expect_all(
      {
          "y = mul(exp(a: f32[n]), exp(c: f32[n])) => y = exp(add(a, c))",
          "y = div(exp(a: f32[n]), exp(c: f32[n])) => y = exp(sub(a, c))",
          "y = f32(f16(x: f32[n])) => y = x",
          "y = neg(x: f32[n]) => y = f32(f16(neg(x)))",
          "y = div(1.0, add(x: f32[n], 0.0)) => y = div(1.0, x)",
          "y = div(x: f32[n], c: f32[n]) => y = mul(x, div(1.0, c))",
          "y = div(x: f32[n], c: f32[]) => y = mul(x, div(1.0, c))",
          "y = div(x: f32[n], c: f32[1]) => y = mul(x, div(1.0, c))",
          "y = mul(mul(a: f32[n], b: f32[n]), c: f32[n]) => y = mul(a, mul(b, c))",
          "y = mul(mul(a: f16[n], b: f16[n]), c: f16[n]) => y = mul(a, mul(b, c))",
          "y = mul(c: f32[n], add(a: f32[n], b: f32[n])) => y = add(mul(c, a), mul(c, b))",
          "y = sum(x: f32[n, d]){dim = 1} * 3.0 => y = sum(x * 3.0){dim = 1}",
          "y = mm(mm(a: f32[n, k], b: f32[k, m]), c: f32[m, p]) => y = mm(a, mm(b, c))",
          "y = f32(mul(x: f64[n], z: f64[n])) => y = mul(f32(x), f32(z))",
          "y = mul(mul(x: f32[n], 1e-30), 1e30) => y = x",
          "y = div(exp(sub(x: f32[n], m: f32[n])), exp(sub(z: f32[n], m)))"
          " => y = div(exp(x), exp(z))",
          // A step overflows, and what follows would bring it back.
          "y = add(mul(x: f16[n], c: f16[n]), d: f16[n])"
          " => y = f16(add(mul(f32(x), f32(c)), f32(d)))",
          "y = sub(mul(x: f32[n], c: f32[n]), d: f32[n])"
          " => y = f32(sub(mul(f64(x), f64(c)), f64(d)))",
          "y = sub(d: f16[n], mul(x: f16[n], x)) => y = f16(sub(f32(d), mul(f32(x), f32(x))))",
          "y = f32(bf16(x: f32[n])) => y = x",
      },
      RuleVerdict::may_overflow);
}

TEST_CASE("machine: floats that only round differently", "[proof]") {
  expect_all(
      {
          "y = add(add(a: f32[n], b: f32[n]), c: f32[n]) => y = add(a, add(b, c))",
          "y = add(add(a: f16[n], b: f16[n]), c: f16[n]) => y = add(a, add(b, c))",
          "y = sum(sum(x: f32[n, m]){dim = 1}){dim = 0}"
          " => y = sum(reshape(x){shape = [n * m]}){dim = 0}",
          "y = mean(mean(x: f32[n, m]){dim = 1}){dim = 0}"
          " => y = mean(reshape(x){shape = [n * m]}){dim = 0}",
          "y = mul(x: f32[n], 0.1) * 0.3 => y = mul(x, 0.03)",
          "y = sub(add(x: f64[n], z: f64[n]), x) => y = z",
          "y = tanh(x: f32[n]) => y = sub(div(2.0, add(exp(mul(x, -2.0)), 1.0)), 1.0)",
      },
      RuleVerdict::rounds);
}

TEST_CASE("machine: floats whose overflow nobody looked for", "[proof]") {
  expect_all(
      {
          "y = f32(cumsum(x: f16[n, d]){dim = 1}) => y = cumsum(f32(x)){dim = 1}",
          "y = mean(x: f16[n, 70000]){dim = 1} => y = div(sum(x){dim = 1}, 70000.0)",
      },
      RuleVerdict::unknown);
}

TEST_CASE("machine: floats that keep every bit", "[proof]") {
  expect_all(
      {"y = mul(a: f32[n], b: f32[n]) => y = mul(b, a)",
       "y = neg(mul(a: f16[n], b: f16[n])) => y = mul(neg(a), b)",
       "y = mul(x: f64[n], 2.0) => y = add(x, x)", "y = div(x: f64[n], 4.0) => y = mul(x, 0.25)",
       "y = abs(mul(a: f64[n], b: f64[n])) => y = mul(abs(a), abs(b))",
       "y = mm(transpose(b: f32[k, m]){dim0 = 0, dim1 = 1}, a: f32[k, n])"
       " => y = transpose(mm(transpose(a){dim0 = 0, dim1 = 1}, b)){dim0 = 0, dim1 = 1}",
       "y = f16(f32(x: f16[n])) => y = x", "y = sub(a: f32[n], b: f32[n]) => y = add(a, neg(b))",
       "y = f8e4m3(minimum(x: f32[n], 448.0)) => y = f8e4m3(x)"},
      RuleVerdict::same_bits);
  CHECK(proof_of("y = div(x: f64[n], 3.0) => y = mul(x, 0.333333333333333333)").verdict !=
        RuleVerdict::same_bits);
  // f8e5m2 keeps infinity, which a bound does not.
  CHECK(proof_of("y = f8e5m2(minimum(x: f32[n], 57344.0)) => y = f8e5m2(x)").verdict !=
        RuleVerdict::same_bits);
}

TEST_CASE("machine: an element is what the interpreter computes", "[proof]") {
  const proof::Proof wraps = proof_of("y = lt(a: i32[n], add(a, 1)) => y = eq(a, a)");
  CHECK(wraps.element == "for a[i0] = 2147483647 the left is false and the right true");
  // A solver has no notion of exp: 2.73 on both sides is not an element.
  const proof::Proof exponentials =
      proof_of("y = mul(exp(a: f32[n]), exp(c: f32[n])) => y = exp(add(a, c))");
  CHECK(exponentials.element.find("the right NaN") == std::string::npos);
}

TEST_CASE("machine: terms that share parts are walked once", "[proof]") {
  std::string squares = "v0 = neg(x: f32[n])  ", sums = "v0 = neg(x: f32[n])  ";
  for (int i = 1; i < 60; ++i) {
    const std::string last = "v" + std::to_string(i - 1), next = "v" + std::to_string(i);
    squares += next + " = mul(" + last + ", " + last + ")  ";
    sums += next + (i % 2 == 0 ? " = mul(" : " = add(") + last + ", " + last + ")  ";
  }
  CHECK(proof_of(squares + "=> v59 = neg(x)").verdict == RuleVerdict::unknown);
  CHECK(proof_of(sums + "=> v59 = neg(x)").verdict == RuleVerdict::unknown);
  std::string chain = "v0 = exp(x: f32[n])  ";
  for (int i = 1; i < 600; ++i)
    chain += "v" + std::to_string(i) + " = exp(v" + std::to_string(i - 1) + ")  ";
  const proof::Proof deep = proof_of(chain + "=> v599 = neg(x)");
  CHECK(deep.verdict == RuleVerdict::unknown);
  CHECK(deep.reason.starts_with("limit: "));
}

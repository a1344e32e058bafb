// Rules that are wrong, each in its own way: over signs, ranges, dtypes, extents, groups, writes
// and traits. The check accepts none of them; and what is right but for special values has its
// verdict.
#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"

namespace {

using namespace pw;
using namespace pw::test;

RuleCheck checked(const std::string& text) {
  const RuleSet rules =
      rules_of("param tp: int = 1  rule r { " + text + " }  pass all = greedy { r } fuel 1");
  static const RuleCheckOptions options;  // GCC 12 takes a temporary's function for uninitialised
  return check_rule(rules, rules.resolve("r").at(0), bind_params(rules, {}).value(), options);
}

constexpr const char* kFalse[] = {
    // signs
    "y = abs(x) => y = x",
    "y = relu(x) => y = x",
    "y = neg(x) => y = x",
    "y = abs(neg(x)) => y = neg(x)",
    "y = sqrt(mul(x, x)) => y = x",
    "y = maximum(x, y0) => y = x",
    "y = add(x, y0) => y = sub(x, y0)",
    "y = sub(x, y0) => y = sub(y0, x)",
    "y = pow(x, 2) => y = mul(x, abs(x))",
    "y = mul(x, x) => y = abs(x)",
    "y = sin(x) => y = sin(abs(x))",
    "y = silu(x) => y = relu(x)",
    "y = maximum(x, 0) => y = abs(x)",
    "y = tanh(neg(x)) => y = tanh(x)",
    "y = lt(x, y0) => y = le(x, y0)",
    "y = ge(x, y0) => y = gt(x, y0)",
    "y = eq(x, y0) => y = ge(x, y0)",
    "y = amax(x: T[n, d]) => y = amin(x)",
    // ranges
    "y = exp(log(x)) => y = x",
    "y = log(exp(x)) => y = x",
    "y = div(x, x) => y = sigmoid(mul(abs(x), 1e30))",
    "y = mul(div(x, y0), y0) => y = x",
    "y = div(mul(x, y0), y0) => y = x",
    "y = sub(add(x, y0), y0) => y = x",
    "y = sin(x) => y = x",
    "y = tanh(x) => y = x",
    "y = sigmoid(x) => y = add(mul(x, 0.25), 0.5)",
    "y = clamp(x){min = -1e4, max = 1e4} => y = x",
    "y = clamp(x){min = 0.0, max = 100.0} => y = relu(x)",
    "y = rsqrt(x) => y = sqrt(x)",
    "y = div(1.0, div(1.0, x: f32)) => y = x",
    "y = gelu(x: f32) => y = gelu_tanh(x)",
    "y = exp(sub(x, y0)) => y = div(exp(x), exp(y0))",
    ("e = exp(sub(x: T[n, m], amax(x){dim = 1, keepdim = true}))"
     "  y = div(e, sum(e){dim = 1, keepdim = true})"
     " => f = exp(x)  y = div(f, sum(f){dim = 1, keepdim = true})"),
    // dtypes
    "y = f32(bf16(x: f32)) => y = x",
    "y = f32(f16(x: f32)) => y = x",
    "y = bf16(f16(x: bf16)) => y = x",
    "y = f16(bf16(x: f16)) => y = x",
    "y = bf16(f16(x: f32)) => y = bf16(x)",
    "y = f32(f8e4m3(x: f32)) => y = x",
    "y = f16(f8e5m2(x: f16)) => y = x",
    "y = f64(f32(x: f64)) => y = x",
    "y = f32(i32(x: f32)) => y = x",
    "y = i32(f32(x: i32)) => y = x",
    "y = i64(i32(x: i64)) => y = x",
    "y = i32(i8(x: i32)) => y = x",
    "y = i32(u8(x: i32)) => y = x",
    "y = f32(b8(x: f32)) => y = x",
    "y = f32(f16(x: bf16)) => y = f32(x)",
    // extents and axes
    "y = mul(sum(x: f32[n, d]){dim = 1}, 0.125) => y = mean(x){dim = 1}",
    "y = transpose(x: f32[d, d]){dim0 = 0, dim1 = 1} => y = x",
    "y = cat(x: f32[n, d], y0: f32[n, d]){dim = 0} => y = cat(y0, x){dim = 0}",
    "y = mean(mul(x: f32[n, d], x)){dim = 1} => y = mul(mean(x){dim = 1}, mean(x){dim = 1})",
    "y = sum(abs(x: f32[n, d])){dim = 1} => y = abs(sum(x){dim = 1})",
    "a, b = split(x: f32[n, d]){dim = 1, sizes = [h, h]}  y = cat(a, b){dim = 1} where d == 2 * h"
    " => c, e = split(x){dim = 1, sizes = [h, h]}  y = cat(e, c){dim = 1}",
    "y = slice_scatter(x: f32[n, d], s: f32[n, e]){dim = 1, start = 0, end = e} => y = x",
    // groups of ranks
    "y = all_reduce(x: f32[n, d]){group} => y = x  _ = group",
    "y = relu(all_reduce(x: f32[n, d]){group}) => y = all_reduce(relu(x)){group}",
    "y = reduce_scatter(x: T[n, d]){dim = 0, world, group} => y = shard(x){dim = 0, world, group}",
    "y = all_reduce(x: f32[n, d]){group} => y = all_reduce(all_reduce(x){group}){group}",
    "y = all_gather(shard(x: f32[n, d]){dim = 0, world, group}){dim = 0, world, group} => y = x",
};

/// Right where every group is all ranks.
constexpr const char* kFalseForSomeGroups[] = {
    "y = all_reduce(x: f32[n, d]){group = \"a\"} => y = all_reduce(x){group = \"b\"}",
    "y = all_gather(x: f32[n, d]){dim = 0, world, group = \"a\"}"
    " => y = all_gather(x){dim = 0, world, group = \"b\"}",
    "y = shard(x: f32[n, d]){dim = 0, world, group = \"a\"}"
    " => y = shard(x){dim = 0, world, group = \"b\"}",
    "y = all_reduce(all_reduce(x: f32[n, d]){group = \"a\"}){group = \"b\"}"
    " => y = all_reduce(all_reduce(x){group = \"b\"}){group = \"b\"}",
    "y = reduce_scatter(x: f32[n, d]){dim = 0, world, group = \"a\"}"
    " => y = shard(all_reduce(x){group = \"b\"}){dim = 0, world, group = \"a\"}",
    "y = all_gather(shard(x: f32[8, d]){dim = 0, world, group = \"a\"})"
    "{dim = 0, world, group = \"a\"} where replicated(x, \"b\") => y = x",
    "y = all_reduce(x: f32[n, d]){group = \"a\"} where replicated(x, \"b\")"
    " => y = all_reduce(x){group = \"b\"}",
};

}  // namespace

TEST_CASE("false rules: what holds for groups of all ranks only is refuted on others", "[verify]") {
  for (const char* text : kFalseForSomeGroups) {
    const RuleCheck check = checked(text);
    INFO(text << "\n" << check.judgement.print());
    CHECK(check.judgement.verdict == RuleVerdict::refuted);
    CHECK(check.judgement.reason.find("ranks, where `") != std::string::npos);
  }
}

TEST_CASE("false rules: none is accepted", "[verify]") {
  for (const char* text : kFalse) {
    const RuleCheck check = checked(text);
    INFO(text << "\n" << check.judgement.print());
    CHECK(check.instances >= 1);
    CHECK_FALSE(check.holds());
  }
}

TEST_CASE("false rules: a rule that differs only for special values is reported with them",
          "[verify]") {
  struct Case {
    const char* text;
    Specials only;
  };
  const Case cases[] = {
      {"y = sub(x: T[*s], x) where T in {f32, f16, bf16} => y = full(){shape = [*s], value = 0.0, "
       "dtype = T}",
       {true, true, false}},
      {"y = mul(x: T[*s], 0) where T in {f32, f16, bf16} => y = full(){shape = [*s], value = 0.0, "
       "dtype = T}",
       {true, true, true}},
      {"y = ge(x: T[*s], x) where T in {f32, f16, bf16} => y = full(){shape = [*s], value = 1.0, "
       "dtype = b8}",
       {true, false, false}},
      {"y = abs(x: T[*s]) where T in {f32, f16, bf16} => y = maximum(x, neg(x))",
       {false, false, true}},
  };
  for (const auto& [text, only] : cases) {
    const RuleCheck check = checked(text);
    INFO(text << "\n" << check.judgement.print());
    CHECK(check.judgement.verdict == RuleVerdict::differs_only_for);
    CHECK(check.judgement.specials.nan == only.nan);
    CHECK(check.judgement.specials.infinity == only.infinity);
    CHECK(check.judgement.specials.zero_sign == only.zero_sign);
  }
}

TEST_CASE("false rules: a refusal shows the sample that it was seen on", "[verify]") {
  const RuleCheck narrow = checked("y = f16(bf16(x: f16)) => y = x");
  CHECK(narrow.judgement.verdict == RuleVerdict::may_overflow);
  CHECK(narrow.judgement.reason.find("x = ") != std::string::npos);
  CHECK(narrow.by_dtype.contains("f16"));
}

TEST_CASE("true rules: equal bits, and equal but for rounding", "[verify]") {
  const auto verdict = [](const char* text) { return checked(text).judgement.verdict; };
  CHECK(verdict("y = neg(neg(x)) => y = x") == RuleVerdict::same_bits);
  CHECK(verdict("y = relu(relu(x)) => y = relu(x)") == RuleVerdict::same_bits);
  CHECK(verdict("y = f16(f32(x: f16)) => y = x") == RuleVerdict::same_bits);
  CHECK(verdict("y = mul(x: f32, 0.1) * 0.3 => y = mul(x, 0.03)") == RuleVerdict::rounds);
  // The length of a sum decides its order, and products of two numbers commute.
  CHECK(verdict("y = mm(transpose(x: T[n, k]){dim0 = 0, dim1 = 1},"
                " transpose(w: T[m, n]){dim0 = 0, dim1 = 1})"
                " => y = transpose(mm(w, x)){dim0 = 0, dim1 = 1}") == RuleVerdict::same_bits);
  // Sums in another order.
  CHECK(verdict("y = sum(sum(x: f64[n, m]){dim = 1}){dim = 0}"
                " => y = sum(reshape(x){shape = [n * m]}){dim = 0}") == RuleVerdict::rounds);
}

TEST_CASE("true rules: over groups of all ranks, of some, and of one", "[verify]") {
  const char* kTrue[] = {
      "y = relu(all_gather(all_reduce(x: f32[n, d]){group = \"a\"}){dim = 0, world, group = \"b\"})"
      " => y = all_gather(relu(all_reduce(x){group = \"a\"})){dim = 0, world, group = \"b\"}",
      "y = all_gather(shard(x: f32[8, d]){dim = 0, world, group}){dim = 0, world, group}"
      " where replicated(x, group) => y = x",
      "y = all_reduce(x: f32[n, d]){group = \"a\"} where n % tp == 0"
      " => y = all_gather(reduce_scatter(x){dim = 0, world = tp, group = \"a\"})"
      "{dim = 0, world = tp, group = \"a\"}",
      "y = all_gather(x: f32[n, d]){dim = 0, world, group} where world == 1 => y = x  _ = group",
      "y = reduce_scatter(x: f32[n, d]){dim = 0, world, group} where world == 2"
      " => y = shard(all_reduce(x){group}){dim = 0, world, group}",
      "y = all_reduce(relu(x: f32[n, d])){group} where replicated(x, group)"
      " => y = relu(all_reduce(x){group})",
  };
  for (const char* text : kTrue) {
    const RuleCheck check = checked(text);
    INFO(text << "\n" << check.judgement.print());
    CHECK(check.instances >= 2);
    CHECK(check.ranks == std::vector<std::int64_t>{2, 4});
    CHECK(check.holds());
  }
}

TEST_CASE("true rules: guards are met by search", "[verify]") {
  const auto found = [](const char* text) { return checked(text).instances; };
  CHECK(found("y = relu(relu(x: T[n, d])) where d == 2880, T == i32 => y = relu(x)") >= 1);
  CHECK(found("y = relu(relu(x: f32[n, d])) where d % 1000 == 0 => y = relu(x)") >= 1);
  CHECK(found("y = relu(relu(x: T[n, d])) where d > 4000, d < 4100 => y = relu(x)") >= 1);
  CHECK(found("y = relu(add(x: f32[*s], full(){shape = [*s], value = 0.0, dtype = f32})) => y = "
              "relu(x)") >= 1);
  CHECK(found("y = relu(scaled_mm(a, b, sa, sb){out = bf16}) => y = relu(scaled_mm(a, b, sa, "
              "sb){out = bf16})") >= 1);
}

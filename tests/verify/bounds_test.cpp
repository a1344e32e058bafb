// Error bounds: what an engine gives lies within them, and they are not far from what it is off by.
// And the consequences for rules: correct ones are not refuted for rounding, another order of sums,
// or intermediate overflow; wrong ones are.
#include "verify/bounds.hpp"

#include <cmath>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "tests/backends/graphs.hpp"
#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"
#include "verify/samples/sample.hpp"
#include "verify/samples/sampled_graph.hpp"

namespace {

using namespace pw;
using namespace pw::test;

Judgement judged(const std::string& sides) {
  const RuleSet rules = rules_of("rule r { " + sides + " }");
  return check_rule(rules, rules.resolve("r").at(0), bind_params(rules, {}).value()).judgement;
}

RuleVerdict verdict_of(const std::string& sides) {
  const Judgement judgement = judged(sides);
  UNSCOPED_INFO(sides << "\n" << judgement.print());
  return judgement.verdict;
}

/// The largest error of an element in units of its bound.
double largest_share(const Graph& graph) {
  const Symbols symbols = sample_symbols(graph, 7);
  const Step step = sample_step(graph, symbols);
  double most = 0;
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::vector<Weights> weights = weights_of_ranks(graph, 1, 1);
    REQUIRE(give_contents(weights, graph, symbols, Contents::ordinary, round));
    SampledGraph sampled(graph);
    const DrawnSample sample{weights, symbols, step};
    const auto typed = sampled.run(sample);
    const auto bounds = sampled.bounds(sample, {});
    REQUIRE(typed);
    REQUIRE(bounds);
    for (std::size_t i = 0; i < typed->front().size(); ++i) {
      const Tensor& got = typed->front()[i];
      const BoundedTensor& bound = bounds->front()[i];
      for (std::int64_t k = 0; k < got.view().count(); ++k) {
        const double error =
            std::fabs(load(got.dtype(), got.data(), k) - load(DType::f64, bound.exact.data(), k));
        const double allowed = bound.error[static_cast<std::size_t>(k)];
        INFO(print_pwg(graph) << i << "[" << k << "]: " << error << " of " << allowed);
        CHECK(error <= allowed);
        if (allowed > 0) most = std::max(most, error / allowed);
      }
    }
  }
  return most;
}

}  // namespace

TEST_CASE("bounds: a run in the dtypes stays within them, and comes near", "[verify]") {
  const char* kGraphs[] = {
      "  in x: f32[n, 40]\n  y = mul(exp(x), x)\n  out y",
      "  in x: f16[n, 40]\n  in z: f16[n, 40]\n  y = div(add(x, z), 3.0)\n  out y",
      "  in x: bf16[n, 40]\n  y = sum(mul(x, x)){dim = 1}\n  out y",
      "  in x: f32[n, 40]\n  w = softmax_like(x)\n  out w",
      "  in a: f32[n, 30]\n  in b: f32[30, 20]\n  y = mm(a, b)\n  out y",
      "  in a: bf16[n, 30]\n  in b: bf16[30, 20]\n  y = silu(mm(a, b))\n  out y",
      "  in x: bf16[n, 40]\n  in w: bf16[40]\n  y = rms_norm(x, w){eps = 1e-6}\n  out y",
      "  in x: f32[n, 12]\n  y = tanh(cumsum(x){dim = 1})\n  out y",
      "  in x: f32[n, 12]\n  y = amax(sin(x)){dim = 1}\n  out y",
      "  in x: f32[n, 12]\n  y = prod(add(abs(x), 0.5)){dim = 1}\n  out y",
      "  in x: f64[n, 12]\n  y = mean(mul(x, x)){dim = 0}\n  out y",
      "  in x: bf16[n, 64]\n  q, s = dynamic_per_token_fp8_quant(x)\n  out q, s",
      "  in x: f32[n, 64]\n  y = select(gt(x, 0.5), sqrt(abs(x)), mul(x, x))\n  out y",
  };
  for (std::string text : kGraphs) {
    if (const std::size_t at = text.find("softmax_like(x)"); at != std::string::npos)
      text.replace(
          at, 15,
          "div(exp(sub(x, amax(x){dim = 1, keepdim = true})), sum(exp(sub(x, amax(x){dim = "
          "1, keepdim = true}))){dim = 1, keepdim = true})");
    const double share = largest_share(graph_of(text));
    INFO(text);
    CHECK(share > 1e-3);
  }
}

TEST_CASE("bounds: sums in another order round, and are not refuted", "[verify]") {
  const char* kRight[] = {
      "y = mean(mean(x: f32[n, m]){dim = 1}){dim = 0} => y = mean(reshape(x){shape = [n * m]}){dim "
      "= 0}",
      "y = sum(sum(x: f32[n, m]){dim = 1}){dim = 0} => y = sum(reshape(x){shape = [n * m]}){dim = "
      "0}",
      "y = add(add(a: f32[*s], b: f32[*s]), c: f32[*s]) => y = add(a, add(b, c))",
      "y = add(add(a: f64[*s], b: f64[*s]), c: f64[*s]) => y = add(a, add(b, c))",
      "y = mm(x: f32[n, k], cat(w: f32[k, m], v: f32[k, p]){dim = 1}) => y = cat(mm(x, w), mm(x, "
      "v)){dim = 1}",
      "y = mm(transpose(x: f32[n, k]){dim0 = 0, dim1 = 1}, transpose(w: f32[m, n]){dim0 = 0, dim1 "
      "= 1}) => y = transpose(mm(w, x)){dim0 = 0, dim1 = 1}",
  };
  for (const char* text : kRight) {
    const RuleVerdict verdict = verdict_of(text);
    CHECK((verdict == RuleVerdict::rounds || verdict == RuleVerdict::same_bits));
  }
}

TEST_CASE("bounds: intermediate overflow and underflow are reported", "[verify]") {
  const char* kOverflow[] = {
      "y = mul(exp(a: f32[*s]), exp(b: f32[*s])) => y = exp(add(a, b))",
      "y = div(exp(a: f32[*s]), exp(b: f32[*s])) => y = exp(sub(a, b))",
      "y = log(exp(x: f32[*s])) => y = x",
      "y = sqrt(mul(x: f32[*s], x)) => y = abs(x)",
      "y = div(x: f32[*s], c: f32[*s]) => y = mul(x, div(1.0, c))",
      "y = div(x: f32[*s], c: f32[]) => y = mul(x, div(1.0, c))",
      "y = div(x: f32[*s], c: f32[1]) => y = mul(x, div(1.0, c))",
      "y = f32(f16(x: f32[*s])) => y = x",
      "y = f16(bf16(x: f16[*s])) => y = x",
      "y = mul(mul(a: f32[*s], b: f32[*s]), c: f32[*s]) => y = mul(a, mul(b, c))",
      "y = mul(add(x: f32[*s], z: f32[*s]), 0.125) => y = add(mul(x, 0.125), mul(z, 0.125))",
      "e = exp(x: f32[n, m])  y = div(e, sum(e){dim = 1, keepdim = true})"
      " => f = exp(sub(x, amax(x){dim = 1, keepdim = true}))"
      "  y = div(f, sum(f){dim = 1, keepdim = true})",
  };
  for (const char* text : kOverflow) CHECK(verdict_of(text) == RuleVerdict::may_overflow);
}

TEST_CASE("bounds: another function is refuted, and so is a coarser one", "[verify]") {
  const char* kWrong[] = {
      "y = maximum(abs(x: i8[*s]), 0) => y = abs(x)",
      "y = maximum(abs(x: i32[*s]), 0) => y = abs(x)",
      "y = maximum(abs(x: i64[*s]), 0) => y = abs(x)",
      "y = lt(x: i32[*s], add(x, 1)) => y = eq(x, x)",
      "y = i32(add(a: i8[*s], b: i8[*s])) => y = add(i32(a), i32(b))",
      "y = i64(mul(a: i32[*s], b: i32[*s])) => y = mul(i64(a), i64(b))",
      "y = mul(x: f32[*s], 1.001) => y = x",
      "y = mul(x: bf16[*s], 1.001) => y = x",
      "y = neg(neg(x: f32[*s])) => y = f32(bf16(x))",
      "y = sum(x: f32[n, d]){dim = 1} => y = sum(f32(bf16(x))){dim = 1}",
      "y = rms_norm(x: f32[n, d], w: f32[d]){eps} => y = x / (sqrt(mean(x * x){dim = -1, keepdim = "
      "true}) + eps) * w",
      "y = floor(x: f32[*s]) => y = trunc(x)",
      "y = f8e4m3(x: f32[*s]) => y = f8e4m3(mul(x, 1.03))",
  };
  for (const char* text : kWrong) CHECK(verdict_of(text) == RuleVerdict::refuted);
}

TEST_CASE("bounds: a cast there and back is an identity for some dtypes only", "[verify]") {
  CHECK_FALSE(judged("y = T(f32(x: T[*s])) => y = x").holds());
  CHECK(verdict_of("y = T(f32(x: T[*s])) where T in {f16, bf16, i8, u8} => y = x") ==
        RuleVerdict::same_bits);
  CHECK(verdict_of("y = T(f32(x: T[*s])) where T == i64 => y = x") == RuleVerdict::refuted);
  CHECK(verdict_of("y = T(f32(x: T[*s])) where T == f64 => y = x") == RuleVerdict::may_overflow);
}

TEST_CASE("bounds: a rule that leaves the graph as it is holds", "[verify]") {
  CHECK(verdict_of("y = add(x: f32[*s], c: f32[*s]) => y = add(c, x)") == RuleVerdict::same_bits);
}

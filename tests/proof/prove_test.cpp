// Verdicts on rules of every kind: what moves elements, what rounds, what differs for special
// values, what is wrong.
#include "proof/prove.hpp"

#include <map>
#include <string>
#include <utility>

#include "tests/verify/rules.hpp"

namespace {

using namespace pw;
using namespace pw::test;

proof::Proof proved(const std::string& text) {
  const RuleSet rules =
      rules_of("param tp: int = 1  rule r { " + text + " }  pass all = greedy { r } fuel 1");
  const Env params = bind_params(rules, {}).value();
  proof::Prover prover(rules, params);
  return prover.prove(rules.resolve("r").at(0));
}

void check_all(std::initializer_list<const char*> texts, RuleVerdict verdict) {
  for (const char* text : texts) {
    const proof::Proof proof = proved(text);
    INFO(text << "\n" << name(proof.verdict) << ": " << proof.reason << proof.uncovered);
    CHECK(proof.verdict == verdict);
    CHECK(proof.cases > 0);
  }
}

}  // namespace

TEST_CASE("prove: moves of elements keep every bit", "[proof]") {
  check_all(
      {
          "y = reshape(reshape(x: T[n, h * d]){shape = [n, h, d]}){shape = [n, h * d]} => y = x",
          "y = transpose(transpose(x){dim0, dim1}){dim0 = dim1, dim1 = dim0} => y = x",
          "a, c = split(x: T[n, d]){dim = 1, sizes = [p, q]}  y = cat(a, c){dim = 1} => y = x  _ = "
          "a"
          "  _ = c  _ = p  _ = q",
          "y = slice(cat(a: T[n, p], c: T[n, q]){dim = 1}){dim = 1, start = p, end = p + q}"
          " => y = c",
          "y = relu(reshape(x){shape}) => y = reshape(relu(x)){shape}",
          "y = cat(relu(a: T[n, p]), relu(c: T[n, q])){dim = 1} => y = relu(cat(a, c){dim = 1})",
      },
      RuleVerdict::same_bits);
}

TEST_CASE("prove: arithmetic in the same order keeps every bit", "[proof]") {
  check_all({"y = neg(neg(x)) => y = x", "y = relu(relu(x)) => y = relu(x)",
             "y = f16(f32(x: f16)) => y = x", "y = mul(abs(x: f32), abs(x)) => y = mul(x, x)",
             "y = add(a: f32[n], c: f32[n]) => y = add(c, a)",
             "y = mm(transpose(x: f32[a, b]){dim0 = 0, dim1 = 1},"
             " transpose(w: f32[c, a]){dim0 = 0, dim1 = 1})"
             " => y = transpose(mm(w, x)){dim0 = 0, dim1 = 1}"},
            RuleVerdict::same_bits);
}

TEST_CASE("prove: equal over the reals", "[proof]") {
  check_all({"y = mul(x: f32, 0.1) * 0.3 => y = mul(x, 0.03)",
             "y = sum(sum(x: f32[a, b]){dim = 1}){dim = 0}"
             " => y = sum(reshape(x){shape = [a * b]}){dim = 0}"},
            RuleVerdict::rounds);
}

TEST_CASE("prove: coefficients are exact but for the rounding of constants", "[proof]") {
  const std::string rounded = "constants that agree to 12 digits are equal";
  CHECK(proved("y = mul(x: f32, 0.1) * 0.3 => y = mul(x, 0.03)").granted.contains(rounded));
  const proof::Proof exact = proved("y = mul(x: f32, 0.75) * 0.5 => y = mul(x, 0.375)");
  CHECK(exact.verdict == RuleVerdict::rounds);
  CHECK_FALSE(exact.granted.contains(rounded));
  check_all({"y = add(mul(x: f32[n], 1e14), c: f32[n]) => y = mul(x, 1e14)",
             "y = mul(x: f32[n], 3.00001) => y = mul(x, 3.0)"},
            RuleVerdict::unknown);
}

TEST_CASE("prove: equal over the reals, but one side overflows", "[proof]") {
  check_all(
      {"y = mul(exp(a: f32[n]), exp(c: f32[n])) => y = exp(a + c)",
       "y = f32(bf16(x: f32)) => y = x", "y = div(x: f32[n], c: f32[n]) * k => y = div(x * k, c)",
       "y = sum(x: f32[n, d]){dim = 1} * 3.0 => y = sum(x * 3.0){dim = 1}"},
      RuleVerdict::may_overflow);
}

TEST_CASE("prove: collectives over the ranks of a group", "[proof]") {
  check_all({"y = shard(all_gather(x: f32[n, d]){dim = 0, world, group}){dim = 0, world, group}"
             " => y = x",
             "y = all_reduce(x: f32[n, d]){group = \"a\"} where n % tp == 0"
             " => y = all_gather(reduce_scatter(x){dim = 0, world = tp, group = \"a\"})"
             "{dim = 0, world = tp, group = \"a\"}"},
            RuleVerdict::same_bits);
}

TEST_CASE("prove: what is wrong has no proof", "[proof]") {
  check_all({"y = abs(x) => y = x", "y = relu(x) => y = x", "y = sub(x, z) => y = sub(z, x)",
             "y = neg(x: f32) => y = f32(bf16(neg(x)))", "y = exp(log(x)) => y = x",
             "y = div(x: f32, x) => y = add(mul(x, 0.0), 1.0)", "y = div(mul(x, z), z) => y = x",
             "y = silu(x) => y = relu(x)", "y = amax(x: T[n, d]) => y = amin(x)",
             "y = transpose(x: f32[n, n]){dim0 = 0, dim1 = 1} => y = x",
             "y = reshape(transpose(x: f32[n, m]){dim0 = 0, dim1 = 1}){shape = [n * m]}"
             " => y = reshape(x){shape = [n * m]}",
             "y = all_reduce(x: f32[n, d]){group} => y = x  _ = group",
             "y = relu(all_reduce(x: f32[n, d]){group}) => y = all_reduce(relu(x)){group}",
             "y = all_gather(shard(x: f32[n, d]){dim = 0, world, group}){dim = 0, world, group}"
             " where n % world == 0 => y = x",
             "y = lt(x, z) => y = le(x, z)", "y = mean(x: f32[n, d]) => y = sum(x)"},
            RuleVerdict::unknown);
}

TEST_CASE("prove: an f32 that the right side rounds to bf16 underflows there", "[proof]") {
  check_all({"y = mul(f32(x: bf16[n]), w: f32[n]) => y = f32(mul(x, bf16(w)))"},
            RuleVerdict::may_overflow);
}

TEST_CASE("prove: an f64 that the right side narrows may overflow there", "[proof]") {
  check_all({"y = f32(mul(x: f64[n], z: f64[n])) => y = mul(f32(x), f32(z))"},
            RuleVerdict::may_overflow);
  // Products that nearly cancel magnify the rounding of the factors.
  check_all({"y = f32(sub(mul(x: f64[n], z: f64[n]), x)) => y = sub(mul(f32(x), f32(z)), f32(x))"},
            RuleVerdict::unknown);
  // One that it has no use for is not narrowed.
  check_all({"y = sub(add(x: f64[n], z: f64[n]), x) => y = z"}, RuleVerdict::rounds);
}

TEST_CASE("prove: guards on axes and dtypes leave out cases", "[proof]") {
  const std::string reads =
      "y = slice(transpose(a){dim0 = p, dim1 = q}){dim, start = 0, end = k, step = 1}"
      " where dim != p, ";
  const std::string moved =
      "k <= size(a, dim) => y = transpose(slice(a){dim, start = 0, end = k, step = 1})"
      "{dim0 = p, dim1 = q}";
  check_all({(reads + "dim != q, " + moved).c_str(),
             "y = add(x: T[*s], 0) where T in {i64, i32, i8, u8} => y = x"},
            RuleVerdict::same_bits);
  check_all({(reads + moved).c_str(), "y = add(x: T[*s], 0) => y = x"}, RuleVerdict::unknown);
  CHECK(proved("y = add(x: T[*s], 0) where T != b8 => y = x").proved() == proof::Solver::present());
}

TEST_CASE("prove: attributes that are any number have any sign and order", "[proof]") {
  check_all({"y = maximum(relu(x: f32[n]), c) => y = maximum(x, c)  _ = c",
             "y = minimum(maximum(x: f32[n], c), d) => y = maximum(minimum(x, d), c)",
             "y = abs(mul(x: f32[n], c)) => y = mul(abs(x), c)"},
            RuleVerdict::unknown);
  CHECK(proved("y = minimum(maximum(x: f32[n], c), d) where c <= d"
               " => y = maximum(minimum(x, d), c)")
            .proved());
}

TEST_CASE("prove: sums of sums are one sum, in any order and numbering", "[proof]") {
  check_all({"y = sum(sum(x: f32[n, m, k]){dim = -1}){dim = -1}"
             " => y = sum(reshape(x){shape = [n, m * k]}){dim = -1}"},
            RuleVerdict::rounds);
  // Right over the reals; a product or a sum in the middle may leave the range.
  check_all({"y = mm(a: f32[n, k], mm(b: f32[k, l], c: f32[l, m])) => y = mm(mm(a, b), c)",
             "y = mul(sum(a: f32[n]){dim = 0}, sum(c: f32[m]){dim = 0})"
             " => y = sum(sum(mul(reshape(a){shape = [n, 1]}, reshape(c){shape = [1, m]}))"
             "{dim = -1}){dim = -1}"},
            RuleVerdict::may_overflow);
  check_all({"y = sum(mul(a: f32[n], c: f32[n])){dim = 0} => y = mul(sum(a){dim = 0}, sum(c)"
             "{dim = 0})",
             "y = sum(sum(x: f32[n, n]){dim = -1} * w){dim = 0}"
             " => y = sum(sum(x){dim = 0} * w){dim = 0}",
             "y = sum(mul(sum(x: f32[n, m]){dim = 1}, sum(x){dim = 1})){dim = 0}"
             " => y = sum(sum(mul(x, x)){dim = 1}){dim = 0}",
             "y = mm(a: f32[n, n], mm(b: f32[n, n], c: f32[n, n])) => y = mm(mm(b, a), c)"},
            RuleVerdict::unknown);
}

TEST_CASE("prove: what is padded, and where", "[proof]") {
  // The op's own words for two ways to pad.
  check_all({"y = pad_last(x: T[*s, n], v: T[]){low = 2, high = 1}"
             " => y = cat(expand(v){shape = [*s, 2]}, x, expand(v){shape = [*s, 1]}){dim = -1}",
             "y = pad_last(x: T[*s, n], v: T[]){low = -2} where n >= 3"
             " => y = slice(x){dim = -1, start = 2, end = n}"},
            RuleVerdict::same_bits);
  check_all({"y = pad_last(x: T[*s, n], v: T[]){low = 2, high = 1}"
             " => y = pad_last(x, v){low = 1, high = 2}",
             "y = pad_last(x: T[*s, n], v: T[]){low, high} where low >= 0, high >= 0"
             " => y = pad_last(x, v){low = high, high = low}"},
            RuleVerdict::unknown);
}

TEST_CASE("prove: a solver names the special values", "[proof][z3]") {
  if (!proof::Solver::present()) {
    WARN("built without Z3: verdicts on IEEE arithmetic are not tested");
    return;
  }
  struct Case {
    const char* text;
    Specials only;
  };
  const Case cases[] = {
      {"y = sub(x: f16[*s], x) => y = full(){shape = [*s], value = 0.0, dtype = f16}",
       {true, true, false}},
      {"y = mul(x: f16[*s], 0.0) => y = full(){shape = [*s], value = 0.0, dtype = f16}",
       {true, true, true}},
      {"y = ge(x: bf16[*s], x) => y = full(){shape = [*s], value = 1.0, dtype = b8}",
       {true, false, false}},
      {"y = add(x: f32[*s], 0.0) => y = x", {false, false, true}},
  };
  for (const auto& [text, only] : cases) {
    const proof::Proof proof = proved(text);
    INFO(text << "\n" << name(proof.verdict) << ": " << proof.reason << proof.element);
    CHECK(proof.verdict == RuleVerdict::differs_only_for);
    CHECK(proof.specials.nan == only.nan);
    CHECK(proof.specials.infinity == only.infinity);
    CHECK(proof.specials.zero_sign == only.zero_sign);
    CHECK_FALSE(proof.element.empty());
  }
}

TEST_CASE("prove: elements are shown as numbers", "[proof][z3]") {
  if (!proof::Solver::present()) return;
  CHECK(proved("y = add(x: f32[*s], 0.0) => y = x").element ==
        "for x[i0] = -0 the left is 0 and the right -0");
  const std::string nan = proved(
                              "y = ge(x: bf16[*s], x) => y = full(){shape = [*s], value = 1.0,"
                              " dtype = b8}")
                              .element;
  CHECK(nan == "for x[i0] = NaN the left is false and the right true");
  const std::string special =
      proved("y = sub(x: f16[*s], x) => y = full(){shape = [*s], value = 0.0, dtype = f16}")
          .element;
  INFO(special);
  CHECK(special.ends_with(" the left is NaN and the right 0"));
  CHECK((special.starts_with("for x[i0] = inf ") || special.starts_with("for x[i0] = -inf ")));
}

TEST_CASE("prove: guards that a proof needs, and that it does not", "[proof]") {
  const proof::Proof needed =
      proved("y = slice(x: T[n, d]){dim = 1, start = 0, end} where end >= d => y = x");
  CHECK(needed.verdict == RuleVerdict::same_bits);
  const proof::Proof unneeded = proved("y = neg(neg(x: T[n])) where n >= 8 => y = x");
  CHECK(unneeded.verdict == RuleVerdict::same_bits);
  CHECK(unneeded.unneeded == std::vector<std::string>{"n >= 8"});
  CHECK(unneeded.needed.empty());
}

TEST_CASE("prove: decides at least 95 % of the library, three quarters to the bit", "[proof]") {
  const RuleSet rules = library_rules();
  const Env params = bind_params(rules, {}).value();
  proof::Prover prover(rules, params);
  // By rule: whether all of its spellings are decided, and whether one has the same bits.
  std::map<std::string, std::pair<bool, bool>> decided;
  std::string rest;
  for (std::size_t i = 0; i < rules.rules.size(); ++i) {
    if (rules.rules[RuleId(i)].frontier) continue;
    const proof::Proof proof = prover.prove(RuleId(i));
    const bool known = proof.proved() || proof.verdict == RuleVerdict::may_overflow;
    if (!known) rest += proof.rule + ": " + proof.reason + "\n";
    const auto [rule, first] =
        decided.emplace(proof.rule.substr(0, proof.rule.find('#')), std::pair(true, false));
    rule->second.first = rule->second.first && known;
    rule->second.second = rule->second.second || proof.verdict == RuleVerdict::same_bits;
  }
  std::size_t held = 0, same = 0;
  for (const auto& [name, of] : decided) {
    held += of.first ? 1 : 0;
    same += of.second ? 1 : 0;
  }
  INFO(rest);
  CHECK(held * 100 >= decided.size() * 95);
  CHECK(same * 4 >= held * 3);
}

// The space of the samples, and that all of it is drawn: dtypes, ranks, sizes, broadcasting, both
// ends of each integer type and the special values of each float, also in operands of one element.
#include <algorithm>

#include <fmt/format.h>

#include "tensor/numerics.hpp"
#include "tests/verify/rules.hpp"
#include "verify/rule_check.hpp"
#include "verify/samples/special_values.hpp"

namespace {

using namespace pw;
using namespace pw::test;

RuleCheck checked_rule(const std::string& text, const std::string& name = "r") {
  const RuleSet rules = rules_of(text);
  return check_rule(rules, rules.resolve(name).at(0), bind_params(rules, {}).value());
}
RuleCheck checked(const std::string& sides) { return checked_rule("rule r { " + sides + " }"); }

std::set<DType> all_dtypes() {
  std::set<DType> out;
  for (int i = 0; i < kDTypeCount; ++i) out.insert(static_cast<DType>(i));
  return out;
}

std::set<double> values_of(DType dtype, Contents contents) {
  std::set<double> out;
  const Tensor one(dtype, {1});
  for (const ElementBits bits : special_values(dtype, contents)) {
    store_bits(one, 0, bits);
    out.insert(load(dtype, one.data(), 0));
  }
  return out;
}

}  // namespace

TEST_CASE("spaces: a pattern that leaves all open is seen in every way", "[verify]") {
  const RuleCheck check = checked("y = maximum(maximum(a, b), b) => y = maximum(a, b)");
  INFO(check.judgement.print());
  CHECK(check.drawn.dtypes == all_dtypes());
  CHECK(check.drawn.ranks == std::set<std::size_t>{0, 1, 2, 3, 4});
  CHECK(check.drawn.sizes.contains(0));
  CHECK(check.drawn.sizes.contains(1));
  CHECK(check.drawn.first_smaller);
  CHECK(check.drawn.others_smaller);
  const auto shares = check.drawn.special;
  CHECK(shares.size() == static_cast<std::size_t>(kDTypeCount));
  for (const auto& [dtype, share] : shares) {
    INFO(name(dtype));
    CHECK(share.of > 0);
    CHECK(share.least == share.of);
  }
}

TEST_CASE("spaces: what the pattern leaves open is drawn, and nothing else", "[verify]") {
  const RuleCheck check = checked("y = neg(neg(x: T[*s, d])) where T in {i8, f16, f64} => y = x");
  CHECK(check.judgement.verdict == RuleVerdict::same_bits);
  CHECK(check.drawn.dtypes == std::set<DType>{DType::i8, DType::f16, DType::f64});
  CHECK(check.drawn.ranks == std::set<std::size_t>{1, 2, 3, 4});
}

TEST_CASE("spaces: an operand of one element has all special values in turn", "[verify]") {
  for (const char* type : {"f32[]", "f32[1]", "i64[1]"}) {
    const RuleCheck check =
        checked(fmt::format("y = maximum(c: {0}, maximum(c, x: {0})) => y = maximum(c, x)", type));
    INFO(type << " " << check.judgement.print());
    CHECK(check.judgement.verdict == RuleVerdict::same_bits);
    REQUIRE(check.drawn.special.size() == 1);
    const auto share = check.drawn.special.begin()->second;
    CHECK(share.least == share.of);
  }
}

TEST_CASE("spaces: both ends of each integer type, and what stands around zero", "[verify]") {
  const auto holds = [](DType dtype, std::initializer_list<double> wanted) {
    const std::set<double> values = values_of(dtype, Contents::edges);
    for (double value : wanted) {
      INFO(name(dtype) << " " << value);
      CHECK(values.contains(value));
    }
  };
  holds(DType::i8, {-128, -127, -2, -1, 0, 1, 2, 126, 127});
  holds(DType::u8, {0, 1, 2, 127, 128, 254, 255});
  holds(DType::i32, {-0x1p31, -0x1p31 + 1, -2, -1, 0, 1, 2, 0x1p31 - 2, 0x1p31 - 1});
  holds(DType::i64, {-0x1p63, -0x1p53, -1, 0, 1, 0x1p31, 0x1p53, 0x1p63});
  holds(DType::f32, {-0x1p-149, 0x1p-126, 0, 1, 0x1.fffffep127, -0x1.fffffep127});
  holds(DType::f16, {0x1p-24, 0x1p-14, 65504, -65504});
  holds(DType::f64, {0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023});
  holds(DType::f8e4m3, {0x1p-9, 0x1p-6, 448, -448});
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto least = is_float(dtype) && dtype != DType::f8e4m3 ? 2U : 0U;
    CHECK(special_values(dtype, Contents::infinite).size() >= least);
  }
}

TEST_CASE("spaces: special values of two inputs meet in all pairs", "[verify]") {
  for (const DType dtype : {DType::i8, DType::f32, DType::b8}) {
    const std::int64_t cycle = cycle_of(dtype, Contents::edges);
    std::set<std::pair<std::size_t, std::size_t>> met;
    std::set<std::size_t> first_cycle;
    for (std::int64_t row = 0; row < cycle * cycle; ++row) {
      const auto at = static_cast<std::uint64_t>(row);
      const std::size_t a = special_at(dtype, Contents::edges, at, 0),
                        b = special_at(dtype, Contents::edges, at, 1);
      met.emplace(a, b);
      if (row < cycle) first_cycle.insert(b);
    }
    CHECK(first_cycle.size() == static_cast<std::size_t>(cycle));
    if (dtype != DType::b8) CHECK(met.size() == static_cast<std::size_t>(cycle * cycle));
  }
}

TEST_CASE("spaces: profiles cover all pairs of dtype, rank, sizes and broadcasting", "[verify]") {
  std::set<std::array<int, 4>> pairs;
  for (const Profile& p : covering_profiles()) {
    const int features[] = {static_cast<int>(p.dtype), static_cast<int>(p.rank),
                            static_cast<int>(p.sizes), static_cast<int>(p.broadcast)};
    for (int i = 0; i < 4; ++i)
      for (int k = i + 1; k < 4; ++k) pairs.insert({i, features[i], k, features[k]});
  }
  CHECK(pairs.size() == 11 * 5 + 11 * 3 + 11 * 3 + 5 * 3 + 5 * 3 + 3 * 3);
}

TEST_CASE("spaces: the verdict of a rule is the same under any name", "[verify]") {
  constexpr const char* kText =
      "rule {0} {{ many y{0} = mm({1}: T[n, k], w: T[k, m]) where count(y{0}) >= 2"
      " => z = mm({1}, cat(w...){{dim = 1}})  y{0}... = split(z){{dim = 1, sizes = [m...]}} }}";
  std::set<std::string> verdicts;
  for (const char* rule : {"qkv", "c", "e", "merge_gemms", "a", "b", "d", "sibling_gemms"})
    for (const char* value : {"x", "activations"}) {
      const RuleCheck check = checked_rule(fmt::format(kText, rule, value), rule);
      verdicts.insert(fmt::format("{} {} {} {}", name(check.judgement.verdict),
                                  check.judgement.ulps, check.instances, check.runs));
      CHECK(check.holds());
    }
  CHECK(verdicts.size() == 1);
}

TEST_CASE("spaces: a rule whose ops unfold without end is refused at once", "[verify]") {
  std::string text = "op twice_0(x: f32[*s]) -> y: f32[*s] { y = x + x }\n";
  for (int i = 1; i <= 60; ++i)
    text += fmt::format(
        "op twice_{0}(x: f32[*s]) -> y: f32[*s] {{ y = twice_{1}(x) + twice_{1}(x) }}\n", i, i - 1);
  const RuleCheck check =
      checked_rule(text + "rule r { y = relu(twice_60(x)) => y = twice_60(relu(x)) }");
  CHECK(check.judgement.verdict == RuleVerdict::cannot_run);
  CHECK(check.judgement.reason.starts_with("limit"));
}

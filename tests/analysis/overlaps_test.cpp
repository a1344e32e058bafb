// Rules that want the same node, and rules that never get one.
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/analysis/superpose.hpp"
#include "tests/analysis/findings.hpp"
#include "tests/rewriter/random_rules.hpp"

using namespace pw;
using pw::test::require_reproduced;
using pw::test::World;

namespace {

std::vector<Finding> found(const std::string& text, Finding::Kind kind) {
  World world(text);
  std::vector<Finding> out;
  for (Finding& finding : analyse(world.rules, world.params).findings)
    if (finding.kind == kind) out.push_back(std::move(finding));
  return out;
}
std::vector<Finding> overlaps(const std::string& text) {
  return found(text, Finding::Kind::overlap);
}
std::vector<Finding> shadows(const std::string& text) { return found(text, Finding::Kind::shadow); }

const std::string kOps = R"(
op f1(a: T[*s]) -> y: T[*s] { y = relu(a) }
op f2(a: T[*s]) -> y: T[*s] { y = neg(a) }
)";

}  // namespace

TEST_CASE("overlaps: a node that two rules consume in different company", "[analysis]") {
  const std::string text = kOps + R"(
rule first { y = exp(relu(x)) => y = f1(x) }
rule second { y = neg(exp(x)) => y = f2(x) }
)";
  const std::vector<Finding> all = overlaps(text + "pass p = greedy { first, second }");
  REQUIRE(all.size() == 1);
  CHECK(all[0].diagnostic.code == "PW1150");
  CHECK(all[0].rules == std::vector<std::string>{"first", "second"});
  require_reproduced(text + "pass p = greedy { first, second }", all[0]);
  CHECK(overlaps(text + "pass p = greedy { first } pass q = greedy { second }").empty());
  CHECK(overlaps(text + "pass p = greedy { first } ; greedy { second }").empty());
}

TEST_CASE("overlaps: what over or nesting decides is silent", "[analysis]") {
  CHECK(overlaps(kOps + R"(
rule first over second { y = exp(relu(x)) => y = f1(x) }
rule second { y = neg(exp(x)) => y = f2(x) }
pass p = greedy { first, second }
)")
            .empty());
  CHECK(overlaps(kOps + R"(
rule inner { y = exp(x) => y = f1(x) }
rule outer { y = neg(exp(x)) => y = f2(x) }
pass p = greedy { inner, outer }
)")
            .empty());
}

TEST_CASE("overlaps: rules that come to the same in the end are silent", "[analysis]") {
  CHECK(overlaps(R"(
rule left { y = relu(relu(x)) => y = relu(x) }
rule right { y = neg(relu(relu(x))) => y = neg(relu(x)) }
pass p = greedy { left, right }
)")
            .empty());
}

TEST_CASE("overlaps: a value that one consumes and the other also reads is not an overlap",
          "[analysis]") {
  CHECK(overlaps(kOps + R"(
rule first { y = exp(relu(x)) => y = f1(x) }
rule second { y = neg(relu(x)) => y = f2(x) }
pass p = greedy { first, second }
)")
            .empty());  // relu(x) would have two readers, and neither rule allows that
  const std::string shared = kOps + R"(
rule first { h = relu(x) y = exp(h) => h = relu(x) y = f1(x) }
rule second { h = relu(x) y = neg(h) => h = relu(x) y = f2(x) }
pass p = greedy { first, second }
)";
  CHECK(overlaps(shared).empty());  // each builds the shared node again: both orders meet
}

TEST_CASE("overlaps: types and attributes of both sides must agree", "[analysis]") {
  const auto with = [](const std::string& a, const std::string& b) {
    return kOps + "rule first { y = exp(mean(x: " + a +
           "){dim = 1, keepdim = true}) => y = relu(sum(x){dim = 1, keepdim = true}) }" +
           "rule second { y = mean(relu(x)){dim = " + b +
           ", keepdim = true} => y = mean(x){dim = " + b + ", keepdim = true} }" +
           "pass p = greedy { first, second }";
  };
  CHECK(overlaps(with("T[n, d]", "1")).size() == 1);
  CHECK(overlaps(with("T[n, d]", "0")).empty());
}

TEST_CASE("overlaps: commutative operands are tried in both orders", "[analysis]") {
  const std::string text = kOps + R"(
op g(a: T[*s], b: T[*s]) -> y: T[*s] { y = a }
rule first { y = add(relu(a: T[*s]), b: T[*s]) => y = g(a, b) }
rule second { y = add(a: T[*s], neg(b: T[*s])) => y = g(a, b) }
pass p = greedy { first, second }
)";
  const std::vector<Finding> all = overlaps(text);
  REQUIRE(all.size() == 1);
  require_reproduced(text, all[0]);
}

TEST_CASE("shadows: a rule that comes later by its name and matches the same", "[analysis]") {
  const std::string text = kOps + R"(
rule general { y = exp(x) => y = f1(x) }
rule special { y = exp(x: bf16[n, d]) => y = f2(x) }
pass p = greedy { general, special }
)";
  const std::vector<Finding> all = shadows(text);
  REQUIRE(all.size() == 1);
  CHECK(all[0].rules == std::vector<std::string>{"general", "special"});
  CHECK(all[0].diagnostic.code == "PW1151");
  require_reproduced(text, all[0]);
  CHECK(overlaps(text).empty());  // reported once
}

TEST_CASE("shadows: a rule that is narrower in front of it casts none", "[analysis]") {
  CHECK(shadows(kOps + R"(
rule a_special { y = exp(x: bf16[n, d]) => y = f2(x) }
rule b_general { y = exp(x) => y = f1(x) }
pass p = greedy { a_special, b_general }
)")
            .empty());
  CHECK(shadows(kOps + R"(
rule general { y = exp(x) => y = f1(x) }
rule special over general { y = exp(x: bf16[n, d]) => y = f2(x) }
pass p = greedy { general, special }
)")
            .empty());
}

TEST_CASE("shadows: over can put a larger rule into the shadow", "[analysis]") {
  CHECK(shadows(kOps + R"(
rule small over large { y = exp(x) => y = f1(x) }
rule large { y = neg(exp(x)) => y = f2(x) }
pass p = greedy { small, large }
)")
            .size() == 1);
}

TEST_CASE("freeze: a rule matches in the graph made of its pattern", "[analysis]") {
  World world(R"(
rule split_gate {
  g, u = split(gu: T[*b, 2 * d]){dim = -1, sizes = [d, d]}
  y = mul(silu(g), u)
  => y = silu_and_mul(gu)
}
rule guarded { y = cast(x: T){dtype = W} where T in {bf16, f16}, W in {f32} => y = cast(x){dtype = f32} }
rule parts {
  a, b, c = split(x){dim = -1, sizes = [da, db, dc]}
  y = relu(b)
  where da == 8
  => a, b, c = split(x){dim = -1, sizes = [da, db, dc]} y = relu(b)
}
rule product { y = relu(mm(a: T[n, k], b: T[k, m])) => y = relu(mm(a, b)) }
)");
  for (const char* name : {"split_gate", "guarded", "parts", "product"}) {
    INFO(name);
    const auto samples = sample_graphs(world.rules, world.rule(name), world.params, 3, 40);
    REQUIRE(samples.size() >= 2);
    for (const Sample& sample : samples) {
      CHECK(verify(sample.frozen.graph).empty());
      CHECK(world.matches(sample.frozen.graph, name).size() == 1);
    }
  }
}

TEST_CASE("superpose: the ways two patterns meet", "[analysis]") {
  World world(R"(
rule a { y = exp(relu(x)) => y = x }
rule b { y = relu(exp(x)) => y = x }
rule c { y = neg(x) => y = x }
)");
  const auto ways = [&](const char* first, const char* second) {
    return superpose(world.rules, world.rule(first), world.rule(second), {10}).ways.size();
  };
  CHECK(ways("a", "b") == 2);  // exp(relu(exp(x))) and relu(exp(relu(x)))
  CHECK(ways("a", "c") == 0);
  CHECK(ways("a", "a") == 0);  // only with itself in all nodes
}

TEST_CASE("analysis: what is found in random rules happens", "[analysis]") {
  std::map<Finding::Kind, std::size_t> kinds;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    INFO("seed " << seed);
    std::string text = pw::test::random_rules(seed, pw::test::Mix::plain).text;
    for (std::size_t at; (at = text.find(" fuel 60")) != std::string::npos;) text.erase(at, 8);
    const World world(text);
    for (const Finding& finding : analyse(world.rules, world.params).findings) {
      if (finding.test.empty()) continue;
      ++kinds[finding.kind];
      INFO(text);
      require_reproduced(text, finding);
    }
  }
  CHECK(kinds[Finding::Kind::overlap] > 10);
  CHECK(kinds[Finding::Kind::shadow] > 0);
  CHECK(kinds[Finding::Kind::loop] > 0);
}

TEST_CASE("analysis: the same rules give the same findings", "[analysis]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto messages = [&] {
      std::string out;
      const World world(pw::test::random_rules(seed, pw::test::Mix::plain).text);
      for (const Finding& f : analyse(world.rules, world.params).findings)
        out += f.diagnostic.message + f.test;
      return out;
    };
    CHECK(messages() == messages());
  }
}

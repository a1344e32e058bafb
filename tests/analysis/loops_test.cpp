// Passes that may not terminate, and what proves that they do.
#include "rewriter/analysis/analysis.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using pw::test::World;

namespace {

const std::string kTwice = R"(
rule twice { y = x + x => y = x * 2.0 }
rule sum { y = x * 2.0 => y = x + x }
)";

std::vector<Finding> loops(const std::string& text) {
  World world(text);
  std::vector<Finding> out;
  for (Finding& finding : analyse(world.rules, world.params).findings)
    if (finding.kind == Finding::Kind::loop) out.push_back(std::move(finding));
  return out;
}

}  // namespace

TEST_CASE("loops: two rules that undo each other are named", "[analysis]") {
  const std::vector<Finding> found = loops(kTwice + "pass p = greedy { twice, sum }");
  REQUIRE(found.size() == 1);
  CHECK(found[0].rules == std::vector<std::string>{"sum", "twice"});
  CHECK(found[0].diagnostic.code == "PW1152");
  CHECK(found[0].diagnostic.severity == Severity::warning);
  CHECK(found[0].diagnostic.secondary.size() == 2);
}

TEST_CASE("loops: fuel, or one direction only, is not a loop", "[analysis]") {
  CHECK(loops(kTwice + "pass p = greedy { twice, sum } fuel 100").empty());
  CHECK(loops(kTwice + "pass p = greedy { twice } pass q = greedy { sum }").empty());
  CHECK(loops(kTwice + "pass p = greedy { twice } ; greedy { sum }").empty());
  CHECK(loops(kTwice + "pass p = once { twice, sum }").empty());
}

TEST_CASE("loops: a repetition is checked with all its rules", "[analysis]") {
  CHECK(loops(kTwice + "pass p = repeat (greedy { twice } ; greedy { sum })").size() == 1);
  CHECK(loops(kTwice + "pass p = repeat (greedy { twice } ; greedy { sum }) fuel 3").empty());
}

TEST_CASE("loops: the fuel of a repetition bounds its rounds, not what is in one", "[analysis]") {
  CHECK(loops(kTwice + "pass p = repeat (greedy { twice, sum }) fuel 3").size() == 1);
}

TEST_CASE("loops: more nodes of lighter ops are an end", "[analysis]") {
  CHECK(loops("rule spell { y = silu(x) => y = x * (relu(x) + relu(x) + relu(x)) }"
              "pass p = greedy { spell }")
            .empty());
}

TEST_CASE("loops: a rule that builds what it matches", "[analysis]") {
  const std::vector<Finding> found =
      loops("rule deeper { y = relu(x) => y = relu(neg(x)) } pass p = walk { deeper }");
  REQUIRE(found.size() == 1);
  CHECK(found[0].rules == std::vector<std::string>{"deeper"});
}

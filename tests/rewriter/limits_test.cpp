// Rules that would run too long stop at a limit of steps or nodes, and the error names the rule.
#include <fmt/format.h>

#include "rewriter/matcher/machine.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// A balanced tree of `add` over so many names.
std::string tree(const std::string& name, int leaves) {
  std::vector<std::string> row;
  for (int i = 0; i < leaves; ++i) row.push_back(name + std::to_string(i));
  while (row.size() > 1) {
    std::vector<std::string> above;
    for (std::size_t i = 0; i < row.size(); i += 2)
      above.push_back(fmt::format("add({}, {})", row[i], row[i + 1]));
    row = std::move(above);
  }
  return row.front();
}

std::string graph_text(int leaves) {
  std::string inputs;
  for (int i = 0; i < leaves; ++i) inputs += fmt::format("in i{}: f32[4]\n", i);
  return inputs + "y = neg(" + tree("i", leaves) + ")\nz = relu(y)\nout z";
}

std::vector<const Diagnostic*> of_code(const RewriteReport& report, std::string_view code) {
  std::vector<const Diagnostic*> out;
  for (const Diagnostic& d : report.warnings)
    if (d.code == code) out.push_back(&d);
  return out;
}

const std::string kTree = "rule deep { y = neg(" + tree("a", 32) +
                          ") where size(a0, 0) == 77 => y = a0 }\n"
                          "rule plain { y = relu(x: f32[*s]) => y = abs(x) }\n"
                          "pass p = greedy { deep, plain }\n";

}  // namespace

TEST_CASE("limits: orders of operands are tried up to a number of steps, and the rule is named",
          "[rewriter]") {
  World world(kTree);
  Graph g = world.graph(graph_text(32));
  const RewriteReport report = world.run(g, "p");
  const auto given_up = of_code(report, "PW1113");
  REQUIRE(given_up.size() == 1);
  CHECK(given_up[0]->message.find("`deep` was abandoned") == 0);
  CHECK(given_up[0]->message.find(std::to_string(StepBudget().left)) != std::string::npos);
  CHECK(given_up[0]->span == world.rules.rules[world.rule("deep")].name_span);
  CHECK(report.journal.count(world.rules, "plain") == 1);  // the others go on
}

TEST_CASE("limits: the naive matcher ends too", "[.slow][rewriter]") {
  World world(kTree);
  const Graph g = world.graph(graph_text(32));
  CHECK(world.matches(g, "deep").empty());
}

TEST_CASE("limits: what was found within the steps is applied", "[rewriter]") {
  World world("rule deep { y = neg(" + tree("a", 32) + ") => y = a0 }\npass p = greedy { deep }\n");
  Graph g = world.graph(graph_text(32));
  const RewriteReport report = world.run(g, "p");
  CHECK(report.journal.count(world.rules, "deep") == 1);
  CHECK(g.node_count() == 1);
}

TEST_CASE("limits: what is repeated ends when the graph has grown too far", "[rewriter]") {
  World world(
      "rule dup { y = neg(x: f32[*s]) => y = add(neg(x), neg(x)) }\n"
      "rule grow { y = relu(x: f32[*s]) => y = relu(neg(neg(x))) }\n"
      "pass doubling = repeat (once { dup })\n"
      "pass nested = repeat repeat repeat (once { dup })\n"
      "pass slow = repeat (greedy { grow } fuel 1000)\n");
  for (const char* pass : {"doubling", "nested", "slow"}) {
    INFO(pass);
    Graph g = world.graph("in x: f32[4]  y = relu(neg(x))  out y");
    const RewriteReport report = world.run(g, pass);
    CHECK(report.passes.back().stop == StopReason::limit);
    CHECK(g.node_count() < 25'000);
    const auto stopped = of_code(report, "PW1104");
    REQUIRE(stopped.size() == 1);
    const std::string rule = std::string(pass) == "slow" ? "`grow`" : "`dup`";
    CHECK(stopped[0]->message.find("most of them by " + rule) != std::string::npos);
    CHECK(stopped[0]->message.find(std::string("pass `") + pass) == 0);
  }
}

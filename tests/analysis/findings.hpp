// Checks a finding: its text is appended to the rules, run, and compared.
#pragma once

#include <string>

#include "rewriter/analysis/analysis.hpp"
#include "tests/rewriter/fixture.hpp"

namespace pw::test {

inline const ast::Test& test_in(const World& world) {
  const ast::Test* found = nullptr;
  for (const ast::File& file : world.rules.files)
    for (const ast::Item& item : file.items)
      if (const auto* test = std::get_if<ast::Test>(&item)) found = test;
  REQUIRE(found != nullptr);
  return *found;
}

inline void require_reproduced(const std::string& rules, const Finding& finding) {
  INFO(finding.test);
  const World world(rules + "\n" + finding.test);
  const ast::Test& test = test_in(world);
  Result<Graph> graph = build_graph(world.context, test.graph.front());
  REQUIRE(graph);
  const RewriteReport report = world.run(*graph, test.apply.front().first);
  REQUIRE(!test.expectations.front().guard.empty());
  for (const Expr& guard : test.expectations.front().guard) {
    const std::size_t count = report.journal.count(world.rules, guard.args[0].text);
    const auto number = static_cast<std::size_t>(guard.args[1].integer);
    INFO(guard.args[0].text << " fired " << count);
    CHECK((guard.text == "==" ? count == number : count > number));
  }
}

}  // namespace pw::test

// Report of a run's only saturation, and random rules and graphs for one.
#pragma once

#include <string>

#include "tests/rewriter/random_graphs.hpp"

namespace pw::test {

inline const Saturated& saturated(const RewriteReport& report) {
  REQUIRE(report.saturations.size() == 1);
  return report.saturations.front();
}

/// Random rules in a pass `s = saturate` and a pass `g = greedy`: look(world, start) on graphs of
/// each set, at most `runs` in all. Returns how many runs there were.
template <class Look>
std::size_t for_random_saturations(Mix mix, std::size_t runs, std::uint64_t graphs_of_each,
                                   const Look& look) {
  std::size_t done = 0;
  for (std::uint64_t seed = 1; done < runs && seed < 5000; ++seed) {
    const Alphabet alphabet(seed);
    RandomRules drawn = RuleWriter(alphabet, seed, mix).run();
    std::string names;
    for (std::size_t i = 0; i < drawn.rules.size(); ++i)
      names += (i == 0 ? "r" : ", r") + std::to_string(i);
    const auto drawn_context = std::make_shared<Context>();
    const std::string passes = "pass s = saturate { " + names + " } nodes 400\n" +
                               "pass g = greedy { " + names + " } fuel 400\n";
    if (!load_rule_texts(drawn_context, {{"rules.pwr", drawn.text + passes}})) continue;
    const World world(drawn.text + passes);
    for (std::uint64_t k = 0; k < graphs_of_each && done < runs; ++k, ++done) {
      INFO("seed " << seed << ", graph " << k << "\n" << drawn.text);
      const Graph start = GraphWriter(world, drawn.rules.size(), alphabet, seed * 16 + k).run();
      INFO(print_pwg(start));
      look(world, start);
    }
  }
  return done;
}

}  // namespace pw::test

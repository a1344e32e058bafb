// The compiled matcher against the naive one: the same matches, the same final graph, on random
// graphs and random sets of rules.
#include "tests/rewriter/random_rules.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// All that must agree, and the graph to look at when it does not.
struct Ending {
  std::uint64_t hash = 0;
  std::string counts, graph;
};

Ending run_with(const World& world, const Graph& start, EngineKind engine, std::string_view pass) {
  Graph g = start;
  RewriteOptions options;
  options.engine = engine;
  RewriteReport report = world.run(g, pass, options);
  Ending out{structural_hash(g), std::string(name(report.passes.front().stop)), print_pwg(g)};
  for (const Rule& rule : world.rules.rules)
    out.counts +=
        " " + rule.name + "=" + std::to_string(report.journal.count(world.rules, rule.name));
  return out;
}

void compare_engines(std::uint64_t first, std::uint64_t count) {
  std::size_t rewrites = 0, graphs = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const std::string text = random_rules(seed / 8);
    INFO("seed " << seed);
    INFO(text);
    World world(text);
    const Graph start = random_graph(world, seed);
    INFO(print_pwg(start));
    for (const char* pass : {"fixpoint", "sweep", "single"}) {
      INFO(pass);
      const Ending naive = run_with(world, start, EngineKind::naive, pass);
      const Ending compiled = run_with(world, start, EngineKind::compiled, pass);
      INFO("naive:\n" << naive.graph << "compiled:\n" << compiled.graph);
      REQUIRE(compiled.counts == naive.counts);
      REQUIRE(compiled.hash == naive.hash);
    }
    Graph g = start;
    rewrites += world.run(g, "fixpoint").journal.total();
    ++graphs;
  }
  CHECK(rewrites > graphs / 4);
}

}  // namespace

TEST_CASE("engines: compiled and naive end with the same graph", "[rewriter]") {
  compare_engines(1, 1000);
}

TEST_CASE("engines: traced and untraced, twenty runs give the same bytes", "[rewriter]") {
  for (std::uint64_t seed : {3u, 17u, 90u}) {
    const std::string text = random_rules(seed);
    INFO(text);
    std::string first;
    for (int i = 0; i < 20; ++i) {
      World world(text);
      Graph g = random_graph(world, seed);
      RewriteOptions options;
      options.stats = i % 2 == 1;
      if (i % 3 == 1)
        options.after_pass = [](const std::string&, const Graph& at) { print_pwg(at); };
      const RewriteReport report = world.run(g, "fixpoint", options);
      const std::string bytes =
          print_pwg(g) + journal_to_json_lines(report.journal, g, world.rules);
      if (i == 0) first = bytes;
      REQUIRE((bytes == first));
    }
  }
}

TEST_CASE("engines: the same on twenty thousand pairs", "[.slow][rewriter]") {
  compare_engines(1'000'000, 20'000);
}

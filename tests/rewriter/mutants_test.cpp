// Mangled rules that still load are run: the engines end, leave graphs that are well formed, and
// the same ones.
#include "tests/dsl/mutants.hpp"

#include "rewriter/strategies/ranges.hpp"
#include "tests/rewriter/fixture.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kGraphs[] = {
    R"(symbol n in 1..8192 by 2 tokens
    in x: f32[n, 8] replicated "tp", w: f32[8, 4], v: f32[8, 2]
    a = relu(neg(neg(x)))  b = sin(abs(a))  c = cos(neg(x))  d = x - neg(c)
    p = mm(d, w)  q = mm(d, v)  s = all_reduce(p){group = "tp"}
    e = cat(relu(b), relu(c)){dim = 1}
    out a, b, q, s, e)",
    R"(in x: f32[n, 8], s: f32[1], w: f32[8]
    f, g = split(x){dim = 1, sizes = [4, 4]}
    h = cat(f, g){dim = 1}
    q = static_scaled_fp8_quant(rms_norm(h, w), s)
    y = reshape(abs(sin(x))){shape = [n, 2, 4]}  z = relu(y)
    out q, z)"};

struct Tally {
  std::size_t loaded = 0, runs = 0, rewrites = 0;
};

Result<std::vector<RangedResult>> run_with(const World& world, const std::string& pass,
                                           const Graph& g, EngineKind engine) {
  RewriteOptions options;
  options.limits.rewrites = 50;
  options.limits.per_node = 1;
  options.verify_each = true;
  options.engine = engine;
  return run_ranges(g, world.rules, pass, world.params, options);
}

/// A pass of the mutant over a graph, under limits. What it refuses, it refuses with a code.
void run_pass(const World& world, const std::string& pass, const Graph& g, Tally& tally) {
  const auto out = run_with(world, pass, g, EngineKind::compiled);
  const auto naive = run_with(world, pass, g, EngineKind::naive);
  ++tally.runs;
  REQUIRE(out.has_value() == naive.has_value());
  if (!out) {
    REQUIRE_FALSE(out.error().empty());
    REQUIRE_FALSE(out.error().front().code.empty());
    return;
  }
  REQUIRE(out->size() == naive->size());
  for (std::size_t i = 0; i < out->size(); ++i) {
    const RangedResult &result = (*out)[i], &other = (*naive)[i];
    tally.rewrites += result.report.journal.total();
    INFO("compiled:\n" << print_pwg(result.graph) << "naive:\n" << print_pwg(other.graph));
    REQUIRE(verify(result.graph).empty());
    REQUIRE(result.report.journal.total() == other.report.journal.total());
    REQUIRE(structural_hash(result.graph) == structural_hash(other.graph));
  }
}

void run_mutants(std::uint64_t seed, int rounds, Tally& tally) {
  const std::vector<std::string> pieces = pieces_of(kNewer);
  Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    const std::string text = mutated(pieces, pieces, random);
    INFO("seed " << seed << ", round " << round << ":\n" << text);
    const ContextPtr context = std::make_shared<Context>();
    const Result<RuleSet> rules = load_rule_texts(context, {{"mutant.pwr", text}});
    if (!rules || !bind_params(*rules, {})) continue;
    const World world(text);
    ++tally.loaded;
    for (const char* body : kGraphs) {
      // A mutant may have declared the ops otherwise.
      Result<Graph> g =
          parse_graph(world.context, "graph g {\n" + std::string(body) + "\n}\n", "graph.pwg");
      if (!g) continue;
      std::vector<std::string> passes;
      for (const auto& [name, strategy] : world.rules.passes) passes.push_back(name);
      for (const auto& [name, strategy] : world.rules.pipelines) passes.push_back(name);
      for (const std::string& pass : passes) {
        INFO(pass);
        run_pass(world, pass, *g, tally);
      }
    }
  }
}

}  // namespace

TEST_CASE("mutants: mangled rules that load leave well-formed graphs", "[rewriter]") {
  Tally tally;
  run_mutants(1, 250, tally);
  CHECK(tally.loaded > 18);
  CHECK(tally.rewrites > tally.runs / 4);
}

TEST_CASE("mutants: thousands of mangled rules", "[.slow][rewriter]") {
  Tally tally;
  run_mutants(2, 8000, tally);
  CHECK(tally.loaded > 600);
}

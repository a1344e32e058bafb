// Match programs as machine code against the interpreter and the naive matcher: the same rewrites
// in the same order, the same warnings, the same graph.
#include <cstdlib>

#include <fmt/format.h>

#include "backends/native_matchers.hpp"
#include "backends/toolchain.hpp"
#include "graph/generate.hpp"
#include "rewriter/scan.hpp"
#include "tests/rewriter/random_graphs.hpp"

using namespace pw;
using namespace pw::test;

namespace {

bool no_compiler() {
  if (!host_compiler().empty()) return false;
  WARN("no C++ compiler: match programs were not compiled");
  return true;
}

/// A cache of its own, in a folder that goes with it.
struct OwnCache {
  PrivateFolder folder;
  std::shared_ptr<CompileCache> cache;
  OwnCache() : cache(open()) {}
  [[nodiscard]] std::shared_ptr<CompileCache> open() const {
    CacheOptions options;
    options.folder = folder.path() + "/cache";
    return std::make_shared<CompileCache>(options);
  }
};

/// Counts what it is asked, and how many texts there were no two alike.
class Counting : public MatcherCompiler {
 public:
  explicit Counting(std::shared_ptr<MatcherCompiler> inner) : inner_(std::move(inner)) {}
  Result<NativeMatcher> compile(const std::string& text) override {
    ++asked;
    last = text;
    return inner_->compile(text);
  }
  std::size_t asked = 0;
  std::string last;

 private:
  std::shared_ptr<MatcherCompiler> inner_;
};

class Refusing : public MatcherCompiler {
 public:
  Result<NativeMatcher> compile(const std::string&) override {
    return fail(error_in("compiler", "PW1222", "no C++ compiler was found"));
  }
};

/// All that must agree. Ids of new nodes may differ from the naive matcher's, which tries more.
struct Ending {
  std::uint64_t hash = 0;
  std::string stop, graph, journal, warnings;
};

Ending run_with(const World& world, const Graph& start, std::string_view pass,
                const RewriteOptions& options) {
  Graph g = start;
  const RewriteReport report = world.run(g, pass, options);
  Ending out{structural_hash(g), std::string(name(report.passes.front().stop)), print_pwg(g),
             journal_to_json_lines(report.journal, g, world.rules), ""};
  for (const Diagnostic& warning : report.warnings) out.warnings += warning.message + "\n";
  return out;
}

void require_equal(const Ending& native, const Ending& interpreted) {
  REQUIRE((native.journal == interpreted.journal));
  REQUIRE(native.graph == interpreted.graph);
  REQUIRE(native.stop == interpreted.stop);
  REQUIRE(native.warnings == interpreted.warnings);
}

void compare(std::uint64_t first, std::uint64_t sets, std::uint64_t graphs) {
  if (no_compiler()) return;
  const OwnCache own;
  const auto compiler = std::make_shared<Counting>(make_matcher_compiler(own.cache));
  std::size_t rewrites = 0, pairs = 0;
  for (std::uint64_t seed = first; seed < first + sets; ++seed) {
    const RandomRules rules = random_rules(seed);
    const World world(rules.text);
    INFO("seed " << seed << "\n" << rules.text);
    for (std::uint64_t k = 0; k < graphs; ++k) {
      const Graph start = random_graph(world, rules, graphs * seed + k);
      INFO(print_pwg(start));
      for (const char* pass : {"fixpoint", "sweep", "single"}) {
        INFO(pass);
        RewriteOptions options;
        const Ending interpreted = run_with(world, start, pass, options);
        options.compiler = compiler;
        const Ending native = run_with(world, start, pass, options);
        INFO(native.journal << interpreted.journal);
        require_equal(native, interpreted);
        options.engine = EngineKind::naive;
        REQUIRE(run_with(world, start, pass, options).hash == native.hash);
        ++pairs;
        rewrites += native.journal.find("\"event\":\"match\"") != std::string::npos ? 1 : 0;
      }
    }
  }
  WARN(pairs << " runs, " << rewrites << " with rewrites, " << own.cache->counts().made
             << " programs compiled");
  CHECK(compiler->asked >= pairs);
  CHECK(rewrites > pairs / 3);
}

}  // namespace

TEST_CASE("native matcher: as the interpreter and the naive matcher", "[rewriter]") {
  compare(1, 12, 1);
}

TEST_CASE("native matcher: the same on a thousand sets of rules", "[.slow][rewriter]") {
  compare(5'000, 1'000, 2);
}

TEST_CASE("native matcher: gives up at the same step", "[rewriter]") {
  if (no_compiler()) return;
  const OwnCache own;
  const World world(R"(
rule five { y = a + b + c + d + e  => y = relu(a) }
pass p = greedy { five } fuel 3
)");
  const Graph start = world.graph(R"(in x: f32[n, 8], w: f32[n, 8]
    a = x + w
    b = a + a
    c = b + x
    d = w + c
    e = d + d
    f = e + d
    out f, d)");
  std::size_t gave_up = 0;
  for (std::uint64_t steps = 1; steps < 700; steps += 7) {
    INFO(steps << " steps");
    RewriteOptions options;
    options.limits.matcher_steps = steps;
    const Ending interpreted = run_with(world, start, "p", options);
    options.compiler = make_matcher_compiler(own.cache);
    require_equal(run_with(world, start, "p", options), interpreted);
    gave_up += interpreted.warnings.find("was given up") != std::string::npos ? 1 : 0;
  }
  CHECK(gave_up > 3);
  CHECK(gave_up < 100);
}

// More results, users and operands than the graph's arrays have room for in an element.
TEST_CASE("native matcher: wide nodes and values of many users", "[rewriter]") {
  if (no_compiler()) return;
  const World world(R"(
op nine(x: T[*s]) -> (a: T[*s], b: T[*s], c: T[*s], d: T[*s], e: T[*s], f: T[*s], g: T[*s], h: T[*s], i: T[*s])
op wide(a: T[*s], b: T[*s], c: T[*s], d: T[*s], e: T[*s], f: T[*s], g: T[*s], h: T[*s], i: T[*s],
        j: T[*s], k: T[*s], l: T[*s], m: T[*s], n: T[*s], o: T[*s], p: T[*s], q: T[*s], r: T[*s]) -> T[*s]
rule last_result { a, b, c, d, e, f, g, h, i = nine(x)  y = neg(i)  => a, b, c, d, e, f, g, h, i = nine(x)  y = abs(i) }
rule last_operand {
  z = exp(x)
  y = wide(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, z)
  =>
  y = wide(x, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, a)
}
rule users { y = tanh(x)  z = silu(y)  => y = tanh(x)  z = relu(y) }
pass p = greedy { last_result, last_operand, users } fuel 900
)");
  std::string body = "in x: f32[n, 8]\n  t = tanh(x)\n  a, b, c, d, e, f, g, h, i = nine(t)\n";
  std::string outs;
  for (int k = 0; k < 600; ++k) {
    body += fmt::format("  u{} = {}(t)\n", k, k % 3 == 0 ? "silu" : "exp");
    outs += fmt::format(", u{}", k);
  }
  body += "  s = exp(x)\n  w = wide(a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h, a, s)\n";
  body += "  v = neg(i)\n  out w, v, a, b, c, d, e, f, g, h" + outs;
  const Graph start = world.graph(body);
  const OwnCache own;
  RewriteOptions options;
  const Ending interpreted = run_with(world, start, "p", options);
  options.compiler = make_matcher_compiler(own.cache);
  require_equal(run_with(world, start, "p", options), interpreted);
  CHECK(interpreted.journal.find("last_result") != std::string::npos);
  CHECK(interpreted.journal.find("last_operand") != std::string::npos);
  CHECK(interpreted.journal.find("users") != std::string::npos);
}

TEST_CASE("native matcher: counts the matches of a decoder", "[rewriter]") {
  if (no_compiler()) return;
  const World world(R"(
rule add_rms { r = add(x, res)  y = rms_norm(r, w){eps}  => y, r = fused_add_rms_norm(x, res, w){eps} }
rule silu_mul {
  g, u = split(gu: T[*b, 2 * d]){dim = -1, sizes = [d, d]}
  y = mul(silu(g), u)
  =>
  y = silu_and_mul(gu)
}
rule never { y = rms_norm(rms_norm(x, w){eps}, w){eps}  => y = rms_norm(x, w){eps} }
pass p = greedy { add_rms, silu_mul, never }
)");
  LlamaOptions llama;
  llama.layers = 3;
  Result<Graph> graph = generate_llama(world.context, llama);
  REQUIRE(graph);
  const OwnCache own;
  RewriteOptions options;
  options.compiler = make_matcher_compiler(own.cache);
  const Strategy& pass = *world.rules.strategy("p");
  Scan native(*graph, world.rules, pass, world.params, options);
  Scan interpreted(*graph, world.rules, pass, world.params);
  CHECK(native.native());
  CHECK_FALSE(interpreted.native());
  CHECK(interpreted.run() == 9);  // a layer: two sums before norms, one product of silu
  CHECK(native.run() == 9);
  CHECK(native.run() == 9);  // the same number each time
}

TEST_CASE("native matcher: from a warm cache nothing is compiled", "[rewriter]") {
  if (no_compiler()) return;
  const OwnCache own;
  const World world("rule merge { y = relu(relu(x))  => y = relu(x) }\npass p = greedy { merge }");
  for (const std::uint64_t made : {1u, 0u}) {
    Graph g = world.graph("in x: f32[n]  a = relu(x)  b = relu(a)  out b");
    const auto cache = own.open();
    RewriteOptions options;
    options.compiler = make_matcher_compiler(cache);
    CHECK(world.run(g, "p", options).journal.total() == 1);
    CHECK(cache->counts().made == made);
    CHECK(cache->counts().found == 1 - made);
  }
}

TEST_CASE("native matcher: without a compiler it says so and interprets", "[rewriter]") {
  const World world(
      "rule merge { y = relu(relu(x))  => y = relu(x) }\n"
      "rule even { y = neg(neg(x))  => y = x }\n"
      "pass p = greedy { merge }\npass q = greedy { even }\npipeline both { p  q }");
  Graph g = world.graph("in x: f32[n]  a = relu(x)  b = relu(a)  c = neg(neg(b))  out c");
  RewriteOptions options;
  options.compiler = std::make_shared<Refusing>();
  const RewriteReport report = world.run(g, "both", options);
  CHECK(report.journal.total() == 2);
  std::size_t warned = 0;
  for (const Diagnostic& warning : report.warnings) {
    if (warning.code != "PW1222") continue;
    ++warned;
    CHECK(warning.severity == Severity::warning);
    REQUIRE(warning.notes.size() == 1);
    CHECK(warning.notes.front().find("interpreted") != std::string::npos);
  }
  CHECK(warned == 1);  // once a run, not once a pass
}

TEST_CASE("native matcher: nothing of a rule but numbers is in its text", "[rewriter]") {
  const World world(R"(
op zyx_foreign(x: T[*s]) {zyx_attribute: str = "zyx \" */ text"} -> T[*s]
rule zyx_rule { zyx_out = zyx_foreign(zyx_in){zyx_attribute = "zyx */ \" \\ # 1"}  => zyx_out = zyx_in }
pass zyx_pass = greedy { zyx_rule }
)");
  Graph g = world.graph("in x: f32[n]  a = zyx_foreign(x)  out a");
  const auto compiler = std::make_shared<Counting>(std::make_shared<Refusing>());
  RewriteOptions options;
  options.compiler = compiler;
  world.run(g, "zyx_pass", options);
  CHECK(compiler->asked == 1);
  CHECK(compiler->last.find("pw_match") != std::string::npos);
  CHECK(compiler->last.find("zyx") == std::string::npos);
}

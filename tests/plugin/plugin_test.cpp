// A backend, an extern and a host function of a shared library.
#include "engines/plugin.hpp"

#include <cstdlib>

#include "pipeline/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/pipeline/written.hpp"

using namespace pw;
using namespace pw::test;

namespace {

constexpr const char* kGraph = R"(graph block {
  symbol n in 1..64 tokens
  op mine.twice(x: T[n, d]) -> y: T[n, d]
  in x: f32[n, 8]
  a = relu(x)
  b = mine.twice(a)
  y = neg(b){}
  out y
}
)";

constexpr const char* kRules = R"(
extern pred even(number: int)
rule relu_of_even_rows { y = relu(x: f32[n, d])  where even(d)  =>  y = maximum(x, 0) }
pass p = greedy { relu_of_even_rows }
)";

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE(value != nullptr);
  return value;
}

struct Done {
  Result<RunSummary> summary;
  std::vector<RunRecord> records;
  std::string error;
};

Done done(const std::string& backend, const std::string& columns) {
  const auto plugin = load_plugin(variable("PW_TEST_PLUGIN"));
  if (!plugin) FAIL(render(plugin.error(), {}));
  std::string graph = kGraph;
  graph.replace(graph.find("n, 8"), 4, "n, " + columns);
  RunRequest request;
  request.graph.path = written("plugin_block.pwg", graph);
  request.rules = {{written("plugin_rules.pwr", kRules)}, "p", {}};
  request.tokens = {3};
  request.check = true;
  request.backend = backend;
  request.engines.insert(request.engines.end(), plugin->engines.begin(), plugin->engines.end());
  const auto context = std::make_shared<Context>();
  plugin->bind(*context);
  Done out;
  out.summary =
      run_model(context, request, {}, [&](const RunRecord& record, const LoadedRules&) -> Status {
        out.records.push_back(record);
        return std::monostate{};
      });
  if (!out.summary) out.error = render(out.summary.error(), context->sources);
  return out;
}

std::size_t rewrites(const Done& of) { return of.records.front().rewrite.passes.front().rewrites; }

}  // namespace

TEST_CASE("plugin: its extern decides where a rule matches, its host function runs an op",
          "[plugin]") {
  const Done even = done("eager", "8"), odd = done("eager", "7");
  CHECK(even.error == "");
  CHECK(odd.error == "");
  CHECK(rewrites(even) == 1);
  CHECK(rewrites(odd) == 0);
  CHECK((even.summary->failed == 0 && odd.summary->failed == 0));
}

TEST_CASE("plugin: its backend runs, and its wrong numbers are found", "[plugin]") {
  const Done zeros = done("zeros", "8");
  CHECK(zeros.error == "");
  REQUIRE(zeros.summary);
  CHECK(zeros.summary->failed == 1);
}

TEST_CASE("plugin: a library that is not a plugin is refused", "[plugin]") {
  const auto code_of = [](const std::string& path) {
    const auto plugin = load_plugin(path);
    return plugin ? "" : plugin.error().front().code + " " + plugin.error().front().message;
  };
  CHECK(code_of(variable("PW_TEST_NO_PLUGIN")).find("PW1217 it is not a plugin") == 0);
  CHECK(code_of("build/there_is_none.so").find("PW1217 it cannot be loaded") == 0);
  CHECK(code_of("README.md").find("PW1217 it cannot be loaded") == 0);
}

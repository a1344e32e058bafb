// One set of rules, loaded once, run by several threads at the same time, each in a fork of its
// context.
#include <functional>
#include <thread>

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "models/generate.hpp"
#include "rewriter/strategies/ranges.hpp"
#include "tests/catch.hpp"

using namespace pw;

namespace {

constexpr std::size_t kThreads = 4;

// Recursive patterns are opened while a run goes on.
constexpr const char* kViews = R"(
pattern rec views(x) -> y { y = x | y = reshape(views(x)){..} }
rule r { f = relu(views(abs(x)))  =>  f = reshape(neg(x)){shape = f.shape} }
rule low over r { f = relu(reshape(x){..})  =>  f = maximum(reshape(x){shape = f.shape}, 0) }
pass short = greedy { r, low }
pass long = greedy { r }
)";

RuleSet loaded(const ContextPtr& context, Result<RuleSet> set) {
  if (!set) FAIL(render(set.error(), context->sources));
  return std::move(*set);
}

/// The number of rewrites and the graph, as text; or what is wrong.
std::string rewritten(const RuleSet& rules, Result<Graph> graph, const std::string& pipeline) {
  if (!graph) return render(graph.error(), rules.context->sources);
  const auto params = bind_params(rules, {});
  if (!params) return render(params.error(), rules.context->sources);
  const auto report = run_pipeline(*graph, rules, pipeline, *params);
  if (!report) return render(report.error(), rules.context->sources);
  return std::to_string(report->journal.total()) + " rewrites\n" + print_pwg(*graph);
}

/// The results of each job alone, and of all jobs with a thread each.
void check_alike(const RuleSet& rules,
                 const std::vector<std::function<std::string(const ContextPtr&)>>& jobs) {
  std::vector<std::string> alone, together(jobs.size());
  for (const auto& job : jobs) alone.push_back(job(fork(*rules.context)));
  const std::size_t strings = rules.context->strings.size();
  const std::size_t count = rules.rules.size();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    threads.emplace_back([&, i] { together[i] = jobs[i](fork(*rules.context)); });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
  CHECK(rules.context->strings.size() == strings);
  CHECK(rules.rules.size() == count);
}

std::string chain(std::size_t depth) {
  std::string text = "graph g {\n in x: f32[4, 6]  a0 = abs(x)";
  for (std::size_t i = 0; i < depth; ++i)
    text += "  a" + std::to_string(i + 1) + " = reshape(a" + std::to_string(i) + "){shape = [" +
            (i % 2 == 0 ? "24" : "4, 6") + "]}";
  return text + "  y = relu(a" + std::to_string(depth) + ")  out y\n}\n";
}

}  // namespace

TEST_CASE("threads: pipelines of one rule set run side by side", "[threads]") {
  const auto context = std::make_shared<Context>();
  const RuleSet rules = loaded(context, load_rules(context, {"llm"}));
  std::vector<std::function<std::string(const ContextPtr&)>> jobs;
  for (std::size_t i = 0; i < kThreads; ++i)
    jobs.emplace_back([&rules, i](const ContextPtr& own) {
      LlamaOptions model;
      model.layers = static_cast<int>(2 + i);
      return rewritten(rules, generate_llama(own, model), i % 2 == 0 ? "o2" : "o1");
    });
  check_alike(rules, jobs);
}

TEST_CASE("threads: each run opens recursive patterns of its own", "[threads]") {
  const auto context = std::make_shared<Context>();
  const RuleSet rules = loaded(context, load_rule_texts(context, {{"views.pwr", kViews}}));
  std::vector<std::function<std::string(const ContextPtr&)>> jobs;
  for (std::size_t i = 0; i < kThreads; ++i)
    jobs.emplace_back([&rules, i](const ContextPtr& own) {
      return rewritten(rules, parse_graph(own, chain(3 + 2 * i), "g.pwg"),
                       i % 2 == 0 ? "short" : "long");
    });
  check_alike(rules, jobs);
}

TEST_CASE("threads: what a fork interns and declares is its own", "[threads]") {
  const auto context = std::make_shared<Context>();
  const RuleSet rules = loaded(context, load_rules(context, {"llm"}));
  const ContextPtr one = fork(*context), other = fork(*context);
  const NameId here = one->strings.intern("only here");
  CHECK(one->strings.text(here) == "only here");
  CHECK_FALSE(other->strings.find("only here").valid());
  CHECK_FALSE(context->strings.find("only here").valid());
  const DimId n = one->dims.symbol("n");
  CHECK(one->dims.print(one->dims.add(n, n)) == "2*n");
  for (std::size_t i = 0; i < context->ops.size(); ++i)
    CHECK(other->ops[OpId(i)].name == context->ops[OpId(i)].name);
}

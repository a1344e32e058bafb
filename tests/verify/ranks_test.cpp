// Graphs with collectives before and after rules, compared on several ranks.
#include "backends/eager/eager.hpp"
#include "backends/interpreter.hpp"
#include "graph/generate.hpp"
#include "graph/text.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/verify/rules.hpp"
#include "verify/numeric.hpp"

namespace {

using namespace pw;
using namespace pw::test;

Graph tensor_parallel_layer(const ContextPtr& context, const std::string& quant,
                            std::int64_t ranks) {
  LlamaOptions options;
  options.layers = 1;
  options.hidden = 64;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 96;
  options.vocab = 50;
  options.positions = 64;
  options.quant = quant;
  options.tp = ranks;
  return generate_llama(context, options).value();
}

std::string reasons(const NumericReport& report) {
  std::string text;
  for (const OutputCheck& output : report.outputs)
    text += output.name + ": " + output.reason + "\n";
  return text;
}

bool passes(const Graph& before, const Graph& after, Backend& backend, std::int64_t ranks) {
  Replication replication;
  for (const char* name : {"ids", "embed_w"}) replication.names.emplace(name);
  std::vector<Weights> weights = weights_of_ranks(before, 1, ranks, replication);
  const Step step{{{0, 4, 0}, {1, 3, 0}}};
  const auto outputs = run_whole(after, backend, weights, step);
  INFO((outputs ? std::string() : outputs.error()[0].message));
  REQUIRE(outputs);
  const auto reports = check_against(before, backend, weights, step, *outputs);
  REQUIRE(reports);
  REQUIRE(reports->size() == static_cast<std::size_t>(ranks));
  bool all = true;
  for (const NumericReport& report : *reports) {
    UNSCOPED_INFO(reasons(report));
    REQUIRE(report.outputs.size() == 1);
    all = all && report.passed();
  }
  return all;
}

}  // namespace

TEST_CASE("ranks: a tensor-parallel layer keeps every rank's numbers under o2", "[verify]") {
  for (const char* quant : {"none", "fp8"}) {
    for (std::int64_t ranks : {2, 4}) {
      INFO(quant << " on " << ranks << " ranks");
      const RuleSet rules = library_rules();
      const Graph before = tensor_parallel_layer(rules.context, quant, ranks);
      const Env params = bind_params(rules, {{"tp", std::to_string(ranks)}}).value();
      Graph after = before;
      const auto report = run_pipeline(after, rules, "o2", params);
      REQUIRE(report);
      CHECK(report->journal.count(rules, "all_reduce_add_rms") == 2);
      for (const auto& backend : all_backends()) CHECK(passes(before, after, *backend, ranks));
    }
  }
}

TEST_CASE("ranks: a layer that forgets its sum over ranks is seen", "[verify]") {
  const RuleSet rules = rules_of(
      "rule forgets { y = all_reduce(x){..} => y = x }\n"
      "pass all = greedy { forgets }");
  const Graph before = tensor_parallel_layer(rules.context, "none", 2);
  Graph after = before;
  const auto report = run_pipeline(after, rules, "all", bind_params(rules, {}).value());
  REQUIRE(report);
  CHECK(report->journal.total() == 2);
  const auto eager = make_eager();
  CHECK(!passes(before, after, *eager, 2));
  CHECK(passes(before, before, *eager, 2));
}

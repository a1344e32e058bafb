// The main job on real dumps: import, rewrite, split, plan, run padded and poisoned, check against
// the reference.
#include <map>

#include "backends/eager/eager.hpp"
#include "base/io/file.hpp"
#include "import/fx/fx.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "tests/shared_dump.hpp"
#include "tests/verify/rules.hpp"
#include "verify/numeric.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define PW_SLOW_BUILD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PW_SLOW_BUILD 1
#endif
#endif

namespace {

using namespace pw;
using namespace pw::test;

struct Job {
  RuleSet rules;
  Graph original, rewritten;
  RewriteReport report;
};
Job prepare(const std::string& path, const std::string& tp) {
  RuleSet rules = library_rules();
  FxOptions options;
  options.file = path;
  options.symbols = {{"n", {{"arg0_1", 0}, {"arg6_1", 0}}}};
  Graph graph = import_fx(rules.context, read_file(path).value(), options).value().graph;
  Graph rewritten = graph.compact();
  RewriteReport report =
      run_pipeline(rewritten, rules, "o2", bind_params(rules, {{"tp", tp}}).value()).value();
  return {std::move(rules), std::move(graph), std::move(rewritten), std::move(report)};
}

void run_and_check(const Job& job, const std::map<std::int64_t, std::int64_t>& padded) {
  const auto splitting = splitting_ops(job.rules.context, &job.rules, {}, {}).value();
  const StitchedGraph pieces = split(job.rewritten, splitting).value();
  CHECK(pieces.pieces.size() == 3);
  CHECK(pieces.capturable() == 2);
  const Plan plan = make_plan(pieces, job.rewritten, {}).value();
  const auto backend = make_eager();
  Runner runner = Runner::make(pieces, job.rewritten, plan, *backend).value();
  Weights weights(job.original, 1);
  RunOptions options;
  options.poison = true;
  for (const auto& [tokens, size] : padded) {
    const auto result = runner.run(one_sequence(tokens), weights, options);
    REQUIRE(result);
    CHECK(result->report.padded == size);
    const auto report =
        check_against(job.original, *backend, weights, one_sequence(tokens), result->outputs);
    REQUIRE(report);
    for (const OutputCheck& output : report->outputs) {
      INFO(tokens << " tokens, " << output.name << ": " << output.reason);
      CHECK(output.passed);
    }
  }
}

#ifdef PW_SLOW_BUILD
const std::map<std::int64_t, std::int64_t> kSteps = {{1, 1}};
#else
const std::map<std::int64_t, std::int64_t> kSteps = {{1, 1}, {7, 8}, {16, 16}, {300, 304}};
#endif

}  // namespace

TEST_CASE("main job: a layer of a real model on one rank", "[verify][slow]") {
  const std::string path = shared_dump("qwen2-1.5b.tp1.layer1.fx.txt");
  if (path.empty()) return;
  const Job job = prepare(path, "1");
  CHECK(job.report.journal.count(job.rules, "noop") > 0);
  run_and_check(job, kSteps);
}

TEST_CASE("main job: one of two ranks, with sums over ranks fused into norms", "[verify][slow]") {
  const std::string path = shared_dump("qwen2-1.5b.tp2.rank0.layer1.fx.txt");
  if (path.empty()) return;
  const Job job = prepare(path, "2");
  CHECK(job.report.journal.count(job.rules, "all_reduce_rms") +
            job.report.journal.count(job.rules, "all_reduce_add_rms") ==
        3);
  run_and_check(job, kSteps);
}

// Graphs with collectives before and after rules, compared on several ranks.
#include "backends/eager/eager.hpp"
#include "backends/interpreter/interpreter.hpp"
#include "graph/text/text.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/verify/rules.hpp"
#include "verify/numeric.hpp"
#include "verify/rule_check.hpp"
#include "verify/test_runner.hpp"

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

bool passes(const Graph& before, const Graph& after, Backend& backend, std::int64_t ranks,
            const Step& step = {{{0, 4, 0}, {1, 3, 0}}}) {
  Replication replication;
  for (const char* name : {"ids", "embed_w"}) replication.names.emplace(name);
  std::vector<Weights> weights = weights_of_ranks(before, 1, ranks, replication);
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

TEST_CASE("ranks: a layer in sequence parallelism keeps every rank's numbers under o2",
          "[verify]") {
  for (const char* quant : {"none", "fp8"}) {
    for (std::int64_t ranks : {2, 4}) {
      INFO(quant << " on " << ranks << " ranks");
      const RuleSet rules = library_rules();
      const Graph before = tensor_parallel_layer(rules.context, quant, ranks);
      const Env params =
          bind_params(rules, {{"tp", std::to_string(ranks)}, {"sp_tokens", "4"}}).value();
      Graph after = before;
      const auto report = run_pipeline(after, rules, "o2", params);
      REQUIRE(report);
      const bool bytes = std::string(quant) == "fp8";
      CHECK(report->journal.count(rules, "sp_norm") == 2);
      CHECK(report->journal.count(rules, "noop.shard_gather") == 1);
      CHECK(report->journal.count(rules, "gemm_reduce_scatter") == (bytes ? 0 : 2));
      CHECK(report->journal.count(rules, "gather_quantised") == (bytes ? 1 : 0));
      // What the graph holds for: n >= 4 and n % ranks == 0.
      REQUIRE(report->conditions.size() == 2);
      CHECK(report->conditions[0].text == "n % " + std::to_string(ranks) + " == 0");
      CHECK(report->conditions[1].text == "n >= 4");
      const Step step{{{0, 5, 0}, {1, 3, 0}}};  // 8 tokens: equal parts on 2 and on 4 ranks
      for (const auto& backend : all_backends())
        CHECK(passes(before, after, *backend, ranks, step));
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

TEST_CASE("ranks: rules over collectives are checked on two and four ranks", "[verify]") {
  const RuleSet rules = rules_of(R"(
    rule split_sum {
      h = all_reduce(x: T[n, d]){group}
      where n % tp == 0
      =>
      h = all_gather(reduce_scatter(x){dim = 0, world = tp, group}){dim = 0, world = tp, group}
    }
    rule norm_of_parts {
      y = rms_norm(all_gather(x){dim = 0, world, group}, w){eps}
      => y = all_gather(rms_norm(x, w){eps}){dim = 0, world, group}
    }
    rule relu_twice { y = relu(relu(x)) => y = relu(x) }
    param tp: int = 1
    pass all = greedy { split_sum, relu_twice } fuel 10
  )");
  const RuleSet library = library_rules();
  const auto check = [](const RuleSet& set, const std::string& name) {
    return check_rule(set, set.resolve(name).at(0), bind_params(set, {}).value());
  };
  const std::pair<const RuleSet*, const char*> kRight[] = {{&library, "gemm_reduce_scatter"},
                                                           {&library, "all_gather_gemm"},
                                                           {&library, "noop.shard_gather"},
                                                           {&library, "all_reduce_add_rms"},
                                                           {&library, "sp_norm"},
                                                           {&rules, "split_sum"}};
  for (const auto& [set, name] : kRight) {
    const RuleCheck report = check(*set, name);
    INFO(name << ": " << report.judgement.print());
    CHECK(report.holds());
    CHECK(report.ranks == std::vector<std::int64_t>{2, 4});
    CHECK(report.instances >= 4);
  }
  CHECK(check(rules, "relu_twice").ranks == std::vector<std::int64_t>{1});
  // The weight may differ from rank to rank: a gathered row is then normalised with another's.
  CHECK(!check(rules, "norm_of_parts").holds());
}

TEST_CASE("ranks: a wrong rule over collectives is seen", "[verify]") {
  const std::pair<const char*, const char*> kWrong[] = {
      {"the part of one rank for the sum",
       "y = reduce_scatter(x: T[n, d]){dim = 0, world, group} => y = shard(x){dim = 0, world, "
       "group}"},
      {"another axis",
       "y = transpose(reduce_scatter(x: T[d, d]){dim = 0, world, group}){dim0 = 0, dim1 = 1}\n"
       "=> y = reduce_scatter(x){dim = 1, world, group}"},
      {"a gather left out",
       "y = relu(all_gather(x: T[n, d]){dim = 0, world, group}) where world == 2\n"
       "=> y = cat(relu(x), relu(x)){dim = 0}  _ = group"},
      {"a sum moved over a relu",
       "y = relu(all_reduce(x){group}) => y = all_reduce(relu(x)){group}"},
      {"a sum counted twice",
       "y = all_reduce(x){group} => y = all_reduce(all_reduce(x){group}){group}"},
      {"a residual added on every rank",
       "y = add(all_reduce(x: T[n, d]){group}, r: T[n, d]) => y = all_reduce(add(x, r)){group}"},
      {"a weight that is taken for replicated",
       "h = all_reduce(m: T[n, d]){group}  y, r = fused_add_rms_norm(h, res, w){eps}\n"
       "where n % tp == 0, replicated(res, group) =>\n"
       "hs = reduce_scatter(m){dim = 0, world = tp, group}\n"
       "ys, rs = fused_add_rms_norm(hs, shard(res){dim = 0, world = tp, group}, w){eps}\n"
       "y = all_gather(ys){dim = 0, world = tp, group}\n"
       "r = all_gather(rs){dim = 0, world = tp, group}"},
      {"a residual that is taken for replicated",
       "h = all_reduce(m: T[n, d]){group}  y, r = fused_add_rms_norm(h, res, w){eps}\n"
       "where n % tp == 0 =>\n"
       "hs = reduce_scatter(m){dim = 0, world = tp, group}\n"
       "ys, rs = fused_add_rms_norm(hs, shard(res){dim = 0, world = tp, group}, w){eps}\n"
       "y = all_gather(ys){dim = 0, world = tp, group}\n"
       "r = all_gather(rs){dim = 0, world = tp, group}"},
  };
  for (const auto& [what, text] : kWrong) {
    const RuleSet rules = rules_of("param tp: int = 1  rule wrong { " + std::string(text) +
                                   " }  pass all = greedy { wrong } fuel 1");
    const RuleCheck report =
        check_rule(rules, rules.resolve("wrong").at(0), bind_params(rules, {}).value());
    INFO(what);
    REQUIRE(!report.holds());
    INFO(report.judgement.reason);
    CHECK(report.instances >= 1);
    CHECK(report.judgement.verdict == RuleVerdict::refuted);
    CHECK(report.judgement.reason.find("rank ") == 0);
    CHECK(report.judgement.reason.find(" is ") != std::string::npos);
  }
}

TEST_CASE("ranks: `expect numeric` runs on as many ranks as the graph names", "[verify]") {
  // On one rank all_reduce is the identity, and both rules are right.
  const RuleSet rules = rules_of(R"(
    rule forgets { y = all_reduce(x){..} => y = x }
    rule doubles { y = all_gather(x){dim, world, group} => y = cat(x, x){dim}  _ = world  _ = group }
    pass p = greedy { forgets }
    pass q = greedy { doubles }
    test sum {
      graph { in x: f32[n, 4]  y = all_reduce(x){group = "tp"}  out y }
      apply p
      expect numeric within 0.1
    }
    test gather {
      graph { in x: f32[n, 4]  y = all_gather(x){dim = 0, world = 2, group = "tp"}  out y }
      apply q
      expect numeric within 0.1
    }
    test neither {
      graph { in x: f32[n, 4]  y = all_gather(x){dim = 0, world = 4, group = "tp"}  out y }
      apply p
      expect numeric within 0.0
    }
  )");
  const TestReport report = run_tests(rules);
  REQUIRE(report.tests.size() == 3);
  for (std::size_t i : {0, 1}) {
    REQUIRE(report.tests[i].failures.size() == 1);
    CHECK(report.tests[i].failures[0].message.find("output y differs") != std::string::npos);
  }
  CHECK(report.tests[2].passed());
}

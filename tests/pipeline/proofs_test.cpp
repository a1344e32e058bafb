// Stored proofs, and the proved rewrites of a run.
#include <cstdlib>
#include <filesystem>
#include <set>

#include "codegen/cache/cache.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/judge/prove_windows.hpp"
#include "pipeline/judge/rule_text.hpp"
#include "tests/catch.hpp"

namespace pw {
namespace {

/// The user's cache, empty, as long as the test lasts.
class OwnCache {
 public:
  OwnCache() {
    char name[] = "/tmp/pw-proofs-XXXXXX";
    path_ = ::mkdtemp(name);
    if (const char* had = std::getenv("PWR_CACHE_DIR")) before_ = had;
    ::setenv("PWR_CACHE_DIR", path_.c_str(), 1);
  }
  OwnCache(const OwnCache&) = delete;
  ~OwnCache() {
    if (before_.empty())
      ::unsetenv("PWR_CACHE_DIR");
    else
      ::setenv("PWR_CACHE_DIR", before_.c_str(), 1);
    std::filesystem::remove_all(path_);
  }
  [[nodiscard]] std::size_t proofs() const {
    CompileCache cache({path_, ""});
    return cache.inspect(false).kinds["proof"].objects;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_, before_;
};

LoadedRules rules_of(const std::string& text, const ContextPtr& context,
                     const std::vector<std::pair<std::string, std::string>>& params = {}) {
  Result<RuleSet> set = load_rule_texts(context, {{"test.pwr", text}});
  INFO((set ? std::string() : render(set.error(), context->sources)));
  REQUIRE(set);
  Env env = bind_params(*set, params).value();
  return {std::move(*set), std::move(env)};
}
LoadedRules rules_of(const std::string& text) {
  return rules_of(text, std::make_shared<Context>());
}

RuleJudgement judged(const LoadedRules& rules) {
  return RuleJudge(rules, {}).judge(rules.set.resolve("r").at(0));
}

Graph graph_of(const ContextPtr& context, const std::string& text) {
  GraphSource source;
  source.path = "test.pwg";
  auto read = read_graph(context, text, source);
  INFO((read ? std::string() : render(read.error(), context->sources)));
  REQUIRE(read);
  return std::move(read->graph);
}

struct ProvedRun {
  ContextPtr context = std::make_shared<Context>();
  LoadedRules rules;
  Graph graph;
  std::vector<GraphVariant> variants;
  RunProof proof;

  ProvedRun(const std::string& rule_text, const std::string& graph_text,
            const std::string& pipeline)
      : rules(rules_of(rule_text, context)), graph(graph_of(context, graph_text)) {
    auto made = make_variants(graph, rules, pipeline, Log());
    REQUIRE(made);
    variants = std::move(*made);
    REQUIRE(variants.size() == 1);
    proof = prove_variants(graph, rules, pipeline, {}, variants, Log()).front();
  }
};

constexpr const char* kMine = "op mine(x: f32[*s]) -> y: f32[*s] { y = relu(x) }\n";
constexpr const char* kRule = "rule r { y = mine(x) => y = relu(x) }\n";

}  // namespace

TEST_CASE("proofs: a proof is made once", "[proofs]") {
  const OwnCache cache;
  const RuleJudgement first = judged(rules_of(std::string(kMine) + kRule));
  CHECK(first.complete());
  CHECK(cache.proofs() == 1);
  const RuleJudgement again = judged(rules_of(std::string(kMine) + kRule));
  CHECK(cache.proofs() == 1);
  CHECK(judgement_to_json(again) == judgement_to_json(first));
  // Neither what stands around it nor an op that it does not read matters.
  judged(rules_of("rule other { y = exp(x) => y = exp(x) + 0.0 }\n" + std::string(kMine) +
                  "op idle(x: f32[*s]) -> y: f32[*s] { y = neg(x) }\n" + kRule));
  CHECK(cache.proofs() == 1);
}

TEST_CASE("proofs: what is kept is all of an answer", "[proofs]") {
  const OwnCache cache;
  for (const char* text :
       {"rule r { y = mul(x: f32, 0.1) * 0.3 => y = mul(x, 0.03) }",
        "rule r { y = sub(x: f32[n], x) => y = x * 0.0 }", "rule r { y = relu(x) => y = x }",
        "rule r { y = slice(x){dim, start = 0, end} => y = x  _ = dim  _ = end }",
        "rule r { y = add(x: f16[n], z: f16[n])  where n % 8 == 0  => y = add(z, x) }"}) {
    const LoadedRules rules = rules_of(text);
    const RuleJudgement fresh = judged(rules);
    const std::size_t kept = cache.proofs();
    CHECK(judgement_to_json(judged(rules)) == judgement_to_json(fresh));
    CHECK(cache.proofs() == kept);
  }
}

TEST_CASE("proofs: an op's body is read, through other ops too", "[proofs]") {
  const OwnCache cache;
  CHECK(judged(rules_of(std::string(kMine) + kRule)).complete());
  CHECK_FALSE(
      judged(rules_of("op mine(x: f32[*s]) -> y: f32[*s] { y = neg(x) }\n" + std::string(kRule)))
          .complete());
  const std::string outer = "op outer(x: f32[*s]) -> y: f32[*s] { y = mine(x) }\n";
  const std::string rule = "rule r { y = outer(x) => y = relu(x) }\n";
  CHECK(judged(rules_of(kMine + outer + rule)).complete());
  CHECK_FALSE(judged(rules_of("op mine(x: f32[*s]) -> y: f32[*s] { y = abs(x) }\n" + outer + rule))
                  .complete());
  CHECK(cache.proofs() == 4);
}

TEST_CASE("proofs: every part of a rule is part of the stored key", "[proofs]") {
  const auto text_of = [](const std::string& text, const std::string& param = "4") {
    const LoadedRules rules = rules_of(text, std::make_shared<Context>(), {{"p", param}});
    const auto out = rule_text(rules.set, rules.set.resolve("r").at(0), rules.params);
    REQUIRE(out);
    return *out;
  };
  const std::string head = "param p: int = 4\n" + std::string(kMine);
  const std::string base = head + "rule r { y = mine(x: f32[n])  where n > p  => y = relu(x) }\n";
  std::set<std::string> seen{text_of(base), text_of(base, "5")};
  const std::vector<std::pair<std::string, std::string>> edits{
      {"n > p", "n >= p"},
      {"=> y = relu(x)", "=> y = abs(x)"},
      {"x: f32[n]", "x: f32[n, d]"},
      {"where n > p", ""},
      {"where n > p", "assume n > p"},
      {"y = mine(x: f32[n])", "y = relu(x: f32[n])"},
      {"{ y = relu(x) }", "{ y = relu(x) + 0.0 }"},
      {"-> y: f32[*s] {", "-> y: f32[*s] pointwise {"},
      {"=> y = relu(x)", "=> y = maximum(x, 0)"},
      {"=> y = relu(x)", "=> y = maximum(x, 1)"},
      {"where n > p", "where n > p, n in {1, 2}"},
      {"where n > p", "where n > p  unless { z = exp(y) }"}};
  for (const auto& [from, to] : edits) {
    std::string text = base;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    INFO(text);
    CHECK(seen.insert(text_of(text)).second);
  }
}

TEST_CASE("proofs: rows of a table do not share a proof", "[proofs]") {
  const LoadedRules rules = rules_of(
      "table T (f) { one: 1.0  two: 2.0 }\n"
      "rule r for k in T { y = mul(x: f32[n], k.f) => y = x * k.f }\n");
  std::set<std::string> seen;
  for (RuleId id : rules.set.resolve("r"))
    seen.insert(rule_text(rules.set, id, rules.params).value());
  CHECK(seen.size() == 2);
}

TEST_CASE("proofs: a rule that calls an extern is not kept", "[proofs]") {
  const OwnCache cache;
  const LoadedRules rules = rules_of(
      "extern fn min_tokens(d: int, tp: int, sm: int) -> int\n"
      "rule r { y = relu(relu(x: T[n, d]))  where n >= min_tokens(d, 2, 90)  => y = relu(x) }\n");
  judged(rules);
  CHECK(cache.proofs() == 0);
}

TEST_CASE("proofs: a spoilt file is made anew", "[proofs]") {
  const OwnCache cache;
  const LoadedRules rules = rules_of(std::string(kMine) + kRule);
  const RuleJudgement first = judged(rules);
  std::size_t spoilt = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path()))
    if (entry.is_regular_file() && entry.path().string().find("proof") != std::string::npos) {
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
      ++spoilt;
    }
  REQUIRE(spoilt > 0);
  CHECK(judgement_to_json(judged(rules)) == judgement_to_json(first));
}

TEST_CASE("proofs: rewrites by proved rules are proved", "[proofs]") {
  const ProvedRun run(
      "rule twice { y = relu(relu(x)) => y = relu(x) }\n"
      "rule merge { y = neg(neg(x)) => y = x }\n"
      "pass p = greedy { twice, merge }\n",
      "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]\n"
      "a = relu(relu(x))  b = neg(neg(a))  c = relu(relu(b))  out c }",
      "p");
  CHECK(run.proof.rewrites() == 4);  // once b is gone, four relus become one by three rewrites
  CHECK(run.proof.by_rule() == 4);
  CHECK(run.proof.left.empty());
  for (const RunProof::OfRule& rule : run.proof.rules)
    CHECK(rule.verdict == RuleVerdict::same_bits);
}

TEST_CASE("proofs: an instance of a rule without a proof is proved by itself", "[proofs]") {
  const ProvedRun run(
      "rule all { y = slice(x: T[n, d]){dim = 1, start = 0, end} => y = x  _ = end }\n"
      "pass p = greedy { all }\n",
      "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]\n"
      "a = slice(x){dim = 1, start = 0, end = 8}  b = relu(a)  out b }",
      "p");
  CHECK(run.proof.rewrites() == 1);
  CHECK(run.proof.by_rule() == 0);
  CHECK(run.proof.on_the_spot() == 1);
  CHECK(run.proof.left.empty());
  REQUIRE(run.proof.rules.size() == 1);
  CHECK(run.proof.rules.front().verdict == RuleVerdict::same_bits);
  CHECK_FALSE(run.proof.rules.front().reason.empty());
}

TEST_CASE("proofs: of two instances of a wrong rule, the right one is proved", "[proofs]") {
  const ProvedRun run(
      "rule flat { y = transpose(x: T[n, d]){dim0, dim1} => y = x  _ = dim0  _ = dim1 }\n"
      "pass p = greedy { flat }\n",
      "graph g { in x: f32[8, 8], z: f32[8, 8]\n"
      "a = transpose(x){dim0 = 1, dim1 = 1}  b = transpose(z){dim0 = 0, dim1 = 1}\n"
      "out a, b }",
      "p");
  CHECK(run.proof.rewrites() == 2);
  CHECK(run.proof.on_the_spot() == 1);
  REQUIRE(run.proof.left.size() == 1);
  CHECK(run.proof.left.front().node == "b");
  CHECK(run.proof.rules.front().verdict == RuleVerdict::unknown);
}

TEST_CASE("proofs: facts of symbols are part of a proof on the spot", "[proofs]") {
  const auto with = [](const std::string& facts) {
    return ProvedRun(
        "rule tail { y = cat(x: T[n, d], z: T[m, d]){dim = 0}  w = slice(y){dim = 0, start, end}"
        " => w = slice(x){dim = 0, start, end}  _ = y }\n"
        "pass p = greedy { tail }\n",
        "graph g { symbol n " + facts +
            " tokens  in x: f32[n, 8], z: f32[4, 8]\n"
            "a = cat(x, z){dim = 0}  b = slice(a){dim = 0, start = 0, end = 8}  out b }",
        "p");
  };
  CHECK(with("in 8..64").proof.on_the_spot() == 1);
  CHECK(with("in 1..64").proof.on_the_spot() == 0);
}

TEST_CASE("proofs: nodes that stay and results that others read are compared too", "[proofs]") {
  // The wrong value is read by a node of the match that stays.
  const ProvedRun run(
      "rule r { a = relu(x: f32[*s])  given { z = exp(a) } => a = abs(x) }\n"
      "pass p = once { r }\n",
      "graph g { in x: f32[8]  a = relu(x)  z = exp(a)  out z }", "p");
  CHECK(run.proof.rewrites() == 1);
  CHECK(run.proof.left.size() == 1);
}

TEST_CASE("proofs: what is undone is not counted", "[proofs]") {
  const ProvedRun run(
      "rule wrong { y = relu(x) => y = abs(x) }\n"
      "rule right { y = relu(relu(x)) => y = relu(x) }\n"
      "pass p = best of { greedy { wrong } | greedy { right } } by nodes\n",
      "graph g { in x: f32[8]  a = relu(x)  b = relu(a)  out b }", "p");
  CHECK(run.proof.rewrites() == 1);
  CHECK(run.proof.by_rule() == 1);
  CHECK(run.proof.left.empty());
}

TEST_CASE("proofs: inside of a saturate only rules are proved", "[proofs]") {
  const ProvedRun run(
      "rule flat { y = slice(x: T[n, d]){dim = 1, start = 0, end} => y = x  _ = end }\n"
      "pass p = saturate { flat } cost nodes\n",
      "graph g { in x: f32[8, 8]  a = slice(x){dim = 1, start = 0, end = 8}  b = relu(a)  out b }",
      "p");
  CHECK(run.proof.rewrites() == 1);
  REQUIRE(run.proof.left.size() == 1);
  CHECK(run.proof.left.front().reason.find("saturate") != std::string::npos);
}

TEST_CASE("proofs: the windows of proved rules are proved on a model", "[proofs]") {
  const auto context = std::make_shared<Context>();
  Result<RuleSet> set = load_rules(context, {"llm"});
  REQUIRE(set);
  const LoadedRules rules{std::move(*set), {}};
  const Env params = bind_params(rules.set, {}).value();
  const LoadedRules bound{rules.set, params};
  LlamaOptions llama;
  llama.layers = 2;
  llama.quant = "fp8";
  llama.tp = 2;
  const Graph graph = generate_llama(context, llama).value();
  std::set<RuleId> all;
  for (std::size_t i = 0; i < bound.set.rules.size(); ++i) all.insert(RuleId(i));
  auto windows = windows_of(graph, bound.set, "o2", params, {}, all);
  REQUIRE(windows);
  REQUIRE_FALSE(windows->empty());
  RuleJudge judge(bound, {});
  const auto prover = proof_lab()->window_prover();
  for (RewriteWindow& window : *windows) {
    INFO(bound.set.rules[window.rule].name << " at " << window.node << " " << window.problem);
    if (!judge.judge(window.rule).complete()) continue;
    const WindowVerdict seen = prove_window(window, prover.get());
    INFO(seen.reason);
    CHECK(seen.verdict != RuleVerdict::unknown);
  }
}

TEST_CASE("proofs: a wrong rewrite is left, and named", "[proofs]") {
  const ProvedRun run(
      "rule wrong { y = relu(x) => y = abs(x) }\n"
      "rule right { y = exp(exp(x)) => y = exp(exp(x)) * 1.0 }\n"
      "pass first = greedy { wrong }  pass second = once { right }\n"
      "pipeline both { first  second }\n",
      "graph g { symbol n in 1..64 tokens  in x: f32[n, 8]\n"
      "a = relu(x)  b = exp(exp(a))  out b }",
      "both");
  CHECK(run.proof.rewrites() == 2);
  CHECK(run.proof.by_rule() == 1);
  REQUIRE(run.proof.left.size() == 1);
  CHECK(run.proof.left.front().rule == "wrong");
  CHECK(run.proof.left.front().pass == "first");
  CHECK(run.proof.left.front().node == "a");
  CHECK_FALSE(run.proof.left.front().reason.empty());
  CHECK(run.proof.print() == "2 rewrites: 1 by proved rules, 0 proved individually, 1 not proved");
}

}  // namespace pw

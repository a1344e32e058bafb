#include "bench/stages.hpp"

#include <fmt/format.h>

#include "bench/measure.hpp"
#include "bench/scan.hpp"
#include "graph/text/text.hpp"

namespace pw::bench {
namespace {

constexpr const char* kPass = "all";
constexpr const char* kSilentRule =
    "rms_quant_dyn";  // the rule whose failure to match is explained

void check_equal(const char* what, std::uint64_t engine, std::uint64_t hand) {
  if (engine != hand)
    die(fmt::format("{}: the engine has {}, the rules by hand have {}", what, engine, hand));
}

struct Samples {
  std::vector<double> compile, scan, fixpoint, hash, explain, hand_scan, hand_fixpoint;
};

class Bench {
 public:
  Bench(const Graph& graph, const RuleSet& rules)
      : graph_(graph),
        rules_(rules),
        context_(graph.context_ptr()),
        params_(need(context_, bind_params(rules, {}))) {
    out_.nodes = graph.node_count();
  }

  Stages run(int runs) {
    for (int i = 0; i < runs; ++i) {
      look();
      rewrite();
    }
    out_.compile = median(samples_.compile);
    out_.scan = median(samples_.scan);
    out_.fixpoint = median(samples_.fixpoint);
    out_.hash = median(samples_.hash);
    out_.explain = median(samples_.explain);
    out_.hand_scan = median(samples_.hand_scan);
    out_.hand_fixpoint = median(samples_.hand_fixpoint);
    return out_;
  }

 private:
  void look() {
    Graph graph = graph_;
    std::unique_ptr<Scan> scan;
    const auto compile = [&] {
      scan = std::make_unique<Scan>(graph, rules_, *rules_.strategy(kPass), params_);
    };
    samples_.compile.push_back(cold_seconds(compile));
    samples_.scan.push_back(cold_seconds([&] { out_.matches = scan->run(); }));
    HandCompiled hand(graph);
    HandCounts found;
    samples_.hand_scan.push_back(cold_seconds([&] { found = hand.scan(); }));
    check_equal("matches", out_.matches, total(found));
    const RuleId silent = rules_.resolve(kSilentRule).front();
    samples_.explain.push_back(cold_seconds([&] { explain(graph, rules_, silent, params_); }));
  }

  /// Each side rewrites a copy of its own, made after the other's has been freed: otherwise one
  /// would profit from pages that the other has just released.
  void rewrite() {
    const std::uint64_t after = rewrite_by_engine();
    check_equal("hash of the final graph", after, rewrite_by_hand());
  }

  Graph fresh_copy() {
    give_back_free_memory();
    return graph_;
  }

  std::uint64_t rewrite_by_hand() {
    Graph graph = fresh_copy();
    HandCompiled hand(graph);
    HandCounts counts{};
    samples_.hand_fixpoint.push_back(cold_seconds([&] { counts = hand.run(); }));
    for (std::size_t i = 0; i < kHandRules; ++i)
      check_equal(name(static_cast<HandRule>(i)), out_.by_rule[i], counts[i]);
    return structural_hash(graph);
  }

  std::uint64_t rewrite_by_engine() {
    Graph graph = fresh_copy();
    RewriteReport report;
    samples_.fixpoint.push_back(cold_seconds(
        [&] { report = need(context_, run_pipeline(graph, rules_, kPass, params_)); }));
    out_.rewrites = report.journal.total();
    for (std::size_t i = 0; i < kHandRules; ++i)
      out_.by_rule[i] = report.journal.count(rules_, name(static_cast<HandRule>(i)));
    std::uint64_t after = 0;
    samples_.hash.push_back(cold_seconds([&] {
      structural_hash(graph_);
      after = structural_hash(graph);
    }));
    return after;
  }

  const Graph& graph_;
  const RuleSet& rules_;
  ContextPtr context_;
  Env params_;
  Stages out_;
  Samples samples_;
};

void engine_once(bool fixpoint, const Graph& loaded, const RuleSet& rules, const Env& params) {
  Graph graph = loaded;
  if (fixpoint) {
    measured_stage([&] { need(graph.context_ptr(), run_pipeline(graph, rules, kPass, params)); });
    return;
  }
  Scan scan(graph, rules, *rules.strategy(kPass), params);
  measured_stage([&] { scan.run(); });
}

void by_hand_once(bool fixpoint, const Graph& loaded) {
  Graph graph = loaded;
  HandCompiled hand(graph);
  measured_stage([&] { fixpoint ? hand.run() : hand.scan(); });
}

}  // namespace

void run_stage(Stage stage, const Graph& graph, const RuleSet& rules, int times) {
  const bool fixpoint = stage == Stage::fixpoint || stage == Stage::hand_fixpoint;
  const bool by_hand = stage == Stage::hand_scan || stage == Stage::hand_fixpoint;
  const Env params = need(graph.context_ptr(), bind_params(rules, {}));
  for (int i = 0; i < times; ++i)
    by_hand ? by_hand_once(fixpoint, graph) : engine_once(fixpoint, graph, rules, params);
}

Stages run_stages(const Graph& graph, const RuleSet& rules, int runs) {
  return Bench(graph, rules).run(runs);
}

}  // namespace pw::bench

/// Neither inlined nor renamed, so that it is found from outside.
[[gnu::noinline]] void measured_stage(const std::function<void()>& body) { body(); }

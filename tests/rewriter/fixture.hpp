// Rules and graphs from text, and what a test needs of them.
#pragma once

#include <string>

#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/catch.hpp"

namespace pw::test {

/// One context with one set of rules; graphs are read into the same context.
struct World {
  ContextPtr context = std::make_shared<Context>();
  RuleSet rules;
  Env params;

  explicit World(const std::string& text) {
    Result<RuleSet> loaded = load_rule_texts(context, {{"rules.pwr", text}});
    if (!loaded) FAIL(render(loaded.error(), context->sources));
    rules = std::move(*loaded);
    Result<Env> bound = bind_params(rules, {});
    if (!bound) FAIL(render(bound.error(), context->sources));
    params = std::move(*bound);
  }

  Graph graph(const std::string& body) const {
    Result<Graph> built = parse_graph(context, "graph g {\n" + body + "\n}\n", "graph.pwg");
    if (!built) FAIL(render(built.error(), context->sources));
    return std::move(*built);
  }

  RuleId rule(std::string_view name) const {
    std::vector<RuleId> found = rules.resolve(name);
    REQUIRE(found.size() == 1);
    return found.front();
  }

  Result<RewriteReport> try_run(Graph& g, std::string_view pipeline,
                                RewriteOptions options = {}) const {
    options.verify_each = true;
    return run_pipeline(g, rules, pipeline, params, options);
  }

  RewriteReport run(Graph& g, std::string_view pipeline, const RewriteOptions& options = {}) const {
    Result<RewriteReport> report = try_run(g, pipeline, options);
    if (!report) FAIL(render(report.error(), context->sources));
    return std::move(*report);
  }

  /// Runs, and returns how often the rules of `reference` fired.
  std::size_t fired(Graph& g, std::string_view pipeline, std::string_view reference) const {
    return run(g, pipeline).journal.count(rules, reference);
  }

  std::vector<Match> matches(const Graph& g, std::string_view name) const {
    return find_matches(g, rules, rule(name), params);
  }

  Rejection reason(const Graph& g, std::string_view name) const {
    std::optional<Rejection> why = explain(g, rules, rule(name), params);
    REQUIRE(why);
    return *why;
  }
};

inline std::size_t count(const Graph& g, std::string_view op) {
  std::size_t out = 0;
  for (NodeId n : g.order()) out += g.op_of(n).name == op ? 1 : 0;
  return out;
}

/// Equal up to names.
inline void require_same(const Graph& a, const Graph& b) {
  INFO(print_pwg(a));
  INFO(print_pwg(b));
  REQUIRE(structural_hash(a) == structural_hash(b));
}

}  // namespace pw::test

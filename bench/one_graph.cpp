#include "bench/one_graph.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "bench/measure.hpp"
#include "bench/scan.hpp"
#include "dsl/dsl.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"

namespace pw::bench {
namespace {

std::string counts_of(const RewriteReport& report, const RuleSet& rules) {
  std::string out;
  for (const Rule& rule : rules.rules)
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", rule.name,
                       report.journal.count(rules, rule.name));
  return "{" + out + "}";
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace

std::string run_one_graph(const OneGraph& job) {
  auto context = std::make_shared<Context>();
  std::optional<RuleSet> rules;
  const double rules_s = seconds([&] { rules = need(context, load_rules(context, {job.rules})); });
  const Env params = need(context, bind_params(*rules, {}));
  const Strategy* pass = rules->strategy(job.pass);
  if (pass == nullptr) die(fmt::format("{} has no pass `{}`", job.rules, job.pass));

  const std::size_t empty = resident_bytes();
  std::optional<Graph> graph;
  const double load_s = seconds([&] { graph = need(context, load_graph(context, job.graph)); });
  const std::size_t loaded = resident_bytes(), nodes = graph->node_count();
  const double hash_s = seconds([&] { structural_hash(*graph); });

  std::optional<RewriteReport> report;
  const double rewrite_s =
      seconds([&] { report = need(context, run_pipeline(*graph, *rules, job.pass, params)); });
  const std::size_t rewritten = resident_bytes();
  if (job.verify)
    if (const Diagnostics broken = verify(*graph); !broken.empty())
      die(render(broken, context->sources));

  const auto a_node = [&](std::size_t bytes) {
    return static_cast<double>(bytes - empty) / static_cast<double>(nodes);
  };
  return fmt::format(
      "{{\"ops\": {}, \"rewrites\": {}, \"rules\": {}, \"ops_after\": {}, \"rules_s\": {:.6f}, "
      "\"load_s\": {:.6f}, \"rewrite_s\": {:.6f}, \"hash_s\": {:.6f}, \"loaded_bytes_per_node\": "
      "{:.1f}, \"bytes_per_node\": {:.1f}, \"peak_mib\": {:.0f}}}",
      nodes, report->journal.total(), counts_of(*report, *rules), graph->node_count(), rules_s,
      load_s, rewrite_s, hash_s, a_node(loaded), a_node(rewritten), peak_mib());
}

}  // namespace pw::bench

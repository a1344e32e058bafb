#include "rewriter/explain/probe_set.hpp"

namespace pw {

void ProbeSet::prepare(const Graph& graph, const std::vector<RuleId>& ids) {
  if (graph_ == &graph && ids_ == ids && hold()) return graph_changed();
  graph_ = &graph;
  ids_ = ids;
  rule_count_ = rules_.size();
  probes_.clear();
  for (RuleId id : ids) probes_.push_back(std::make_unique<Probe>(graph, rules_, id, params_));
}

Probe* ProbeSet::find(RuleId rule) const {
  for (const std::unique_ptr<Probe>& probe : probes_)
    if (probe->rule() == rule) return probe.get();
  return nullptr;
}

std::optional<Reason> ProbeSet::no_longer(const SeenMatch& seen) const {
  Probe* probe = find(seen.rule);
  Reason out;
  out.code = "N10";
  out.at = seen.front;
  out.message = "it is no longer a match";
  if (probe == nullptr || !probe->layout().plain()) return out;
  Failure failure;
  if (probe->still_matches(seen.pattern, &failure)) return std::nullopt;
  if (!failure.any()) return out;
  out.code = failure.code;
  out.message = failure.message;
  out.span = failure.span;
  for (std::size_t i = 0; i < seen.nodes.size(); ++i)
    if (seen.nodes[i].id == failure.at) out.at = i;
  return out;
}

}  // namespace pw

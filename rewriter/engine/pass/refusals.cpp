#include "rewriter/engine/pass/refusals.hpp"

namespace pw {

void Refusals::note(PassRule& rule, NodeId anchor, const GateResult& outcome) {
  if (outcome.refusal != nullptr) {
    const Diagnostics& why = outcome.refusal->refused;
    if (!why.empty()) run_.warn_refused(rule.ast(), run_.graph, anchor, why);
    rule.reject(*outcome.refusal);
  } else if (outcome.code != nullptr) {
    rule.reject(outcome.code);
  }
  if (outcome.in_the_way.empty()) return;
  for (NodeId n : outcome.in_the_way) wait_for(n, anchor);
  keep(anchor);
}

std::vector<NodeId> Refusals::wake(NodeId node) {
  const auto waiting = waiters_.find(node.index);
  if (waiting == waiters_.end()) return {};
  std::vector<NodeId> out = std::move(waiting->second);
  waiters_.erase(waiting);
  return out;
}

}  // namespace pw

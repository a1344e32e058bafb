// Probes of several rules on one graph.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "rewriter/explain/match_records.hpp"
#include "rewriter/matcher/probe.hpp"

namespace pw {

class ProbeSet {
 public:
  ProbeSet(RunRules& rules, const Env& params) : rules_(rules), params_(params) {}
  /// Makes the probes, unless those of this graph and these rules exist.
  void prepare(const Graph& graph, const std::vector<RuleId>& ids);
  /// Returns true if the probes are valid. A leaf that opens frontiers invalidates references to
  /// the rules: probes wait until it has run.
  [[nodiscard]] bool hold() const { return rule_count_ == rules_.size(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Probe>>& all() const { return probes_; }
  void graph_changed() {
    for (const std::unique_ptr<Probe>& probe : probes_) probe->graph_changed();
  }
  /// Returns why the nodes of a match no longer match; nothing while they do.
  [[nodiscard]] std::optional<Reason> no_longer(const SeenMatch& seen) const;

 private:
  [[nodiscard]] Probe* find(RuleId rule) const;

  RunRules& rules_;
  const Env& params_;
  std::vector<std::unique_ptr<Probe>> probes_;
  const Graph* graph_ = nullptr;
  std::vector<RuleId> ids_;
  std::size_t rule_count_ = 0;  ///< of rules_, when the probes were made
};

}  // namespace pw

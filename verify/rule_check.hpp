// Tests that both sides of a rule agree, on graphs generated from its own pattern. The graphs
// include the boundary values of its guards, and the inputs include all kinds of numbers. The
// reference must agree on every rank. Runs in the declared dtypes may differ only by the roundings
// of both sides. Graphs and inputs come from a covering design, never from names. A rule without an
// instance gets the verdict no_instance.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "verify/judge.hpp"
#include "verify/samples/instance.hpp"
#include "verify/samples/sample_space.hpp"

namespace pw {

struct RuleCheckOptions {
  InstanceOptions instances;
  std::vector<std::int64_t> tokens = {1, 7};  ///< all kinds of contents at the last of these
  std::vector<Contents> contents;             ///< empty: all kinds
  /// Generate graphs that cover all pairs of dtype, rank, size, and broadcasting that the pattern
  /// admits.
  bool cover = true;
  /// World sizes for rules with collectives on either side; other rules use one rank.
  std::vector<std::int64_t> ranks = {2, 4};
};

struct RuleCheck {
  std::string rule;
  std::size_t instances = 0, runs = 0;
  std::vector<std::int64_t> ranks;  ///< world sizes checked
  /// Boundary values of the guards: accepted, rejected, and those without a graph, such as "d =
  /// 4096".
  std::size_t held = 0, refused = 0;
  std::vector<std::string> unreached;
  DrawnSamples drawn;   ///< the distribution of the samples
  Judgement judgement;  ///< the worst of all samples; a refutation includes its graph
  /// Verdicts by the dtypes of the graphs' floating inputs, "bf16, f32", or of their outputs if
  /// there are no such inputs.
  std::map<std::string, Judgement> by_dtype;
  [[nodiscard]] bool holds() const { return judgement.holds(); }
};

/// Returns true if the rule has collectives on either side, also in the bodies of its ops.
[[nodiscard]] bool uses_collectives(const RuleSet& rules, const Rule& rule);

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options = {});

}  // namespace pw

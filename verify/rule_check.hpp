// Before ≡ after for a rule, on graphs made from its own pattern, at the boundary values of its
// guards too, and on numbers of all kinds: the reference must agree on every rank, and runs in the
// declared dtypes must differ by no more than the roundings of both sides. Graphs and numbers come
// from a covering design, not from names. A rule that no graph could be made for is not passed
// over: that is its verdict.
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
  std::vector<std::int64_t> tokens = {1, 7};  ///< all kinds of contents at the last of them
  std::vector<Contents> contents;             ///< empty: all kinds
  /// Graphs of every dtype, rank, size and way of broadcasting that the pattern admits, in pairs.
  bool cover = true;
  /// Rules with collectives on either side are checked on each of these numbers of ranks, all
  /// others on one rank.
  std::vector<std::int64_t> ranks = {2, 4};
};

struct RuleCheck {
  std::string rule;
  std::size_t instances = 0, runs = 0;
  std::vector<std::int64_t> ranks;  ///< on which it was checked
  /// Of the guards' boundary values: held at, refused at, and those that no graph could be made
  /// for, as "d = 4096".
  std::size_t held = 0, refused = 0;
  std::vector<std::string> unreached;
  DrawnSamples drawn;   ///< what the samples were like
  Judgement judgement;  ///< of all that was seen; refuted with the graph that it was seen on
  /// By the dtypes of the graphs' floating inputs, "bf16, f32"; of their outputs where there is
  /// none.
  std::map<std::string, Judgement> by_dtype;
  [[nodiscard]] bool holds() const { return judgement.holds(); }
};

RuleCheck check_rule(const RuleSet& rules, RuleId rule, const Env& params,
                     const RuleCheckOptions& options = {});
/// Every rule, in the order of the rule set.
std::vector<RuleCheck> check_rules(const RuleSet& rules, const Env& params,
                                   const RuleCheckOptions& options = {});

}  // namespace pw

// The seam to whatever proves rules and rewrites. A build without that lab has no prover, and
// judges by samples alone.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dsl/ruleset.hpp"
#include "graph/graph.hpp"
#include "verify/rule_verdict.hpp"

namespace pw {
namespace proof {

/// The assumption that a proof of `rounds` makes about sums.
inline constexpr const char* kPartialSums = "the partial sums of a sum stay finite";

struct Proof {
  std::string rule;
  RuleVerdict verdict = RuleVerdict::unknown;
  Specials specials;                  ///< of differs_only_for
  std::string reason;                 ///< the obligation, the element or the counterexample
  std::set<std::string> granted;      ///< what was taken for granted
  std::vector<std::string> needed;    ///< guards on sizes that the proof rests on
  std::vector<std::string> unneeded;  ///< those that it does not
  std::size_t cases = 0;              ///< general graphs looked at
  /// Some case could not be made general: what holds in the others is proved, this is not.
  std::string uncovered;
  std::string element;  ///< inputs for which the sides differ, found by a solver
  double seconds = 0;   ///< not part of deterministic output
  [[nodiscard]] bool proved() const {
    return verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds ||
           verdict == RuleVerdict::differs_only_for;
  }
};

}  // namespace proof

/// Proves rules of one set.
class RuleProver {
 public:
  virtual ~RuleProver() = default;
  virtual proof::Proof prove(RuleId rule) = 0;
};

struct WindowVerdict {
  RuleVerdict verdict = RuleVerdict::unknown;
  std::string reason;  ///< unknown: what is left to show
};

/// Compares single rewrites.
class WindowProver {
 public:
  virtual ~WindowProver() = default;
  /// Compares the first half of the graph's outputs with the second, for all sizes that its facts
  /// allow. May add nodes to the graph.
  virtual WindowVerdict prove(Graph& window) = 0;
};

struct ProofLab {
  std::unique_ptr<RuleProver> (*rule_prover)(const RuleSet& rules, const Env& params);
  std::unique_ptr<WindowProver> (*window_prover)();
  /// Returns true if an SMT solver is installed; verdicts may depend on it.
  bool (*has_solver)();
};
/// The reason that stands in for a proof in a build without the lab.
inline constexpr const char* kNoProofLab = "this build has no proof lab";
/// Returns the proof lab, or null in a build without it.
[[nodiscard]] const ProofLab* proof_lab();

}  // namespace pw

// The interface to the provers of rules and rewrites. A build without the proof lab uses samples
// only.
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

/// The assumption of a `rounds` proof that evaluates sums.
inline constexpr const char* kPartialSums = "the partial sums of a sum stay finite";
/// The assumption about extremes of zeros.
inline constexpr const char* kAnyZero =
    "of two zeros of unlike signs, the larger and the smaller may be either";

struct Proof {
  std::string rule;
  RuleVerdict verdict = RuleVerdict::unknown;
  Specials specials;                  ///< for rounds and differs_only_for
  std::string reason;                 ///< the obligation, the element or the counterexample
  std::set<std::string> granted;      ///< assumptions of the proof
  std::vector<std::string> needed;    ///< size guards that the proof uses
  std::vector<std::string> unneeded;  ///< size guards that it does not use
  std::size_t cases = 0;              ///< general graphs examined
  /// Cases that could not be made general: the proof covers the others only.
  std::string uncovered;
  std::string element;  ///< inputs found by a solver for which the sides differ
  bool flips = false;   ///< the element is finite, and rounding decides a comparison there
  double seconds = 0;   ///< excluded from deterministic output
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
/// The reason given instead of a proof in a build without the lab.
inline constexpr const char* kNoProofLab = "this build has no proof lab";
/// Returns the proof lab, or null in a build without it.
[[nodiscard]] const ProofLab* proof_lab();

}  // namespace pw

// Determines which rules of a pass replace nodes of one op, and so may compete for a node. Pairs
// are counted without enumerating them: ten thousand rules have fifty million pairs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "rewriter/analysis/variants.hpp"

namespace pw {

class Meetings {
 public:
  Meetings(const RuleSet& rules, const Variants& variants);

  [[nodiscard]] std::size_t rules() const { return written_.size(); }
  /// Returns the rules from this one on, by place in the variants, that share an op with it.
  [[nodiscard]] std::vector<std::size_t> partners(std::size_t rule) const;
  /// Returns true if two variants share an op, and `over` does not decide between them.
  [[nodiscard]] bool meet(RuleId a, RuleId b) const;
  /// Returns the number of variants of two rules that meet; for one rule, each meets itself alone.
  [[nodiscard]] std::size_t pairs(std::size_t a, std::size_t b) const;
  /// Returns the sum over all pairs of rules from this one on.
  [[nodiscard]] std::size_t pairs_from(std::size_t first) const;

 private:
  using Mask = std::vector<std::uint64_t>;              ///< a bit an op
  using Counts = std::map<std::uint32_t, std::size_t>;  ///< variants by class
  using Place = std::uint32_t;

  void add(std::uint32_t written, RuleId id);
  void count_overs(const Variants& variants);
  [[nodiscard]] bool share(std::uint32_t a, std::uint32_t b) const;
  /// Returns the number of unordered pairs of different variants.
  [[nodiscard]] std::size_t pairs_within(const Counts& counts) const;
  [[nodiscard]] std::size_t with_any_op(const Counts& counts) const;

  const RuleSet& rules_;
  std::vector<Counts> written_;               ///< by rule
  std::map<RuleId, std::uint32_t> class_of_;  ///< variants that replace the same ops are alike
  std::map<Mask, std::uint32_t> classes_;
  std::vector<Mask> masks_;                               ///< by class
  std::vector<std::vector<Place>> replaced_by_;           ///< by op: rules, rising
  std::map<std::pair<Place, Place>, std::size_t> overs_;  ///< pairs of variants; the first is less
};

}  // namespace pw

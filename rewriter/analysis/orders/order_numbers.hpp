// Numbers the orders of some passes: counts those that respect the constraints, decodes a number,
// and samples uniformly.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

inline constexpr std::size_t kMostOrderedPasses = 16;

class OrderNumbers {
 public:
  /// Creates the numbering of at most 16 passes: PW1114 for more, for none, and if no order
  /// satisfies `before`. Numbers follow the lexicographic order of the lists of passes; with
  /// `subsets` a prefix precedes its extensions.
  static Result<OrderNumbers> of(std::size_t passes,
                                 const std::vector<std::pair<std::size_t, std::size_t>>& before,
                                 bool subsets);
  [[nodiscard]] std::uint64_t count() const { return from(0); }
  [[nodiscard]] std::vector<std::size_t> order(std::uint64_t number) const;
  /// Returns ascending, distinct numbers; all of them if there are no more.
  [[nodiscard]] std::vector<std::uint64_t> sample(std::uint64_t number, std::uint64_t seed) const;

 private:
  using Mask = std::uint32_t;
  [[nodiscard]] std::uint64_t from(Mask done) const;
  [[nodiscard]] bool may_run(std::size_t pass, Mask done) const;

  std::size_t passes_ = 0;
  bool subsets_ = false;
  std::vector<Mask> after_;                                 ///< by pass: those that precede it
  mutable std::unordered_map<Mask, std::uint64_t> counts_;  ///< by what has run; looked up only
};

}  // namespace pw

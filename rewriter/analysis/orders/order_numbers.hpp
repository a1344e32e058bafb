// The orders of some passes as numbers: how many keep what stands before what, which one a number
// means, and a uniform sample of them.
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
  /// Of at most 16 passes: PW1114 for more, for none, and where no order keeps `before`. In the
  /// order of numbers, which is that of the orders as lists of passes; with `subsets` one that ends
  /// stands before those that go on.
  static Result<OrderNumbers> of(std::size_t passes,
                                 const std::vector<std::pair<std::size_t, std::size_t>>& before,
                                 bool subsets);
  [[nodiscard]] std::uint64_t count() const { return from(0); }
  [[nodiscard]] std::vector<std::size_t> order(std::uint64_t number) const;
  /// Ascending and different; all of them if there are no more.
  [[nodiscard]] std::vector<std::uint64_t> sample(std::uint64_t number, std::uint64_t seed) const;

 private:
  using Mask = std::uint32_t;
  [[nodiscard]] std::uint64_t from(Mask done) const;
  [[nodiscard]] bool may_run(std::size_t pass, Mask done) const;

  std::size_t passes_ = 0;
  bool subsets_ = false;
  std::vector<Mask> after_;                                 ///< by pass: those that stand before it
  mutable std::unordered_map<Mask, std::uint64_t> counts_;  ///< by what has run; looked up only
};

}  // namespace pw

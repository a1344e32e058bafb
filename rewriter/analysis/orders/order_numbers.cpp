#include "rewriter/analysis/orders/order_numbers.hpp"

#include <random>
#include <set>

#include <fmt/format.h>

#include "base/assert.hpp"

namespace pw {
namespace {

/// Draws a uniform number below `limit`, the same with every library.
std::uint64_t draw(std::mt19937_64& random, std::uint64_t limit) {
  const std::uint64_t rest = (~std::uint64_t{0} % limit + 1) % limit;
  for (;;) {
    const std::uint64_t drawn = random();
    if (drawn <= ~std::uint64_t{0} - rest) return drawn % limit;
  }
}

}  // namespace

Result<OrderNumbers> OrderNumbers::of(
    std::size_t passes, const std::vector<std::pair<std::size_t, std::size_t>>& before,
    bool subsets) {
  if (passes == 0 || passes > kMostOrderedPasses)
    return fail(error_in("explore", "PW1114", fmt::format("{} passes would be reordered", passes),
                         fmt::format("name 1 to {} with --passes", kMostOrderedPasses)));
  OrderNumbers out;
  out.passes_ = passes;
  out.subsets_ = subsets;
  out.after_.resize(passes);
  for (const auto& [first, second] : before) out.after_[second] |= Mask{1} << first;
  if (out.count() == 0)
    return fail(error_in("explore", "PW1114", "no order satisfies --before",
                         "remove one constraint of a cycle"));
  return out;
}

bool OrderNumbers::may_run(std::size_t pass, Mask done) const {
  return (done >> pass & 1) == 0 && (after_[pass] & ~done) == 0;
}

std::uint64_t OrderNumbers::from(Mask done) const {
  if (const auto known = counts_.find(done); known != counts_.end()) return known->second;
  const bool all = done + 1 == Mask{1} << passes_;
  std::uint64_t count = all || subsets_ ? 1 : 0;
  for (std::size_t pass = 0; pass < passes_; ++pass)
    if (may_run(pass, done)) count += from(done | Mask{1} << pass);
  counts_.emplace(done, count);
  return count;
}

std::vector<std::size_t> OrderNumbers::order(std::uint64_t number) const {
  PW_ASSERT(number < count(), "there are fewer orders");
  std::vector<std::size_t> out;
  for (Mask done = 0; done + 1 != Mask{1} << passes_;) {
    if (subsets_ && number-- == 0) break;
    std::size_t pass = 0;
    for (; pass < passes_; ++pass) {
      if (!may_run(pass, done)) continue;
      const std::uint64_t below = from(done | Mask{1} << pass);
      if (number < below) break;
      number -= below;
    }
    out.push_back(pass);
    done |= Mask{1} << pass;
  }
  return out;
}

std::vector<std::uint64_t> OrderNumbers::sample(std::uint64_t number, std::uint64_t seed) const {
  std::set<std::uint64_t> out;
  const std::uint64_t all = count();
  if (number >= all) {
    for (std::uint64_t i = 0; i < all; ++i) out.insert(out.end(), i);
  } else {
    // Floyd's algorithm: uniform, in as many draws as numbers requested.
    std::mt19937_64 random(seed);
    for (std::uint64_t last = all - number; last < all; ++last)
      if (!out.insert(draw(random, last + 1)).second) out.insert(last);
  }
  return {out.begin(), out.end()};
}

}  // namespace pw

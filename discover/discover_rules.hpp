// Rules found by enumeration and proved, as a file that `pwr check`, `test` and `prove` take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "discover/derive_rules.hpp"
#include "discover/discover.hpp"
#include "pipeline/log.hpp"
#include "pipeline/report/table.hpp"

namespace pw {

struct DiscoverRequest {
  std::vector<std::string> ops;  ///< of the graphs to enumerate; none: none are
  std::vector<Graph> from;       ///< of the same context: windows of these are looked at too
  std::size_t often = 1;         ///< only windows that are there so often
  std::size_t nodes = 3, inputs = 4;
  std::uint64_t seed = 1;
  const LoadedRules* derives = nullptr;  ///< of the same context; how many of these follow
};

struct Discovery {
  std::vector<discover::Rule> rules;  ///< those that save most bytes first
  discover::Counts counts;
  std::uint64_t seed = 1;
  std::string text;                ///< the file
  std::optional<Derived> derived;  ///< of a request that names rules to derive
};

/// PW1440 for an op that is not there.
Result<Discovery> discover_rules(const ContextPtr& context, const DiscoverRequest& request,
                                 const Log& log);

/// `rules`: a row each; `graphs`, `pairs`, and how many were dropped, by reason; `seed`.
[[nodiscard]] Answer discovery_answer(const Discovery& found);
/// "61 rules of 3180 pairs of equal graphs …"
[[nodiscard]] std::string discovery_summary(const Discovery& found);

}  // namespace pw

// Discovers and proves rules by enumeration, as a file for `pwr check`, `test`, and `prove`.
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
  std::vector<std::string> ops;  ///< vocabulary to enumerate; none if empty
  std::vector<Graph> from;       ///< graphs of the same context whose windows are examined too
  std::size_t often = 1;         ///< minimum number of occurrences of a window
  std::size_t nodes = 3, inputs = 4;
  std::uint64_t seed = 1;
  const LoadedRules* derives = nullptr;  ///< rules of the same context to be derived
};

struct Discovery {
  std::vector<discover::Rule> rules;  ///< in descending order of saved bytes
  discover::Counts counts;
  std::uint64_t seed = 1;
  std::string text;                ///< the file
  std::optional<Derived> derived;  ///< set if the request has rules to derive
};

/// Runs a discovery. Fails with PW1440 for an unknown op.
Result<Discovery> discover_rules(const ContextPtr& context, const DiscoverRequest& request,
                                 const Log& log);

/// Returns the answer: `rules` (one row each), `graphs`, `pairs`, the numbers dropped by reason,
/// and `seed`.
[[nodiscard]] Answer discovery_answer(const Discovery& found);
/// Returns a summary: "61 rules of 3180 pairs of equal graphs …".
[[nodiscard]] std::string discovery_summary(const Discovery& found);

}  // namespace pw

// Verifies before a run that all ranks issue the same sequence of collectives at every step size.
// Ranks that disagree would deadlock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/communicator.hpp"
#include "exec/steps.hpp"
#include "pipeline/run/record.hpp"
#include "pipeline/variants.hpp"

namespace pw {

/// One collective of a step.
struct IssuedCollective {
  std::string op, group, node;
  std::int64_t bytes = 0;  ///< of its first operand, on each rank
  /// Compares two collectives; node names may differ between ranks.
  [[nodiscard]] bool same(const IssuedCollective& other) const {
    return op == other.op && group == other.group && bytes == other.bytes;
  }
};

/// The graph for a step of a given token count, and its padded size.
struct StepPlace {
  std::size_t variant = 0;
  std::int64_t size = 0;
};
/// Fails with PW1408 if there is none; `records` are those of the variants, with plans.
Result<StepPlace> place_of(bool pad, const std::vector<GraphVariant>& variants,
                           const std::vector<RunRecord>& records, std::int64_t tokens);
/// Returns the collectives of a step of this size, in execution order.
Result<std::vector<IssuedCollective>> issued(const RunRecord& record, std::int64_t size);

/// Fails with PW1291 on every rank, and the first difference of the first differing rank, if the
/// sequences of any token count or the steps of the ranks differ.
Status check_sequences(Communicator& ranks, bool pad, const std::vector<GraphVariant>& variants,
                       const std::vector<RunRecord>& records,
                       const std::vector<PlannedStep>& steps);

}  // namespace pw

// Which collectives the ranks of a run issue: the same on all of them at every step that they may
// meet, shown before anything runs. Ranks that differ in one would wait for each other for ever.
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
  /// Nodes may have other names on other ranks.
  [[nodiscard]] bool same(const IssuedCollective& other) const {
    return op == other.op && group == other.group && bytes == other.bytes;
  }
};

/// The graph that a step of so many tokens runs, and the size that it runs at.
struct StepPlace {
  std::size_t variant = 0;
  std::int64_t size = 0;
};
/// PW1408 if there is none; `records` are of the variants, with their plans.
Result<StepPlace> place_of(bool pad, const std::vector<GraphVariant>& variants,
                           const std::vector<RunRecord>& records, std::int64_t tokens);
/// The collectives of a step of that size, in the order in which its pieces run.
Result<std::vector<IssuedCollective>> issued(const RunRecord& record, std::int64_t size);

/// PW1291 on every rank, with the first difference of the first rank that has one, where the
/// sequences of ranks differ at any number of tokens, or the steps that they are to run do.
Status check_sequences(Communicator& ranks, bool pad, const std::vector<GraphVariant>& variants,
                       const std::vector<RunRecord>& records,
                       const std::vector<PlannedStep>& steps);

}  // namespace pw

// Collectives on all ranks of one run at once: a value of such a run is an array on each rank, and
// every engine shares these kernels. With one rank each is the identity, up to its shape.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "backends/kernel.hpp"

namespace pw {

/// One call on every rank of a group, in the order of ranks. Sums add in that order, in double, and
/// round once.
using Collective = Result<std::monostate> (*)(std::span<Call> group);

/// all_reduce, reduce_scatter, all_gather, and shard, which sends nothing but depends on the rank.
/// Null for any other op.
[[nodiscard]] Collective find_collective(std::string_view op);
/// How many ranks each named group has, where an op's `world` says so. PW1208 if two ops disagree.
Result<std::map<std::string, std::int64_t>> group_sizes(const Graph& graph);
/// The ranks that a collective of the graph spans; 0: all.
[[nodiscard]] std::int64_t group_size(const Graph& graph, NodeId node,
                                      const std::map<std::string, std::int64_t>& sizes);
/// Runs a collective on every group of `size` neighbouring ranks. PW1201 if one rank is too few,
/// PW1208 if groups of that size do not divide the ranks.
Result<std::monostate> run_collective(Collective collective, std::span<Call> ranks,
                                      std::int64_t size);

}  // namespace pw

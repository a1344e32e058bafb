// Collectives on all ranks of one run at once: a value of such a run is an array on each rank, and
// every engine shares these kernels. With one rank each is the identity, up to its shape.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/communicator.hpp"
#include "backends/kernel.hpp"

namespace pw {

/// One call on every rank of a group, in the order of ranks. Sums add in that order, in double, and
/// round once.
using Collective = Status (*)(std::span<Call> group);

/// all_reduce, reduce_scatter, all_gather, and shard, which sends nothing but depends on the rank.
/// Null for any other op.
[[nodiscard]] Collective find_collective(std::string_view op);
/// The group that a node's attribute names; null where it has none.
[[nodiscard]] const std::string* group_name(const Graph& graph, NodeId node);
/// The named groups of which an op's `world` says the size: neighbouring ranks. PW1208 if two ops
/// disagree.
Result<RankGroups> stated_groups(const Graph& graph);
/// Those that a step gives, and of others those that the source of its pieces states: a piece may
/// only name them.
[[nodiscard]] RankGroups groups_in(const Step& step, const RankGroups& stated);
/// The ranks that a collective of the graph spans, as far as the graph says.
[[nodiscard]] RankGroup group_of(const Graph& graph, NodeId node, const RankGroups& stated);
/// Runs a collective on every group of ranks; with `others`, on this process's rank and theirs.
/// PW1201 if one rank is too few, PW1208 if groups of that size and stride do not divide the ranks.
Status run_collective(Collective collective, std::span<Call> ranks, RankGroup group,
                      Communicator* others = nullptr);
/// Sums arrays of equal extents in their order, in double (integers in 64 bits), and rounds once.
void add_in_order(std::span<const Array> addends, DType declared, const Array& sum);
/// Ranks with the same number hold the same in an input that is replicated over these groups: the
/// least number of a group that can be reached from the rank. A group that is not known is all.
[[nodiscard]] std::int64_t replica_of(const std::vector<std::string>& over, std::int64_t rank,
                                      const RankGroups& groups);

}  // namespace pw

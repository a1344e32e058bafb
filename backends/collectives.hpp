// Collectives over all ranks of one run. A value of such a run is one array per rank, and every
// engine shares these kernels. With one rank each collective is the identity up to its shape.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/communicator.hpp"
#include "backends/kernel.hpp"

namespace pw {

/// A collective over a group, with one call per rank in rank order. Sums add in that order in
/// double precision and round once.
using Collective = Status (*)(std::span<Call> group);

/// Returns the kernel for all_reduce, reduce_scatter, all_gather, or shard (which sends nothing but
/// depends on the rank); null for any other op.
[[nodiscard]] Collective find_collective(Primitive op);
/// Returns the group that the node's attribute names, or null if it names none.
[[nodiscard]] const std::string* group_name(const Graph& graph, NodeId node);
/// Returns the named groups whose size an op's `world` states; they consist of neighbouring ranks.
/// Fails with PW1208 if two ops disagree.
Result<RankGroups> stated_groups(const Graph& graph);
/// Returns the step's groups, completed by the groups that the piece's source states. A piece may
/// only name a group, so the source is needed.
[[nodiscard]] RankGroups groups_in(const Step& step, const RankGroups& stated);
/// Returns the ranks that a collective of the graph spans, as far as the graph determines them.
[[nodiscard]] RankGroup group_of(const Graph& graph, NodeId node, const RankGroups& stated);
/// Runs a collective on every group of ranks, or with `others` on this process's rank and its
/// peers. Fails with PW1201 if one rank is too few, and with PW1208 if groups of that size and
/// stride do not divide the ranks.
Status run_collective(Collective collective, std::span<Call> ranks, RankGroup group,
                      Communicator* others = nullptr);
/// Sums arrays of equal extents in their order, in double (integers in 64 bits), and rounds once.
void add_in_order(std::span<const Array> addends, DType declared, const Array& sum);
/// Returns the replica number of a rank: the least rank reachable over these groups. Ranks with
/// equal numbers hold the same contents of an input that is replicated over the groups. An unknown
/// group spans all ranks.
[[nodiscard]] std::int64_t replica_of(const std::vector<std::string>& over, std::int64_t rank,
                                      const RankGroups& groups);

}  // namespace pw

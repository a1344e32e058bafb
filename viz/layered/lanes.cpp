// Dummy vertices for edges that cross ranks (Sugiyama, Tagawa, and Toda 1981), shared by all edges
// of one end point: a value with many far readers needs one chain. Edges above a maximum span have
// no lane, and the longest chains are removed from ranks that have too many to distinguish, which
// bounds their number. Invariant: each join connects neighbouring ranks. Cost: linear in edges and
// lanes.
#include "viz/layered/lanes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pw::viz {
namespace {

constexpr double kLaneWidth = 6;
constexpr std::size_t kMostLanes = 80;  // of a rank, if there is a maximum width

class LaneChains {
 public:
  LaneChains(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
             const Ranks& ranks, const LayeredOptions& options)
      : nodes_(nodes), edges_(edges), ranks_(ranks), options_(options) {}

  // Chains are found, thinned out, and found again, because an edge that loses its lane shortens
  // the chain of its end point.
  LaneGraph run() {
    out_.nodes = nodes_.size();
    out_.width.resize(nodes_.size());
    out_.rank = ranks_.of;
    out_.owner.resize(nodes_.size());
    std::iota(out_.owner.begin(), out_.owner.end(), 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) out_.width[i] = nodes_[i].width;
    choose_lanes();
    std::vector<std::uint32_t> deepest(nodes_.size(), 0), highest(nodes_.size(), kNoLane);
    find_chains(deepest, highest);
    if (options_.wide > 0 && thin_out(deepest, highest)) {
      deepest.assign(nodes_.size(), 0);
      highest.assign(nodes_.size(), kNoLane);
      find_chains(deepest, highest);
    }
    out_.first_lane.assign(nodes_.size(), kNoLane);
    out_.last_lane.assign(nodes_.size(), kNoLane);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (deepest[i] > 0) out_.first_lane[i] = add_chain(i, ranks_.of[i] + 1, deepest[i]);
      if (out_.first_lane[i] != kNoLane) joins_.push_back({i, out_.first_lane[i]});
      if (highest[i] == kNoLane) continue;
      const std::uint32_t top = add_chain(i, highest[i], ranks_.of[i] - 1);
      out_.last_lane[i] = top + (ranks_.of[i] - 1 - highest[i]);
      joins_.push_back({out_.last_lane[i], i});
    }
    join_edges();
    index_joins();
    return std::move(out_);
  }

 private:
  /// Decides which edges run in lanes, and whether in those of their readers.
  /// An edge joins the chain of the end point that has more such edges, since that chain is shared
  /// most. Example: a weight with 30 readers has one chain, and so has a concatenation of 30
  /// values.
  void choose_lanes() {
    std::vector<std::uint32_t> below(nodes_.size(), 0), above(nodes_.size(), 0);
    out_.has_lane.assign(edges_.size(), false);
    out_.to_reader.assign(edges_.size(), false);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!is_forward(edges_[e]) || ranks_.of[from] >= ranks_.of[to]) continue;
      const std::uint32_t span = ranks_.of[to] - ranks_.of[from];
      out_.has_lane[e] = span > 1 && span <= options_.far;
      if (out_.has_lane[e]) ++below[from], ++above[to];
    }
    for (std::size_t e = 0; e < edges_.size(); ++e)
      out_.to_reader[e] = out_.has_lane[e] && above[edges_[e].to] > below[edges_[e].from];
  }

  /// Finds the last rank of the lanes below each node, and the first of those above it.
  void find_chains(std::vector<std::uint32_t>& deepest, std::vector<std::uint32_t>& highest) const {
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!out_.has_lane[e]) continue;
      if (out_.to_reader[e])
        highest[to] = std::min(highest[to], ranks_.of[from] + 1);
      else
        deepest[from] = std::max(deepest[from], ranks_.of[to] - 1);
    }
  }

  /// Removes the longest lanes from ranks with too many to distinguish.
  /// Removes chains, longest first, while they pass through a rank with too many. A long chain
  /// occupies many ranks, so few removals suffice. Edges without a lane are drawn as stubs.
  bool thin_out(const std::vector<std::uint32_t>& deepest,
                const std::vector<std::uint32_t>& highest) {
    struct Chain {
      std::uint32_t node, top, bottom;
      bool above;
    };
    std::vector<Chain> chains;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (deepest[i] > 0) chains.push_back({i, ranks_.of[i] + 1, deepest[i], false});
      if (highest[i] != kNoLane) chains.push_back({i, highest[i], ranks_.of[i] - 1, true});
    }
    std::vector<std::size_t> lanes(ranks_.count, 0);
    for (const Chain& chain : chains)
      for (std::uint32_t rank = chain.top; rank <= chain.bottom; ++rank) ++lanes[rank];
    if (*std::max_element(lanes.begin(), lanes.end()) <= kMostLanes) return false;
    std::stable_sort(chains.begin(), chains.end(), [](const Chain& a, const Chain& b) {
      return a.bottom - a.top > b.bottom - b.top;
    });
    std::vector<bool> below(nodes_.size(), false), above(nodes_.size(), false);
    for (const Chain& chain : chains) {
      const auto begin = lanes.begin() + chain.top, end = lanes.begin() + chain.bottom + 1;
      if (std::none_of(begin, end, [](std::size_t n) { return n > kMostLanes; })) continue;
      std::for_each(begin, end, [](std::size_t& n) { --n; });
      (chain.above ? above : below)[chain.node] = true;
    }
    for (std::size_t e = 0; e < edges_.size(); ++e)
      if (out_.to_reader[e] ? above[edges_[e].to] : below[edges_[e].from]) out_.has_lane[e] = false;
    return true;
  }

  /// Adds lanes in these ranks, joined downwards; returns the number of the first.
  std::uint32_t add_chain(std::uint32_t owner, std::uint32_t top, std::uint32_t bottom) {
    const auto first = static_cast<std::uint32_t>(out_.width.size());
    for (std::uint32_t rank = top; rank <= bottom; ++rank) {
      const auto lane = static_cast<std::uint32_t>(out_.width.size());
      out_.width.push_back(kLaneWidth);
      out_.rank.push_back(rank);
      out_.owner.push_back(owner);
      if (lane > first) joins_.push_back({lane - 1, lane});
    }
    return first;
  }

  // An edge of span s leaves its chain s - 2 lanes after the first, or enters it s - 2 lanes before
  // the last.
  void join_edges() {
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!is_forward(edges_[e]) || ranks_.of[from] >= ranks_.of[to]) continue;
      const std::uint32_t span = ranks_.of[to] - ranks_.of[from];
      if (span == 1)
        joins_.push_back({from, to});
      else if (out_.has_lane[e] && out_.to_reader[e])
        joins_.push_back({from, out_.last_lane[to] - (span - 2)});
      else if (out_.has_lane[e])
        joins_.push_back({out_.first_lane[from] + span - 2, to});
    }
  }

  // Stores the joins twice, by lower and by upper vertex, as compressed adjacency lists.
  void index_joins() {
    out_.up_begin.assign(out_.width.size() + 1, 0);
    out_.down_begin.assign(out_.width.size() + 1, 0);
    for (const LayeredEdge& join : joins_)
      ++out_.up_begin[join.to + 1], ++out_.down_begin[join.from + 1];
    std::partial_sum(out_.up_begin.begin(), out_.up_begin.end(), out_.up_begin.begin());
    std::partial_sum(out_.down_begin.begin(), out_.down_begin.end(), out_.down_begin.begin());
    out_.up.resize(joins_.size());
    out_.down.resize(joins_.size());
    std::vector<std::uint32_t> up = out_.up_begin, down = out_.down_begin;
    for (const LayeredEdge& join : joins_) {
      out_.up[up[join.to]++] = join.from;
      out_.down[down[join.from]++] = join.to;
    }
  }

  const std::vector<LayeredNode>& nodes_;
  const std::vector<LayeredEdge>& edges_;
  const Ranks& ranks_;
  const LayeredOptions& options_;
  LaneGraph out_;
  std::vector<LayeredEdge> joins_;
};

}  // namespace

LaneGraph add_lanes(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                    const Ranks& ranks, const LayeredOptions& options) {
  return LaneChains(nodes, edges, ranks, options).run();
}

}  // namespace pw::viz

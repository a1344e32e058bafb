// Ranks by longest paths, as in Sugiyama, Tagawa, and Toda (1981): a node's rank is one below its
// lowest source. A node with more readers than sources moves down to just above its first reader,
// which shortens edges. Ranks that are too wide are then folded into several. Invariant: all
// forward edges of unpinned nodes point down. Cost: O(n log n) in the edges; a band of wide ranks
// costs one union-find over all edges.
#include "viz/layered/ranks.hpp"

#include <algorithm>
#include <utility>

#include "algebra/union_find.hpp"

namespace pw::viz {
namespace {

constexpr std::uint32_t kNoPart = 0xffffffffu;

class Ranking {
 public:
  Ranking(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
          const LayeredOptions& options)
      : nodes_(nodes), edges_(edges), options_(options) {}

  // Nodes are in topological order, so edges sorted by source see final ranks of their sources.
  // This is the longest-path algorithm in one pass.
  Ranks run() {
    out_.of.assign(nodes_.size(), 0);
    std::vector<LayeredEdge> sorted;
    for (const LayeredEdge& edge : edges_)
      if (is_forward(edge)) sorted.push_back(edge);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LayeredEdge& a, const LayeredEdge& b) { return a.from < b.from; });
    for (const LayeredEdge& edge : sorted)
      out_.of[edge.to] = std::max(out_.of[edge.to], out_.of[edge.from] + 1);
    pull_down(sorted);
    const std::uint32_t last = pin_to_bottom(*std::max_element(out_.of.begin(), out_.of.end()));
    out_.count = last + 1;
    if (options_.wide > 0) fold_wide();
    return std::move(out_);
  }

 private:
  /// Moves bottom ports to a rank of their own; returns the last rank.
  /// Output ports must be below all other nodes, even if a node in the last rank has no reader.
  std::uint32_t pin_to_bottom(std::uint32_t last) {
    bool any_bottom = false;
    for (const LayeredNode& node : nodes_) any_bottom |= node.pin == LayeredNode::Pin::bottom;
    if (!any_bottom) return last;
    bool taken = false;  // by a node that may not be in the bottom rank
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      taken |= out_.of[i] == last && nodes_[i].pin != LayeredNode::Pin::bottom;
    if (taken) ++last;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].pin == LayeredNode::Pin::bottom) out_.of[i] = last;
    return last;
  }

  /// Moves a node with more readers than sources to just above its first reader.
  /// Each edge of such a node becomes shorter by k for its readers and longer by k for its sources,
  /// so the total length shrinks. Nodes are visited backwards, so readers have moved before.
  void pull_down(const std::vector<LayeredEdge>& sorted) {
    std::vector<std::uint32_t> in(nodes_.size(), 0), out(nodes_.size(), 0);
    std::vector<std::uint32_t> least(nodes_.size(), kNoPart);
    for (const LayeredEdge& edge : sorted) ++out[edge.from], ++in[edge.to];
    for (std::size_t k = sorted.size(); k-- > 0;) {
      const LayeredEdge& edge = sorted[k];
      least[edge.from] = std::min(least[edge.from], out_.of[edge.to]);
      const bool last_of_from = k == 0 || sorted[k - 1].from != edge.from;
      if (last_of_from && in[edge.from] < out[edge.from] &&
          nodes_[edge.from].pin != LayeredNode::Pin::top)
        out_.of[edge.from] = std::max(out_.of[edge.from], least[edge.from] - 1);
    }
  }

  /// Folds ranks that are too wide into several. Connected nodes within neighbouring wide ranks
  /// stay together: one strip across all these ranks, then the next strip below. All edges still
  /// point down.
  /// A band is a maximal run of wide ranks. Its ranks are folded together: one rank alone would
  /// separate connected nodes by the height of the whole fold.
  void fold_wide() {
    unfolded_ = out_.of;
    rows_.assign(out_.count, {});
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) rows_[unfolded_[i]].push_back(i);
    std::uint32_t next = 0;
    for (std::uint32_t begin = 0; begin < out_.count;) {
      std::uint32_t end = begin;
      while (end < out_.count && too_wide(rows_[end])) ++end;
      if (end > begin) {
        next = fold_band(begin, end, next);
        begin = end;
        continue;
      }
      for (const std::uint32_t i : rows_[begin]) out_.of[i] = next;
      ++next;
      ++begin;
    }
    out_.count = next;
    rows_.clear();
  }

  [[nodiscard]] bool pinned(std::uint32_t i) const {
    return nodes_[i].pin != LayeredNode::Pin::none;
  }

  [[nodiscard]] double room_of(std::uint32_t i) const {
    return nodes_[i].width + gap(nodes_[i], options_);
  }

  /// Ports stay in one rank, however many there are.
  [[nodiscard]] bool too_wide(const std::vector<std::uint32_t>& row) const {
    double width = 0;
    bool any = false;
    for (const std::uint32_t i : row) {
      width += room_of(i);
      any |= !pinned(i);
    }
    return any && width > options_.wide;
  }

  struct Part {  // of a band: its connected components
    std::vector<std::uint32_t> nodes;
    std::vector<double> width;  // by rank of the band
  };

  // Union-find with path halving over the edges inside the band. Parts are numbered by their first
  // node, which keeps the order of the text.
  std::vector<Part> parts_of(std::uint32_t begin, std::uint32_t end) {
    UnionFind<std::uint32_t> connected(nodes_.size());
    const auto inside = [&](std::uint32_t i) {
      return unfolded_[i] >= begin && unfolded_[i] < end && !pinned(i);
    };
    for (const LayeredEdge& edge : edges_) {
      if (is_forward(edge) && inside(edge.from) && inside(edge.to))
        connected.join(edge.from, edge.to);
    }
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of(nodes_.size(), kNoPart);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!inside(i)) continue;
      std::uint32_t& part = part_of[connected.root(i)];
      if (part == kNoPart) {
        part = static_cast<std::uint32_t>(parts.size());
        parts.push_back({{}, std::vector<double>(end - begin, 0)});
      }
      parts[part].nodes.push_back(i);
      parts[part].width[unfolded_[i] - begin] += room_of(i);
    }
    return parts;
  }

  /// Places ranks `begin` to `end` from `next` on; returns the rank after them.
  /// Packs parts greedily into strips, in order (next fit). Ports of the band get a rank of their
  /// own above it.
  std::uint32_t fold_band(std::uint32_t begin, std::uint32_t end, std::uint32_t next) {
    bool ports = false;
    for (std::uint32_t rank = begin; rank < end; ++rank)
      for (const std::uint32_t i : rows_[rank])
        if (pinned(i)) {
          out_.of[i] = next;
          ports = true;
        }
    if (ports) ++next;
    out_.folded = true;
    const std::vector<Part> parts = parts_of(begin, end);
    for (std::size_t first = 0; first < parts.size();) {
      std::vector<double> width = parts[first].width;
      std::size_t last = first + 1;
      while (last < parts.size() && fits(width, parts[last].width)) ++last;
      next = put_strip(parts, first, last, begin, next);
      first = last;
    }
    return next;
  }

  /// Reserves space; returns true if there was enough.
  [[nodiscard]] bool fits(std::vector<double>& width, const std::vector<double>& more) const {
    for (std::size_t k = 0; k < width.size(); ++k)
      if (width[k] + more[k] > options_.wide) return false;
    for (std::size_t k = 0; k < width.size(); ++k) width[k] += more[k];
    return true;
  }

  /// Places each rank of a strip, or several if a part is too wide; skips empty ones.
  /// A rank is empty if no part of the strip has nodes there.
  std::uint32_t put_strip(const std::vector<Part>& parts, std::size_t first, std::size_t last,
                          std::uint32_t begin, std::uint32_t next) {
    std::vector<std::vector<std::uint32_t>> rows(parts[first].width.size());
    for (std::size_t p = first; p < last; ++p)
      for (const std::uint32_t i : parts[p].nodes) rows[unfolded_[i] - begin].push_back(i);
    for (const std::vector<std::uint32_t>& row : rows) {
      double width = 0;
      for (const std::uint32_t i : row) {
        if (width > 0 && width + room_of(i) > options_.wide) {
          ++next;
          width = 0;
        }
        out_.of[i] = next;
        width += room_of(i);
      }
      if (!row.empty()) ++next;
    }
    return next;
  }

  const std::vector<LayeredNode>& nodes_;
  const std::vector<LayeredEdge>& edges_;
  const LayeredOptions& options_;
  Ranks out_;
  std::vector<std::uint32_t> unfolded_;           // ranks before any was folded
  std::vector<std::vector<std::uint32_t>> rows_;  // nodes by unfolded rank
};

}  // namespace

Ranks rank_nodes(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                 const LayeredOptions& options) {
  return Ranking(nodes, edges, options).run();
}

}  // namespace pw::viz

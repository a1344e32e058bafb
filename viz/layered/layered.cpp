// Layered graph drawing after Sugiyama, Tagawa, and Toda (1981) for graphs that already have a
// topological order. Four phases: ranks by longest paths; dummy vertices (lanes) for long edges,
// shared by all edges of one end point; orders within ranks by barycenter sweeps; coordinates by
// isotonic regression with pooled averages (pool adjacent violators). Optimal orders are NP-hard,
// so the number of sweeps is fixed. Each sweep is O(n log n) in vertices and lanes; edges above a
// maximum span have no lane, which bounds their number.
#include "viz/layered/layered.hpp"

#include <algorithm>
#include <numeric>

namespace pw::viz {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;
constexpr double kLaneWidth = 6;
constexpr double kStraight = 8;  // times a box's
constexpr double kLongRow = 8;   // boxes and lanes
constexpr double kPull = 0.1;
constexpr std::uint32_t kLongChain = 60;  // ranks
constexpr std::size_t kMostLanes = 80;    // of a rank, if there is a maximum width

class Layers {
 public:
  Layers(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
         const LayeredOptions& options)
      : nodes_(nodes), edges_(edges), options_(options) {}

  Layered run() {
    if (nodes_.empty()) return {};
    rank_nodes();
    add_lanes();
    order();
    place();
    finish();
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool forward(const LayeredEdge& edge) const { return edge.from < edge.to; }

  // ---- ranks

  void rank_nodes() {
    out_.rank.assign(nodes_.size(), 0);
    std::vector<LayeredEdge> sorted;
    for (const LayeredEdge& edge : edges_)
      if (forward(edge)) sorted.push_back(edge);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LayeredEdge& a, const LayeredEdge& b) { return a.from < b.from; });
    for (const LayeredEdge& edge : sorted)
      out_.rank[edge.to] = std::max(out_.rank[edge.to], out_.rank[edge.from] + 1);
    pull_down(sorted);
    std::uint32_t last = 0;
    for (const std::uint32_t rank : out_.rank) last = std::max(last, rank);
    bool any_bottom = false;
    for (const LayeredNode& node : nodes_) any_bottom |= node.pin == LayeredNode::Pin::bottom;
    if (any_bottom) {
      bool taken = false;  // by a node that may not be in the bottom rank
      for (std::size_t i = 0; i < nodes_.size(); ++i)
        taken |= out_.rank[i] == last && nodes_[i].pin != LayeredNode::Pin::bottom;
      if (taken) ++last;
      for (std::size_t i = 0; i < nodes_.size(); ++i)
        if (nodes_[i].pin == LayeredNode::Pin::bottom) out_.rank[i] = last;
    }
    ranks_ = last + 1;
    if (options_.wide > 0) fold_wide();
  }

  /// Folds ranks that are too wide into several. Connected nodes within neighbouring wide ranks
  /// stay together: one strip across all these ranks, then the next strip below. All edges still
  /// point down.
  void fold_wide() {
    unfolded_ = out_.rank;
    rows_.assign(ranks_, {});
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) rows_[unfolded_[i]].push_back(i);
    std::uint32_t next = 0;
    for (std::uint32_t begin = 0; begin < ranks_;) {
      std::uint32_t end = begin;
      while (end < ranks_ && too_wide(rows_[end])) ++end;
      if (end > begin) {
        next = fold_band(begin, end, next);
        begin = end;
        continue;
      }
      for (const std::uint32_t i : rows_[begin]) out_.rank[i] = next;
      ++next;
      ++begin;
    }
    ranks_ = next;
    rows_.clear();
  }

  [[nodiscard]] bool pinned(std::uint32_t i) const {
    return nodes_[i].pin != LayeredNode::Pin::none;
  }
  [[nodiscard]] double room_of(std::uint32_t i) const { return nodes_[i].width + gap(nodes_[i]); }
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

  std::vector<Part> parts_of(std::uint32_t begin, std::uint32_t end) {
    std::vector<std::uint32_t> up(nodes_.size());
    std::iota(up.begin(), up.end(), 0);
    const auto root = [&](std::uint32_t i) {
      while (up[i] != i) i = up[i] = up[up[i]];
      return i;
    };
    const auto inside = [&](std::uint32_t i) {
      return unfolded_[i] >= begin && unfolded_[i] < end && !pinned(i);
    };
    for (const LayeredEdge& edge : edges_) {
      if (!forward(edge) || !inside(edge.from) || !inside(edge.to)) continue;
      const std::uint32_t a = root(edge.from), b = root(edge.to);
      up[std::max(a, b)] = std::min(a, b);
    }
    std::vector<Part> parts;
    std::vector<std::uint32_t> part_of(nodes_.size(), kNone);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!inside(i)) continue;
      std::uint32_t& part = part_of[root(i)];
      if (part == kNone) {
        part = static_cast<std::uint32_t>(parts.size());
        parts.push_back({{}, std::vector<double>(end - begin, 0)});
      }
      parts[part].nodes.push_back(i);
      parts[part].width[unfolded_[i] - begin] += room_of(i);
    }
    return parts;
  }

  /// Places ranks `begin` to `end` from `next` on; returns the rank after them.
  std::uint32_t fold_band(std::uint32_t begin, std::uint32_t end, std::uint32_t next) {
    bool ports = false;
    for (std::uint32_t rank = begin; rank < end; ++rank)
      for (const std::uint32_t i : rows_[rank])
        if (pinned(i)) {
          out_.rank[i] = next;
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
        out_.rank[i] = next;
        width += room_of(i);
      }
      if (!row.empty()) ++next;
    }
    return next;
  }

  /// Returns the distance next to a node; ports may be close together.
  [[nodiscard]] double gap(const LayeredNode& node) const {
    return node.pin == LayeredNode::Pin::none ? options_.between : options_.between / 2;
  }

  /// Moves a node with more readers than sources to just above its first reader.
  void pull_down(const std::vector<LayeredEdge>& sorted) {
    std::vector<std::uint32_t> in(nodes_.size(), 0), out(nodes_.size(), 0);
    std::vector<std::uint32_t> least(nodes_.size(), kNone);
    for (const LayeredEdge& edge : sorted) ++out[edge.from], ++in[edge.to];
    for (std::size_t k = sorted.size(); k-- > 0;) {
      const LayeredEdge& edge = sorted[k];
      least[edge.from] = std::min(least[edge.from], out_.rank[edge.to]);
      const bool last_of_from = k == 0 || sorted[k - 1].from != edge.from;
      if (last_of_from && in[edge.from] < out[edge.from] &&
          nodes_[edge.from].pin != LayeredNode::Pin::top)
        out_.rank[edge.from] = std::max(out_.rank[edge.from], least[edge.from] - 1);
    }
  }

  // ---- lanes: a chain below a node, which all its far readers share, or above one, for its
  // sources

  void add_lanes() {
    width_.resize(nodes_.size());
    rank_ = out_.rank;
    owner_.resize(nodes_.size());
    std::iota(owner_.begin(), owner_.end(), 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i) width_[i] = nodes_[i].width;
    choose_lanes();
    std::vector<std::uint32_t> deepest(nodes_.size(), 0), highest(nodes_.size(), kNone);
    find_chains(deepest, highest);
    if (options_.wide > 0 && thin_out(deepest, highest)) {
      deepest.assign(nodes_.size(), 0);
      highest.assign(nodes_.size(), kNone);
      find_chains(deepest, highest);
    }
    first_lane_.assign(nodes_.size(), kNone);
    last_lane_.assign(nodes_.size(), kNone);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (deepest[i] > 0) first_lane_[i] = add_chain(i, out_.rank[i] + 1, deepest[i]);
      if (first_lane_[i] != kNone) joins_.push_back({i, first_lane_[i]});
      if (highest[i] == kNone) continue;
      const std::uint32_t top = add_chain(i, highest[i], out_.rank[i] - 1);
      last_lane_[i] = top + (out_.rank[i] - 1 - highest[i]);
      joins_.push_back({last_lane_[i], i});
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!forward(edges_[e]) || out_.rank[from] >= out_.rank[to]) continue;
      const std::uint32_t span = out_.rank[to] - out_.rank[from];
      if (span == 1)
        joins_.push_back({from, to});
      else if (has_lane_[e] && to_reader_[e])
        joins_.push_back({from, last_lane_[to] - (span - 2)});
      else if (has_lane_[e])
        joins_.push_back({first_lane_[from] + span - 2, to});
    }
    index_joins();
  }

  /// Adds lanes in these ranks, joined downwards; returns the number of the first.
  std::uint32_t add_chain(std::uint32_t owner, std::uint32_t top, std::uint32_t bottom) {
    const auto first = static_cast<std::uint32_t>(width_.size());
    for (std::uint32_t rank = top; rank <= bottom; ++rank) {
      const auto lane = static_cast<std::uint32_t>(width_.size());
      width_.push_back(kLaneWidth);
      rank_.push_back(rank);
      owner_.push_back(owner);
      if (lane > first) joins_.push_back({lane - 1, lane});
    }
    return first;
  }

  /// Decides which edges run in lanes, and whether in those of their readers.
  void choose_lanes() {
    std::vector<std::uint32_t> below(nodes_.size(), 0), above(nodes_.size(), 0);
    has_lane_.assign(edges_.size(), false);
    to_reader_.assign(edges_.size(), false);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!forward(edges_[e]) || out_.rank[from] >= out_.rank[to]) continue;
      const std::uint32_t span = out_.rank[to] - out_.rank[from];
      has_lane_[e] = span > 1 && span <= options_.far;
      if (has_lane_[e]) ++below[from], ++above[to];
    }
    for (std::size_t e = 0; e < edges_.size(); ++e)
      to_reader_[e] = has_lane_[e] && above[edges_[e].to] > below[edges_[e].from];
  }

  /// Finds the last rank of the lanes below each node, and the first of those above it.
  void find_chains(std::vector<std::uint32_t>& deepest, std::vector<std::uint32_t>& highest) const {
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const auto [from, to] = edges_[e];
      if (!has_lane_[e]) continue;
      if (to_reader_[e])
        highest[to] = std::min(highest[to], out_.rank[from] + 1);
      else
        deepest[from] = std::max(deepest[from], out_.rank[to] - 1);
    }
  }

  /// Removes the longest lanes from ranks with too many to distinguish.
  bool thin_out(const std::vector<std::uint32_t>& deepest,
                const std::vector<std::uint32_t>& highest) {
    struct Chain {
      std::uint32_t node, top, bottom;
      bool above;
    };
    std::vector<Chain> chains;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (deepest[i] > 0) chains.push_back({i, out_.rank[i] + 1, deepest[i], false});
      if (highest[i] != kNone) chains.push_back({i, highest[i], out_.rank[i] - 1, true});
    }
    std::vector<std::size_t> lanes(ranks_, 0);
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
      if (to_reader_[e] ? above[edges_[e].to] : below[edges_[e].from]) has_lane_[e] = false;
    return true;
  }

  void index_joins() {
    up_begin_.assign(width_.size() + 1, 0);
    down_begin_.assign(width_.size() + 1, 0);
    for (const LayeredEdge& join : joins_) ++up_begin_[join.to + 1], ++down_begin_[join.from + 1];
    std::partial_sum(up_begin_.begin(), up_begin_.end(), up_begin_.begin());
    std::partial_sum(down_begin_.begin(), down_begin_.end(), down_begin_.begin());
    up_.resize(joins_.size());
    down_.resize(joins_.size());
    std::vector<std::uint32_t> up = up_begin_, down = down_begin_;
    for (const LayeredEdge& join : joins_) {
      up_[up[join.to]++] = join.from;
      down_[down[join.from]++] = join.to;
    }
  }

  // ---- order within the ranks

  void order() {
    rows_.resize(ranks_);
    // By the node of a lane, so that the initial order is that of the text.
    std::vector<std::uint32_t> by_owner(width_.size());
    std::iota(by_owner.begin(), by_owner.end(), 0);
    std::stable_sort(by_owner.begin(), by_owner.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return owner_[a] < owner_[b]; });
    for (const std::uint32_t i : by_owner) rows_[rank_[i]].push_back(i);
    at_.resize(width_.size());
    for (const auto& row : rows_) number(row);
    for (std::size_t sweep = 0; sweep < options_.sweeps; ++sweep) {
      if (sweep % 2 == 0)
        for (std::size_t r = 1; r < rows_.size(); ++r) sort_row(rows_[r], up_begin_, up_);
      else
        for (std::size_t r = rows_.size() - 1; r-- > 0;) sort_row(rows_[r], down_begin_, down_);
    }
  }

  void number(const std::vector<std::uint32_t>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) at_[row[i]] = static_cast<double>(i);
  }

  /// A vertex without a neighbour there keeps its position.
  void sort_row(std::vector<std::uint32_t>& row, const std::vector<std::uint32_t>& begin,
                const std::vector<std::uint32_t>& list) {
    if (row.size() < 2) return;
    keys_.clear();
    for (const std::uint32_t i : row) {
      double sum = 0;
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k) sum += at_[list[k]];
      const auto count = static_cast<double>(begin[i + 1] - begin[i]);
      keys_.push_back({count > 0 ? sum / count : at_[i], i});
    }
    std::stable_sort(keys_.begin(), keys_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = keys_[i].second;
    number(row);
  }

  // ---- coordinates

  void place() {
    x_.assign(width_.size(), 0);
    for (const auto& row : rows_) {
      double left = 0;
      for (const std::uint32_t i : row) {
        x_[i] = left + width_[i] / 2;
        left += width_[i] + (is_lane(i) ? options_.between : gap(nodes_[i]));
      }
      for (const std::uint32_t i : row) x_[i] -= (left - options_.between) / 2;
    }
    constexpr int kRounds = 6;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t r = 1; r < rows_.size(); ++r) settle(rows_[r], up_begin_, up_, {}, {});
      for (std::size_t r = rows_.size(); r-- > 1;) settle(rows_[r - 1], down_begin_, down_, {}, {});
    }
    for (std::size_t r = 0; r < rows_.size(); ++r)
      settle(rows_[r], up_begin_, up_, down_begin_, down_);
  }

  struct Pool {
    double sum = 0, weight = 0;
    std::size_t count = 0;
    [[nodiscard]] double mean() const { return sum / weight; }
  };

  /// Returns the coordinates nearest to the desired ones, in order and without overlap: neighbours
  /// that would pass each other are pooled.
  void settle(const std::vector<std::uint32_t>& row, const std::vector<std::uint32_t>& begin,
              const std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& begin2,
              const std::vector<std::uint32_t>& list2) {
    // A lane stays straight even if many boxes of its row want its position.
    const auto count = static_cast<double>(row.size());
    const double lane_weight =
        std::max(kStraight, count > kLongRow ? kStraight * count * count : 0);
    pools_.clear();
    double offset = 0;
    offsets_.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0)
        offset += (width_[row[i - 1]] + width_[row[i]]) / 2 +
                  (close(row[i - 1]) && close(row[i]) ? options_.between / 2 : options_.between);
      offsets_.push_back(offset);
      const double weight = is_lane(row[i]) ? lane_weight : 1;
      pools_.push_back({(wish(row[i], begin, list, begin2, list2) - offset) * weight, weight, 1});
      while (pools_.size() > 1 && pools_[pools_.size() - 2].mean() > pools_.back().mean()) {
        Pool& before = pools_[pools_.size() - 2];
        before.sum += pools_.back().sum;
        before.weight += pools_.back().weight;
        before.count += pools_.back().count;
        pools_.pop_back();
      }
    }
    std::size_t i = 0;
    for (const Pool& pool : pools_)
      for (std::size_t k = 0; k < pool.count; ++k, ++i) x_[row[i]] = pool.mean() + offsets_[i];
  }

  [[nodiscard]] bool is_lane(std::uint32_t i) const { return i >= nodes_.size(); }
  /// Lanes and ports may be close to each other.
  [[nodiscard]] bool close(std::uint32_t i) const {
    return is_lane(i) || nodes_[i].pin != LayeredNode::Pin::none;
  }

  /// Returns the median of the neighbours.
  double wish(std::uint32_t i, const std::vector<std::uint32_t>& begin,
              const std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& begin2,
              const std::vector<std::uint32_t>& list2) {
    wishes_.clear();
    // A chain of lanes is straight, regardless of edges that join or leave it.
    if (is_lane(i))
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k)
        if (is_lane(list[k]) && owner_[list[k]] == owner_[i]) return x_[list[k]];
    // In the last round a lane follows only its lower neighbour: the mean of both would bend it.
    if (begin2.empty() || !is_lane(i))
      for (std::uint32_t k = begin[i]; k < begin[i + 1]; ++k) wishes_.push_back(x_[list[k]]);
    if (!begin2.empty())
      for (std::uint32_t k = begin2[i]; k < begin2[i + 1]; ++k) wishes_.push_back(x_[list2[k]]);
    if (wishes_.empty()) return x_[i];
    std::sort(wishes_.begin(), wishes_.end());
    const std::size_t n = wishes_.size();
    const double median = n % 2 == 1 ? wishes_[n / 2] : (wishes_[n / 2 - 1] + wishes_[n / 2]) / 2;
    // Pulls rows towards 0: otherwise a long chain of equal parts drifts to one side.
    const bool pulled = ranks_ > kLongChain && !is_lane(i);
    return pulled ? median * (1 - kPull) : median;
  }

  void finish() {
    double left = 0, right = 0;
    for (std::size_t i = 0; i < width_.size(); ++i) {
      left = i == 0 ? x_[i] - width_[i] / 2 : std::min(left, x_[i] - width_[i] / 2);
      right = i == 0 ? x_[i] + width_[i] / 2 : std::max(right, x_[i] + width_[i] / 2);
    }
    for (double& x : x_) x -= left;
    out_.width = right - left;
    out_.height.assign(ranks_, 0);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      out_.height[out_.rank[i]] = std::max(out_.height[out_.rank[i]], nodes_[i].height);
    double y = 0;
    for (const double height : out_.height) {
      out_.top.push_back(y);
      y += height + options_.below;
    }
    out_.total = y - options_.below;
    out_.x.assign(x_.begin(), x_.begin() + static_cast<std::ptrdiff_t>(nodes_.size()));
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      out_.y.push_back(out_.top[out_.rank[i]] + out_.height[out_.rank[i]] / 2);
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      const LayeredEdge& edge = edges_[e];
      out_.lanes.emplace_back();
      if (!has_lane_[e]) continue;
      const std::uint32_t span = out_.rank[edge.to] - out_.rank[edge.from];
      const std::uint32_t first =
          to_reader_[e] ? last_lane_[edge.to] - (span - 2) : first_lane_[edge.from];
      for (std::uint32_t k = 0; k + 1 < span; ++k) out_.lanes.back().push_back(x_[first + k]);
    }
  }

  const std::vector<LayeredNode>& nodes_;
  const std::vector<LayeredEdge>& edges_;
  const LayeredOptions& options_;
  Layered out_;
  std::uint32_t ranks_ = 0;
  std::vector<std::uint32_t> unfolded_;  // ranks before any was folded
  // Nodes first, then lanes.
  std::vector<double> width_, x_, at_;
  std::vector<std::uint32_t> rank_, first_lane_, last_lane_;  // chains below and above a node
  std::vector<std::uint32_t> owner_;                          // the node, or that of the lane
  std::vector<bool> has_lane_;                                // by edge
  std::vector<bool> to_reader_;     // by edge: it runs in the chain above its reader
  std::vector<LayeredEdge> joins_;  // between neighbouring ranks
  std::vector<std::uint32_t> up_begin_, down_begin_, up_, down_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::pair<double, std::uint32_t>> keys_;
  std::vector<Pool> pools_;
  std::vector<double> offsets_, wishes_;
};

}  // namespace

Layered lay_out_layers(const std::vector<LayeredNode>& nodes, const std::vector<LayeredEdge>& edges,
                       const LayeredOptions& options) {
  return Layers(nodes, edges, options).run();
}

}  // namespace pw::viz

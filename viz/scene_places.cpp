// Exports place_scene.
#include "viz/scene_places.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"
#include "viz/layered.hpp"

namespace pw::viz {
namespace {

// Of the font that DOT names, in points.
constexpr double kCharacter = 5.6, kLine = 11.5, kPadWide = 16, kPadHigh = 9;
constexpr double kSide = 10, kHead = 22;  // of a cluster's frame
constexpr std::uint32_t kFar = 48;        // ranks; a lane for each would fill the picture
constexpr double kStub = 16;

LayeredNode size_of(const Box& box) {
  std::size_t widest = 0;
  for (const std::string& line : box.lines) widest = std::max(widest, width_of(line));
  return {static_cast<double>(widest + 2) * kCharacter + kPadWide,
          static_cast<double>(box.lines.size()) * kLine + kPadHigh};
}

/// The points of a way: straight, bend, straight, and so on; see route().
using Way = std::vector<std::pair<double, double>>;

/// From the bottom of one place through the lanes to the top of another.
void route(Way& way, const Layered& layout, std::uint32_t from, std::uint32_t to,
           const std::vector<double>& lanes, double bottom, double top, double dx, double dy) {
  const auto row_end = [&](std::uint32_t rank) { return layout.top[rank] + layout.height[rank]; };
  way.emplace_back(layout.x[from] + dx, bottom + dy);
  way.emplace_back(layout.x[from] + dx, row_end(layout.rank[from]) + dy);
  for (std::size_t k = 0; k < lanes.size(); ++k) {
    const auto rank = layout.rank[from] + 1 + static_cast<std::uint32_t>(k);
    way.emplace_back(lanes[k] + dx, layout.top[rank] + dy);
    way.emplace_back(lanes[k] + dx, row_end(rank) + dy);
  }
  way.emplace_back(layout.x[to] + dx, layout.top[layout.rank[to]] + dy);
  way.emplace_back(layout.x[to] + dx, top + dy);
}

std::vector<double> curves(const Way& way) {
  std::vector<double> out{way.front().first, way.front().second};
  for (std::size_t i = 1; i < way.size(); ++i) {
    const auto [x0, y0] = way[i - 1];
    const auto [x1, y1] = way[i];
    const double middle = (y0 + y1) / 2;
    out.insert(out.end(), {x0, middle, x1, middle, x1, y1});
  }
  return out;
}

struct Inner {
  std::vector<std::uint32_t> boxes;
  std::map<std::uint32_t, std::uint32_t> sources, leaves;  // box outside, box inside → its port
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> edge_of;  // nodes → edge
  std::vector<LayeredEdge> edges;
  Layered layout;
};

class ScenePlacer {
 public:
  explicit ScenePlacer(const Scene& scene) : scene_(scene) {}

  ScenePlaces run() {
    gather();
    for (Inner& inner : inner_) lay_out_inner(inner);
    lay_out_whole();
    place_boxes();
    for (const Edge& edge : scene_.edges) {
      cut_ = false;
      out_.edges.push_back(curves(way_of(edge)));
      out_.stubs += cut_ ? 1 : 0;
    }
    return std::move(out_);
  }

 private:
  void gather() {
    inner_.resize(scene_.clusters.size());
    node_.resize(scene_.boxes.size());
    for (std::uint32_t b = 0; b < scene_.boxes.size(); ++b)
      if (scene_.boxes[b].cluster != kNobody) inner_[scene_.boxes[b].cluster].boxes.push_back(b);
    for (const Edge& edge : scene_.edges) {
      const std::uint32_t from = cluster_of(edge.from), to = cluster_of(edge.to);
      if (from == to && !edge.back) continue;
      if (to != kNobody) inner_[to].sources.emplace(edge.from, 0);
      if (from != kNobody) inner_[from].leaves.emplace(edge.from, 0);
    }
  }

  [[nodiscard]] std::uint32_t cluster_of(std::uint32_t box) const {
    return scene_.boxes[box].cluster;
  }

  static void join(Inner& inner, std::uint32_t from, std::uint32_t to) {
    if (inner.edge_of.emplace(std::pair(from, to), inner.edges.size()).second)
      inner.edges.push_back({from, to});
  }

  void lay_out_inner(Inner& inner) {
    if (inner.boxes.empty()) return;
    std::vector<LayeredNode> nodes;
    for (auto& [box, port] : inner.sources) {
      port = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back({4, 0, LayeredNode::Pin::top});
    }
    for (const std::uint32_t box : inner.boxes) {
      node_[box] = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back(size_of(scene_.boxes[box]));
    }
    for (auto& [box, port] : inner.leaves) {
      port = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back({4, 0, LayeredNode::Pin::bottom});
      join(inner, node_[box], port);
    }
    const std::uint32_t cluster = cluster_of(inner.boxes.front());
    for (const Edge& edge : scene_.edges) {
      if (cluster_of(edge.to) != cluster) continue;
      if (cluster_of(edge.from) == cluster && !edge.back)
        join(inner, node_[edge.from], node_[edge.to]);
      else
        join(inner, inner.sources.at(edge.from), node_[edge.to]);
    }
    inner.layout = lay_out_layers(nodes, inner.edges, {.far = kFar});
  }

  void lay_out_whole() {
    std::vector<LayeredNode> nodes;
    std::vector<std::uint32_t> of_cluster(inner_.size(), kNobody);
    item_.resize(scene_.boxes.size());
    for (std::uint32_t b = 0; b < scene_.boxes.size(); ++b) {
      const std::uint32_t cluster = cluster_of(b);
      if (cluster == kNobody) {
        item_[b] = static_cast<std::uint32_t>(nodes.size());
        nodes.push_back(size_of(scene_.boxes[b]));
        continue;
      }
      if (of_cluster[cluster] == kNobody) {
        of_cluster[cluster] = static_cast<std::uint32_t>(nodes.size());
        const Layered& layout = inner_[cluster].layout;
        const double title = static_cast<double>(std::min<std::size_t>(
                                 width_of(scene_.clusters[cluster].title), 60)) *
                                 kCharacter +
                             2 * kSide;
        nodes.push_back({std::max(layout.width + 2 * kSide, title), layout.total + kHead + kSide});
      }
      item_[b] = of_cluster[cluster];
    }
    sizes_ = nodes;
    for (const Edge& edge : scene_.edges)
      if (item_[edge.from] != item_[edge.to] &&
          whole_edge_.emplace(std::pair(item_[edge.from], item_[edge.to]), edges_.size()).second)
        edges_.push_back({item_[edge.from], item_[edge.to]});
    whole_ = lay_out_layers(nodes, edges_, {.between = 20, .below = 26, .far = kFar});
  }

  [[nodiscard]] Place item_place(std::uint32_t item) const {
    const LayeredNode& size = sizes_[item];
    return {whole_.x[item] - size.width / 2, whole_.y[item] - size.height / 2, size.width,
            size.height};
  }

  /// Where the nodes of a cluster's own layout begin.
  [[nodiscard]] std::pair<double, double> origin(std::uint32_t cluster, std::uint32_t item) const {
    const Place place = item_place(item);
    return {place.x + (place.width - inner_[cluster].layout.width) / 2, place.y + kHead};
  }

  void place_boxes() {
    out_.clusters.resize(scene_.clusters.size());
    for (std::uint32_t b = 0; b < scene_.boxes.size(); ++b) {
      const std::uint32_t cluster = cluster_of(b);
      if (cluster == kNobody) {
        out_.boxes.push_back(item_place(item_[b]));
        continue;
      }
      out_.clusters[cluster] = item_place(item_[b]);
      const auto [x, y] = origin(cluster, item_[b]);
      const LayeredNode size = size_of(scene_.boxes[b]);
      const Layered& layout = inner_[cluster].layout;
      out_.boxes.push_back({x + layout.x[node_[b]] - size.width / 2,
                            y + layout.y[node_[b]] - size.height / 2, size.width, size.height});
    }
    out_.width = whole_.width;
    out_.height = whole_.total;
  }

  static bool far(const Layered& layout, std::uint32_t from, std::uint32_t to) {
    return layout.rank[to] > layout.rank[from] + kFar;
  }

  /// Inside of a cluster, between two of its nodes.
  void inside(Way& way, std::uint32_t cluster, std::uint32_t item, std::uint32_t from,
              std::uint32_t to, double bottom, double top) {
    const Inner& inner = inner_[cluster];
    const auto [dx, dy] = origin(cluster, item);
    if (far(inner.layout, from, to)) {
      way = stub(inner.layout.x[to] + dx, top);
      return;
    }
    route(way, inner.layout, from, to, inner.layout.lanes[inner.edge_of.at({from, to})],
          bottom - dy, top - dy, dx, dy);
  }

  /// Only the end of an edge from far above, whose title says where it comes from.
  Way stub(double x, double y) {
    cut_ = true;
    return {{x, y - kStub}, {x, y}};
  }

  [[nodiscard]] Way way_of(const Edge& edge) {
    const Place &a = out_.boxes[edge.from], &b = out_.boxes[edge.to];
    const std::uint32_t from = cluster_of(edge.from), to = cluster_of(edge.to);
    Way way;
    if (from == to && from != kNobody && !edge.back) {
      inside(way, from, item_[edge.from], node_[edge.from], node_[edge.to], a.y + a.height, b.y);
      return way;
    }
    const std::uint32_t i = item_[edge.from], j = item_[edge.to];
    if (i >= j) {  // to the next repetition: around, beside what lies between
      const double side =
          std::max(item_place(i).x + item_place(i).width, item_place(j).x + item_place(j).width) +
          8;
      return {{a.x + a.width / 2, a.y + a.height},
              {side, a.y + a.height + 10},
              {side, b.y - 10},
              {b.x + b.width / 2, b.y}};
    }
    const Place upper = item_place(i), lower = item_place(j);
    if (from != kNobody)
      inside(way, from, i, node_[edge.from], inner_[from].leaves.at(edge.from), a.y + a.height,
             upper.y + upper.height);
    if (far(whole_, i, j) || cut_) return stub(b.x + b.width / 2, b.y);
    const std::size_t whole = whole_edge_.at({i, j});
    Way between;
    route(between, whole_, i, j, whole_.lanes[whole], upper.y + upper.height, lower.y, 0, 0);
    // It begins and ends at the ports.
    if (!way.empty()) between[0].first = between[1].first = way.back().first;
    if (to != kNobody) {
      Way end;
      inside(end, to, j, inner_[to].sources.at(edge.from), node_[edge.to], lower.y, b.y);
      if (cut_) return end;
      between[between.size() - 2].first = between.back().first = end.front().first;
      between.insert(between.end(), end.begin(), end.end());
    }
    way.insert(way.end(), between.begin(), between.end());
    return way;
  }

  const Scene& scene_;
  std::vector<Inner> inner_;         // by cluster
  std::vector<std::uint32_t> node_;  // by box: in its cluster's layout
  std::vector<std::uint32_t> item_;  // by box: in the layout of the whole
  std::vector<LayeredNode> sizes_;   // by item
  std::vector<LayeredEdge> edges_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> whole_edge_;
  Layered whole_;
  bool cut_ = false;  // the way that was made last
  ScenePlaces out_;
};

}  // namespace

ScenePlaces place_scene(const Scene& scene) { return ScenePlacer(scene).run(); }

}  // namespace pw::viz

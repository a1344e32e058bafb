// Places a nested scene bottom-up: each cluster is laid out alone, then appears as one node in the
// layout around it. Edges that cross a cluster's border pass through ports on its top and bottom,
// so each layout is independent of the others. An edge's path is the concatenation of its routes
// through ports and lanes, smoothed by cubic curves. Edges without a lane are drawn as stubs.
#include "viz/layered/scene_places.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"
#include "viz/layered/columns.hpp"
#include "viz/layered/layered.hpp"

namespace pw::viz {
namespace {

// Size of the DOT font, in points.
constexpr double kCharacter = 5.6, kLine = 11.5, kPadWide = 16, kPadHigh = 9;
constexpr double kSide = 10, kHead = 22;  // of a cluster's frame
constexpr std::uint32_t kFar = 48;        // ranks; a lane for each would fill the picture
constexpr double kStub = 16;
constexpr double kWidestRank = 3600;  // a rank of more points is folded

/// Estimates the text's size by its number of characters, since no font metrics are available.
LayeredNode size_of(const Box& box) {
  std::size_t widest = 0;
  for (const std::string& line : box.lines) widest = std::max(widest, count_characters(line));
  return {static_cast<double>(widest + 2) * kCharacter + kPadWide,
          static_cast<double>(box.lines.size()) * kLine + kPadHigh};
}

/// The points of a path: straight parts and bends alternate; see ScenePlacer::route.
using Way = std::vector<std::pair<double, double>>;

/// Each step from (x0, y0) to (x1, y1) is a cubic Bézier curve with vertical tangents at both ends.
/// A step between equal x is a straight line.
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

/// One level: the whole scene, or the contents of a cluster between input ports on top and output
/// ports at the bottom.
/// Edges of one source share a port: `sources` and `leaves` are by source box, so a value enters a
/// cluster once.
struct Floor {
  std::map<std::uint32_t, std::uint32_t> sources, leaves;  // box outside, box inside → its port
  std::vector<LayeredNode> nodes;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> edge_of;  // nodes → edge
  std::vector<LayeredEdge> edges;
  Layered layout;
  std::vector<std::uint32_t> column;  // by rank
  double x = 0, y = 0;                // where its layout begins

  void join(std::uint32_t from, std::uint32_t to) {
    if (from < to && edge_of.emplace(std::pair(from, to), edges.size()).second)
      edges.push_back({from, to});
  }
};

class ScenePlacer {
 public:
  explicit ScenePlacer(const Scene& scene)
      : scene_(scene), whole_(static_cast<std::uint32_t>(scene.clusters.size())) {}

  ScenePlaces run() {
    find_ways();
    number_nodes();
    for (std::uint32_t floor = whole_; floor-- > 0;) lay_out_cluster(floor);
    lay_out(whole_);
    place_all();
    for (std::size_t e = 0; e < scene_.edges.size(); ++e) {
      cut_ = false;
      out_.edges.push_back(curves(way_of(e)));
      out_.stubs += cut_ ? 1 : 0;
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::uint32_t around(std::uint32_t floor) const {
    const std::uint32_t parent = scene_.clusters[floor].parent;
    return parent == kNobody ? whole_ : parent;
  }
  /// Returns the levels that contain a box, from the inside out.
  [[nodiscard]] std::vector<std::uint32_t> floors_of(std::uint32_t box) const {
    const std::uint32_t cluster = scene_.boxes[box].cluster;
    std::vector<std::uint32_t> out{cluster == kNobody ? whole_ : cluster};
    while (out.back() != whole_) out.push_back(around(out.back()));
    return out;
  }

  /// An edge leaves clusters, crosses a level, and enters clusters; all from the inside out.
  struct Path {
    std::vector<std::uint32_t> out, in;
    std::uint32_t across = 0;
  };

  // The innermost level that contains both boxes is crossed; it is the last common one from the
  // outside in. Back edges need no ports, because they are drawn around the nodes.
  void find_ways() {
    floors_.resize(whole_ + 1);
    for (const Edge& edge : scene_.edges) {
      Path path{floors_of(edge.from), floors_of(edge.to), whole_};
      while (!path.out.empty() && !path.in.empty() && path.out.back() == path.in.back()) {
        path.across = path.out.back();
        path.out.pop_back();
        path.in.pop_back();
      }
      if (!edge.back) {
        for (const std::uint32_t floor : path.out) floors_[floor].leaves.emplace(edge.from, 0);
        for (const std::uint32_t floor : path.in) floors_[floor].sources.emplace(edge.from, 0);
      }
      paths_.push_back(std::move(path));
    }
  }

  /// Adds ports on top, then boxes and clusters in box order, then ports at the bottom.
  /// The layout requires topological numbers. Ports on top precede all nodes, and ports at the
  /// bottom follow them; boxes are in topological order.
  void number_nodes() {
    for (Floor& floor : floors_)
      for (auto& [box, port] : floor.sources) {
        port = static_cast<std::uint32_t>(floor.nodes.size());
        floor.nodes.push_back({4, 0, LayeredNode::Pin::top});
      }
    node_of_box_.resize(scene_.boxes.size());
    node_of_cluster_.assign(scene_.clusters.size(), kNobody);
    for (std::uint32_t box = 0; box < scene_.boxes.size(); ++box) {
      const std::vector<std::uint32_t> floors = floors_of(box);
      node_of_box_[box] = static_cast<std::uint32_t>(floors_[floors[0]].nodes.size());
      floors_[floors[0]].nodes.push_back(size_of(scene_.boxes[box]));
      // A cluster is numbered at its first box.
      for (std::size_t i = 1; i < floors.size(); ++i) {
        std::uint32_t& node = node_of_cluster_[floors[i - 1]];
        if (node != kNobody) break;
        node = static_cast<std::uint32_t>(floors_[floors[i]].nodes.size());
        floors_[floors[i]].nodes.push_back({});  // its size is computed by its layout
      }
    }
    for (Floor& floor : floors_)
      for (auto& [box, port] : floor.leaves) {
        port = static_cast<std::uint32_t>(floor.nodes.size());
        floor.nodes.push_back({4, 0, LayeredNode::Pin::bottom});
      }
    for (std::size_t e = 0; e < scene_.edges.size(); ++e) {
      const std::uint32_t from = scene_.edges[e].from, to = scene_.edges[e].to;
      if (scene_.edges[e].back) continue;
      const Path& path = paths_[e];
      for (std::size_t i = 0; i < path.out.size(); ++i)
        floors_[path.out[i]].join(node_at(from, path.out, i), floors_[path.out[i]].leaves.at(from));
      floors_[path.across].join(node_at(from, path.out, path.out.size()),
                                node_at(to, path.in, path.in.size()));
      for (std::size_t i = 0; i < path.in.size(); ++i)
        floors_[path.in[i]].join(floors_[path.in[i]].sources.at(from), node_at(to, path.in, i));
    }
  }

  /// Returns the item of a box at an outer level: itself, or its cluster there.
  [[nodiscard]] std::uint32_t node_at(std::uint32_t box, const std::vector<std::uint32_t>& floors,
                                      std::size_t i) const {
    return i == 0 ? node_of_box_[box] : node_of_cluster_[floors[i - 1]];
  }

  void lay_out(std::uint32_t floor) {
    Floor& in = floors_[floor];
    LayeredOptions options{.far = kFar, .wide = kWidestRank};
    if (floor == whole_) options.between = 20, options.below = 26;
    in.layout = lay_out_layers(in.nodes, in.edges, options);
    in.column = stand_in_columns(in.layout, in.nodes, in.edges, options.below);
    out_.folded |= in.layout.folded;
    out_.columns |= !in.column.empty() && in.column.back() > 0;
  }

  // Clusters are visited from the last, so inner clusters have sizes before the cluster around
  // them.
  void lay_out_cluster(std::uint32_t cluster) {
    if (node_of_cluster_[cluster] == kNobody) return;  // nothing of it is drawn
    lay_out(cluster);
    const Layered& layout = floors_[cluster].layout;
    const double title = static_cast<double>(std::min<std::size_t>(
                             count_characters(scene_.clusters[cluster].title), 60)) *
                             kCharacter +
                         2 * kSide;
    floors_[around(cluster)].nodes[node_of_cluster_[cluster]] = {
        std::max(layout.width + 2 * kSide, title), layout.total + kHead + kSide};
  }

  [[nodiscard]] Place place_of(std::uint32_t floor, std::uint32_t node) const {
    const Floor& in = floors_[floor];
    const LayeredNode& size = in.nodes[node];
    return {in.x + in.layout.x[node] - size.width / 2, in.y + in.layout.y[node] - size.height / 2,
            size.width, size.height};
  }

  // From the outside in: a cluster's place must be known before its contents.
  void place_all() {
    out_.clusters.resize(scene_.clusters.size());
    for (std::uint32_t cluster = 0; cluster < whole_; ++cluster) {
      if (node_of_cluster_[cluster] == kNobody) continue;
      Floor& floor = floors_[cluster];
      const Place place = place_of(around(cluster), node_of_cluster_[cluster]);
      out_.clusters[cluster] = place;
      floor.x = place.x + (place.width - floor.layout.width) / 2;
      floor.y = place.y + kHead;
    }
    for (std::uint32_t box = 0; box < scene_.boxes.size(); ++box)
      out_.boxes.push_back(place_of(floors_of(box)[0], node_of_box_[box]));
    out_.width = floors_[whole_].layout.width;
    out_.height = floors_[whole_].layout.total;
  }

  /// Routes from below one node of a level through the lanes to above another.
  /// Does nothing once the path is cut, which happens without a lane or across columns. A path
  /// alternates vertical runs past a rank and bends between two ranks.
  void route(Way& way, std::uint32_t floor, std::uint32_t from, std::uint32_t to, double x0,
             double y0, double x1, double y1) {
    const Floor& in = floors_[floor];
    const Layered& layout = in.layout;
    const std::vector<double>& lanes = layout.lanes[in.edge_of.at({from, to})];
    if (layout.rank[to] > layout.rank[from] + 1 && lanes.empty()) cut_ = true;
    if (!same_column(in, from, to)) cut_ = true;
    if (cut_) return;
    const auto row_end = [&](std::uint32_t rank) {
      return in.y + layout.top[rank] + layout.height[rank];
    };
    way.emplace_back(x0, y0);
    way.emplace_back(x0, row_end(layout.rank[from]));
    for (std::size_t k = 0; k < lanes.size(); ++k) {
      const auto rank = layout.rank[from] + 1 + static_cast<std::uint32_t>(k);
      way.emplace_back(in.x + lanes[k], in.y + layout.top[rank]);
      way.emplace_back(in.x + lanes[k], row_end(rank));
    }
    way.emplace_back(x1, in.y + layout.top[layout.rank[to]]);
    way.emplace_back(x1, y1);
  }

  [[nodiscard]] static bool same_column(const Floor& in, std::uint32_t a, std::uint32_t b) {
    return in.column[in.layout.rank[a]] == in.column[in.layout.rank[b]];
  }

  [[nodiscard]] double port_x(std::uint32_t floor, std::uint32_t port) const {
    return floors_[floor].x + floors_[floor].layout.x[port];
  }

  // Concatenates the routes of all levels: out of the source's clusters, across, and into the
  // target's. A cut at any level leaves only a stub at the target.
  [[nodiscard]] Way way_of(std::size_t e) {
    const Edge& edge = scene_.edges[e];
    const Path& path = paths_[e];
    const Place &a = out_.boxes[edge.from], &b = out_.boxes[edge.to];
    const std::uint32_t i = node_at(edge.from, path.out, path.out.size()),
                        j = node_at(edge.to, path.in, path.in.size());
    if (edge.back || i >= j) {  // to the next repetition: around the items between
      cut_ = !same_column(floors_[path.across], i, j);
      if (cut_) return end_of(b.x + b.width / 2, b.y);
      const Place upper = place_of(path.across, i), lower = place_of(path.across, j);
      const double side = std::max(upper.x + upper.width, lower.x + lower.width) + 8;
      return {{a.x + a.width / 2, a.y + a.height},
              {side, a.y + a.height + 10},
              {side, b.y - 10},
              {b.x + b.width / 2, b.y}};
    }
    Way way;
    double x = a.x + a.width / 2, y = a.y + a.height;
    for (std::size_t k = 0; k < path.out.size(); ++k) {
      const std::uint32_t floor = path.out[k], port = floors_[floor].leaves.at(edge.from);
      const double end = out_.clusters[floor].y + out_.clusters[floor].height;
      route(way, floor, node_at(edge.from, path.out, k), port, x, y, port_x(floor, port), end);
      x = port_x(floor, port);
      y = end;
    }
    const auto enter = [&](std::size_t k) -> std::pair<double, double> {
      if (k == 0) return {b.x + b.width / 2, b.y};
      const std::uint32_t floor = path.in[k - 1];
      return {port_x(floor, floors_[floor].sources.at(edge.from)), out_.clusters[floor].y};
    };
    for (std::size_t k = path.in.size() + 1; k-- > 0;) {
      const bool across = k == path.in.size();
      const std::uint32_t floor = across ? path.across : path.in[k];
      const auto [x1, y1] = enter(k);
      route(way, floor, across ? i : floors_[floor].sources.at(edge.from),
            node_at(edge.to, path.in, k), x, y, x1, y1);
      x = x1;
      y = y1;
    }
    return cut_ ? end_of(x, y) : way;
  }

  /// Draws only the end of an edge from far above or another column; its title names the
  /// source.
  [[nodiscard]] static Way end_of(double x, double y) { return {{x, y - kStub}, {x, y}}; }

  const Scene& scene_;
  std::uint32_t whole_;                     // the outermost level; others are numbered as clusters
  std::vector<Floor> floors_;               // a cluster's precedes those of its inner clusters
  std::vector<Path> paths_;                 // by edge
  std::vector<std::uint32_t> node_of_box_;  // on its level
  std::vector<std::uint32_t> node_of_cluster_;  // on the level around it; kNobody: not drawn
  bool cut_ = false;                            // the last path
  ScenePlaces out_;
};

}  // namespace

ScenePlaces place_scene(const Scene& scene) { return ScenePlacer(scene).run(); }

}  // namespace pw::viz

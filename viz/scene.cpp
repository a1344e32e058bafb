// Draws one box per node, or one per group if there are too many nodes.
#include "viz/scene.hpp"

#include <algorithm>
#include <map>

#include "viz/crop.hpp"
#include "viz/label.hpp"

namespace pw::viz {
namespace {

BoxKind kind_of(const Graph& graph, NodeId n) {
  const Op& op = graph.op_of(n);
  if (op.traits.splitting) return BoxKind::splitting;
  return op.has_body() || op.traits.view ? BoxKind::node : BoxKind::product;
}

/// Omits the prefix that the name of the parent group already has.
std::string name_in(const Folding& folding, const Group& group) {
  if (group.parent == kNobody) return group.name;
  const std::string around = folding.groups[group.parent].name + ".";
  return group.name.starts_with(around) ? group.name.substr(around.size()) : group.name;
}

std::string names_of(const Folding& folding, const Group& group) {
  const auto& copies = group.siblings;
  const auto name = [&](std::size_t i) { return name_in(folding, folding.groups[copies[i]]); };
  if (copies.size() == 1) return name(0);
  if (copies.size() == 2) return name(0) + ", " + name(1);
  return name(0) + ", " + name(1) + (copies.size() > 3 ? " … " : ", ") + name(copies.size() - 1);
}

const char* state_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::captured: return " · captured";
    case GroupKind::eager: return " · eager";
    case GroupKind::layer:
    case GroupKind::run:
    case GroupKind::module: return "";
  }
  return "";
}

class Composer {
 public:
  Composer(const UnionGraph& graph, const Folding& folding, std::size_t most_boxes,
           const SceneForm& form)
      : graph_(graph), folding_(folding), most_(most_boxes), form_(form) {}

  Scene run() {
    scene_.box_of.assign(graph_.nodes.size(), kNobody);
    add_clusters();
    add_inputs();
    open_ = form_.whole ? 0 : kDeepest + 1;
    if (too_many()) {
      whole_ = true;
      while (open_ > 0 && boxes_at(open_) > most_) --open_;
    }
    if (whole_ || form_.whole)
      add_wholes();
    else
      each_node([this](std::uint32_t at) { add_node(at); });
    share_boxes();
    add_edges();
    add_outputs();
    finish_edges();
    if (form_.cropped) left_out_ = crop_to_changes(scene_);
    name_scene();
    return std::move(scene_);
  }

 private:
  std::uint32_t last_version() const {
    return static_cast<std::uint32_t>(graph_.versions.size() - 1);
  }

  Mark mark_of(const UnionNode& node) const {
    if (!form_.marks) return Mark::plain;
    if (node.first > 0) return Mark::added;
    if (node.last < last_version()) return Mark::removed;
    return node.changed.empty() ? Mark::plain : Mark::changed;
  }

  void add_clusters() {
    cluster_of_.assign(folding_.groups.size(), kNobody);
    for (std::uint32_t i = 0; i < folding_.groups.size(); ++i) {
      const Group& group = folding_.groups[i];
      const std::uint32_t parent = group.parent == kNobody ? kNobody : cluster_of_[group.parent];
      depth_.push_back(group.parent == kNobody ? 0 : depth_[group.parent] + 1);
      if (group.drawn_as != i || (group.parent != kNobody && parent == kNobody)) continue;
      cluster_of_[i] = static_cast<std::uint32_t>(scene_.clusters.size());
      Cluster cluster;
      cluster.kind = group.kind;
      cluster.parent = parent;
      cluster.copies = group.siblings.size();
      cluster.title = (cluster.copies > 1 ? "×" + std::to_string(cluster.copies) + " " : "") +
                      clean(names_of(folding_, group)) + state_of(group.kind);
      cluster.tooltip = clean(copies_text(group));
      scene_.clusters.push_back(std::move(cluster));
    }
  }

  std::string copies_text(const Group& group) const {
    constexpr std::size_t kMost = 64;
    std::string text =
        grouped_digits(group.nodes.size()) + (group.nodes.size() == 1 ? " node" : " nodes");
    if (group.siblings.size() > 1)
      text += " in each of";
    else
      text += " in";
    for (std::size_t i = 0; i < group.siblings.size() && i < kMost; ++i)
      text += (i == 0 ? " " : ", ") + folding_.groups[group.siblings[i]].name;
    if (group.siblings.size() > kMost)
      text += " and " + grouped_digits(group.siblings.size() - kMost) + " more";
    return text;
  }

  /// Returns the group of a node at a depth, or kNobody.
  std::uint32_t group_at(std::uint32_t at, std::size_t depth) const {
    std::uint32_t group = folding_.inner_of[at];
    while (group != kNobody && depth_[group] > depth) group = folding_.groups[group].parent;
    return group != kNobody && depth_[group] == depth ? group : kNobody;
  }

  std::uint32_t cluster_at(std::uint32_t at) const {
    const std::uint32_t group = folding_.inner_of[folding_.drawn_as[at]];
    return group == kNobody ? kNobody : cluster_of_[group];
  }

  /// Returns the closed group in which a node is drawn, or kNobody if the node has a box.
  std::uint32_t whole_at(std::uint32_t at) const {
    const std::uint32_t group = group_at(folding_.drawn_as[at], open_);
    return group == kNobody ? kNobody : cluster_of_[group];
  }

  /// Returns the number of boxes if groups are open down to a depth.
  std::size_t boxes_at(std::size_t depth) const {
    std::size_t count = 0;
    std::vector<bool> seen(folding_.groups.size(), false);
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      if (!drawn(at)) continue;
      const std::uint32_t group = group_at(at, depth);
      if (group != kNobody && seen[group]) continue;
      if (group != kNobody) seen[group] = true;
      ++count;
    }
    return count;
  }

  bool drawn(std::uint32_t at) const { return folding_.drawn_as[at] == at; }

  bool too_many() const {
    std::size_t count = 0;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) count += drawn(at) ? 1 : 0;
    return count > most_;
  }

  void add_node(std::uint32_t at) {
    if (!drawn(at)) return;
    const UnionNode& node = graph_.nodes[at];
    const Graph& g = graph_.graph_of(node);
    Box box;
    box.kind = kind_of(g, node.id);
    box.mark = mark_of(node);
    box.lines = node_lines(g, node.id);
    box.tooltip = node_tooltip(g, node.id);
    box.cluster = cluster_at(at);
    box.node = at;
    box.first = node.first;
    box.last = node.last;
    box.stands_for = 0;
    scene_.box_of[at] = push(std::move(box));
  }

  /// One box for each cluster, then single boxes for other nodes; the rest is one box with its
  /// number.
  void add_wholes() {
    std::vector<std::uint32_t> box_of_cluster(scene_.clusters.size(), kNobody);
    std::uint32_t rest = kNobody;
    each_node([&](std::uint32_t at) {
      const std::uint32_t cluster = whole_at(at);
      if (cluster == kNobody && !drawn(at)) return;
      if (cluster != kNobody && box_of_cluster[cluster] != kNobody) {
        widen(scene_.boxes[box_of_cluster[cluster]], at);
        scene_.box_of[at] = box_of_cluster[cluster];
      } else if (scene_.boxes.size() >= most_) {
        if (rest == kNobody) rest = push(rest_box(at));
        widen(scene_.boxes[rest], at);
        scene_.box_of[at] = rest;
      } else if (cluster == kNobody) {
        add_node(at);
      } else {
        scene_.box_of[at] = box_of_cluster[cluster] = push(whole_box(at, cluster));
      }
    });
  }

  /// In the order of the folding, so that edges go forwards except those to the next copy.
  template <class Act>
  void each_node(Act act) const {
    each_of(folding_.sequence, act);
  }
  template <class Act>
  void each_of(const std::vector<Unit>& sequence, Act act) const {
    for (const Unit& unit : sequence) {
      if (!unit.group)
        act(unit.index);
      else
        each_of(folding_.groups[unit.index].sequence, act);
    }
  }

  Box whole_box(std::uint32_t at, std::uint32_t cluster) const {
    const Group& group = folding_.groups[group_at(folding_.drawn_as[at], open_)];
    Box box;
    box.kind = BoxKind::whole;
    box.lines = {shorten(scene_.clusters[cluster].title),
                 grouped_digits(group.nodes.size()) +
                     (group.nodes.size() == 1 ? " node" : " nodes") +
                     (group.siblings.size() > 1 ? " each" : "")};
    box.tooltip = scene_.clusters[cluster].tooltip;
    box.cluster = cluster;
    box.node = at;
    box.first = graph_.nodes[at].first;
    box.last = graph_.nodes[at].last;
    box.stands_for = 0;
    if (mark_of(graph_.nodes[at]) != Mark::plain) box.mark = Mark::changed;
    return box;
  }

  Box rest_box(std::uint32_t at) const {
    Box box;
    box.kind = BoxKind::whole;
    box.lines = {"all other nodes"};
    box.tooltip = "too many nodes to draw; choose a lower level of folding or a part";
    box.node = at;
    box.first = graph_.nodes[at].first;
    box.last = graph_.nodes[at].last;
    box.stands_for = 0;
    return box;
  }

  void widen(Box& box, std::uint32_t at) const {
    box.first = std::min(box.first, graph_.nodes[at].first);
    box.last = std::max(box.last, graph_.nodes[at].last);
    if (mark_of(graph_.nodes[at]) != Mark::plain) box.mark = Mark::changed;
  }

  /// Nodes that are not drawn share the box of the node drawn for them.
  void share_boxes() {
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      std::uint32_t& box = scene_.box_of[at];
      if (box == kNobody) box = scene_.box_of[folding_.drawn_as[at]];
      if (box != kNobody) ++scene_.boxes[box].stands_for;
    }
  }

  void add_inputs() {
    const Graph& graph = graph_.versions.back()->graph;
    inputs_.resize(graph.value_bound(), kNobody);
    for (const ValueId v : graph.inputs()) {
      if (graph.input_kind(v) != InputKind::input) continue;
      Box box;
      box.kind = BoxKind::input;
      box.lines = {shorten(clean(graph.value_name(v))),
                   shorten(clean(graph.context().types.print(graph.type(v))))};
      box.tooltip = clean("input " + std::string(graph.value_name(v)) + ": " +
                          graph.context().types.print(graph.type(v)));
      box.last = last_version();
      box.stands_for = 0;
      inputs_[v.index] = push(std::move(box));
    }
  }

  std::uint32_t box_of_value(std::uint32_t version, ValueId v) const {
    const Graph& graph = graph_.versions[version]->graph;
    if (!v.valid()) return kNobody;
    if (!graph.is_input(v)) {
      const std::uint32_t at = graph_.position(version, graph.producer(v));
      return at == kNobody ? kNobody : scene_.box_of[at];
    }
    if (graph.input_kind(v) != InputKind::input) return kNobody;
    const Graph& last = graph_.versions.back()->graph;
    if (&graph == &last) return inputs_[v.index];
    // Inputs are the first values of every version, in the same order.
    return v.index < inputs_.size() && last.is_input(v) ? inputs_[v.index] : kNobody;
  }

  void add_edges() {
    for (std::uint32_t version = 0; version < graph_.versions.size(); ++version) {
      const Graph& graph = graph_.versions[version]->graph;
      for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
        const std::uint32_t at = graph_.position(version, n);
        if (at == kNobody || scene_.box_of[at] == kNobody) continue;
        for (const ValueId v : graph.operands(n)) {
          const std::uint32_t from = box_of_value(version, v);
          if (from != kNobody)
            add_edge(version, from, scene_.box_of[at], v, repeats(version, v, at));
        }
      }
    }
  }

  /// Returns true if an edge leaves a copy of a folded group, so that upwards means to the next
  /// copy.
  bool repeats(std::uint32_t version, ValueId v, std::uint32_t to) const {
    const Graph& graph = graph_.versions[version]->graph;
    if (graph.is_input(v)) return false;
    const std::uint32_t from = graph_.position(version, graph.producer(v));
    if (from == kNobody) return false;
    const std::uint32_t group = group_at(from, open_);
    if (group != kNobody && group == group_at(to, open_)) return false;
    return !drawn(from) || !drawn(to);
  }

  void add_edge(std::uint32_t version, std::uint32_t from, std::uint32_t to, ValueId v,
                bool repeats) {
    if (from == to && !repeats) return;
    const Graph& graph = graph_.versions[version]->graph;
    const auto [known, fresh] = edges_.try_emplace({from, to}, scene_.edges.size());
    if (fresh) {
      Edge edge;
      edge.from = from;
      edge.to = to;
      edge.back = repeats && from >= to;
      edge.tooltip = clean(std::string(graph.value_name(v)) + ": " +
                           graph.context().types.print(graph.type(v)));
      scene_.edges.push_back(std::move(edge));
    }
    std::vector<std::uint32_t>& versions = scene_.edges[known->second].versions;
    if (versions.empty() || versions.back() != version) versions.push_back(version);
  }

  void add_outputs() {
    for (std::uint32_t version = 0; version < graph_.versions.size(); ++version) {
      const Graph& graph = graph_.versions[version]->graph;
      for (std::uint32_t i = 0; i < graph.outputs().size(); ++i) {
        const ValueId v = graph.outputs()[i];
        if (i >= outputs_.size()) outputs_.push_back(output_box(graph, i));
        const std::uint32_t from = box_of_value(version, v);
        if (from != kNobody) add_edge(version, from, outputs_[i], v, false);
      }
    }
  }

  std::uint32_t output_box(const Graph& graph, std::uint32_t output) {
    const ValueId v = graph.outputs()[output];
    Box box;
    box.kind = BoxKind::output;
    std::string what = "output";
    if (output >= graph.returned_count())
      what =
          "writes " +
          shorten(clean(graph.value_name(graph.written_inputs()[output - graph.returned_count()])));
    box.lines = {what, shorten(clean(graph.value_name(v))),
                 shorten(clean(graph.context().types.print(graph.type(v))))};
    box.tooltip = what + " " + clean(std::string(graph.value_name(v)));
    box.last = last_version();
    box.stands_for = 0;
    return push(std::move(box));
  }

  void finish_edges() {
    if (!form_.marks) return;
    for (Edge& edge : scene_.edges) {
      if (edge.versions.front() > 0)
        edge.mark = Mark::added;
      else if (edge.versions.back() < last_version())
        edge.mark = Mark::removed;
    }
  }

  void name_scene() {
    const Graph& graph = graph_.versions.back()->graph;
    scene_.title = clean(graph.name);
    std::size_t shown = 0;
    for (const Box& box : scene_.boxes)
      shown += box.node != kNobody && box.kind != BoxKind::whole ? 1 : 0;
    scene_.caption = "showing " + grouped_digits(shown) + " of " +
                     grouped_digits(graph_.nodes.size()) +
                     (graph_.nodes.size() == 1 ? " node" : " nodes");
    if (shown == graph_.nodes.size()) return;
    if (!folding_.reason.empty()) scene_.caption += "; equal " + folding_.reason + " drawn once";
    if (form_.whole && !whole_) scene_.caption += "; boxes are whole " + folding_.reason;
    if (whole_)
      scene_.caption += "; too many to draw singly, so boxes are whole " +
                        (folding_.reason.empty() ? std::string("parts")
                         : open_ > 0             ? std::string("modules")
                                                 : folding_.reason);
    if (left_out_ > 0)
      scene_.caption +=
          "; cropped to what changed: " + grouped_digits(left_out_) + " boxes are left out";
  }

  std::uint32_t push(Box box) {
    scene_.boxes.push_back(std::move(box));
    return static_cast<std::uint32_t>(scene_.boxes.size() - 1);
  }

  const UnionGraph& graph_;
  const Folding& folding_;
  std::size_t most_;
  SceneForm form_;
  bool whole_ = false;              // if there are too many nodes for anything else
  std::size_t open_ = 0;            // number of open group levels
  std::vector<std::size_t> depth_;  // by group
  std::size_t left_out_ = 0;        // of boxes, by cropping
  Scene scene_;
  std::vector<std::uint32_t> cluster_of_, inputs_, outputs_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> edges_;
};

}  // namespace

const char* glyph(Mark mark) {
  switch (mark) {
    case Mark::plain: return "";
    case Mark::added: return "+";
    case Mark::removed: return "−";
    case Mark::changed: return "~";
  }
  return "";
}

std::vector<std::uint32_t> clusters_around(const Scene& scene, std::uint32_t cluster) {
  std::vector<std::uint32_t> out;
  for (; cluster != kNobody; cluster = scene.clusters[cluster].parent) out.push_back(cluster);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string grouped_digits(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

Scene make_scene(const UnionGraph& graph, const Folding& folding, std::size_t most_boxes,
                 const SceneForm& form) {
  if (form.cropped) {  // changes often fit even if the whole graph does not
    constexpr auto kAll = static_cast<std::size_t>(-1);
    Scene scene = Composer(graph, folding, kAll, form).run();
    if (scene.boxes.size() <= most_boxes) return scene;
  }
  return Composer(graph, folding, most_boxes, form).run();
}

}  // namespace pw::viz

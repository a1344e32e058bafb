// Exports page_data_json.
#include <nlohmann/json.hpp>

#include "viz/label.hpp"
#include "viz/page.hpp"

namespace pw::viz {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(BoxKind kind) {
  switch (kind) {
    case BoxKind::node: return "node";
    case BoxKind::product: return "product";
    case BoxKind::splitting: return "splitting";
    case BoxKind::input: return "input";
    case BoxKind::output: return "output";
    case BoxKind::whole: return "whole";
  }
  return "node";
}

Json node_json(const UnionGraph& graph, const UnionNode& node) {
  const Graph& g = graph.graph_of(node);
  std::string types;
  std::size_t users = 0;
  for (std::size_t r = 0; r < g.result_count(node.id); ++r) {
    const ValueId v = g.result(node.id, r);
    types += (r == 0 ? "" : ", ") + g.context().types.print(g.type(v));
    users += g.use_count(v) + g.output_count(v);
  }
  Json out = {{"name", clean(g.node_name(node.id))},
              {"op", clean(g.op_of(node.id).name)},
              {"type", clean(types)},
              {"users", users}};
  if (!g.group(node.id).empty()) out["group"] = clean(g.group(node.id));
  if (!g.source(node.id).empty()) out["source"] = clean(g.source(node.id));
  return out;
}

Json box_json(const UnionGraph& graph, const Scene& scene, const Timeline& timeline,
              std::size_t i) {
  const Box& box = scene.boxes[i];
  Json out = {
      {"kind", name_of(box.kind)}, {"text", box.tooltip}, {"first", box.first}, {"last", box.last}};
  if (box.node != kNobody && box.kind != BoxKind::whole) {
    out.update(node_json(graph, graph.nodes[box.node]));
    out["changed"] = graph.nodes[box.node].changed;
  } else {
    out["name"] = box.lines.empty() ? "" : box.lines.front();
    out["op"] = name_of(box.kind);
  }
  if (box.stands_for > 1) out["copies"] = box.stands_for;
  if (box.cluster != kNobody) out["piece"] = scene.clusters[box.cluster].title;
  const Origin& origin = timeline.origins[i];
  if (!origin.made.empty()) out["made"] = origin.made;
  if (!origin.gone.empty()) out["gone"] = origin.gone;
  if (!origin.matched.empty()) out["matched"] = origin.matched;
  return out;
}

Json step_json(const Step& step) {
  Json out = {{"pass", step.pass},       {"nodes", step.nodes},     {"added", step.added},
              {"removed", step.removed}, {"changed", step.changed}, {"hidden", step.hidden}};
  if (step.matches) out["matches"] = *step.matches;
  if (step.seconds >= 0) out["ms"] = step.seconds * 1000;
  if (!step.rules.empty()) out["rules"] = step.rules;
  return out;
}

Json plan_json(const Plan& plan) {
  Json ranges = Json::array();
  for (const Range& range : plan.ranges) ranges.push_back({range.begin, range.end});
  return {{"mode", plan.mode},
          {"tokens", clean(plan.tokens)},
          {"ranges", ranges},
          {"sizes", plan.capture.sizes},
          {"arena", plan.memory.arena_bytes},
          {"live", plan.memory.live_bytes},
          {"weights", plan.memory.weight_bytes}};
}

Json classes_json(const StitchedGraph& stitched) {
  Json out = Json::array();
  for (const PieceClass& c : stitched.classes) {
    const Piece& first = stitched.pieces[c.members.front()];
    out.push_back({{"name", c.name},
                   {"first", first.name},
                   {"count", c.members.size()},
                   {"nodes", first.graph.node_count()},
                   {"captured", !c.splitting}});
  }
  return out;
}

std::string escape_for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else if (json.compare(i, 3, "\xe2\x80\xa8") == 0 || json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      out += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else
      out += c;
  }
  return out;
}

}  // namespace

std::string page_data_json(const VizInput& input, const UnionGraph& graph, const Scene& scene,
                           const Timeline& timeline) {
  Json out = {{"title", scene.title}, {"caption", scene.caption}};
  out["steps"] = Json::array();
  for (const Step& step : timeline.steps) out["steps"].push_back(step_json(step));
  out["boxes"] = Json::array();
  for (std::size_t i = 0; i < scene.boxes.size(); ++i)
    out["boxes"].push_back(box_json(graph, scene, timeline, i));
  out["edges"] = Json::array();
  for (const Edge& edge : scene.edges)
    out["edges"].push_back({{"a", edge.from}, {"b", edge.to}, {"in", edge.versions}});
  if (input.plan != nullptr) out["plan"] = plan_json(*input.plan);
  if (input.pieces != nullptr) out["classes"] = classes_json(*input.pieces);
  return escape_for_script(out.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace pw::viz

// JSON for Model Explorer (google-ai-edge/model-explorer); the format is defined by its
// graph_builder.py and sync_navigation.ts.
#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "viz/label.hpp"
#include "viz/union.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

Json pair_of(const std::string& key, const std::string& value) {
  return {{"key", key}, {"value", viz::clean(value)}};
}

/// Returns "layers.3.mlp" and "piece_2" as a path; a slash in a name would add a level.
std::string path_of(std::string_view group, const std::string& piece) {
  std::string out;
  for (const char c :
       viz::clean(piece.empty() ? std::string(group) : piece + "." + std::string(group)))
    out += c == '.' ? '/' : c == '/' ? '_' : c;
  while (!out.empty() && out.back() == '/') out.pop_back();
  return out;
}

std::string input_id(std::string_view name) { return "input:" + viz::clean(name); }

class Exporter {
 public:
  Exporter(const Graph& graph, const StitchedGraph* pieces) : graph_(graph) {
    if (pieces == nullptr) return;
    piece_of_.resize(graph.node_bound());
    for (const Piece& piece : pieces->pieces)
      for (const NodeId n : piece.nodes)
        if (n.index < piece_of_.size()) piece_of_[n.index] = piece.name;
  }

  Json run(const std::string& id) {
    Json nodes = Json::array();
    for (const ValueId v : graph_.inputs()) nodes.push_back(input(v));
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n)) nodes.push_back(node(n));
    Json outputs = {{"id", "outputs"}, {"label", "outputs"}, {"namespace", ""}};
    outputs["incomingEdges"] = Json::array();
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i)
      outputs["incomingEdges"].push_back(edge(graph_.outputs()[i], i));
    nodes.push_back(std::move(outputs));
    return {{"id", id}, {"nodes", std::move(nodes)}};
  }

 private:
  [[nodiscard]] Json metadata(ValueId v, std::size_t id) const {
    return {{"id", std::to_string(id)},
            {"attrs",
             {pair_of("name", std::string(graph_.value_name(v))),
              pair_of("tensor_shape", graph_.context().types.print(graph_.type(v)))}}};
  }

  [[nodiscard]] Json input(ValueId v) const {
    const std::string kind(name(graph_.input_kind(v)));
    return {{"id", input_id(graph_.value_name(v))},
            {"label", viz::clean(graph_.value_name(v))},
            {"namespace", kind + "s"},
            {"attrs", {pair_of("kind", kind)}},
            {"incomingEdges", Json::array()},
            {"outputsMetadata", {metadata(v, 0)}}};
  }

  [[nodiscard]] Json edge(ValueId v, std::size_t slot) const {
    const bool input = graph_.is_input(v);
    return {{"sourceNodeId", input ? input_id(graph_.value_name(v))
                                   : viz::clean(graph_.node_name(graph_.producer(v)))},
            {"sourceNodeOutputId", std::to_string(input ? 0 : graph_.result_index(v))},
            {"targetNodeInputId", std::to_string(slot)}};
  }

  [[nodiscard]] Json node(NodeId n) const {
    const Context& context = graph_.context();
    const std::string piece = piece_of_.empty() ? std::string() : piece_of_[n.index];
    Json out = {{"id", viz::clean(graph_.node_name(n))},
                {"label", viz::clean(graph_.op_of(n).name)},
                {"namespace", path_of(graph_.group(n), piece)}};
    out["attrs"] = Json::array();
    for (const auto& [name, value] : context.attributes[graph_.attributes(n)])
      out["attrs"].push_back(
          pair_of(viz::clean(context.strings.text(name)), context.attributes.print(value)));
    if (!graph_.source(n).empty())
      out["attrs"].push_back(pair_of("source", std::string(graph_.source(n))));
    out["incomingEdges"] = Json::array();
    for (std::size_t i = 0; i < graph_.operand_count(n); ++i)
      if (graph_.operand(n, i).valid())
        out["incomingEdges"].push_back(edge(graph_.operand(n, i), i));
    out["outputsMetadata"] = Json::array();
    for (std::size_t r = 0; r < graph_.result_count(n); ++r)
      out["outputsMetadata"].push_back(metadata(graph_.result(n, r), r));
    return out;
  }

  const Graph& graph_;
  std::vector<std::string> piece_of_;
};

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<std::string> render_model_explorer(const VizInput& input, const VizOptions& options) {
  if (input.versions.empty())
    return fail(error_in("the picture", "PW0902", "there is no graph to draw"));
  Json graphs = Json::array();
  std::set<std::string> taken;
  for (std::size_t v = 0; v < input.versions.size(); ++v) {
    if (options.version && v != *options.version && options.against != v) continue;
    const Version& version = input.versions[v];
    std::string id = viz::clean(version.pass.empty() ? version.graph.name : version.pass);
    if (!taken.insert(id).second) taken.insert(id += " (" + std::to_string(v) + ")");
    const bool last = v + 1 == input.versions.size();
    graphs.push_back(Exporter(version.graph, last ? input.pieces : nullptr).run(id));
  }
  return dump({{"label", viz::clean(input.versions.back().graph.name)}, {"graphs", graphs}});
}

Result<std::string> render_model_explorer_sync(const VizInput& input, const VizOptions& options) {
  if (input.versions.size() < 2)
    return fail(error_in("the picture", "PW0902", "a mapping needs two graphs"));
  const std::size_t right = options.version.value_or(input.versions.size() - 1);
  const std::size_t left = options.against.value_or(0);
  if (right >= input.versions.size() || left >= input.versions.size())
    return fail(error_in("the picture", "PW0902",
                         "there is no version " + std::to_string(std::max(left, right))));
  const Graph &a = input.versions[left].graph, &b = input.versions[right].graph;
  Json mapping = Json::object();
  std::set<std::string> there;
  for (NodeId n = b.first(); n.valid(); n = b.next(n)) there.emplace(b.node_name(n));
  for (NodeId n = a.first(); n.valid(); n = a.next(n))
    if (there.count(std::string(a.node_name(n))) > 0)
      mapping[viz::clean(a.node_name(n))] = viz::clean(a.node_name(n));
  // Maps replaced nodes to their replacement.
  if (input.journal != nullptr && input.related && left < right) {
    const viz::UnionGraph graph = viz::unite({&input.versions[left], &input.versions[right]}, true);
    std::vector<std::vector<NodeId>> became(std::max(a.node_bound(), b.node_bound()));
    for (const JournalEvent& event : *input.journal)
      if (const auto* match = std::get_if<MatchEvent>(&event))
        for (const NodeId n : match->erased) {
          if (n.index >= became.size()) became.resize(n.index + 1);
          became[n.index] = match->created;
        }
    for (NodeId n = a.first(); n.valid(); n = a.next(n)) {
      NodeId at = n;
      for (int step = 0; step < 64 && at.index < became.size() && !became[at.index].empty(); ++step)
        at = became[at.index].back();
      if (at != n && at.index < b.node_bound() && graph.position(1, at) != viz::kNobody)
        mapping[viz::clean(a.node_name(n))] = viz::clean(b.node_name(at));
    }
  }
  return dump({{"type", "sync_navigation"}, {"mapping", mapping}});
}

}  // namespace pw

#include "backends/cpu/known_places.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backends/interpreter/interpreter.hpp"
#include "graph/build.hpp"
#include "graph/passes/constancy.hpp"
#include "tensor/numerics.hpp"

namespace pw::cpu {
namespace {

constexpr std::int64_t kMostPlaces = 1 << 16;
constexpr std::size_t kMostRuns = 12, kRunLength = 8;  // elements of a run, on average
constexpr std::size_t kMostNodes = 64;                 // that compute places

/// The nodes that compute a value, or nothing if they read an input or are too many.
bool add_sources(const Graph& graph, ValueId value, std::map<std::uint32_t, NodeId>& nodes) {
  if (graph.is_input(value) || !has_fixed_type(graph, value)) return false;
  const NodeId node = graph.producer(value);
  const Op& op = graph.op_of(node);
  if (op.imported || op.traits.effect || reads_a_symbol(graph, node)) return false;
  if (!nodes.emplace(node.index, node).second) return true;
  if (nodes.size() > kMostNodes) return false;
  for (ValueId operand : graph.operands(node))
    if (operand.valid() && !add_sources(graph, operand, nodes)) return false;
  return true;
}

/// Returns the elements of a value that depends on no input.
std::optional<std::vector<std::int64_t>> known_elements(const Graph& graph, ValueId value) {
  std::map<std::uint32_t, NodeId> sources;
  if (!add_sources(graph, value, sources)) return std::nullopt;
  Graph part(graph.context_ptr(), "places");
  std::map<ValueId, ValueId> values;
  for (NodeId node : graph.order()) {
    if (sources.count(node.index) == 0) continue;
    NodeSpec spec;
    spec.op = graph.op(node);
    spec.attributes = graph.attributes(node);
    for (ValueId operand : graph.operands(node))
      spec.operands.push_back(operand.valid() ? values.at(operand) : operand);
    for (std::size_t r = 0; r < graph.result_count(node); ++r)
      spec.results.push_back({graph.type(graph.result(node, r)), ""});
    const NodeId made = part.add_node(spec);
    for (std::size_t r = 0; r < graph.result_count(node); ++r)
      values.emplace(graph.result(node, r), part.result(made, r));
  }
  part.add_output(values.at(value));
  const auto numbers = interpret(part, {}, {}, Precision::single);
  if (!numbers) return std::nullopt;
  const Tensor& all = numbers->front();
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < all.view().count(); ++i)
    out.push_back(static_cast<std::int64_t>(load(all.dtype(), all.data(), i)));
  return out;
}

struct PlaceRun {
  std::int64_t begin, end;
};

/// Returns the runs of consecutive places; nothing if a place is outside, or if they are too short.
std::vector<PlaceRun> runs_of(const std::vector<std::int64_t>& places, std::int64_t extent,
                              bool wraps) {
  std::vector<PlaceRun> runs;
  for (std::int64_t place : places) {
    if (wraps && place < 0) place += extent;
    if (place < 0 || place >= extent) return {};
    if (!runs.empty() && runs.back().end == place) {
      ++runs.back().end;
    } else if (runs.size() == kMostRuns) {
      return {};
    } else {
      runs.push_back({place, place + 1});
    }
  }
  return places.size() < runs.size() * kRunLength ? std::vector<PlaceRun>() : runs;
}

class Slicer {
 public:
  explicit Slicer(Graph& graph)
      : graph_(graph),
        slice_(graph.context().ops.find(Primitive::slice)),
        cat_(graph.context().ops.find(Primitive::cat)) {}

  bool run() {
    if (!slice_.valid() || !cat_.valid()) return false;
    bool changed = false;
    for (NodeId node : graph_.order()) changed |= replace(node);
    graph_.insert_before({});
    return changed;
  }

 private:
  bool replace(NodeId node) {
    if (graph_.op_of(node).primitive != Primitive::index || graph_.operand_count(node) != 2)
      return false;
    const ValueId x = graph_.operand(node, 0), chosen = graph_.operand(node, 1);
    const std::optional<std::int64_t> extent = last_extent(node);
    if (!extent || !has_fixed_type(graph_, chosen)) return false;
    const Shape& places = shape(chosen);
    if (places.size() != 1 || graph_.context().dims.value(places[0]) > kMostPlaces) return false;
    const auto numbers = known_elements(graph_, chosen);
    if (!numbers) return false;
    const Attribute* wrap = graph_.attribute(node, "wrap");
    const bool wraps = wrap && (*wrap == Attribute(true) || *wrap == Attribute(std::int64_t{1}));
    const std::vector<PlaceRun> runs = runs_of(*numbers, *extent, wraps);
    if (runs.empty()) return false;
    const ValueId joined = joined_slices(node, x, runs);
    if (!joined.valid() || graph_.type(joined) != graph_.type(graph_.result(node))) return false;
    graph_.replace_uses(graph_.result(node), joined);
    return true;
  }

  [[nodiscard]] const Shape& shape(ValueId value) const {
    return graph_.context().types[graph_.type(value)].shape;
  }

  /// Returns the extent of the last axis if the node chooses along it.
  [[nodiscard]] std::optional<std::int64_t> last_extent(NodeId node) const {
    const ValueId x = graph_.operand(node, 0);
    if (graph_.type(x) == Types::unknown() || shape(x).empty()) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(shape(x).size());
    const Attribute* dim = graph_.attribute(node, "dim");
    const auto* axis = dim ? std::get_if<std::int64_t>(dim) : nullptr;
    if (axis == nullptr ? rank != 1 : *axis != rank - 1 && *axis != -1) return std::nullopt;
    return graph_.context().dims.value(shape(x).back());
  }

  ValueId joined_slices(NodeId node, ValueId x, const std::vector<PlaceRun>& runs) {
    const auto dim = static_cast<std::int64_t>(shape(x).size()) - 1;
    const auto attribute = [&](const char* name, std::int64_t value) {
      return std::pair<NameId, Attribute>(graph_.context().strings.intern(name), value);
    };
    const auto build = [&](OpId op, std::vector<ValueId> operands, AttributeList attributes) {
      NodeRequest request;
      request.op = op;
      request.operands = std::move(operands);
      request.attributes = std::move(attributes);
      request.result_names = {""};
      request.like = node;
      const auto made = build_node(graph_, request);
      return made ? graph_.result(*made) : ValueId();
    };
    graph_.insert_before(node);
    std::vector<ValueId> parts;
    for (const PlaceRun& run : runs) {
      parts.push_back(build(slice_, {x},
                            {attribute("dim", dim), attribute("start", run.begin),
                             attribute("end", run.end), attribute("step", 1)}));
      if (!parts.back().valid()) return {};
    }
    return parts.size() == 1 ? parts[0] : build(cat_, std::move(parts), {attribute("dim", dim)});
  }

  Graph& graph_;
  const OpId slice_, cat_;
};

}  // namespace

bool slice_known_places(Graph& graph) { return Slicer(graph).run(); }

}  // namespace pw::cpu

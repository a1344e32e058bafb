#include "discover/windows.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "graph/passes/constancy.hpp"

namespace pw::discover {
namespace {

constexpr std::size_t kMostInputs = 6;
constexpr std::size_t kMostReaders = 16;   // most readers of a value that count as siblings
constexpr std::size_t kMostSteps = 20000;  // limit of one search for a path back into the piece

using Nodes = std::vector<NodeId>;  // sorted

class Pieces {
 public:
  Pieces(const Graph& graph, std::size_t most) : graph_(graph), most_(most) {}

  std::set<Nodes> run() {
    std::vector<Nodes> layer;
    for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
      if (usable(n)) layer.push_back({n});
    for (std::size_t size = 1; size <= most_; ++size) {
      std::set<Nodes> next;
      for (const Nodes& piece : layer) {
        if (convex(piece)) out_.insert(piece);
        if (size < most_)
          for (NodeId n : neighbours(piece)) next.insert(with(piece, n));
      }
      layer.assign(next.begin(), next.end());
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool usable(NodeId n) const {
    const Op& op = graph_.op_of(n);
    return !op.traits.effect && !op.imported && !op.is_literal();
  }

  static Nodes with(const Nodes& piece, NodeId n) {
    Nodes out = piece;
    out.insert(std::lower_bound(out.begin(), out.end(), n), n);
    return out;
  }

  [[nodiscard]] std::set<NodeId> neighbours(const Nodes& piece) const {
    std::set<NodeId> out;
    const auto take = [&](NodeId n) {
      if (n.valid() && usable(n) && !std::binary_search(piece.begin(), piece.end(), n))
        out.insert(n);
    };
    for (NodeId n : piece) {
      for (ValueId v : graph_.operands(n)) {
        if (!v.valid()) continue;
        take(graph_.producer(v));
        if (graph_.use_count(v) > kMostReaders) continue;
        for (NodeId sibling : graph_.users(v))
          if (graph_.op(sibling) == graph_.op(n) && !graph_.op_of(n).traits.pointwise)
            take(sibling);
      }
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        if (graph_.use_count(graph_.result(n, i)) <= kMostReaders)
          for (NodeId user : graph_.users(graph_.result(n, i))) take(user);
    }
    return out;
  }

  /// Returns true if no path leads out of the piece and back into it.
  [[nodiscard]] bool convex(const Nodes& piece) const {
    std::uint64_t last = 0;
    for (NodeId n : piece) last = std::max(last, graph_.label(n));
    Nodes open;
    std::set<NodeId> seen;
    const auto leave = [&](NodeId n) {
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        for (NodeId user : graph_.users(graph_.result(n, i)))
          if (graph_.label(user) <= last && seen.insert(user).second) open.push_back(user);
    };
    const auto inside = [&](NodeId n) { return std::binary_search(piece.begin(), piece.end(), n); };
    for (NodeId n : piece) leave(n);
    std::erase_if(open, inside);
    for (std::size_t steps = 0; !open.empty(); ++steps) {
      const NodeId n = open.back();
      open.pop_back();
      if (inside(n) || steps > kMostSteps) return false;
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        for (NodeId user : graph_.users(graph_.result(n, i))) {
          if (inside(user)) return false;
          if (graph_.label(user) <= last && seen.insert(user).second) open.push_back(user);
        }
    }
    return true;
  }

  const Graph& graph_;
  std::size_t most_;
  std::set<Nodes> out_;
};

/// At the graph's own sizes; nothing if there are too many inputs or no readers.
std::optional<Pair> pair_of(const Graph& graph, Nodes nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); });
  const std::set<NodeId> inside(nodes.begin(), nodes.end());
  Pair out;
  std::map<ValueId, std::size_t> place;
  for (NodeId n : nodes)
    for (ValueId v : graph.operands(n)) {
      if (!v.valid() || place.contains(v)) continue;
      const NodeId producer = graph.producer(v);
      if (producer.valid() && inside.contains(producer)) continue;
      place.emplace(v, place.size());
      out.inputs.push_back(graph.type(v));
      out.weights.push_back(is_constant(graph, v) == Truth::yes);
    }
  if (place.size() > kMostInputs) return std::nullopt;
  for (NodeId n : nodes) {
    Step step{graph.op(n), {}, graph.attributes(n), graph.result_count(n)};
    for (ValueId v : graph.operands(n)) step.operands.push_back(v.valid() ? place.at(v) : kAbsent);
    for (std::size_t i = 0; i < step.results; ++i) place.emplace(graph.result(n, i), place.size());
    out.before.steps.push_back(std::move(step));
  }
  for (NodeId n : nodes)
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      const auto users = graph.users(v);
      if (graph.is_output(v) || std::any_of(users.begin(), users.end(),
                                            [&](NodeId user) { return !inside.contains(user); }))
        out.before.outputs.push_back(place.at(v));
    }
  return out.before.outputs.empty() ? std::nullopt : std::optional(out);
}

std::string text_of(const Context& context, const Pair& pair) {
  std::string text = key_of(context, pair);
  for (std::size_t i = 0; i < pair.inputs.size(); ++i)
    text += fmt::format(" {}{}", context.types.print(pair.inputs[i]), pair.weight(i) ? "w" : "");
  return text;
}

}  // namespace

std::vector<Window> windows_of(const std::vector<Graph>& graphs, std::size_t nodes,
                               Counts& counts) {
  std::vector<Window> out;
  std::map<std::string, std::optional<std::size_t>> known;  // an index of `out`, if it has one
  for (const Graph& graph : graphs)
    for (const Nodes& piece : Pieces(graph, nodes).run()) {
      const std::optional<Pair> pair = pair_of(graph, piece);
      if (!pair) continue;
      ++counts.pieces;
      const auto [at, fresh] = known.try_emplace(text_of(graph.context(), *pair));
      if (!fresh) {
        if (at->second) ++out[*at->second].seen;
        continue;
      }
      ++counts.windows;
      std::optional<Shrunk> small = shrunk(graph.context(), *pair, graph.facts);
      if (!small) {
        ++counts.unsized;
        continue;
      }
      at->second = out.size();
      out.push_back({std::move(small->pair), std::move(small->parts), std::move(small->real), 1});
    }
  return out;
}

}  // namespace pw::discover

// Predicts graphs, nodes, and bytes of each captured size before anything is captured.
#include <algorithm>
#include <map>
#include <tuple>

#include "splitter/offsets.hpp"
#include "splitter/plan.hpp"

namespace pw {
namespace {

std::size_t launching_nodes(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    count += graph.op_of(n).does_work() ? 1 : 0;
  return count;
}

/// Bytes of types at one size; there are few types, whatever the number of values.
class BytesAt {
 public:
  BytesAt(const Graph& graph, const Plan& plan, std::int64_t tokens) : context_(graph.context()) {
    for (const auto& [symbol, bound] : plan.bound) symbols_[symbol] = bound;
    if (!plan.tokens.empty()) symbols_[plan.tokens] = tokens;
  }
  std::int64_t operator()(TypeId id) {
    if (id.index >= known_.size()) known_.resize(id.index + 1, -1);
    std::int64_t& bytes = known_[id.index];
    if (bytes >= 0) return bytes;
    const Type& type = context_.types[id];
    bytes = size_of(type.dtype);
    for (const DimId dim : type.shape)
      bytes *= std::max<std::int64_t>(context_.dims.evaluate(dim, symbols_).value_or(0), 0);
    return bytes;
  }

 private:
  const Context& context_;
  std::map<std::string, std::int64_t, std::less<>> symbols_;
  std::vector<std::int64_t> known_;
};

/// Slots in the order in which their places come alive and end; those that share a place together.
class Places {
 public:
  Places(const MemoryPlan& memory, const Graph& graph) {
    std::map<ValueId, std::size_t> place_of;
    for (const Slot& slot : memory.slots) {
      const auto [at, fresh] = place_of.try_emplace(slot.storage, places_.size());
      if (fresh) places_.push_back({slot.begin, slot.end, {}});
      places_[at->second].types.push_back(graph.type(slot.value));
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      std::vector<TypeId>& types = places_[i].types;
      std::sort(types.begin(), types.end());
      types.erase(std::unique(types.begin(), types.end()), types.end());
      changes_.push_back({places_[i].begin, true, i});
      changes_.push_back({places_[i].end + 1, false, i});
    }
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return std::tie(a.position, a.starts, a.place) < std::tie(b.position, b.starts, b.place);
    });
  }

  std::int64_t most_alive(BytesAt& bytes_at) const {
    std::int64_t now = 0, most = 0;
    for (const Change& change : changes_) {
      std::int64_t bytes = 0;
      for (const TypeId type : places_[change.place].types)
        bytes = std::max(bytes, align(bytes_at(type)));
      now += change.starts ? bytes : -bytes;
      most = std::max(most, now);
    }
    return most;
  }

 private:
  struct Place {
    std::size_t begin, end;
    std::vector<TypeId> types;
  };
  struct Change {
    std::size_t position;
    bool starts;
    std::size_t place;
  };
  std::vector<Place> places_;
  std::vector<Change> changes_;
};

}  // namespace

void predict_captures(const StitchedGraph& pieces, const Graph& source, Plan& plan) {
  if (plan.captures.empty()) return;
  std::size_t in_classes = 0;
  for (const PieceClass& c : pieces.classes)
    if (c.capturable()) in_classes += launching_nodes(pieces.pieces[c.members.front()].graph);
  const std::size_t in_all = launching_nodes(source);
  const Places places(plan.memory, source);
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> known;  // by tokens
  for (Capture& capture : plan.captures) {
    const bool whole = capture.mode == DispatchMode::full;
    capture.graphs = whole ? 1 : pieces.capturable_classes();
    capture.nodes = whole ? in_all : in_classes;
    const auto [at, fresh] = known.try_emplace(capture.key.tokens);
    if (fresh) {
      BytesAt bytes_at(source, plan, capture.key.tokens);
      for (const ValueId v : source.inputs())
        if (source.input_kind(v) == InputKind::input) at->second.first += bytes_at(source.type(v));
      at->second.second = places.most_alive(bytes_at);
    }
    std::tie(capture.input_bytes, capture.live_bytes) = at->second;
  }
}

}  // namespace pw

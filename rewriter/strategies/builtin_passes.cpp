#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "base/hash.hpp"
#include "graph/compare/canonical.hpp"
#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {
namespace {

/// Key of a node by what it computes.
struct Key {
  OpId op;
  AttributesId attributes;
  std::vector<ValueId> operands;
  std::vector<TypeId> types;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t h = combine(key.op.index, key.attributes.index);
    for (ValueId v : key.operands) h = combine(h, v.index);
    for (TypeId t : key.types) h = combine(h, t.index);
    return static_cast<std::size_t>(h);
  }
};

/// Constants by the number that a node reads: the first of equal ones represents all.
class NumbersRead {
 public:
  explicit NumbersRead(const Graph& graph) : graph_(graph) {}

  /// Returns the operand, or for a number the first constant that the node would read as the same.
  ValueId of(NodeId user, std::size_t slot) {
    const ValueId operand = graph_.operand(user, slot);
    const NodeId maker = operand.valid() ? graph_.producer(operand) : NodeId();
    if (!maker.valid() || !graph_.op_of(maker).is_literal()) return operand;
    const auto bits = std::bit_cast<std::uint64_t>(number_read(graph_, user, slot, maker));
    const DType dtype = number_dtype(graph_, user, slot);
    return first_.try_emplace({dtype, bits}, operand).first->second;
  }

 private:
  const Graph& graph_;
  std::map<std::pair<DType, std::uint64_t>, ValueId> first_;
};

Key key_of(const Graph& graph, NodeId n, NumbersRead& numbers) {
  Key key{graph.op(n), graph.attributes(n), graph.operands(n), {}};
  for (std::size_t i = 0; i < key.operands.size(); ++i) key.operands[i] = numbers.of(n, i);
  if (graph.op_of(n).traits.commutative && key.operands.size() >= 2 &&
      key.operands[1] < key.operands[0])
    std::swap(key.operands[0], key.operands[1]);
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    key.types.push_back(graph.type(graph.result(n, i)));
  return key;
}

/// Returns the values that some node writes in place. Equal nodes before and after such a write may
/// give different results.
std::vector<char> written_values(const Graph& graph) {
  std::vector<char> written(graph.value_bound(), 0);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    const Op& op = graph.op_of(n);
    for (std::size_t i = 0; i < op.operands.size() && i < graph.operand_count(n); ++i)
      if ((op.operands[i].mut || op.operands[i].out) && graph.operand(n, i).valid())
        written[graph.operand(n, i).index] = 1;
  }
  // A view of a written value, and what a written view shows, are written too.
  std::vector<NodeId> order = graph.order();
  auto spread = [&](NodeId n) {
    const Op& op = graph.op_of(n);
    for (std::size_t i = 0; i < graph.result_count(n) && i < op.results.size(); ++i) {
      std::size_t from = op.results[i].from ? static_cast<std::size_t>(*op.results[i].from) : 0;
      bool alias = op.results[i].from || op.traits.view;
      if (!alias || from >= graph.operand_count(n) || !graph.operand(n, from).valid()) continue;
      char& a = written[graph.operand(n, from).index];
      char& b = written[graph.result(n, i).index];
      a = b = static_cast<char>(a | b);
    }
  };
  for (auto n = order.rbegin(); n != order.rend(); ++n) spread(*n);
  for (NodeId n : order) spread(n);
  return written;
}

/// Returns true if a node may be merged. Collectives may not: every rank must issue the same ones,
/// and a peer's graph need not hold the same duplicates.
bool may_merge(const Graph& graph, NodeId n, const std::vector<char>& written) {
  const Op& op = graph.op_of(n);
  if (is_barrier(op) || op.traits.collective || graph.result_count(n) == 0) return false;
  for (ValueId v : graph.operands(n))
    if (v.valid() && written[v.index]) return false;
  // Two returned copies are two tensors.
  if (op.primitive == Primitive::clone && graph.is_output(graph.result(n))) return false;
  for (std::size_t i = 0; i < graph.result_count(n); ++i)
    if (written[graph.result(n, i).index]) return false;
  return true;
}

void merge(Graph& graph, NodeId into, NodeId from) {
  std::vector<std::pair<ValueId, std::string>> names;
  for (std::size_t i = 0; i < graph.result_count(from); ++i) {
    ValueId a = graph.result(into, i), b = graph.result(from, i);
    if (graph.output_count(b) > 0 && graph.output_count(a) == 0)
      names.emplace_back(a, graph.value_name(b));
    graph.replace_uses(b, a);
  }
  graph.erase(from);
  for (const auto& [value, name] : names) graph.rename(value, name);
}

/// Groups of values that share memory: each has a root, the value at the origin of its views.
class Roots {
 public:
  explicit Roots(const Graph& graph) : up_(graph.value_bound()), outputs_(graph.value_bound(), 0) {
    for (std::size_t i = 0; i < up_.size(); ++i) up_[i] = i;
    for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
      if (!graph.op_of(n).traits.view || graph.operand_count(n) == 0) continue;
      for (std::size_t i = 0; graph.operand(n, 0).valid() && i < graph.result_count(n); ++i)
        up_[graph.result(n, i).index] = graph.operand(n, 0).index;
    }
    for (ValueId v : graph.outputs()) ++outputs_[of(v).index];
  }
  ValueId of(ValueId v) {
    std::size_t at = v.index;
    while (up_[at] != at) at = up_[at] = up_[up_[at]];
    return ValueId(at);
  }
  /// Returns the number of outputs that share memory with a root.
  [[nodiscard]] std::size_t outputs(ValueId root) const { return outputs_[root.index]; }
  void join(ValueId into, ValueId from) {
    up_[from.index] = into.index;
    outputs_[into.index] += outputs_[from.index];
  }

 private:
  std::vector<std::size_t> up_, outputs_;
};

/// Returns true if the value is an output by its name: contents that are written back have the
/// input's.
bool is_returned(const Graph& graph, ValueId v) {
  const auto outputs = graph.outputs();
  const auto end = outputs.begin() + static_cast<std::ptrdiff_t>(graph.returned_count());
  return graph.is_output(v) && std::find(outputs.begin(), end, v) != end;
}

}  // namespace

std::size_t elide_clones(Graph& graph, std::vector<NodeId>* erased) {
  const OpId clone = graph.context().ops.find(Primitive::clone);
  if (!clone.valid()) return 0;
  const std::vector<char> written = written_values(graph);
  Roots roots(graph);
  std::size_t count = 0;
  for (NodeId n = graph.first(); n.valid();) {
    const NodeId after = graph.next(n);
    if (graph.op(n) == clone) {
      const ValueId x = graph.operand(n, 0), y = graph.result(n), root = roots.of(x);
      const bool seen = roots.outputs(y) > 0 && (graph.is_input(root) || roots.outputs(root) > 0);
      if (!seen && !written[x.index] && !written[y.index]) {
        const std::string name(graph.value_name(y));
        const bool returned = is_returned(graph, y);
        roots.join(root, y);
        graph.replace_uses(y, x);
        graph.erase(n);
        if (returned) graph.rename(x, name);
        if (erased != nullptr) erased->push_back(n);
        ++count;
      }
    }
    n = after;
  }
  return count;
}

std::size_t eliminate_dead(Graph& graph, std::vector<NodeId>* erased) {
  std::size_t count = 0;
  for (NodeId n = graph.last(); n.valid();) {
    NodeId before = graph.previous(n);
    if (is_unneeded(graph, n)) {
      graph.erase(n);
      if (erased != nullptr) erased->push_back(n);
      ++count;
    }
    n = before;
  }
  return count;
}

std::size_t eliminate_common(Graph& graph, std::vector<NodeId>* erased) {
  std::vector<char> written = written_values(graph);
  std::unordered_map<Key, NodeId, KeyHash> first;
  NumbersRead numbers(graph);
  std::size_t count = 0;
  for (NodeId n = graph.first(); n.valid();) {
    NodeId after = graph.next(n);
    if (may_merge(graph, n, written)) {
      auto [it, fresh] = first.emplace(key_of(graph, n, numbers), n);
      if (!fresh) {
        merge(graph, it->second, n);
        if (erased != nullptr) erased->push_back(n);
        ++count;
      }
    }
    n = after;
  }
  return count;
}

}  // namespace pw

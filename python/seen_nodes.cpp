#include "python/seen_nodes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "import/fx/made_ops.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Index = std::uint32_t;
using Role = SeenNode::Role;
using OpBits = std::uint64_t;
constexpr std::size_t kMostOps = 64;
constexpr Index kNone = ~Index{0};

/// The ops that rules name, one bit for each.
class NamedOps {
 public:
  /// Returns false if there are too many, or if imports of other calls also produce one.
  bool add(const OpNames& names) {
    for (const std::string& name : names) {
      bits_.try_emplace(name, bits_.size());
      if (fx::MadeOps::anywhere().contains(name)) return false;
    }
    return bits_.size() <= kMostOps;
  }
  [[nodiscard]] OpBits of(const OpNames& names) const {
    OpBits out = 0;
    for (const std::string& name : names)
      if (const auto it = bits_.find(name); it != bits_.end()) out |= OpBits{1} << it->second;
    return out;
  }

 private:
  std::map<std::string, std::size_t, std::less<>> bits_;
};

/// Parts of a graph: nodes that belong together, and the ops that they could become.
class Parts {
 public:
  explicit Parts(std::size_t count) : above_(count), ops_(count) {
    std::iota(above_.begin(), above_.end(), Index{0});
  }
  Index of(Index i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void join(Index a, Index b) {
    a = of(a), b = of(b);
    if (a == b) return;
    above_[b] = a;
    ops_[a] |= ops_[b];
  }
  void add(Index i, OpBits ops) { ops_[of(i)] |= ops; }
  OpBits ops(Index i) { return ops_[of(i)]; }

 private:
  std::vector<Index> above_;
  std::vector<OpBits> ops_;
};

/// The relevance of calls of a target to the rules.
struct Target {
  bool blocks = false;   ///< they affect more than their results
  bool is_part = false;  ///< a part of a call with several results
  bool kept = false;     ///< always imported
  OpBits ops = 0;        ///< the ops of the rules
};

class Finder {
 public:
  Finder(TorchObjects& torch, const ContextPtr& context) : torch_(torch), made_(context) {}

  std::optional<SeenGraph> find(const py::handle& nodes, const std::vector<MatchedOps>& rules) {
    for (const MatchedOps& rule : rules)
      if (!named_.add(rule.named)) return std::nullopt;
    for (const MatchedOps& rule : rules) required_.push_back(named_.of(rule.required));
    if (!read(nodes)) return std::nullopt;
    choose_calls();
    choose_others();
    return std::move(graph_);
  }

 private:
  const Target& target_of(const py::object& target) {
    const auto [entry, first] = targets_.try_emplace(target.ptr());
    if (!first) return entry->second;
    const std::string& text = torch_.target(target);  // which keeps the target
    Target& out = entry->second;
    if (text == "operator.getitem") {
      out.is_part = true;
      return out;
    }
    const std::string purity = torch_.purity(target);
    out.blocks = purity.empty();
    out.kept = purity == "other";
    const std::optional<fx::MadeOps::Names> made = made_(text);
    out.ops = made ? named_.of(*made) : ~OpBits{0};
    return out;
  }

  bool read(const py::handle& nodes) {
    for (const py::handle node : nodes) {
      const py::object op = attribute(node, torch_.names.op);
      const std::string_view kind = text_of(op);
      if (kind == "output") return read_outputs(node);
      Target target;
      if (kind == "call_function")
        target = target_of(attribute(node, torch_.names.target));
      else if (kind != "placeholder" || !torch_.is_tensor(torch_.value(node)))
        return false;
      if (target.blocks) return false;
      SeenNode seen{node, Role::source, inputs_of(node)};
      if (target.is_part && !seen.reads.empty()) {  // as visible as the call whose part it is
        target = of_node_[seen.reads.front()];
        target.is_part = true;
      }
      places_.emplace(node.ptr(), static_cast<Index>(graph_.nodes.size()));
      of_node_.push_back(target);
      graph_.nodes.push_back(std::move(seen));
    }
    return false;
  }

  std::vector<Index> inputs_of(const py::handle& node) const {
    std::vector<Index> out;
    const auto inputs = py::reinterpret_borrow<py::dict>(attribute(node, torch_.names.inputs));
    out.reserve(inputs.size());
    for (const auto& [input, none] : inputs) out.push_back(places_.at(input.ptr()));
    return out;
  }

  bool read_outputs(const py::handle& node) {
    returned_ = inputs_of(node);
    return true;
  }

  // Chooses candidates in parts that have all ops some rule requires, and calls always imported.
  void choose_calls() {
    const std::size_t count = graph_.nodes.size();
    Parts parts(count);
    std::vector<Index> reader(count, kNone);  // of a value: a candidate
    for (Index i = 0; i < count; ++i) {
      if (of_node_[i].ops == 0) continue;
      parts.add(i, of_node_[i].ops);
      for (const Index input : graph_.nodes[i].reads) {
        if (of_node_[input].ops != 0) parts.join(input, i);
        if (reader[input] != kNone) parts.join(reader[input], i);
        reader[input] = i;
      }
    }
    for (Index i = 0; i < count; ++i) {
      const OpBits there = of_node_[i].ops == 0 ? 0 : parts.ops(i);
      const bool matched = there != 0 && std::any_of(required_.begin(), required_.end(),
                                                     [&](OpBits r) { return (r & ~there) == 0; });
      if (matched || of_node_[i].kept) graph_.nodes[i].role = Role::call;
    }
  }

  void choose_others() {
    std::vector<SeenNode>& nodes = graph_.nodes;
    std::vector<Index> reader(nodes.size(), kNone), readers(nodes.size(), 0);
    for (Index i = 0; i < nodes.size(); ++i)
      for (const Index input : nodes[i].reads) reader[input] = i, ++readers[input];
    for (const Index i : returned_) reader[i] = kNone, ++readers[i];
    for (Index i = 0; i < nodes.size(); ++i) {
      SeenNode& n = nodes[i];
      if (n.role == Role::call) continue;
      const auto is_call = [&](Index at) { return nodes[at].role == Role::call; };
      const bool reads_calls = std::any_of(n.reads.begin(), n.reads.end(), is_call);
      std::vector<Index> reads;
      for (const Index input : n.reads) {
        if (nodes[input].role == Role::source) continue;
        if (nodes[input].role == Role::folded)
          reads.insert(reads.end(), nodes[input].reads.begin(), nodes[input].reads.end());
        else
          reads.push_back(input);
      }
      n.reads = std::move(reads);
      if (n.reads.empty()) continue;  // a source
      const bool alone = readers[i] == 1 && reader[i] != kNone && !is_call(reader[i]);
      n.role = alone && !reads_calls ? Role::folded : Role::unseen;
    }
    for (const Index i : returned_)
      if (nodes[i].role != Role::source) graph_.outputs.push_back(i);
  }

  TorchObjects& torch_;
  const fx::MadeOps made_;
  NamedOps named_;
  std::vector<OpBits> required_;
  std::unordered_map<PyObject*, Target> targets_;
  std::unordered_map<PyObject*, Index> places_;
  std::vector<Target> of_node_;
  std::vector<Index> returned_;
  SeenGraph graph_;
};

}  // namespace

std::optional<SeenGraph> find_seen(const py::handle& nodes, TorchObjects& torch,
                                   const ContextPtr& context,
                                   const std::vector<MatchedOps>& rules) {
  return Finder(torch, context).find(nodes, rules);
}

}  // namespace pw::python

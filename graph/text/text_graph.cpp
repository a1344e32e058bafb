#include <map>
#include <tuple>

#include "base/hash.hpp"
#include "graph/infer/infer.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

std::string print_attributes(const Context& context, AttributesId id) {
  std::string out;
  for (const auto& [key, value] : context.attributes[id])
    out += (out.empty() ? "{" : ", ") + print_word(context.strings.text(key)) + " = " +
           context.attributes.print(value);
  return out.empty() ? out : out + "}";
}

std::string print_call(const Graph& graph, NodeId node) {
  std::string out = print_path(graph.op_of(node).name) + "(";
  for (std::size_t i = 0; i < graph.operand_count(node); ++i) {
    const ValueId v = graph.operand(node, i);
    if (i > 0) out += ", ";
    out += v.valid() ? print_name(graph.value_name(v)) : "none";
  }
  return out + ")" + print_attributes(graph.context(), graph.attributes(node));
}

/// Decides which types must be printed: those that the op's signature does not determine. Layers
/// repeat, so results are cached.
class Inference {
 public:
  explicit Inference(const Graph& graph) : graph_(graph) {}

  /// Returns true if the i-th result needs its type stated.
  bool stated(NodeId node, std::size_t i) {
    const TypeId actual = graph_.type(graph_.result(node, i));
    if (actual == Types::unknown()) return false;
    const std::vector<TypeId>& inferred = of(node);
    return i >= inferred.size() || inferred[i] != actual;
  }

 private:
  const std::vector<TypeId>& of(NodeId node) {
    Key key{graph_.op(node), graph_.attributes(node), graph_.result_count(node), {}};
    for (std::size_t i = 0; i < graph_.operand_count(node); ++i) {
      const ValueId v = graph_.operand(node, i);
      std::get<3>(key).push_back(v.valid() ? graph_.type(v) : Types::unknown());
    }
    const auto [it, fresh] = known_.try_emplace(std::move(key));
    if (!fresh) return it->second;
    const auto& [op, attributes, results, operands] = it->first;
    auto types = infer_types(graph_.context(), graph_.facts, op, operands, attributes,
                             static_cast<int>(results));
    if (types) it->second = std::move(*types);
    return it->second;
  }

  using Key = std::tuple<OpId, AttributesId, std::size_t, std::vector<TypeId>>;
  const Graph& graph_;
  std::map<Key, std::vector<TypeId>> known_;
};

std::string print_node(const Graph& graph, NodeId node, Inference* inference) {
  std::string out;
  for (std::size_t i = 0; i < graph.result_count(node); ++i) {
    const ValueId v = graph.result(node, i);
    out += (i > 0 ? ", " : "") + print_name(graph.value_name(v));
    if (inference && inference->stated(node, i))
      out += ": " + graph.context().types.print(graph.type(v));
  }
  return out + (out.empty() ? "" : " = ") + print_call(graph, node);
}

/// Returns the ops that the library lacks, which are written with the graph.
std::map<std::string, OpId> own_ops(const Graph& graph) {
  std::map<std::string, OpId> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    const Op& op = graph.op_of(n);
    if (op.imported || op.local) out.emplace(op.name, graph.op(n));
  }
  return out;
}

std::string provenance(const Graph& graph, NodeId n) {
  if (graph.group(n).empty() && graph.source(n).empty()) return "";
  const std::string group = " @ " + quote(graph.group(n));
  return graph.source(n).empty() ? group : group + " " + quote(graph.source(n));
}

/// Hashes of texts, each computed once; 0 marks an unknown one.
class KnownHashes {
 public:
  template <class Text>
  std::uint64_t get(std::size_t id, Text&& text) {
    if (id >= hashes_.size()) hashes_.resize(id + id / 2 + 16, 0);
    if (hashes_[id] == 0) hashes_[id] = hash_text(text());
    return hashes_[id];
  }

 private:
  std::vector<std::uint64_t> hashes_;
};

}  // namespace

std::string print_symbol(const std::string& name, const SymbolFact& fact) {
  std::string out = "symbol " + print_name(name) + " in " + std::to_string(fact.min) + ".." +
                    std::to_string(fact.max);
  if (fact.multiple != 1) out += " by " + std::to_string(fact.multiple);
  if (fact.role == "tokens") return out + " tokens";
  return fact.role.empty() ? out : out + " role " + quote(fact.role);
}

std::string print_node(const Graph& graph, NodeId node) { return print_node(graph, node, nullptr); }

std::string print_pwg(const Graph& graph) {
  const Context& context = graph.context();
  const bool unnamed = graph.name == "graph";  // so a graph of a test is called
  std::string out = unnamed ? "graph {\n" : "graph " + print_name(graph.name) + " {\n";
  for (const auto& [name, fact] : graph.facts.symbols)
    out += "  " + print_symbol(name, fact) + "\n";
  for (const auto& [name, id] : own_ops(graph))
    out += "  " + print_declaration(context.ops[id], context.attributes, "\n    ") + "\n";
  for (ValueId v : graph.inputs()) {
    const InputKind kind = graph.input_kind(v);
    out += "  in " + (kind == InputKind::input ? "" : std::string(name(kind)) + " ") +
           print_name(graph.value_name(v)) + ": " + context.types.print(graph.type(v)) +
           print_replicated(graph.replicated_over(v)) + "\n";
  }
  Inference inference(graph);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    out += "  " + print_node(graph, n, &inference) + provenance(graph, n) + "\n";
  out += "  out";
  const auto output = [&](std::size_t i) {
    return print_name(graph.value_name(graph.outputs()[i]));
  };
  for (std::size_t i = 0; i < graph.returned_count(); ++i) out += (i > 0 ? ", " : " ") + output(i);
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i)
    out += "\n  write " + print_name(graph.value_name(graph.written_inputs()[i])) + " = " +
           output(graph.returned_count() + i);
  return out + "\n}\n";
}

std::uint64_t structural_hash(const Graph& graph) {
  const Context& context = graph.context();
  KnownHashes attribute_hashes, type_hashes, op_hashes;
  const auto hash_of_type = [&](TypeId type) {
    return type_hashes.get(type.index, [&] { return context.types.print(type); });
  };
  const auto hash_of_attributes = [&](AttributesId id) {
    return attribute_hashes.get(id.index, [&] { return context.attributes.print(id); });
  };
  const auto hash_of_op = [&](OpId id) {
    return op_hashes.get(id.index, [&] { return context.ops[id].name; });
  };
  std::vector<std::uint64_t> values(graph.value_bound());
  std::uint64_t total = mix(graph.inputs().size());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId v = graph.inputs()[i];
    values[v.index] = combine(combine(hash_of_type(graph.type(v)), i),
                              static_cast<std::uint64_t>(graph.input_kind(v)));
    total = combine(total, values[v.index]);
  }
  std::uint64_t nodes = 0;  // a sum, so that another topological order gives the same
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    std::uint64_t h = combine(hash_of_op(graph.op(n)), hash_of_attributes(graph.attributes(n)));
    for (std::size_t i = 0; i < graph.operand_count(n); ++i) {
      const ValueId v = graph.operand(n, i);
      h = combine(h, v.valid() ? values[v.index] : 0);
    }
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      values[v.index] = combine(combine(h, i + 1), hash_of_type(graph.type(v)));
    }
    nodes += mix(h);
  }
  total = combine(total, nodes);
  for (ValueId v : graph.outputs()) total = combine(total, values[v.index]);
  for (ValueId v : graph.written_inputs()) total = combine(total, values[v.index]);
  return total;
}

}  // namespace pw

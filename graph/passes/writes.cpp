#include "graph/passes/writes.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

namespace pw {
namespace {

bool writes(const OperandDecl& operand) { return operand.mut || operand.out; }

/// Returns a flag for each op that writes; most graphs have none and need no further work.
std::vector<char> writers(const Graph& graph) {
  const OpTable& ops = graph.context().ops;
  std::vector<char> out(ops.size(), 0);
  bool any = false;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::vector<OperandDecl>& operands = ops[OpId(i)].operands;
    out[i] = static_cast<char>(std::any_of(operands.begin(), operands.end(), writes));
    any = any || out[i] != 0;
  }
  return any ? out : std::vector<char>();
}

/// Returns the nodes that write, in order.
std::vector<NodeId> writing_nodes(const Graph& graph) {
  const std::vector<char> writer = writers(graph);
  std::vector<NodeId> out;
  if (writer.empty()) return out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (writer[graph.op(n).index] != 0) out.push_back(n);
  return out;
}

/// Returns the result that is `from` operand i.
ValueId contents_after(const Graph& graph, NodeId node, std::size_t i) {
  const Op& op = graph.op_of(node);
  const std::size_t declared = std::min(i, op.operands.size() - 1);
  for (std::size_t r = 0; r < op.results.size(); ++r) {
    if (op.results[r].from != static_cast<int>(declared)) continue;
    const std::size_t result = r + (op.results[r].variadic ? i - declared : 0);
    if (result < graph.result_count(node) && (result > r || i == declared))
      return graph.result(node, result);
  }
  return {};
}

/// Input and view chain from which writes and views made a value.
struct Origin {
  ValueId root;
  bool part = false;  ///< through a view
};
Origin origin_of(const Graph& graph, ValueId value) {
  Origin out{value};
  while (!graph.is_input(out.root)) {
    const NodeId node = graph.producer(out.root);
    const Op& op = graph.op_of(node);
    const std::size_t result = std::min(graph.result_index(out.root), op.results.size());
    const bool from = result < op.results.size() && op.results[result].from.has_value();
    if (!from && !op.traits.view) break;
    const std::size_t operand = from ? static_cast<std::size_t>(*op.results[result].from) : 0;
    if (operand >= graph.operand_count(node) || !graph.operand(node, operand).valid()) break;
    out.part = out.part || !from;
    out.root = graph.operand(node, operand);
  }
  return out;
}

class Implied {
 public:
  explicit Implied(const Graph& graph)
      : graph_(graph), declared_(graph.written_inputs().begin(), graph.written_inputs().end()) {}

  ImpliedWrites run() {
    for (const NodeId node : writing_nodes(graph_))
      for (const OperandWrite& write : writes_of(graph_, node)) add(node, write);
    return std::move(out_);
  }

 private:
  void add(NodeId node, const OperandWrite& write) {
    const Origin origin = origin_of(graph_, write.written);
    if (!graph_.is_input(origin.root) || declared_.contains(origin.root)) return;
    // An opaque op may be moved and drawn; running it requires more.
    if (!write.contents.valid() && !graph_.op_of(node).has_body()) return;
    const auto [at, first] = place_.emplace(origin.root, out_.writes.size());
    if (first) out_.writes.emplace_back(origin.root, origin.root);
    ValueId& latest = out_.writes[at->second].second;
    if (auto problem = problem_of(node, write, origin, latest); !problem.message.empty())
      out_.problems.push_back(std::move(problem));
    else
      latest = write.contents;
  }

  WriteProblem problem_of(NodeId node, const OperandWrite& write, const Origin& origin,
                          ValueId latest) const {
    const std::string input(graph_.value_name(origin.root)), op = graph_.op_of(node).name;
    const std::string say =
        fmt::format("state its final contents at the end of the graph: `write {} = …`", input);
    if (origin.part) return {node, fmt::format("`{}` writes into a view of `{}`", op, input), say};
    if (!write.contents.valid())
      return {node, fmt::format("`{}` writes `{}`, but no result has its new contents", op, input),
              fmt::format("declare a result of the op `from {}`", operand_name(node, write))};
    if (write.written != latest)
      return {node,
              fmt::format("`{}` writes `{}`, which `{}` has already written", op,
                          graph_.value_name(write.written), graph_.value_name(latest)),
              fmt::format("give it `{}`, or {}", graph_.value_name(latest), say)};
    if (graph_.type(write.contents) != graph_.type(origin.root))
      return {node,
              fmt::format("`{}` is {}, and `{}` writes {} to it", input, type_of(origin.root), op,
                          type_of(write.contents)),
              say};
    return {};
  }

  [[nodiscard]] std::string operand_name(NodeId node, const OperandWrite& write) const {
    const std::vector<OperandDecl>& operands = graph_.op_of(node).operands;
    return operands[std::min(write.operand, operands.size() - 1)].name;
  }
  [[nodiscard]] std::string type_of(ValueId value) const {
    return graph_.context().types.print(graph_.type(value));
  }

  const Graph& graph_;
  std::set<ValueId> declared_;
  std::map<ValueId, std::size_t> place_;  ///< of an input, in out_.writes
  ImpliedWrites out_;
};

}  // namespace

std::vector<OperandWrite> writes_of(const Graph& graph, NodeId node) {
  const Op& op = graph.op_of(node);
  std::vector<OperandWrite> out;
  for (std::size_t i = 0; i < graph.operand_count(node) && !op.operands.empty(); ++i)
    if (graph.operand(node, i).valid() && writes(op.operands[std::min(i, op.operands.size() - 1)]))
      out.push_back({i, graph.operand(node, i), contents_after(graph, node, i)});
  return out;
}

ImpliedWrites implied_writes(const Graph& graph) { return Implied(graph).run(); }

std::vector<WriteProblem> declare_writes(Graph& graph) {
  ImpliedWrites implied = implied_writes(graph);
  if (implied.problems.empty())
    for (const auto& [input, contents] : implied.writes) graph.add_write(input, contents);
  return std::move(implied.problems);
}

void copy_undeclared_writes(Graph& graph) {
  const OpId clone = graph.context().ops.find(Primitive::clone);
  if (!clone.valid()) return;
  const std::set<ValueId> declared(graph.written_inputs().begin(), graph.written_inputs().end());
  for (const NodeId node : writing_nodes(graph)) {
    for (const OperandWrite& write : writes_of(graph, node)) {
      const ValueId root = origin_of(graph, write.written).root;
      if (!graph.is_input(root) || declared.contains(root)) continue;
      const TypeId type = graph.type(write.written);
      const NodeId saved = graph.insertion_point();
      graph.insert_before(node);
      const NodeId copy =
          graph.add_node(clone, {&write.written, 1}, Attributes::empty(), {&type, 1}, node);
      graph.insert_before(saved);
      graph.set_operand(node, write.operand, graph.result(copy));
    }
  }
}

NodeId second_writer(const Graph& graph) {
  std::set<ValueId> written;
  for (const NodeId node : writing_nodes(graph))
    for (const OperandWrite& write : writes_of(graph, node))
      if (!written.insert(write.written).second) return node;
  return {};
}

}  // namespace pw

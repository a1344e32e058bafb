#include "graph/passes/at_load.hpp"

#include <algorithm>
#include <map>

#include "graph/ops/product.hpp"
#include "graph/passes/constancy.hpp"
#include "graph/passes/view.hpp"

namespace pw {
namespace {

class Folding {
 public:
  Folding(Graph& graph, const AtLoadOptions& options)
      : graph_(graph),
        options_(options),
        constant_(graph.value_bound(), 0),
        work_(graph.value_bound(), 0) {}

  std::optional<Graph> run() {
    for (ValueId v : graph_.inputs()) constant_[v.index] = is_lasting_input(v) ? 1 : 0;
    const std::vector<NodeId> order = graph_.order();
    for (NodeId n : order) judge(n);
    find_results(order);
    if (results_.empty()) return std::nullopt;
    Graph at_load(graph_.context_ptr(), graph_.name);
    at_load.facts = graph_.facts;
    at_load.contents = graph_.contents;
    for (ValueId v : results_) names_.emplace(v, graph_.fresh_name(graph_.value_name(v)));
    for (NodeId n : order) copy(n, at_load);
    for (ValueId v : results_) {
      at_load.add_output(copies_.at(v));
      const ValueId weight = graph_.add_input(names_.at(v), graph_.type(v), InputKind::weight);
      graph_.replace_uses(v, weight);
    }
    graph_.erase_dead();
    return at_load;
  }

 private:
  [[nodiscard]] bool is_lasting_input(ValueId v) const {
    const std::vector<ValueId>& written = graph_.written_inputs();
    return graph_.input_kind(v) == InputKind::weight && has_fixed_type(graph_, v) &&
           std::find(written.begin(), written.end(), v) == written.end();
  }

  void judge(NodeId n) {
    const Op& op = graph_.op_of(n);
    const bool writes = std::any_of(op.operands.begin(), op.operands.end(),
                                    [](const OperandDecl& o) { return o.mut || o.out; });
    bool constant = !op.imported && !op.traits.effect && !op.traits.collective &&
                    !op.traits.splitting && !writes && !reads_a_symbol(graph_, n);
    bool work = false;
    for (ValueId v : graph_.operands(n)) {
      constant = constant && (!v.valid() || constant_[v.index] != 0);
      work = work || (v.valid() && work_[v.index] != 0);
    }
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      constant = constant && has_fixed_type(graph_, graph_.result(n, i));
    if (!constant) return;
    work = work || op.does_work() || moves(n);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      constant_[graph_.result(n, i).index] = 1;
      work_[graph_.result(n, i).index] = work ? 1 : 0;
    }
  }

  /// Returns true for a view that reorders all elements. A slice works in place as well, and the
  /// repetition of an expansion is not worth its memory.
  [[nodiscard]] bool moves(NodeId n) const {
    if (!graph_.op_of(n).traits.view || keeps_bytes(graph_, n) || graph_.operand_count(n) == 0 ||
        graph_.result_count(n) != 1)
      return false;
    const ValueId from = graph_.operand(n, 0), to = graph_.result(n);
    return from.valid() && graph_.type(from) != Types::unknown() && elements(from) == elements(to);
  }

  [[nodiscard]] std::int64_t elements(ValueId v) const {
    std::int64_t count = 1;
    for (DimId dim : graph_.context().types[graph_.type(v)].shape)
      count *= graph_.context().dims.value(dim).value_or(0);
    return count;
  }

  /// Returns true for the transposition of a matrix that only products read, as their right
  /// operand.
  [[nodiscard]] bool turns_for_products(NodeId n) const {
    if (graph_.op_of(n).primitive != Primitive::transpose || graph_.op_of(n).has_body())
      return false;
    const ValueId turned = graph_.result(n);
    const std::vector<NodeId> users = graph_.users(turned);
    return !users.empty() && !graph_.is_output(turned) &&
           std::all_of(users.begin(), users.end(), [&](NodeId user) {
             const auto product = product_of(graph_.op_of(user));
             const std::vector<ValueId> operands = graph_.operands(user);
             return product && operands[product->b] == turned &&
                    std::count(operands.begin(), operands.end(), turned) == 1;
           });
  }

  /// Finds the results that the remaining graph reads.
  void find_results(const std::vector<NodeId>& order) {
    std::vector<char> stays(graph_.node_bound(), 0);
    const auto keep = [&](ValueId v) {
      if (v.valid() && !graph_.is_input(v)) stays[graph_.producer(v).index] = 1;
    };
    for (NodeId n : order)
      if (graph_.result_count(n) == 0 || constant_[graph_.result(n).index] == 0 ||
          (options_.keep_transpositions && turns_for_products(n)))
        stays[n.index] = 1;
    for (ValueId v : graph_.outputs()) keep(v);
    std::vector<char> found(graph_.value_bound(), 0);
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      if (stays[n->index] == 0) continue;
      for (ValueId v : graph_.operands(*n)) {
        if (!v.valid() || graph_.is_input(v) || constant_[v.index] == 0) continue;
        const bool taken = work_[v.index] != 0 && stays[graph_.producer(v).index] == 0;
        if (taken)
          found[v.index] = 1;
        else
          keep(v);
      }
    }
    for (NodeId n : order)
      for (std::size_t i = 0; i < graph_.result_count(n); ++i)
        if (found[graph_.result(n, i).index] != 0) results_.push_back(graph_.result(n, i));
  }

  ValueId copy(ValueId v, Graph& at_load) {
    if (!v.valid()) return v;
    const auto known = copies_.find(v);
    if (known != copies_.end()) return known->second;
    const ValueId made =
        at_load.add_input(graph_.value_name(v), graph_.type(v), graph_.input_kind(v));
    for (const std::string& over : graph_.replicated_over(v))
      at_load.declare_replicated(made, over);
    return copies_.emplace(v, made).first->second;
  }

  void copy(NodeId n, Graph& at_load) {
    if (graph_.result_count(n) == 0 || constant_[graph_.result(n).index] == 0) return;
    NodeSpec spec;
    spec.op = graph_.op(n);
    spec.attributes = graph_.attributes(n);
    spec.group = graph_.group(n);
    spec.source = graph_.source(n);
    for (ValueId v : graph_.operands(n)) spec.operands.push_back(copy(v, at_load));
    for (std::size_t i = 0; i < graph_.result_count(n); ++i) {
      const auto name = names_.find(graph_.result(n, i));
      spec.results.push_back({graph_.type(graph_.result(n, i)),
                              name == names_.end()
                                  ? at_load.fresh_name(graph_.value_name(graph_.result(n, i)))
                                  : name->second});
    }
    const NodeId made = at_load.add_node(spec);
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      copies_.emplace(graph_.result(n, i), at_load.result(made, i));
  }

  Graph& graph_;
  AtLoadOptions options_;
  std::vector<char> constant_, work_;  // by value
  std::vector<ValueId> results_;
  std::map<ValueId, std::string> names_;
  std::map<ValueId, ValueId> copies_;
};

}  // namespace

std::optional<Graph> take_constants(Graph& graph, const AtLoadOptions& options) {
  std::optional<Graph> at_load = Folding(graph, options).run();
  if (at_load) at_load->erase_dead();
  return at_load;
}

}  // namespace pw

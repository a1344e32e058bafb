// Forward data-flow analysis over three truths, evaluated on demand from a value to its operands.
// Each value is computed once and memoised in the graph for its current edition, so repeated
// queries of one edition cost one walk.
#include "graph/compare/replication.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/build.hpp"

namespace pw {
namespace {

enum Fact : std::uint8_t { kFresh, kOpen, kNo, kUnknown, kYes };

class Query {
 public:
  Query(const Graph& graph, std::string_view group) : graph_(graph), group_(group) {
    Graph::Replication& memo = graph.replication();
    if (memo.edition != graph.edition()) memo.known.clear();
    memo.edition = graph.edition();
    known_ = &memo.known[std::string(group)];
    known_->resize(graph.value_bound(), kFresh);
  }

  Fact of(ValueId value) {
    std::vector<ValueId> stack{value};
    while (!stack.empty()) {
      const ValueId v = stack.back();
      if (at(v) > kOpen) {
        stack.pop_back();
      } else if (std::optional<Fact> known = without_operands(v)) {
        note(v, *known);
      } else if (at(v) == kOpen || !push_operands(v, stack)) {
        note(v, from_operands(v));
      } else {
        note(v, kOpen);
      }
    }
    return at(value);
  }

  /// Returns the first value upstream of `value` that is not replicated.
  ValueId end_of(ValueId value) {
    while (true) {
      if (without_operands(value)) return value;
      ValueId next;
      for (ValueId v : graph_.operands(graph_.producer(value))) {
        if (!next.valid() && v.valid() && of(v) != kYes) next = v;
      }
      if (!next.valid()) return value;
      value = next;
    }
  }

 private:
  [[nodiscard]] Fact at(ValueId v) const { return static_cast<Fact>((*known_)[v.index]); }
  void note(ValueId v, Fact fact) { (*known_)[v.index] = fact; }

  [[nodiscard]] std::optional<Fact> without_operands(ValueId v) const {
    if (graph_.is_input(v)) {
      const auto& over = graph_.replicated_over(v);
      return std::binary_search(over.begin(), over.end(), group_) ? kYes : kUnknown;
    }
    const NodeId node = graph_.producer(v);
    const Op& op = graph_.op_of(node);
    if (op.imported || op.traits.effect) return kUnknown;
    const bool here = over_group(node);
    if (among(op.primitive, {Primitive::all_reduce, Primitive::all_gather}))
      return here ? kYes : kUnknown;
    if (among(op.primitive, {Primitive::shard, Primitive::reduce_scatter}))
      return here ? kNo : kUnknown;
    if (op.traits.collective && !op.has_body()) return kUnknown;
    return {};
  }

  [[nodiscard]] bool over_group(NodeId node) const {
    const Attribute* over = graph_.attribute(node, "group");
    const auto* name = over == nullptr ? nullptr : std::get_if<std::string>(over);
    return name != nullptr && *name == group_;
  }

  /// Derives the replication of a fused collective from its body.
  [[nodiscard]] Fact by_body(NodeId node, std::size_t result) const {
    std::vector<TypeId> types;
    for (ValueId v : graph_.operands(node)) types.push_back(v.valid() ? graph_.type(v) : TypeId());
    Result<Meaning> meaning = instantiate_body(graph_.context(), graph_.op(node), types,
                                               graph_.attributes(node), graph_.facts);
    if (!meaning) return kUnknown;
    for (std::size_t i = 0; i < meaning->graph.inputs().size(); ++i) {
      const ValueId outer =
          graph_.operand(node, static_cast<std::size_t>(meaning->operand_of_input[i]));
      if (outer.valid() && at(outer) == kYes)
        meaning->graph.declare_replicated(meaning->graph.inputs()[i], group_);
    }
    return is_replicated(meaning->graph, meaning->graph.outputs()[result], group_) == Truth::yes
               ? kYes
               : kUnknown;
  }

  bool push_operands(ValueId v, std::vector<ValueId>& stack) {
    bool pushed = false;
    for (ValueId operand : graph_.operands(graph_.producer(v))) {
      if (!operand.valid() || at(operand) > kOpen) continue;
      stack.push_back(operand);
      pushed = true;
    }
    return pushed;
  }

  [[nodiscard]] Fact from_operands(ValueId v) const {
    const NodeId node = graph_.producer(v);
    if (graph_.op_of(node).traits.collective) return by_body(node, graph_.result_index(v));
    for (ValueId operand : graph_.operands(node)) {
      if (operand.valid() && at(operand) != kYes) return kUnknown;
    }
    return kYes;
  }

  const Graph& graph_;
  std::string_view group_;
  std::vector<std::uint8_t>* known_;
};

}  // namespace

Truth is_replicated(const Graph& graph, ValueId value, std::string_view group, std::string* why) {
  if (!value.valid()) return Truth::yes;
  Query query(graph, group);
  const Fact fact = query.of(value);
  if (fact == kYes) return Truth::yes;
  if (why != nullptr) {
    const ValueId end = query.end_of(value);
    *why = fmt::format("%{} is {} over \"{}\"", graph.value_name(end),
                       graph.is_input(end) ? "not declared to be replicated"
                       : fact == kNo       ? "a part of a tensor"
                                           : "not known to be replicated",
                       group);
  }
  return fact == kNo ? Truth::no : Truth::unknown;
}

}  // namespace pw

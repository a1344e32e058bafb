// Gates of a candidate: closed, convex and clear of barriers; types, attributes and guards accept
// it; it changes something.
//
// The problem: a match is legal only if no path leads from what it defines back to what it reads,
// and an exact answer needs a search of the graph. The gates therefore run in the order of their
// cost, and convexity is decided by order labels if possible: only a user of an output that
// precedes the last producer of an operand of the right side can lie on a path back into the match.
// If there is such a user, find_bad_path searches between these two labels, as in incremental
// topological ordering (Pearce and Kelly 2006).
//
// Invariant: closedness and convexity precede the guard cache, so that cached verdicts depend on
// types and attributes alone. Cost: linear in the match, unless a user of an output is suspicious.
#include "rewriter/engine/pass/candidate_legality.hpp"

#include <algorithm>

#include "rewriter/engine/legality.hpp"

namespace pw {
namespace {

/// Returns true if no consumed value is used outside the match, and the right side reads none.
bool is_closed(const Graph& graph, const PassRule& rule, const Candidate& c) {
  const RuleLayout& layout = rule.layout();
  for (std::size_t i = 0; i < layout.consumed.size(); ++i) {
    const ValueId value = c.values[layout.consumed[i].index];
    if (graph.is_output(value)) return false;
    if (graph.use_count(value) == rule.ends.consumed[i].second) continue;
    std::size_t inside = 0;  // distinct names may be bound to one value
    for (PatternNodeId id : layout.own)
      for (std::size_t k = 0; k < graph.operand_count(c.nodes[id.index]); ++k)
        inside += graph.operand(c.nodes[id.index], k) == value ? 1 : 0;
    if (graph.use_count(value) != inside) return false;
  }
  for (PatternValueId id : rule.reads) {
    const ValueId value = c.values[id.index];
    if (value.valid() && graph.producer(value).valid() && is_own(rule, c, graph.producer(value)))
      return false;
  }
  return true;
}

/// Returns a path that leads back into the match; empty if it is convex.
std::vector<NodeId> path_back(const Graph& graph, const PassRule& rule, const Candidate& c) {
  if (rule.always_convex) return {};
  std::uint64_t last = 0;
  for (PatternValueId id : rule.reads) {
    const ValueId value = c.values[id.index];
    const NodeId producer = value.valid() ? graph.producer(value) : NodeId();
    if (producer.valid()) last = std::max(last, graph.label(producer));
  }
  bool suspicious = false;
  for (PatternValueId id : rule.layout().outputs) {
    const ValueId value = c.values[id.index];
    if (graph.label(graph.producer(value)) >= last) continue;
    for (UseId u = graph.first_use(value); u.valid() && !suspicious; u = graph.next_use(u)) {
      const NodeId user = graph.user(u);
      suspicious = graph.label(user) <= last && !is_own(rule, c, user);
    }
  }
  if (!suspicious) return {};
  Boundary boundary;
  read_boundary(rule, c, boundary.reads, boundary.writes);
  return find_bad_path(graph, rule.layout(), c.nodes, boundary);
}

std::optional<NodeId> barrier_of(const Graph& graph, const PassRule& rule, const Candidate& c) {
  Boundary boundary;
  read_boundary(rule, c, boundary.reads, boundary.writes);
  return find_barrier(graph, rule.layout(), c.nodes, boundary);
}

/// Returns true if the recipe would make a value that equals the given one by its computation.
bool same_as(const Graph& graph, const Recipe& recipe, Recipe::Source source, ValueId value,
             const Candidate& c) {
  if (source.absent() || !value.valid()) return source.absent() && !value.valid();
  if (!source.fresh()) return c.values[source.index()] == value;
  if (graph.is_input(value)) return false;
  const auto node = std::find_if(
      recipe.nodes.begin(), recipe.nodes.end(),
      [&](const Recipe::NewNode& n) { return source.index() < n.first_result + n.result_count; });
  const NodeId there = graph.producer(value);
  if (graph.op(there) != node->op || graph.attributes(there) != node->attributes ||
      graph.operand_count(there) != node->operand_count ||
      graph.result_index(value) != source.index() - node->first_result)
    return false;
  for (std::size_t k = 0; k < node->operand_count; ++k)
    if (!same_as(graph, recipe, recipe.operands[node->first_operand + k], graph.operand(there, k),
                 c))
      return false;
  return true;
}

/// Returns true if every output equals the value that it replaces.
bool changes_nothing(const Graph& graph, const Recipe& recipe, const PassRule& rule,
                     const Candidate& c) {
  for (std::size_t i = 0; i < recipe.outputs.size(); ++i)
    if (!same_as(graph, recipe, recipe.outputs[i], c.values[rule.layout().outputs[i].index], c))
      return false;
  return true;
}

}  // namespace

/// Checks three conditions. Every use of a consumed value is in the pattern; the right side reads
/// nothing that the match makes; and no reader of an output precedes the last producer of a value
/// read. A node that precedes all own nodes is not one of them, and precedes all outputs.
[[gnu::flatten]] Surely surely_legal(const Graph& graph, const PassRule::Ends& ends,
                                     bool always_convex, const NodeId* nodes,
                                     const ValueId* values) {
  for (const auto& [place, uses] : ends.consumed)
    if (graph.use_count(values[place]) != uses || graph.is_output(values[place]))
      return Surely::not_known;
  std::uint64_t first = ~std::uint64_t{0};
  for (const std::uint16_t place : ends.own) first = std::min(first, graph.label(nodes[place]));
  std::uint64_t last = 0;
  for (const std::uint16_t place : ends.reads) {
    const ValueId value = values[place];
    const NodeId producer = value.valid() ? graph.producer(value) : NodeId();
    if (!producer.valid() || graph.label(producer) < first) continue;
    for (const std::uint16_t own : ends.own)
      if (nodes[own] == producer) return Surely::not_known;
    last = std::max(last, graph.label(producer));
  }
  if (last == 0 && !ends.own.empty()) return Surely::in_place;
  if (always_convex || last == 0) return Surely::legal;
  for (const std::uint16_t place : ends.outputs)
    if (graph.label(graph.producer(values[place])) < last) return Surely::not_known;
  return Surely::legal;
}

/// Their order matters: a cached verdict must not depend on the place of the match.
GateResult judge_fit(const Graph& graph, PassRule& rule, const Candidate& c, const Verdict* known) {
  GateResult out;
  const Surely surely =
      surely_legal(graph, rule.ends, rule.always_convex, c.nodes.data(), c.values.data());
  out.in_place = surely == Surely::in_place;
  if (surely == Surely::not_known) {
    if (!is_closed(graph, rule, c)) return out.code = "N08", out;
    out.in_the_way = path_back(graph, rule, c);
    if (!out.in_the_way.empty()) return out.code = "N13", out;
  }
  const Verdict& verdict = known != nullptr ? *known
                           : rule.memo      ? rule.verdicts->ask(c)
                                            : rule.verdicts->ask_anew(c);
  (verdict.yes() ? out.verdict : out.refusal) = &verdict;
  return out;
}

/// The barrier is the most expensive gate, so it comes last.
GateResult judge(const Graph& graph, bool barriers, PassRule& rule, const Candidate& c,
                 const Verdict* known) {
  GateResult out = judge_fit(graph, rule, c, known);
  if (out.verdict == nullptr) return out;
  const Recipe& recipe = out.verdict->recipe;
  if (recipe.may_change_nothing && changes_nothing(graph, recipe, rule, c))
    return out.verdict = nullptr, out;
  if (!barriers) return out;
  if (const std::optional<NodeId> barrier = barrier_of(graph, rule, c)) {
    out.verdict = nullptr;
    out.code = "N14";
    out.in_the_way.push_back(*barrier);
  }
  return out;
}

[[gnu::flatten]] bool rebind(const Graph& graph, PassRule& rule, const std::uint32_t* known,
                             std::uint32_t swaps) {
  NodeId* const nodes = rule.taken.nodes.data();
  ValueId* const values = rule.taken.values.data();
  std::uint8_t* const exchanged = rule.taken.swaps.data();
  for (std::size_t i = 0; i < rule.ops.size(); ++i) {
    const NodeId node{std::size_t{known[i]}};
    if (!node.valid() || !graph.alive(node) || graph.op(node) != rule.ops[i]) return false;
    nodes[i] = node;
    exchanged[i] = i < 32 ? static_cast<std::uint8_t>((swaps >> i) & 1u) : 0;
  }
  for (const PassRule::ResultSlot& result : rule.results)
    values[result.value] = graph.result(nodes[result.node], result.slot);
  for (const PassRule::Operand& wanted : rule.operands) {
    const ValueId value =
        operand_at(graph, nodes[wanted.node], wanted.slot, exchanged[wanted.node] != 0);
    if (wanted.none) {
      if (value.valid()) return false;
      continue;
    }
    if (!value.valid() && !wanted.optional) return false;
    ValueId& bound = values[wanted.value];
    if (!wanted.first && (wanted.produced || bound.valid()) && bound != value) return false;
    bound = value;
  }
  return true;
}

std::uint64_t position_of(const Graph& graph, const PassRule& rule, const Candidate& c) {
  std::uint64_t out = ~std::uint64_t{0};
  for (PatternNodeId id : rule.layout().own) out = std::min(out, graph.label(c.nodes[id.index]));
  return out;
}

bool is_own(const PassRule& rule, const Candidate& c, NodeId node) {
  for (PatternNodeId id : rule.layout().own)
    if (c.nodes[id.index] == node) return true;
  return false;
}

void read_boundary(const PassRule& rule, const Candidate& c, std::vector<ValueId>& reads,
                   std::vector<ValueId>& writes) {
  reads.clear();
  for (PatternValueId id : rule.reads)
    if (c.values[id.index].valid()) reads.push_back(c.values[id.index]);
  read_writes(rule, c, writes);
}

void read_writes(const PassRule& rule, const Candidate& c, std::vector<ValueId>& writes) {
  writes.resize(rule.ends.outputs.size());
  for (std::size_t i = 0; i < writes.size(); ++i) writes[i] = c.values[rule.ends.outputs[i]];
}

}  // namespace pw

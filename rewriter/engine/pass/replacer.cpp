// Replaces a match by its recipe: adds the new nodes, redirects the outputs, erases the consumed
// nodes. Allocates neither strings nor environments, since the recipe was built once for this
// combination of types and attributes, and names are derived on request.
//
// Every node whose matches may have changed is touched: new nodes, nodes with new operands, and
// producers whose users changed. If verdicts are local, old nodes next to a new one are omitted,
// since each new match of theirs contains a new node and is found from it. Cost: linear in the
// match, its users and the recipe.
#include "rewriter/engine/pass/replacer.hpp"

#include <algorithm>
#include <span>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

/// Collects the own nodes in order; a pattern's nodes are mostly ordered already.
void Replacer::collect_own(const PassRule& rule, const Candidate& c) {
  delta_.own.resize(rule.ends.own.size());
  for (std::size_t i = 0; i < delta_.own.size(); ++i) delta_.own[i] = c.nodes[rule.ends.own[i]];
  const auto before = [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); };
  if (!std::is_sorted(delta_.own.begin(), delta_.own.end(), before))
    std::sort(delta_.own.begin(), delta_.own.end(), before);
}

/// Adds the nodes of the recipe and replaces the match. All checks have been made; nothing fails
/// here.
[[gnu::flatten]] const Delta& Replacer::replace(const PassRule& rule, const Candidate& c,
                                                const Recipe& recipe, bool in_place) {
  delta_.created.clear();
  delta_.erased.clear();
  delta_.touched.clear();
  collect_own(rule, c);
  reads_.clear();
  in_place ? read_writes(rule, c, writes_) : read_boundary(rule, c, reads_, writes_);
  graph_.make_room(reads_, writes_, delta_.own);  // legal() has checked this
  const NodeId like = writes_.empty() ? delta_.own.back() : graph_.producer(writes_.front());
  first_new_ = NodeId(graph_.node_bound());
  new_results_.resize(recipe.types.size());
  for (const Recipe::NewNode& made : recipe.nodes) {
    operands_.resize(made.operand_count);
    for (std::size_t k = 0; k < made.operand_count; ++k)
      operands_[k] = resolve(recipe.operands[made.first_operand + k], c);
    const NodeId node = graph_.add_node(
        made.op, operands_, made.attributes,
        std::span<const TypeId>(recipe.types).subspan(made.first_result, made.result_count), like);
    for (std::size_t k = 0; k < made.result_count; ++k)
      new_results_[made.first_result + k] = graph_.result(node, k);
  }
  graph_.insert_before({});
  run_.barriers = run_.barriers || recipe.barriers;
  redirect(rule, c, recipe);
  for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i)
    if (graph_.alive(NodeId(i))) delta_.created.push_back(NodeId(i));
  note_touched();
  named_values_.resize(rule.named.size());
  for (std::size_t i = 0; i < rule.named.size(); ++i)
    named_values_[i] = c.values[rule.named[i].index];
  run_.report.journal.add_match(rule.layout().id, rule.names, c.nodes, named_values_,
                                delta_.created, delta_.erased);
  return delta_;
}

[[gnu::flatten]] void Replacer::redirect(const PassRule& rule, const Candidate& c,
                                         const Recipe& recipe) {
  were_outputs_.clear();
  taken_over_.clear();
  for (std::size_t i = 0; i < recipe.outputs.size(); ++i) {
    const ValueId from = writes_[i], to = resolve(recipe.outputs[i], c);
    were_outputs_.push_back(graph_.is_output(from));
    if (!requeue_.touches_little() || !recipe.outputs[i].fresh() || !stands_for(to, from)) {
      for (UseId u = graph_.first_use(from); u.valid(); u = graph_.next_use(u))
        touch(graph_.user(u));
      touch_producer(to);
    }
    taken_over_.push_back(graph_.is_output(to));
    graph_.replace_uses(from, to);
  }
  erase_matched(rule, c, recipe);
  // A new value takes the name of the old one. An older value takes it only if a graph output would
  // lose its name otherwise.
  for (std::size_t i = 0; i < recipe.outputs.size(); ++i) {
    const ValueId to = resolve(recipe.outputs[i], c);
    if (graph_.is_input(to)) continue;
    bool again = false;
    for (std::size_t j = 0; j < i; ++j) again = again || resolve(recipe.outputs[j], c) == to;
    if (again) continue;
    if (recipe.outputs[i].fresh() || (were_outputs_[i] && !taken_over_[i]))
      graph_.take_name(to, writes_[i]);
  }
}

/// Returns true if a user keeps its matches when it reads the new value instead. All readers of the
/// old value change together, so equal operands stay equal. Matches that look beyond the value
/// contain the new node, and are found from it.
bool Replacer::stands_for(ValueId made, ValueId old) const {
  return graph_.type(made) == graph_.type(old);
}

/// Returns true if a result of the node is used, or the node has an effect.
bool Replacer::is_needed(NodeId node) const {
  for (std::size_t k = 0; k < graph_.result_count(node); ++k)
    if (!graph_.unused(graph_.result(node, k))) return true;
  return is_barrier(graph_.op_of(node));
}

void Replacer::erase_matched(const PassRule& rule, const Candidate& c, const Recipe& recipe) {
  for (auto n = delta_.own.rbegin(); n != delta_.own.rend(); ++n) {
    graph_.erase(*n);
    delta_.erased.push_back(*n);
  }
  bool unneeded = false;
  const bool little = requeue_.touches_little();
  for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i) {
    const NodeId node(i);
    unneeded = unneeded || !is_needed(node);
    if (little) continue;
    for (std::size_t k = 0; k < graph_.operand_count(node); ++k)
      touch_producer(graph_.operand(node, k));
  }
  // A producer of their operands, or a node that is no longer matched, may have lost its last user.
  // If a new node reads the value, a match that consumes it contains that node and is found from
  // it.
  for (PatternValueId id : rule.outside) {
    const ValueId v = c.values[id.index];
    if (!v.valid() || graph_.is_input(v)) continue;
    const NodeId producer = graph_.producer(v);
    if (!little || recipe.reads[id.index] == 0) touch(producer);
    unneeded = unneeded || (graph_.unused(v) && graph_.alive(producer));
  }
  if (!unneeded && c.nodes.size() > delta_.own.size())
    unneeded = std::any_of(c.nodes.begin(), c.nodes.end(),
                           [&](NodeId n) { return n.valid() && graph_.alive(n) && !is_needed(n); });
  if (unneeded) erase_what_is_unneeded(rule, c);
}

/// Erases what the rewrite left unneeded, transitively: new nodes, matched nodes that survive, and
/// producers of operands of erased nodes.
void Replacer::erase_what_is_unneeded(const PassRule& rule, const Candidate& c) {
  suspects_.clear();
  for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i)
    suspects_.push_back(NodeId(i));
  for (NodeId n : c.nodes)
    if (n.valid() && !is_own(rule, c, n)) suspects_.push_back(n);
  for (auto n = delta_.own.rbegin(); n != delta_.own.rend(); ++n)
    for (std::size_t k = 0; k < graph_.operand_count(*n); ++k)
      if (const ValueId v = graph_.operand(*n, k); v.valid() && !graph_.is_input(v))
        suspects_.push_back(graph_.producer(v));
  const std::vector<NodeId> gone = erase_unneeded(graph_, suspects_);
  delta_.erased.insert(delta_.erased.end(), gone.begin(), gone.end());
  for (NodeId n : gone)
    for (std::size_t k = 0; k < graph_.operand_count(n); ++k) touch_producer(graph_.operand(n, k));
}

/// Adds the new nodes to the touched ones, and removes repetitions and erased nodes.
void Replacer::note_touched() {
  for (NodeId n : delta_.created) touch(n);
  if (delta_.touched.size() > 1) Requeue::sort_once(delta_.touched);
  std::erase_if(delta_.touched, [&](NodeId n) { return !graph_.alive(n); });
}

}  // namespace pw

// Applies one match by building next to it and comparing: the right side is built while the matched
// nodes are still there, so that a failure, or a result equal to the old one, is undone by one
// rollback of the graph's journal.
//
//  1. check_legal: liveness (N10), escape (N08), convexity (N13), barriers (N14).
//  2. build: new nodes at a place that keeps the order topological; output types must not change.
//  3. unchanged: the new values are compared with the old ones as terms over older nodes.
//  4. replace: outputs are redirected, consumed nodes and what becomes unneeded are erased.
//
// Invariant: between begin() and replace() no surviving node reads a new one, so rollback is always
// possible. Cost: the match, its users and the new nodes, and the local searches of
// legality.cpp. The engine uses recipes (pass/replacer.cpp) for rules without lists; this path
// also serves the naive driver and single matches.
#include "rewriter/engine/apply.hpp"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/same_type.hpp"
#include "rewriter/engine/known_types.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/right_side.hpp"
#include "rewriter/explain/no_change.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {
namespace {

bool same_node(const Graph& graph, NodeId a, NodeId b, NodeId first_new, int depth);

/// Returns true if two values are computed alike. Only new nodes are compared by structure; two old
/// ones are equal only if identical.
bool same_value(const Graph& graph, ValueId a, ValueId b, NodeId first_new, int depth) {
  if (a == b) return true;
  if (!a.valid() || !b.valid() || graph.is_input(a) || graph.is_input(b)) return false;
  return graph.result_index(a) == graph.result_index(b) &&
         same_node(graph, graph.producer(a), graph.producer(b), first_new, depth);
}

bool same_node(const Graph& graph, NodeId a, NodeId b, NodeId first_new, int depth) {
  constexpr int kDeepest = 32;
  if (depth > kDeepest || b < first_new) return false;
  if (graph.op(a) != graph.op(b) || graph.attributes(a) != graph.attributes(b) ||
      graph.operand_count(a) != graph.operand_count(b))
    return false;
  for (std::size_t i = 0; i < graph.operand_count(a); ++i)
    if (!same_value(graph, graph.operand(a, i), graph.operand(b, i), first_new, depth + 1))
      return false;
  return true;
}

class Application {
 public:
  Application(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers)
      : graph_(graph), layout_(layout), rule_(*layout.rule), match_(match), barriers_(barriers) {}

  Result<Applied> run() {
    bool differs = PW_TRY(begin());
    if (differs) return replace();
    Applied same;
    same.changed = false;
    return same;
  }

  Result<bool> try_out() {
    Result<bool> differs = begin();
    if (differs && *differs) graph_.rollback(before_);
    return differs;
  }

 private:
  tl::unexpected<Diagnostics> refuse(std::string_view code, const std::string& message) const {
    return fail(rule_.name_span, code,
                fmt::format("`{}` cannot be applied at %{}: {}", rule_.name,
                            graph_.node_name(own_.front()), message));
  }

  /// Builds the right side next to the existing nodes. Returns true if it differs from what is
  /// there; otherwise restores the graph.
  Result<bool> begin() {
    PW_TRY(check_legal());
    graph_.start_undo();
    before_ = graph_.checkpoint();
    Status built = build();
    graph_.insert_before({});
    const bool differs = built && !unchanged();
    if (!differs) graph_.rollback(before_);
    if (!built) return forward(built);
    return differs;
  }

  Status check_legal() {
    for (NodeId n : all_nodes(match_))
      if (!graph_.alive(n))
        return fail(rule_.name_span, "N10",
                    fmt::format("`{}` cannot be applied: a node of the match is gone", rule_.name));
    own_ = own_nodes(graph_, layout_, match_);
    inner_ = NodeSet(own_);
    boundary_ = boundary_of(graph_, layout_, match_);
    if (auto escape = find_escape(graph_, layout_, match_))
      return refuse("N08", describe(graph_, layout_, *escape));
    std::vector<NodeId> path = find_bad_path(graph_, layout_, match_, boundary_);
    if (!path.empty()) return refuse("N13", describe_path(graph_, path));
    if (barriers_)
      if (auto barrier = find_barrier(graph_, layout_, match_, boundary_))
        return refuse("N14", fmt::format("it would be moved across %{} ({}), which has an effect",
                                         graph_.node_name(*barrier), graph_.op_of(*barrier).name));
    return {};
  }

  Status build() {
    first_new_ = NodeId(graph_.node_bound());
    if (!graph_.make_room(boundary_.reads, boundary_.writes, own_))
      return refuse("N13", "the new nodes cannot be ordered");
    NodeId root =
        boundary_.writes.empty() ? own_.back() : graph_.producer(boundary_.writes.front());
    BuildOptions options;
    options.like = root;
    Env env = match_.env;
    PW_TRY(build_right_side(graph_, rule_, match_, env, std::move(options)));
    Result<std::vector<OutputPair>> outputs = outputs_of(graph_, layout_, match_, env);
    if (!outputs) return refuse(outputs.error().front().code, outputs.error().front().message);
    outputs_ = std::move(*outputs);
    PW_TRY(check_types());
    return check_reads();
  }

  Status check_types() {
    const Types& types = graph_.context().types;
    for (const OutputPair& o : outputs_) {
      TypeId before = graph_.type(o.from), after = graph_.type(o.to);
      if (before == after &&
          (before != Types::unknown() || surely_same_type(graph_, o.from, graph_, o.to)))
        continue;
      const bool is_new = !graph_.is_input(o.to) && !(graph_.producer(o.to) < first_new_);
      if (is_new &&
          same_type(graph_.context(), before, after, with_conditions(graph_, match_.conditions))) {
        graph_.set_type(o.to, before);  // users keep the type they were built with
        continue;
      }
      bool known = before != Types::unknown() && after != Types::unknown();
      bool shape = known && types[before].dtype == types[after].dtype;
      return refuse(shape ? "N06" : "N05", fmt::format("`{}` is {} and would become {}", o.name,
                                                       types.print(before), types.print(after)));
    }
    return {};
  }

  /// Checks that no surviving node reads a consumed one, since those are erased.
  Status check_reads() const {
    for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i)
      for (ValueId v : graph_.operands(NodeId(i)))
        if (is_own(v))
          return refuse("N08", fmt::format("the right side reads %{}, which it replaces",
                                           graph_.value_name(v)));
    for (const OutputPair& o : outputs_)
      if (is_own(o.to))
        return refuse("N08", fmt::format("`{}` would be %{}, which is consumed", o.name,
                                         graph_.value_name(o.to)));
    return {};
  }

  [[nodiscard]] bool is_own(ValueId v) const {
    return v.valid() && !graph_.is_input(v) && inner_.contains(graph_.producer(v));
  }

  [[nodiscard]] bool unchanged() const {
    return !outputs_.empty() &&
           std::all_of(outputs_.begin(), outputs_.end(), [&](const OutputPair& o) {
             return same_value(graph_, o.from, o.to, first_new_, 0);
           });
  }

  Result<Applied> replace() {
    Applied out;
    std::vector<bool> were_outputs;
    for (const OutputPair& o : outputs_) {
      were_outputs.push_back(graph_.output_count(o.from) > 0);
      for (NodeId user : graph_.users(o.from)) touch(user);
      touch_producer(o.to);
      taken_over_.push_back(graph_.output_count(o.to) > 0);
      graph_.replace_uses(o.from, o.to);
    }
    describe_match(out.event);
    erase(out.event);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      keep_name(outputs_[i], were_outputs[i] && !taken_over_[i]);
    for (NodeId n : out.event.created) touch(n);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    std::erase_if(touched_, [&](NodeId n) { return !graph_.alive(n); });
    out.touched = std::move(touched_);
    return out;
  }

  void describe_match(MatchEvent& event) const {
    event.rule = layout_.id;
    event.matched = all_nodes(match_);
    event.bindings = bindings_of(rule_, match_);
  }

  void erase(MatchEvent& event) {
    std::vector<NodeId> candidates;
    for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i) {
      candidates.push_back(NodeId(i));
      for (ValueId v : graph_.operands(NodeId(i))) touch_producer(v);
    }
    for (NodeId n : all_nodes(match_))
      if (!inner_.contains(n)) candidates.push_back(n);
    for (auto n = own_.rbegin(); n != own_.rend(); ++n) {
      for (ValueId v : graph_.operands(*n))
        if (v.valid() && !graph_.is_input(v)) candidates.push_back(graph_.producer(v));
      graph_.erase(*n);
      event.erased.push_back(*n);
    }
    std::vector<NodeId> gone = erase_unneeded(graph_, candidates);
    event.erased.insert(event.erased.end(), gone.begin(), gone.end());
    for (NodeId n : event.erased)
      for (ValueId v : graph_.operands(n)) touch_producer(v);
    for (std::size_t i = first_new_.index; i < graph_.node_bound(); ++i)
      if (graph_.alive(NodeId(i))) event.created.push_back(NodeId(i));
  }

  /// Gives new values the names of the old ones. An older value takes the name only if a graph
  /// output would lose it otherwise.
  void keep_name(const OutputPair& o, bool lost_otherwise) {
    if (!named_.insert(o.to).second || graph_.is_input(o.to)) return;
    const bool is_new = !(graph_.producer(o.to) < first_new_);
    if (is_new || lost_otherwise) graph_.take_name(o.to, o.from);
  }

  void touch(NodeId n) { touched_.push_back(n); }
  void touch_producer(ValueId v) {
    if (v.valid() && !graph_.is_input(v)) touch(graph_.producer(v));
  }

  Graph& graph_;
  const RuleLayout& layout_;
  const Rule& rule_;
  const Match& match_;
  bool barriers_;
  Graph::Checkpoint before_ = 0;
  std::vector<NodeId> own_;
  NodeSet inner_{{}};
  Boundary boundary_;
  NodeId first_new_;
  std::vector<OutputPair> outputs_;
  std::unordered_set<ValueId> named_;  // replaced values of earlier outputs; looked up only
  std::vector<bool>
      taken_over_;  ///< the new value was a graph output before, and keeps its own name
  std::vector<NodeId> touched_;
};

}  // namespace

NodeId first_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  NodeId out = nodes.front();
  for (NodeId n : nodes)
    if (graph.label(n) < graph.label(out)) out = n;
  return out;
}

bool is_unneeded(const Graph& graph, NodeId node) {
  if (!graph.alive(node) || is_barrier(graph.op_of(node))) return false;
  for (std::size_t i = 0; i < graph.result_count(node); ++i)
    if (!graph.unused(graph.result(node, i))) return false;
  return true;
}

std::vector<NodeId> erase_unneeded(Graph& graph, std::vector<NodeId> nodes) {
  // Users before producers, so that each node is visited once. Labels are distinct, so there are no
  // ties.
  auto later = [&](NodeId a, NodeId b) { return graph.label(a) < graph.label(b); };
  std::priority_queue<NodeId, std::vector<NodeId>, decltype(later)> queue(later);
  for (NodeId n : nodes)
    if (graph.alive(n)) queue.push(n);
  std::vector<NodeId> erased;
  while (!queue.empty()) {
    NodeId n = queue.top();
    queue.pop();
    if (!is_unneeded(graph, n)) continue;
    std::vector<ValueId> operands = graph.operands(n);
    graph.erase(n);
    erased.push_back(n);
    for (ValueId v : operands)
      if (v.valid() && !graph.is_input(v)) queue.push(graph.producer(v));
  }
  return erased;
}

Result<Applied> apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers) {
  return Application(graph, layout, match, barriers).run();
}

Trial try_apply(Graph& graph, const RuleLayout& layout, const Match& match, bool barriers) {
  const Result<bool> differs = would_change(graph, layout, match, barriers);
  if (!differs) return differs.error().front().code == "N14" ? Trial::barred : Trial::forbidden;
  return *differs ? Trial::changed : Trial::unchanged;
}

Result<bool> would_change(Graph& graph, const RuleLayout& layout, const Match& match,
                          bool barriers) {
  return Application(graph, layout, match, barriers).try_out();
}

Result<MatchEvent> apply_match(Graph& graph, const RunRules& rules, const Match& match) {
  RuleLayout layout = lay_out(rules, match.rule);
  Applied applied = PW_TRY(apply(graph, layout, match, has_barriers(graph)));
  if (!applied.changed)
    return fail(rules[match.rule].name_span, kNoChange,
                fmt::format("`{}` changes nothing here: its result equals what it replaces",
                            rules[match.rule].name));
  return std::move(applied.event);
}

}  // namespace pw

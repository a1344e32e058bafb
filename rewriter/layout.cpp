// Exports lay_out, starting_env, anchor_of, nodes_back.
#include "rewriter/layout.hpp"

#include <algorithm>

#include "rewriter/matcher.hpp"

namespace pw {
namespace {

void note_kind(RuleLayout& layout, const std::string& name, VariableKind kind) {
  if (!name.empty() && name != "_") layout.kinds.emplace(name, kind);
}

void note_dims(RuleLayout& layout, const Expr& expr) {
  if (expr.kind == Expr::Kind::star) return note_kind(layout, expr.text, VariableKind::sequence);
  if (expr.kind == Expr::Kind::path) return note_kind(layout, expr.text, VariableKind::dim);
  for (const Expr& arg : expr.args) note_dims(layout, arg);
}

void note_kinds(RuleLayout& layout) {
  for (const PatternValue& value : layout.rule->values)
    for (const TypeExpr& type : value.types) {
      for (const Expr& dtype : type.dtype)
        if (dtype.kind == Expr::Kind::path) note_kind(layout, dtype.text, VariableKind::dtype);
      for (const Expr& dim : type.dims) note_dims(layout, dim);
    }
}

/// The names an expression reads as operands, in order. Attributes read only types of values, so
/// they are left out.
void operand_names(const Expr& expr, std::vector<std::string>& out) {
  if (expr.kind == Expr::Kind::path) {
    if (std::find(out.begin(), out.end(), expr.text) == out.end()) out.push_back(expr.text);
    return;
  }
  if (expr.kind == Expr::Kind::call &&
      (expr.text == "size" || expr.text == "count" || expr.text == "rank"))
    return;
  for (const Expr& arg : expr.args) operand_names(arg, out);
}

void note_reads(RuleLayout& layout) {
  std::set<std::string> defined;
  for (const Statement& statement : layout.rule->replacement)
    for (const Binder& binder : statement.binders) defined.insert(binder.name);
  std::vector<std::string> names;
  for (const Statement& statement : layout.rule->replacement) operand_names(statement.value, names);
  for (std::string& name : names)
    if (!defined.contains(name) && layout.rule->value_named(name).valid())
      layout.reads.push_back(std::move(name));
}

void note_roles(RuleLayout& layout) {
  const Rule& rule = *layout.rule;
  for (const std::string& name : rule.outputs) layout.outputs.push_back(rule.value_named(name));
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    if (node.given) continue;
    layout.own.push_back(PatternNodeId(i));
    for (PatternValueId v : node.results)
      if (std::find(layout.outputs.begin(), layout.outputs.end(), v) == layout.outputs.end())
        layout.consumed.push_back(v);
  }
}

class Orderer {
 public:
  explicit Orderer(RuleLayout& layout)
      : layout_(layout),
        rule_(*layout.rule),
        visited_(rule_.nodes.size(), false),
        bound_(rule_.values.size(), false) {}

  void run() {
    PatternNodeId anchor = anchor_of(rule_);
    if (!anchor.valid()) return;
    visit({Step::From::anchor, anchor, {}, {}, 0, {}});
    while (next()) {
    }
  }

 private:
  bool next() {
    Step step;
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)
      if (!visited_[PatternNodeId(i)] && producer_step(PatternNodeId(i), step)) return visit(step);
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)
      if (!visited_[PatternNodeId(i)] && user_step(PatternNodeId(i), step)) return visit(step);
    return false;
  }

  bool producer_step(PatternNodeId id, Step& step) const {
    for (const Step& done : layout_.steps) {
      const PatternNode& reader = rule_.nodes[done.node];
      for (std::size_t i = 0; i < reader.operands.size(); ++i)
        if (rule_.values[reader.operands[i]].producer == id) {
          step = {Step::From::producer, id, reader.operands[i], done.node, static_cast<int>(i), {}};
          return true;
        }
    }
    return false;
  }

  bool user_step(PatternNodeId id, Step& step) const {
    step = {Step::From::user, id, {}, {}, 0, {}};
    const PatternNode& node = rule_.nodes[id];
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (bound_[node.operands[i]] && connects(rule_.values[node.operands[i]]))
        step.connectors.push_back(static_cast<int>(i));
    return !step.connectors.empty();
  }

  bool visit(const Step& step) {
    visited_[step.node] = true;
    for (PatternValueId v : rule_.nodes[step.node].operands) bound_[v] = true;
    for (PatternValueId v : rule_.nodes[step.node].results) bound_[v] = true;
    layout_.steps.push_back(step);
    return true;
  }

  RuleLayout& layout_;
  const Rule& rule_;
  IdVec<PatternNodeId, char> visited_;
  IdVec<PatternValueId, char> bound_;
};

struct Edge {
  PatternNodeId from;
  Hop hop;
  int cost;
};

/// Going up to a producer is one step; down to users of a result, a few; to other users of an
/// operand, maybe very many.
std::vector<Edge> edges_of(const RuleSet& rules, const Rule& rule) {
  constexpr int kUp = 1, kDown = 8, kAcross = 64;
  std::vector<Edge> out;
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    PatternNodeId id(i);
    const PatternNode& node = rule.nodes[id];
    bool commutes = rules.context->ops[node.op].traits.commutative;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      PatternValueId v = node.operands[k];
      int slot = static_cast<int>(k);
      bool either = commutes && k < 2;
      PatternNodeId producer = rule.values[v].producer;
      if (producer.valid()) {
        out.push_back({id, {Hop::Kind::producer, producer, slot, either}, kUp});
        out.push_back(
            {producer, {Hop::Kind::user_of_result, id, rule.values[v].result, false}, kDown});
      }
      if (!connects(rule.values[v])) continue;
      for (std::size_t j = 0; j < rule.nodes.size(); ++j) {
        const auto& others = rule.nodes[PatternNodeId(j)].operands;
        if (j != i && std::find(others.begin(), others.end(), v) != others.end())
          out.push_back(
              {id, {Hop::Kind::user_of_operand, PatternNodeId(j), slot, either}, kAcross});
      }
    }
  }
  return out;
}

void find_ways_back(const RuleSet& rules, RuleLayout& layout) {
  const Rule& rule = *layout.rule;
  constexpr int kFar = 1 << 28;
  IdVec<PatternNodeId, int> cost(rule.nodes.size(), kFar);
  layout.way_back.resize(rule.nodes.size());
  PatternNodeId anchor = anchor_of(rule);
  if (!anchor.valid()) return;
  cost[anchor] = 0;
  std::vector<Edge> edges = edges_of(rules, rule);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& edge : edges) {
      int through = cost[edge.hop.to] + edge.cost;
      if (through >= cost[edge.from]) continue;
      cost[edge.from] = through;
      layout.way_back[edge.from] = layout.way_back[edge.hop.to];
      layout.way_back[edge.from].insert(layout.way_back[edge.from].begin(), edge.hop);
      changed = true;
    }
  }
}

}  // namespace

bool connects(const PatternValue& value) {
  return !value.literal && !value.literal_none && !value.attribute_variable;
}

PatternNodeId anchor_of(const Rule& rule) {
  for (std::size_t i = 0; i < rule.nodes.size(); ++i)
    if (!rule.nodes[PatternNodeId(i)].given) return PatternNodeId(i);
  return {};
}

Env starting_env(const Rule& rule, const Env& params) {
  Env env = params;
  for (const auto& [name, value] : rule.constants) env.insert_or_assign(name, value);
  return env;
}

std::vector<NodeId> nodes_back(const Graph& graph, const Rule& rule, const std::vector<Hop>& way,
                               NodeId node) {
  std::vector<NodeId> here{node};
  for (const Hop& hop : way) {
    OpId wanted = rule.nodes[hop.to].op;
    std::vector<NodeId> there;
    auto arrive = [&](NodeId n) {
      if (n.valid() && graph.op(n) == wanted) there.push_back(n);
    };
    auto leave = [&](NodeId n, std::size_t slot) {
      bool down = hop.kind == Hop::Kind::user_of_result;
      if (slot >= (down ? graph.result_count(n) : graph.operand_count(n))) return;
      ValueId v = down ? graph.result(n, slot) : graph.operand(n, slot);
      if (!v.valid()) return;
      if (hop.kind == Hop::Kind::producer) return arrive(graph.producer(v));
      for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u)) arrive(graph.user(u));
    };
    for (NodeId n : here) {
      leave(n, static_cast<std::size_t>(hop.slot));
      if (hop.either) leave(n, static_cast<std::size_t>(1 - hop.slot));
    }
    std::sort(there.begin(), there.end());
    there.erase(std::unique(there.begin(), there.end()), there.end());
    here = std::move(there);
  }
  return here;
}

RuleLayout lay_out(const RuleSet& rules, RuleId id) {
  RuleLayout layout;
  layout.rule = &rules.rules[id];
  layout.id = id;
  note_kinds(layout);
  note_roles(layout);
  note_reads(layout);
  Orderer(layout).run();
  find_ways_back(rules, layout);
  return layout;
}

}  // namespace pw

#include "rewriter/strategies/layout.hpp"

#include <algorithm>
#include <tuple>

#include "rewriter/matcher/anchor.hpp"
#include "rewriter/matcher/matcher.hpp"

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

/// Collects the names that an expression reads as operands, in order. Attributes read only types of
/// values, and are skipped.
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
    if (!node.own()) continue;
    layout.own.push_back(PatternNodeId(i));
    for (PatternValueId v : node.results)
      if (std::find(layout.outputs.begin(), layout.outputs.end(), v) == layout.outputs.end())
        layout.consumed.push_back(v);
  }
}

void names_in(const Expr& expr, std::set<std::string>& out) {
  bool variable = expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star;
  if (variable && !expr.text.empty() && expr.text != "_") out.insert(expr.text);
  for (const Expr& arg : expr.args) names_in(arg, out);
}

void note_names(RuleLayout& layout) {
  const Rule& rule = *layout.rule;
  layout.names.resize(rule.nodes.size());
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    std::set<std::string> names;
    for (const auto* values : {&node.operands, &node.results})
      for (PatternValueId v : *values) {
        const PatternValue& value = rule.values[v];
        if (!value.name.empty() && value.name != "_") names.insert(value.name);
        for (const TypeExpr& type : value.types) {
          for (const Expr& dtype : type.dtype) names_in(dtype, names);
          for (const Expr& dim : type.dims) names_in(dim, names);
        }
      }
    for (const PatternAttribute& attribute : node.attributes) names_in(attribute.value, names);
    layout.names[PatternNodeId(i)].assign(names.begin(), names.end());
  }
}

using Places = std::map<std::string, int, std::less<>>;  // occurrences of each name in a rule

void count_places(const TypeExpr& type, Places& out);
void count_places(const Expr& expr, Places& out) {
  const bool named = expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star ||
                     expr.kind == Expr::Kind::call;
  if (named) ++out[expr.text.substr(0, expr.text.find('.'))];
  for (const Expr& arg : expr.args) count_places(arg, out);
  for (const TypeExpr& type : expr.type) count_places(type, out);
  for (const AttributeArg& attribute : expr.attributes) {
    if (attribute.value.empty()) ++out[attribute.name];  // `{dtype}` is `{dtype = dtype}`
    for (const Expr& value : attribute.value) count_places(value, out);
  }
}
void count_places(const TypeExpr& type, Places& out) {
  for (const Expr& dtype : type.dtype) count_places(dtype, out);
  for (const Expr& dim : type.dims) count_places(dim, out);
}

void note_compared(RuleLayout& layout) {
  const Rule& rule = *layout.rule;
  Places places;
  for (const PatternValue& value : rule.values)
    for (const TypeExpr& type : value.types) count_places(type, places);
  for (const PatternNode& node : rule.nodes)
    for (const PatternAttribute& attribute : node.attributes) count_places(attribute.value, places);
  for (const auto* guards : {&rule.where, &rule.assume})
    for (const Expr& guard : *guards) count_places(guard, places);
  for (const Statement& statement : rule.replacement) {
    count_places(statement.value, places);
    for (const Binder& binder : statement.binders)
      for (const TypeExpr& type : binder.type) count_places(type, places);
  }
  for (const auto& [name, count] : places)
    if (count > 1) layout.compared.insert(name);
}

bool copies(const Expr& expr, std::string_view op) {
  if (expr.kind == Expr::Kind::call && expr.open && expr.text == op) return true;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr& arg) { return copies(arg, op); });
}

MembersLayout lay_out_members(const RuleSet& rules, const RuleLayout& layout, MembersId id) {
  const Rule& rule = *layout.rule;
  const Members& members = rule.members[id];
  MembersLayout out;
  out.steps.push_back({SearchStep::From::anchor, members.root, {}, {}, 0, {}, id});
  for (std::size_t done = 0; done < out.steps.size(); ++done) {
    PatternNodeId reader = out.steps[done].node;
    for (std::size_t i = 0; i < rule.nodes[reader].operands.size(); ++i) {
      PatternValueId v = rule.nodes[reader].operands[i];
      PatternNodeId producer = rule.values[v].producer;
      if (producer.valid() && rule.nodes[producer].members == id)
        out.steps.push_back(
            {SearchStep::From::producer, producer, v, reader, static_cast<int>(i), {}, {}});
    }
  }
  std::set<std::string> names, lists;
  std::set<PatternValueId> keys;
  for (std::size_t k = 0; k < members.nodes.size(); ++k) {
    const PatternNode& node = rule.nodes[members.nodes[k]];
    for (const std::string& name : layout.names[members.nodes[k]])
      (rule.lists.contains(name) ? lists : names).insert(name);
    for (const auto* values : {&node.operands, &node.results})
      for (PatternValueId v : *values)
        if (const PatternValue& value = rule.values[v];
            !value.list && !value.name.empty() && connects(value))
          keys.insert(v);
    const std::string& op = rules.context->ops[node.op].name;
    if (node.open && std::any_of(rule.replacement.begin(), rule.replacement.end(),
                                 [&](const Statement& s) { return copies(s.value, op); }))
      out.copied.push_back(k);
  }
  out.names.assign(names.begin(), names.end());
  out.lists.assign(lists.begin(), lists.end());
  out.keys.assign(keys.begin(), keys.end());
  out.common = common_slot(rule, id);
  return out;
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
    steps_ = &layout_.steps;
    pending_ = rule_.nodes[anchor].members;
    visit({SearchStep::From::anchor, anchor, {}, {}, 0, {}, pending_});
    while (next()) {
    }
    layout_.reached = reached();
    const auto matched = std::pair(visited_, bound_);
    layout_.unless.resize(rule_.unless.size());
    for (std::size_t i = 0; i < rule_.unless.size(); ++i) {
      std::tie(visited_, bound_) = matched;
      steps_ = &layout_.unless[i];
      while (next_absent(rule_.unless[i].nodes)) {
      }
      layout_.reached = layout_.reached && steps_->size() == rule_.unless[i].nodes.size();
    }
  }

 private:
  bool next() {
    SearchStep step;
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)
      if (single(PatternNodeId(i)) && producer_step(PatternNodeId(i), step)) return visit(step);
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)
      if (single(PatternNodeId(i)) && user_step(PatternNodeId(i), step)) return visit(step);
    if (pending_.valid()) {  // the anchor's own members, after the rest is known
      step = {SearchStep::From::members, rule_.members[pending_].root, {}, {}, 0, {}, pending_};
      pending_ = {};
      return visit(step);
    }
    for (std::size_t i = 0; i < rule_.members.size(); ++i)
      if (members_step(MembersId(i), step)) return visit(step);
    return false;
  }

  [[nodiscard]] bool single(PatternNodeId id) const {
    const PatternNode& node = rule_.nodes[id];
    return !visited_[id] && !node.members.valid() && node.negation < 0;
  }

  [[nodiscard]] bool reached() const {
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i)
      if (!visited_[PatternNodeId(i)] && rule_.nodes[PatternNodeId(i)].negation < 0) return false;
    return true;
  }

  bool members_step(MembersId id, SearchStep& step) const {
    const Members& members = rule_.members[id];
    if (visited_[members.root]) return false;
    if (members.kind == Members::Kind::many) {
      if (!user_step(members.root, step)) return false;
    } else {
      if (!visited_[members.reader]) return false;
      step = {SearchStep::From::members, members.root, {}, members.reader, 0, {}, {}};
    }
    step.from = SearchStep::From::members;
    step.members = id;
    return true;
  }

  bool next_absent(const std::vector<PatternNodeId>& nodes) {
    SearchStep step;
    for (PatternNodeId id : nodes) {
      if (visited_[id]) continue;
      for (PatternValueId v : rule_.nodes[id].results)
        if (bound_[v] && !rule_.values[v].list)
          return visit({SearchStep::From::producer, id, v, {}, 0, {}, {}});
    }
    for (PatternNodeId id : nodes)
      if (!visited_[id] && user_step(id, step)) return visit(step);
    return false;
  }

  bool producer_step(PatternNodeId id, SearchStep& step) const {
    // Nothing visited reads it: the steps need not be traversed.
    const std::vector<PatternValueId>& results = rule_.nodes[id].results;
    if (std::none_of(results.begin(), results.end(),
                     [&](PatternValueId v) { return bound_[v] || rule_.values[v].list; }))
      return false;
    for (const SearchStep& done : layout_.steps) {
      const bool members = done.from == SearchStep::From::members;
      const std::vector<PatternNodeId> one{done.node};
      for (PatternNodeId at : members ? rule_.members[done.members].nodes : one) {
        const std::vector<PatternValueId>& operands = rule_.nodes[at].operands;
        for (std::size_t i = 0; i < operands.size(); ++i) {
          if (rule_.values[operands[i]].producer != id) continue;
          const PatternNodeId reader = members ? rule_.members[done.members].reader : at;
          const PatternNodeId near = reader.valid() ? reader : at;
          step = {SearchStep::From::producer, id, operands[i], near, static_cast<int>(i), {}, {}};
          return true;
        }
      }
    }
    return false;
  }

  bool user_step(PatternNodeId id, SearchStep& step) const {
    step = {SearchStep::From::user, id, {}, {}, 0, {}, {}};
    const PatternNode& node = rule_.nodes[id];
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (bound_[node.operands[i]] && connects(rule_.values[node.operands[i]]))
        step.connectors.push_back(static_cast<int>(i));
    return !step.connectors.empty();
  }

  bool visit(const SearchStep& step) {
    const std::vector<PatternNodeId> one{step.node};
    bool members = step.members.valid();
    for (PatternNodeId id : members ? rule_.members[step.members].nodes : one) {
      visited_[id] = true;
      for (const auto* values : {&rule_.nodes[id].operands, &rule_.nodes[id].results})
        for (PatternValueId v : *values) {
          const PatternNodeId maker = rule_.values[v].producer;
          const bool made = maker.valid() && rule_.nodes[maker].members.valid();
          bound_[v] = !rule_.values[v].list || (!members && !made);
        }
    }
    steps_->push_back(step);
    return true;
  }

  RuleLayout& layout_;
  const Rule& rule_;
  std::vector<SearchStep>* steps_ = nullptr;
  MembersId pending_;
  IdVec<PatternNodeId, char> visited_;
  IdVec<PatternValueId, char> bound_;
};

/// Returns true if everything matched can be found from the node: operands of a reader are members
/// only after it.
bool reaches_all(const Rule& rule, PatternNodeId anchor) {
  std::vector<bool> node(rule.nodes.size()), value(rule.values.size());
  const auto visit = [&](PatternNodeId id) {
    node[id.index] = true;
    for (const auto* values : {&rule.nodes[id].operands, &rule.nodes[id].results})
      for (PatternValueId v : *values) value[v.index] = value[v.index] || !rule.values[v].list;
  };
  const auto found = [&](PatternNodeId id) {
    const PatternNode& wanted = rule.nodes[id];
    const auto bound = [&](PatternValueId v) { return value[v.index] && connects(rule.values[v]); };
    return std::any_of(wanted.results.begin(), wanted.results.end(), bound) ||
           std::any_of(wanted.operands.begin(), wanted.operands.end(), bound);
  };
  visit(anchor);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
      const PatternNodeId id(i);
      if (node[i] || rule.nodes[id].members.valid() || rule.nodes[id].negation >= 0) continue;
      if (found(id)) visit(id), changed = true;
    }
    for (const Members& members : rule.members) {
      if (node[members.root.index]) continue;
      const bool many = members.kind == Members::Kind::many;
      if (many ? !found(members.root) : !node[members.reader.index]) continue;
      for (PatternNodeId id : members.nodes) visit(id);
      changed = true;
    }
  }
  for (std::size_t i = 0; i < rule.nodes.size(); ++i)
    if (!node[i] && rule.nodes[PatternNodeId(i)].negation < 0) return false;
  return true;
}

}  // namespace

PatternNodeId anchor_of(const Rule& rule) {
  PatternNodeId first;
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    if (!node.own() || node.members.valid()) continue;
    if (rule.members.empty() || reaches_all(rule, PatternNodeId(i))) return PatternNodeId(i);
    if (!first.valid()) first = PatternNodeId(i);
  }
  if (first.valid()) return first;
  for (const Members& members : rule.members)
    if (members.kind == Members::Kind::many && rule.nodes[members.root].own()) return members.root;
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

RuleLayout lay_out(const RunRules& rules, RuleId id) {
  RuleLayout layout;
  layout.rule = &rules[id];
  layout.id = id;
  note_kinds(layout);
  note_roles(layout);
  note_reads(layout);
  note_names(layout);
  note_compared(layout);
  for (std::size_t i = 0; i < layout.rule->members.size(); ++i)
    layout.members.push_back(lay_out_members(rules.set(), layout, MembersId(i)));
  Orderer(layout).run();
  layout.way_back = find_ways_back(rules.set(), *layout.rule, anchor_of(*layout.rule));
  return layout;
}

}  // namespace pw

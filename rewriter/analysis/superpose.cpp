// For each pair of nodes of one op that both rules replace, the two are
// identified, and the consequences are drawn until none is left:
//  * results and operands of identified nodes are united (union-find over the values of both
//    patterns); a commutative node branches into both orders of its first two operands;
//  * two nodes, one of each pattern, that make one united value must be the same node;
//  * a consumed value has no user outside its rule, so that a user in the other pattern must be one
//    of its own: one branch for each that it could be.
//
// A state fails where a node would be two of the other pattern's, or a value would have two
// producers, two literals, or be another result of its node. What is left is emitted once (by its
// classes of values) as one pattern in topological order, with the guards of both.
//
// The branches are exponential in the worst case, so that they are bounded: 32 for each pair,
// SuperposeLimits::ways results, and a count of steps that makes the result `complete = false`.
#include "rewriter/analysis/superpose.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "algebra/union_find.hpp"
#include "rewriter/analysis/freeze.hpp"

namespace pw {
namespace {

using Pair = std::pair<PatternNodeId, PatternNodeId>;

struct State {
  UnionFind<std::uint32_t> values;  // those of a, then those of b
  std::vector<PatternNodeId> to_a, to_b;
  std::vector<Pair> pending;
};

/// Adds a tick to every name local to b; no text can contain it.
class Tick {
 public:
  explicit Tick(const RuleSet& rules) : rules_(rules) {}

  std::string operator()(const std::string& name) const {
    if (name.empty() || name == "_" || dtype_named(name) || rules_.params.count(name) != 0)
      return name;
    const std::size_t dot = std::min(name.find('.'), name.size());
    return name.substr(0, dot) + "'" + name.substr(dot);
  }
  void apply(Expr& expr) const {
    if (expr.kind == Expr::Kind::path || expr.kind == Expr::Kind::star)
      expr.text = (*this)(expr.text);
    for (Expr& arg : expr.args) apply(arg);
    for (TypeExpr& type : expr.type) apply(type);
  }
  void apply(TypeExpr& type) const {
    for (Expr& dtype : type.dtype) apply(dtype);
    for (Expr& dim : type.dims) apply(dim);
  }

 private:
  const RuleSet& rules_;
};

class Superposer {
 public:
  Superposer(const RuleSet& rules, RuleId a, RuleId b, const SuperposeLimits& limits)
      : rules_(rules), a_(rules.rules[a]), b_(rules.rules[b]), same_(a == b), limits_(limits) {}

  Superpositions run() {
    for (std::size_t i = 0; i < a_.nodes.size(); ++i)
      for (std::size_t j = same_ ? i : 0; j < b_.nodes.size(); ++j)
        seed(PatternNodeId(i), PatternNodeId(j));
    return std::move(out_);
  }

 private:
  void seed(PatternNodeId i, PatternNodeId j) {
    if (!a_.nodes[i].own() || !b_.nodes[j].own() || a_.nodes[i].op != b_.nodes[j].op) return;
    State state;
    state.values.grow(a_.values.size() + b_.values.size());
    state.to_a.resize(b_.nodes.size());
    state.to_b.resize(a_.nodes.size());
    state.pending = {{i, j}};
    first_ = {i, j};
    branches_ = 0;
    explore(std::move(state));
  }

  [[nodiscard]] std::uint32_t in_b(PatternValueId v) const {
    return static_cast<std::uint32_t>(a_.values.size()) + v.index;
  }

  void explore(State state) {
    if (++branches_ > 32 || out_.ways.size() >= limits_.ways || !out_.complete) return;
    out_.steps += a_.nodes.size() + b_.nodes.size();
    out_.complete = out_.steps <= limits_.steps;
    do {
      while (!state.pending.empty()) {
        const auto [i, j] = state.pending.back();
        state.pending.pop_back();
        if (!identify(state, i, j)) return;
      }
      if (!find_forced(state)) return;
    } while (!state.pending.empty());
    if (close(state)) emit(state);
  }

  bool identify(State& state, PatternNodeId i, PatternNodeId j) {
    if (state.to_b[i.index] == j && state.to_a[j.index] == i) return true;
    if (state.to_b[i.index].valid() || state.to_a[j.index].valid()) return false;
    const PatternNode& a = a_.nodes[i];
    const PatternNode& b = b_.nodes[j];
    if (a.op != b.op || a.operands.size() != b.operands.size() ||
        a.results.size() != b.results.size())
      return false;
    state.to_b[i.index] = j;
    state.to_a[j.index] = i;
    for (std::size_t k = 0; k < a.results.size(); ++k)
      state.values.join(a.results[k].index, in_b(b.results[k]));
    if (rules_.context->ops[a.op].traits.commutative && a.operands.size() >= 2) {
      State swapped = state;
      unite_operands(swapped, a, b, true);
      explore(std::move(swapped));
    }
    unite_operands(state, a, b, false);
    return true;
  }

  void unite_operands(State& state, const PatternNode& a, const PatternNode& b, bool swap) const {
    for (std::size_t k = 0; k < a.operands.size(); ++k) {
      const std::size_t other = swap && k < 2 ? 1 - k : k;
      state.values.join(a.operands[k].index, in_b(b.operands[other]));
    }
  }

  /// Merges two nodes that make one value; returns false if that is impossible.
  bool find_forced(State& state) const {
    std::vector<PatternNodeId> makes_a(state.values.size()), makes_b(state.values.size());
    std::vector<int> result(state.values.size(), -1);
    const auto place = [&](std::uint32_t value, int index) {
      int& known = result[state.values.root(value)];
      const bool fits = known < 0 || known == index;
      known = index;
      return fits;
    };
    for (std::size_t i = 0; i < a_.nodes.size(); ++i)
      for (std::size_t k = 0; k < a_.nodes[PatternNodeId(i)].results.size(); ++k) {
        const std::uint32_t v = a_.nodes[PatternNodeId(i)].results[k].index;
        PatternNodeId& maker = makes_a[state.values.root(v)];
        if ((maker.valid() && maker != PatternNodeId(i)) || !place(v, static_cast<int>(k)))
          return false;
        maker = PatternNodeId(i);
      }
    for (std::size_t j = 0; j < b_.nodes.size(); ++j)
      for (std::size_t k = 0; k < b_.nodes[PatternNodeId(j)].results.size(); ++k) {
        const std::uint32_t v = in_b(b_.nodes[PatternNodeId(j)].results[k]);
        PatternNodeId& maker = makes_b[state.values.root(v)];
        if ((maker.valid() && maker != PatternNodeId(j)) || !place(v, static_cast<int>(k)))
          return false;
        maker = PatternNodeId(j);
      }
    for (std::size_t v = 0; v < state.values.size(); ++v)
      if (makes_a[v].valid() && makes_b[v].valid() && state.to_b[makes_a[v].index] != makes_b[v])
        state.pending.emplace_back(makes_a[v], makes_b[v]);
    return true;
  }

  /// Nodes of one rule that read a value and are not nodes of the other, by the value's root.
  using Readers = std::vector<std::vector<PatternNodeId>>;
  [[nodiscard]] Readers readers(const State& state, bool of_b) const {
    const Rule& rule = of_b ? b_ : a_;
    Readers out(state.values.size());
    for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
      if ((of_b ? state.to_a : state.to_b)[i].valid()) continue;
      for (PatternValueId operand : rule.nodes[PatternNodeId(i)].operands) {
        std::vector<PatternNodeId>& nodes =
            out[state.values.root(of_b ? in_b(operand) : operand.index)];
        if (nodes.empty() || nodes.back() != PatternNodeId(i)) nodes.emplace_back(i);
      }
    }
    return out;
  }

  /// Closes consumed values. Such a value has no reader outside its rule, so a reader of the other
  /// rule must equal one of its own. Returns false if it cannot, or if branches were followed
  /// instead.
  bool close(const State& state) {
    const Readers over_a = readers(state, false), over_b = readers(state, true);
    for (PatternValueId v : a_.consumed) {
      const std::uint32_t root = state.values.root(v.index);
      if (over_b[root].empty()) continue;
      for (PatternNodeId i : over_a[root]) follow(state, i, over_b[root].front());
      return false;
    }
    for (PatternValueId v : b_.consumed) {
      const std::uint32_t root = state.values.root(in_b(v));
      if (over_a[root].empty()) continue;
      for (PatternNodeId j : over_b[root]) follow(state, over_a[root].front(), j);
      return false;
    }
    return true;
  }
  void follow(State state, PatternNodeId i, PatternNodeId j) {
    state.pending = {{i, j}};
    explore(std::move(state));
  }

  void emit(const State& state) {
    bool everything = same_;
    for (std::size_t i = 0; same_ && i < a_.nodes.size(); ++i)
      everything = everything && state.to_b[i] == PatternNodeId(i);
    std::vector<std::uint32_t> key;
    for (std::uint32_t v = 0; v < state.values.size(); ++v) key.push_back(state.values.root(v));
    for (PatternNodeId n : state.to_a) key.push_back(n.index);
    if (everything || !seen_.insert(key).second) return;
    if (std::optional<Superposition> made = merged(state)) out_.ways.push_back(std::move(*made));
  }

  std::optional<Superposition> merged(const State& state) const {
    Superposition out;
    out.shared_a = first_.first;
    out.shared_b = first_.second;
    std::vector<PatternValueId> value_of(state.values.size());
    if (!add_values(state, out.pattern, value_of)) return std::nullopt;
    std::vector<PatternNode> nodes = nodes_of(state, value_of);
    const std::vector<std::size_t> order = sorted(nodes);
    if (order.size() != nodes.size()) return std::nullopt;
    std::vector<PatternNodeId> place(nodes.size());
    for (std::size_t i : order) place[i] = out.pattern.nodes.push_back(std::move(nodes[i]));
    out.of_a.assign(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(a_.nodes.size()));
    std::size_t next = a_.nodes.size();
    for (std::size_t j = 0; j < b_.nodes.size(); ++j)
      out.of_b.push_back(state.to_a[j].valid() ? place[state.to_a[j].index] : place[next++]);
    set_producers(out.pattern);
    add_guards(out.pattern);
    set_visible(value_of, out);
    return out;
  }

  bool add_values(const State& state, Rule& out, std::vector<PatternValueId>& value_of) const {
    const Tick tick(rules_);
    for (std::uint32_t v = 0; v < state.values.size(); ++v) {
      const bool of_b = v >= a_.values.size();
      PatternValue value =
          of_b ? b_.values[PatternValueId(v - a_.values.size())] : a_.values[PatternValueId(v)];
      if (of_b) {
        value.name = tick(value.name);
        for (TypeExpr& type : value.types) tick.apply(type);
      }
      const std::uint32_t root = state.values.root(v);
      if (root == v) {
        value_of[v] = out.values.push_back(std::move(value));
        continue;
      }
      value_of[v] = value_of[root];
      if (!merge(out.values[value_of[v]], value)) return false;
    }
    return true;
  }

  /// Merges two descriptions of one value.
  static bool merge(PatternValue& into, const PatternValue& from) {
    if (into.literal && from.literal && !(*into.literal == *from.literal)) return false;
    const bool number =
        into.literal || from.literal || into.attribute_variable || from.attribute_variable;
    const bool made = into.producer.valid() || from.producer.valid();
    const bool none = into.literal_none || from.literal_none;
    if ((number && (made || none)) || (none && made)) return false;
    if (none && !((into.literal_none || into.optional) && (from.literal_none || from.optional)))
      return false;
    if (into.attribute_variable && from.attribute_variable) return false;  // two names, one number
    if (from.attribute_variable) into.name = from.name;
    into.attribute_variable = into.attribute_variable || from.attribute_variable;
    if (!into.literal) into.literal = from.literal;
    if (!into.producer.valid()) into.producer = from.producer;
    into.literal_none = none;
    into.optional = into.optional && from.optional;
    if (into.name.empty() || into.name == "_") into.name = from.name;
    into.types.insert(into.types.end(), from.types.begin(), from.types.end());
    return true;
  }

  /// Returns the nodes of a, then those of b that are not nodes of a; attributes of both.
  std::vector<PatternNode> nodes_of(const State& state,
                                    const std::vector<PatternValueId>& value_of) const {
    const Tick tick(rules_);
    std::vector<PatternNode> out;
    for (const PatternNode& node : a_.nodes) {
      out.push_back(node);
      for (PatternValueId& v : out.back().operands) v = value_of[v.index];
      for (PatternValueId& v : out.back().results) v = value_of[v.index];
    }
    for (std::size_t j = 0; j < b_.nodes.size(); ++j) {
      PatternNode node = b_.nodes[PatternNodeId(j)];
      for (PatternAttribute& attribute : node.attributes) tick.apply(attribute.value);
      for (PatternValueId& v : node.operands) v = value_of[in_b(v)];
      for (PatternValueId& v : node.results) v = value_of[in_b(v)];
      if (!state.to_a[j].valid()) {
        out.push_back(std::move(node));
        continue;
      }
      PatternNode& one = out[state.to_a[j].index];
      one.open = one.open && node.open;
      one.attributes.insert(one.attributes.end(), node.attributes.begin(), node.attributes.end());
    }
    return out;
  }

  /// Sorts operands before users, otherwise stably; incomplete if there is a cycle. The order
  /// equals that of repeated sweeps: a node waits for the sweep in which its last producer is
  /// emitted.
  static std::vector<std::size_t> sorted(const std::vector<PatternNode>& nodes) {
    std::map<PatternValueId, std::size_t> makers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (PatternValueId made : nodes[i].results) makers.emplace(made, i);
    std::vector<std::size_t> missing(nodes.size()), sweep(nodes.size()), out;
    std::vector<std::vector<std::size_t>> users(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (PatternValueId operand : nodes[i].operands)
        if (const auto maker = makers.find(operand); maker != makers.end()) {
          users[maker->second].push_back(i);
          ++missing[i];
        }
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (missing[i] == 0) out.push_back(i);
    for (std::size_t at = 0; at < out.size(); ++at)
      for (std::size_t user : users[out[at]]) {
        sweep[user] = std::max(sweep[user], sweep[out[at]] + (out[at] > user ? 1 : 0));
        if (--missing[user] == 0) out.push_back(user);
      }
    std::sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(sweep[a], a) < std::pair(sweep[b], b);
    });
    return out;
  }

  static void set_producers(Rule& out) {
    for (std::size_t i = 0; i < out.nodes.size(); ++i) {
      const std::vector<PatternValueId>& results = out.nodes[PatternNodeId(i)].results;
      for (std::size_t k = 0; k < results.size(); ++k) {
        out.values[results[k]].producer = PatternNodeId(i);
        out.values[results[k]].result = static_cast<int>(k);
      }
    }
  }

  void add_guards(Rule& out) const {
    const Tick tick(rules_);
    out.where = a_.where;
    for (Expr guard : b_.where) {
      tick.apply(guard);
      out.where.push_back(std::move(guard));
    }
    out.constants = a_.constants;
    for (const auto& [name, binding] : b_.constants) out.constants.emplace(tick(name), binding);
  }

  void set_visible(const std::vector<PatternValueId>& value_of, Superposition& out) const {
    std::set<PatternValueId> consumed;
    for (PatternValueId v : a_.consumed) consumed.insert(value_of[v.index]);
    for (PatternValueId v : b_.consumed) consumed.insert(value_of[in_b(v)]);
    const auto show = [&](PatternValueId v) {
      if (consumed.insert(v).second) out.visible.push_back(v);
    };
    for (PatternValueId v : visible_values(a_)) show(value_of[v.index]);
    for (PatternValueId v : visible_values(b_)) show(value_of[in_b(v)]);
  }

  const RuleSet& rules_;
  const Rule& a_;
  const Rule& b_;
  bool same_;
  SuperposeLimits limits_;
  std::size_t branches_ = 0;
  Pair first_;
  std::set<std::vector<std::uint32_t>> seen_;
  Superpositions out_;
};

}  // namespace

Superpositions superpose(const RuleSet& rules, RuleId a, RuleId b, const SuperposeLimits& limits) {
  return Superposer(rules, a, b, limits).run();
}

}  // namespace pw

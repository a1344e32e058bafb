// Random graphs over the ops of a random set of rules.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/build.hpp"
#include "tests/rewriter/random_rules.hpp"

namespace pw::test {

/// Grows a graph of f32[k, 4] node by node; operands are more often the latest values.
class GraphWriter {
 public:
  GraphWriter(const World& world, std::size_t count, const Alphabet& alphabet, std::uint64_t seed)
      : context_(*world.context),
        rules_(world.rules),
        count_(count),
        alphabet_(alphabet),
        random_(seed),
        graph_(world.context) {}

  Graph run() {
    for (const char* name : {"a", "b", "c"}) {
      const auto rows = static_cast<std::int64_t>(1 + random_.below(3));
      const DimId four = context_.dims.constant(4);
      const TypeId type = context_.types.get(DType::f32, {context_.dims.constant(rows), four});
      values_.push_back(graph_.add_input(name, type, InputKind::input));
    }
    const std::size_t size = 5 + random_.below(25);
    const std::size_t planted = 1 + random_.below(5);
    for (std::size_t i = 0; i < size; ++i) {
      grow();
      if (random_.below(size) < planted) plant();
    }
    for (std::size_t i = 0; i < 3; ++i) graph_.add_output(values_[values_.size() - 1 - i]);
    return std::move(graph_);
  }

 private:
  static constexpr std::int64_t kMostRows = 12;

  ValueId near() {
    const std::size_t near = std::min<std::size_t>(values_.size(), 5);
    return values_[values_.size() - 1 -
                   random_.below(random_.below(3) == 0 ? values_.size() : near)];
  }
  /// One of the same type; itself where there is no other.
  ValueId like(ValueId value) {
    std::vector<ValueId> fit;
    for (ValueId v : values_)
      if (graph_.type(v) == graph_.type(value)) fit.push_back(v);
    return random_.below(3) == 0
               ? fit[random_.below(fit.size())]
               : fit[fit.size() - 1 - random_.below(std::min<std::size_t>(fit.size(), 4))];
  }
  std::int64_t rows(ValueId v) const {
    return *context_.dims.value(context_.types[graph_.type(v)].shape.front());
  }

  void grow() {
    switch (random_.below(12)) {
      case 0: {
        const ValueId a = near();
        return add("tag", {a}, 1, {{"k", static_cast<std::int64_t>(random_.below(2))}});
      }
      case 1: return add("pair", {near()}, 2, {});
      case 2:
      case 3: return random_.below(2) == 0 ? join() : part();
      case 4:
      case 5:
      case 6:
      case 7: {
        const char* op = alphabet_.binary[random_.below(2)];
        const ValueId a = near();
        return add(op, {a, like(a)}, 1, {});
      }
      default: {
        const char* op = alphabet_.unary[random_.below(3)];
        return add(op, {near()}, 1, {});
      }
    }
  }

  void join() {
    std::vector<ValueId> operands;
    std::int64_t sum = 0;
    const std::size_t count = 1 + random_.below(3);
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId v = near();
      if (sum + rows(v) > kMostRows) break;
      sum += rows(v);
      operands.push_back(v);
    }
    if (!operands.empty()) add("cat", operands, 1, {{"dim", std::int64_t{0}}});
  }

  Shape partition(std::int64_t rows) {
    Shape sizes;
    while (rows > 0) {
      const auto size =
          static_cast<std::int64_t>(1 + random_.below(static_cast<std::uint64_t>(rows)));
      sizes.push_back(context_.dims.constant(size));
      rows -= size;
    }
    return sizes;
  }

  void part() {
    const ValueId v = near();
    Shape sizes = partition(rows(v));
    const std::size_t results = sizes.size();
    add("split", {v}, results, {{"dim", std::int64_t{0}}, {"sizes", std::move(sizes)}});
    // Parts are put together again, in order or not.
    if (random_.below(2) != 0) return;
    std::vector<ValueId> parts(values_.end() - static_cast<std::ptrdiff_t>(results), values_.end());
    if (random_.below(4) == 0) std::swap(parts.front(), parts.back());
    if (random_.below(3) == 0)
      for (ValueId& p : parts) {
        add(alphabet_.unary[0], {p}, 1, {});
        p = values_.back();
      }
    add("cat", parts, 1, {{"dim", std::int64_t{0}}});
  }

  using Named = std::vector<std::pair<const char*, Attribute>>;

  Result<NodeId> try_add(const std::string& op, std::vector<ValueId> operands, std::size_t results,
                         Named attributes) {
    NodeRequest request;
    request.op = context_.ops.find(op);
    request.operands = std::move(operands);
    for (auto& [name, value] : attributes)
      request.attributes.emplace_back(context_.strings.intern(name), std::move(value));
    request.result_names.assign(results, "");
    const Result<NodeId> node = build_node(graph_, request);
    for (std::size_t k = 0; node && k < results; ++k) values_.push_back(graph_.result(*node, k));
    return node;
  }
  void add(const std::string& op, std::vector<ValueId> operands, std::size_t results,
           Named attributes) {
    const Result<NodeId> node = try_add(op, std::move(operands), results, std::move(attributes));
    if (!node) FAIL(render(node.error(), context_.sources));
  }

  // ---- what a rule looks for

  using Planted = std::map<PatternValueId, std::vector<ValueId>>;

  /// Nodes like those of a pattern, most of the time whole: what is not fixed by it is drawn.
  void plant() {
    const std::vector<RuleId> variants = rules_.resolve(fmt::format("r{}", random_.below(count_)));
    const Rule& rule = rules_.rules[variants[random_.below(variants.size())]];
    if (rule.frontier) return;
    Planted planted;
    std::vector<char> done(rule.nodes.size(), 0);
    for (std::size_t left = rule.nodes.size() + 1; left > 0; --left)
      for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
        const PatternNodeId id(i);
        const PatternNode& node = rule.nodes[id];
        if (done[i] != 0 || !ready(rule, node, done)) continue;
        done[i] = 1;
        if (node.negation >= 0 && random_.below(3) != 0) continue;
        const bool many = node.members.valid();
        if (!many && !plant_node(rule, node, planted)) return;
        if (many && rule.members[node.members].root == id)
          for (std::size_t k = 1 + random_.below(3); k > 0; --k)
            if (!plant_member(rule, node.members, planted)) return;
      }
  }

  /// Whether all that the node reads is there; of members, whether the node is the root.
  bool ready(const Rule& rule, const PatternNode& node, const std::vector<char>& done) const {
    for (PatternValueId v : node.operands) {
      const PatternNodeId producer = rule.values[v].producer;
      if (!producer.valid() || done[producer.index] != 0) continue;
      if (!node.members.valid() || rule.nodes[producer].members != node.members) return false;
    }
    return true;
  }

  bool plant_member(const Rule& rule, MembersId id, Planted& planted) {
    const Members& members = rule.members[id];
    const auto differs = [&](PatternValueId v) {  // from member to member
      const PatternValue& value = rule.values[v];
      return value.list || (value.producer.valid() && rule.nodes[value.producer].members == id);
    };
    Planted member;
    for (const auto& [v, values] : planted)
      if (!differs(v)) member[v] = values;
    for (std::size_t i = members.nodes.size(); i-- > 0;)
      if (!plant_node(rule, rule.nodes[members.nodes[i]], member)) return false;
    for (const auto& [v, values] : member) {
      std::vector<ValueId>& known = planted[v];
      if (differs(v) || known.empty()) known.insert(known.end(), values.begin(), values.end());
    }
    return true;
  }

  bool plant_node(const Rule& rule, const PatternNode& node, Planted& planted) {
    std::vector<ValueId> operands;
    for (PatternValueId v : node.operands) {
      const PatternValue& value = rule.values[v];
      if (value.literal || value.literal_none || value.attribute_variable) return false;
      std::vector<ValueId>& bound = planted[v];
      const std::size_t count = value.list && !node.members.valid() ? 1 + random_.below(3) : 1;
      const bool joins = context_.ops[node.op].name == "cat";
      while (bound.size() < count && !(joins && !bound.empty() && !value.list))
        bound.push_back(operands.empty() || joins ? near() : like(operands.front()));
      operands.insert(operands.end(), bound.begin(), bound.end());
    }
    const std::string& op = context_.ops[node.op].name;
    Named attributes;
    if (op == "tag") attributes = {{"k", static_cast<std::int64_t>(random_.below(2))}};
    if (op == "cat" || op == "split") attributes = {{"dim", std::int64_t{0}}};
    if (op == "cat") {
      std::int64_t sum = 0;
      for (ValueId v : operands) sum += rows(v);
      if (sum > kMostRows) return false;
    }
    std::size_t results = node.results.size();
    if (op == "split") {
      Shape sizes = partition(rows(operands.front()));
      results = sizes.size();
      attributes.emplace_back("sizes", std::move(sizes));
    }
    if (!try_add(op, operands, results, std::move(attributes))) return false;
    for (std::size_t i = 0; i < results; ++i)
      planted[node.results[std::min(i, node.results.size() - 1)]].push_back(
          values_[values_.size() - results + i]);
    return true;
  }

  Context& context_;
  const RuleSet& rules_;
  std::size_t count_;  ///< of the rules as written
  const Alphabet& alphabet_;
  Random random_;
  Graph graph_;
  std::vector<ValueId> values_;
};

/// For a world of the rules; what they look for is in it here and there.
inline Graph random_graph(const World& world, const RandomRules& rules, std::uint64_t seed) {
  return GraphWriter(world, rules.rules.size(), rules.alphabet, seed).run();
}

}  // namespace pw::test

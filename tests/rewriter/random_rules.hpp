// Random sets of rules and random graphs over a few ops, from a seed.
#pragma once

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "tests/rewriter/fixture.hpp"

namespace pw::test {

inline constexpr const char* kRandomOps = R"(
op pair(x: T[*s]) -> (p: T[*s], q: T[*s])
op both(x: T[*s], z: T[*s]) -> (p: T[*s], q: T[*s])
op tag(x: T[*s]) {k: int = 0} -> T[*s]
)";

/// Writes rules whose left sides are small connected graphs: one to three roots, shared nodes,
/// given nodes, optional nodes, guards, attributes; the right side makes fewer nodes, or other
/// ones.
class RuleWriter {
 public:
  explicit RuleWriter(std::uint64_t seed) : random_(seed * 7919 + 17) {}

  std::string run() {
    std::string out = kRandomOps;
    std::string names;
    const std::size_t count = 1 + random_.below(5);
    for (std::size_t i = 0; i < count; ++i) {
      out += rule(i);
      names += (i == 0 ? "r" : ", r") + std::to_string(i);
    }
    out += "pass fixpoint = greedy { " + names + " } fuel 60\n";
    out += "pass sweep = walk { " + names + " } fuel 60\n";
    out += "pass single = once { " + names + " } fuel 60\n";
    return out;
  }

 private:
  struct Made {
    std::string name;
    bool read = false, given = false, pair = false;
  };

  std::string pick(std::initializer_list<const char*> from) {
    return *(from.begin() + random_.below(from.size()));
  }

  /// A value to read: an input or a result made before, the latest more often.
  std::string operand(bool fresh_allowed) {
    const bool old = !made_.empty() && (random_.below(3) != 0 || !fresh_allowed);
    if (old) {
      Made& m = random_.below(2) == 0 ? made_.back() : made_[random_.below(made_.size())];
      m.read = true;
      return m.name;
    }
    if (!inputs_.empty() && random_.below(3) == 0) return inputs_[random_.below(inputs_.size())];
    inputs_.push_back("x" + std::to_string(inputs_.size()));
    return inputs_.back();
  }

  std::string call(const std::string& a) {
    switch (random_.below(8)) {
      case 0: return "tag(" + a + "){k = " + std::to_string(random_.below(2)) + "}";
      case 1: return "tag(" + a + "){..}";
      case 2:
      case 3: return pick({"add", "mul"}) + "(" + a + ", " + operand(true) + ")";
      case 4: return "sub(" + a + ", " + operand(true) + ")";
      case 5: return pick({"relu", "abs"}) + "(neg(" + a + "))";
      default: return pick({"relu", "neg", "abs", "sin", "cos"}) + "(" + a + ")";
    }
  }

  std::string rule(std::size_t index) {
    made_.clear();
    inputs_.clear();
    std::string body, given;
    const std::size_t nodes = 1 + random_.below(4);
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::string name = "v" + std::to_string(i);
      const std::string statement = name + " = " + call(operand(i == 0));
      const bool is_given = nodes > 1 && i == 0 && random_.below(5) == 0;
      (is_given ? given : body) += "  " + statement + "\n";
      made_.push_back({name, false, is_given, false});
    }
    std::string out = "rule r" + std::to_string(index);
    if (index > 0 && random_.below(4) == 0) out += " over r" + std::to_string(random_.below(index));
    out += " {\n";
    if (!given.empty()) out += "  given {\n" + given + "  }\n";
    out += body + "  =>\n" + right_side() + "}\n";
    return out;
  }

  /// Roots are rebound, sometimes an inner value too.
  std::string right_side() {
    std::string out;
    std::vector<std::string> outputs;
    for (const Made& m : made_)
      if (!m.given && (!m.read || random_.below(5) == 0)) outputs.push_back(m.name);
    if (outputs.empty()) outputs.push_back(made_.back().name);
    const auto input = [&]() -> std::string {
      return inputs_.empty() ? std::string("1.0") : inputs_[random_.below(inputs_.size())];
    };
    if (outputs.size() == 2 && inputs_.size() >= 1 && random_.below(2) == 0)
      return "  " + outputs[0] + ", " + outputs[1] + " = both(" + inputs_.front() + ", " +
             inputs_.back() + ")\n";
    for (const std::string& o : outputs) {
      switch (random_.below(5)) {
        case 0: out += "  " + o + " = " + input() + "\n"; break;
        case 1: out += "  " + o + " = sin(" + input() + ")\n"; break;
        case 2: out += "  " + o + " = tag(" + input() + "){k = 1}\n"; break;
        case 3: out += "  " + o + " = mul(" + input() + ", " + input() + ")\n"; break;
        default: out += "  " + o + " = cos(neg(" + input() + "))\n"; break;
      }
    }
    return out;
  }

  Random random_;
  std::vector<Made> made_;
  std::vector<std::string> inputs_;
};

/// The first set from the seed on that the checks let through.
inline std::string random_rules(std::uint64_t seed) {
  for (std::uint64_t salt = 0;; ++salt) {
    std::string text = RuleWriter(seed * 1000 + salt).run();
    const ContextPtr context = std::make_shared<Context>();
    if (load_rule_texts(context, {{"rules.pwr", text}})) return text;
    if (salt == 900) FAIL("no valid set of rules from seed " << seed << "\n" << text);
  }
}

inline Graph random_graph(const World& world, std::uint64_t seed) {
  Random random(seed);
  Graph g(world.context);
  const TypeId type = world.context->types.get(DType::f32, {world.context->dims.constant(8)});
  std::vector<ValueId> values{g.add_input("a", type, InputKind::input),
                              g.add_input("b", type, InputKind::input)};
  const char* ops[] = {"relu", "neg", "abs", "sin", "cos", "tag", "pair", "add", "sub", "mul"};
  const std::size_t size = 5 + random.below(25);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t which = random.below(std::size(ops));
    NodeRequest request;
    request.op = world.context->ops.find(ops[which]);
    for (std::size_t k = 0; k < (which < 7 ? 1u : 2u); ++k) {
      const std::size_t near = std::min<std::size_t>(values.size(), 4);
      request.operands.push_back(
          values[values.size() - 1 - random.below(random.below(4) == 0 ? values.size() : near)]);
    }
    if (which == 5)
      request.attributes.emplace_back(world.context->strings.intern("k"),
                                      static_cast<std::int64_t>(random.below(2)));
    request.result_names = {""};
    if (which == 6) request.result_names = {"", ""};
    const Result<NodeId> node = build_node(g, request);
    REQUIRE(node);
    for (std::size_t k = 0; k < g.result_count(*node); ++k) values.push_back(g.result(*node, k));
  }
  for (std::size_t i = 0; i < 3; ++i) g.add_output(values[values.size() - 1 - i]);
  return g;
}

}  // namespace pw::test

// The nodes of a pattern match distinct nodes, and two that compute the same are one node after
// common subexpression elimination, so that such a pattern then never matches.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "dsl/check/check.hpp"
#include "dsl/syntax/suggest.hpp"
#include "graph/text/text.hpp"

namespace pw {
namespace {

class EqualNodes {
 public:
  EqualNodes(const CheckedRule& checked, Diagnostics& out)
      : rule_(*checked.rule), checked_(checked), out_(out) {}

  void run() {
    std::map<std::string, PatternNodeId> first;
    for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
      const PatternNodeId id(i);
      if (!compares(rule_.nodes[id])) continue;
      const auto [known, fresh] = first.emplace(key(rule_.nodes[id]), id);
      if (fresh) continue;
      const PatternNode &a = rule_.nodes[known->second], &b = rule_.nodes[id];
      for (std::size_t k = 0; k < a.results.size() && k < b.results.size(); ++k)
        same_as_[b.results[k]] = a.results[k];
      if (!merges(a, b)) report(a, b);
    }
  }

 private:
  /// Returns true if nodes can be compared: attributes left open by `..` may differ, and so may
  /// effects.
  [[nodiscard]] bool compares(const PatternNode& node) const {
    const Op& op = checked_.context.ops[node.op];
    return node.negation < 0 && !node.members.valid() && !node.open && !op.imported &&
           !op.traits.effect && !node.operands.empty();
  }

  [[nodiscard]] std::string key(const PatternNode& node) const {
    std::vector<std::string> operands;
    for (PatternValueId v : node.operands) operands.push_back(name_of(v));
    if (checked_.context.ops[node.op].traits.commutative && operands.size() > 1 &&
        operands[1] < operands[0])
      std::swap(operands[0], operands[1]);
    std::vector<std::string> attributes;
    for (const PatternAttribute& a : node.attributes)
      attributes.push_back(a.name + " = " + print(a.value));
    std::sort(attributes.begin(), attributes.end());
    std::string out = std::to_string(node.op.index);
    for (const auto* parts : {&operands, &attributes})
      for (const std::string& part : *parts) out += "\n" + part;
    return out;
  }

  [[nodiscard]] std::string name_of(PatternValueId id) const {
    const PatternValue& value = rule_.values[id];
    if (value.literal) return "= " + checked_.context.attributes.print(*value.literal);
    if (value.literal_none) return "none";
    const auto same = same_as_.find(id);
    return fmt::format("{}", same == same_as_.end() ? id.index : same->second.index);
  }

  /// Returns true if a rule binds the results of both nodes again, and so merges them.
  [[nodiscard]] bool merges(const PatternNode& a, const PatternNode& b) const {
    const auto rebound = [&](const PatternNode& node) {
      return std::any_of(node.results.begin(), node.results.end(), [&](PatternValueId v) {
        return std::find(rule_.outputs.begin(), rule_.outputs.end(), rule_.values[v].name) !=
               rule_.outputs.end();
      });
    };
    return rebound(a) && rebound(b);
  }

  void report(const PatternNode& a, const PatternNode& b) {
    Diagnostic d = warning_at(
        b.span, "PW0289",
        "this is " + in_ticks(checked_.context.ops[b.op].name) +
            " of the same operands twice, which requires two nodes, but `cse` merges them into one",
        "bind it once and read it twice, as in `p = relu(x)  y = add(p, p)`");
    d.secondary.push_back({a.span, "the first time"});
    out_.push_back(std::move(d));
  }

  const Rule& rule_;
  const CheckedRule& checked_;
  Diagnostics& out_;
  std::map<PatternValueId, PatternValueId> same_as_;
};

}  // namespace

void check_equal_nodes(const CheckedRule& checked, Diagnostics& out) {
  EqualNodes(checked, out).run();
}

}  // namespace pw

// The pattern's environment becomes that of the right side: statements are built under the bindings
// of the match, and names that they bind again become the outputs. For a rule with `fuse` the
// statement is made for the length of the match's lists. Linear in the statements and the elements
// of lists. Nothing is erased here, so that a caller can compare or discard the new nodes.
#include "rewriter/engine/right_side.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "dsl/build/fuse.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {
namespace {

/// Returns the matched node; for members the first.
NodeId representative(const Rule& rule, const Match& match, PatternNodeId id) {
  const MembersId members = rule.nodes[id].members;
  if (!members.valid()) return match.nodes[id.index];
  const auto& ids = rule.members[members].nodes;
  const auto at = static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
  return match.members[members.index].front()[at];
}

/// Returns the length of the lists of a rule in which all lists have the same length.
std::size_t length_of_lists(const Rule& rule, const Match& match) {
  if (!rule.members.empty()) return match.members.front().size();
  for (const std::string& name : rule.lists)
    if (const auto bound = match.env.find(name); bound != match.env.end())
      if (const auto* list = std::get_if<std::vector<ValueId>>(&bound->second)) return list->size();
  return 0;
}

}  // namespace

Status build_right_side(Graph& graph, const Rule& rule, const Match& match, Env& env,
                        BuildOptions options) {
  for (std::size_t i = 0; i < rule.nodes.size(); ++i)
    if (const NodeId node = representative(rule, match, PatternNodeId(i)); node.valid())
      options.open_attributes.emplace(graph.op_of(node).name, graph.attributes(node));
  if (!rule.fused) return build_statements(graph, rule.replacement, env, options);
  std::vector<Statement> fused =
      PW_TRY(fused_replacement(graph.context(), rule, length_of_lists(rule, match)));
  return build_statements(graph, fused, env, options);
}

Result<std::vector<OutputPair>> outputs_of(const Graph& graph, const RuleLayout& layout,
                                           const Match& match, const Env& env) {
  const Rule& rule = *layout.rule;
  std::vector<OutputPair> out;
  for (std::size_t i = 0; i < rule.outputs.size(); ++i) {
    const std::string& name = rule.outputs[i];
    const std::vector<ValueId> from = result_values(graph, rule, match, layout.outputs[i]);
    const std::vector<ValueId> to = bound_values(env, name);
    if (from.size() != to.size() && !to.empty())
      return fail(rule.name_span, "N06",
                  fmt::format("`{}` is a list of {}, but the right side makes {}", name,
                              from.size(), to.size()));
    for (std::size_t k = 0; k < from.size(); ++k) {
      if (to.empty() || !to[k].valid())
        return fail(rule.name_span, "N07", fmt::format("`{}` would be none", name));
      out.push_back({name, from[k], to[k]});
    }
  }
  return out;
}

std::vector<std::pair<std::string, ValueId>> bindings_of(const Rule& rule, const Match& match) {
  std::vector<std::pair<std::string, ValueId>> out;
  for (const PatternValue& value : rule.values) {
    const auto bound = match.env.find(value.name);
    if (value.name.empty() || value.name == "_" || bound == match.env.end()) continue;
    if (const auto* v = std::get_if<ValueId>(&bound->second)) out.emplace_back(value.name, *v);
    if (const auto* list = std::get_if<std::vector<ValueId>>(&bound->second))
      for (std::size_t i = 0; i < list->size(); ++i)
        out.emplace_back(fmt::format("{}[{}]", value.name, i), (*list)[i]);
  }
  return out;
}

}  // namespace pw

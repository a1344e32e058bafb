#include "pipeline/explain.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/diagnostic_codes.hpp"
#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/explain/code_help.hpp"
#include "rewriter/explain/near_miss_codes.hpp"
#include "splitter/splitter.hpp"

namespace pw {
namespace {

/// Returns the piece of each node, as cut by the rules' `split`. Stores the error of the first
/// graph that cannot be cut: matching continues, but its result is useless.
class PieceOfNode {
 public:
  explicit PieceOfNode(const LoadedRules& rules) : rules_(rules) {}

  std::uint32_t operator()(const Graph& graph, NodeId node) {
    if (&graph != graph_) read(graph);
    return node.index < piece_.size() ? piece_[node.index] : 0;
  }
  [[nodiscard]] const Status& state() const { return state_; }

 private:
  void read(const Graph& graph) {
    graph_ = &graph;
    piece_.assign(graph.node_bound(), 0);
    if (auto cut = assign(graph); !cut && state_) state_ = std::move(cut);
  }
  Status assign(const Graph& graph) {
    const auto at =
        PW_TRY(splitting_ops(graph.context_ptr(), &rules_.set, rules_.params, SplitOptions{}));
    const StitchedGraph pieces = PW_TRY(split(graph, at));
    for (std::size_t i = 0; i < pieces.pieces.size(); ++i)
      for (NodeId n : pieces.pieces[PieceId(i)].nodes)
        piece_[n.index] = static_cast<std::uint32_t>(i);
    return {};
  }

  const LoadedRules& rules_;
  const Graph* graph_ = nullptr;
  std::vector<std::uint32_t> piece_;
  Status state_;
};

void add_rules(const Strategy& strategy, std::set<RuleId>& out) {
  out.insert(strategy.rules.begin(), strategy.rules.end());
  for (const Strategy& part : strategy.parts) add_rules(part, out);
}

/// The near misses that came nearest at some node.
class NearestMisses {
 public:
  explicit NearestMisses(const Graph& graph) : at_(graph.node_bound()) {}

  void add(NearMiss miss) {
    if (miss.why.matched == 0) return;  // no part of it is present
    const auto number = static_cast<std::uint32_t>(all_.size());
    for (const NodeId n : miss.nodes) at_[n.index].push_back(number);
    if (miss.at && !std::count(miss.nodes.begin(), miss.nodes.end(), miss.at->id))
      at_[miss.at->id.index].push_back(number);
    all_.push_back(std::move(miss));
  }

  std::vector<PageMiss> take() {
    std::set<std::uint32_t> kept;
    for (std::vector<std::uint32_t>& misses : at_) {
      std::stable_sort(misses.begin(), misses.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return nearer(all_[a], all_[b]); });
      constexpr std::size_t kMost = 4;
      for (std::size_t i = 0; i < misses.size() && i < kMost; ++i) kept.insert(misses[i]);
    }
    std::vector<PageMiss> out;
    for (const std::uint32_t i : kept) {
      NearMiss& miss = all_[i];
      out.push_back({miss.rule_name, miss.why.code, miss.why.message,
                     miss.help.empty() ? help_for(miss.why.code) : miss.help, miss.why.matched,
                     miss.rule_size, miss.at ? miss.at->id : NodeId(), std::move(miss.nodes)});
    }
    std::stable_sort(out.begin(), out.end(), [](const PageMiss& a, const PageMiss& b) {
      return a.size - static_cast<std::size_t>(a.matched) <
             b.size - static_cast<std::size_t>(b.matched);
    });
    return out;
  }

 private:
  /// Returns true if fewer nodes are missing, or more matched.
  static bool nearer(const NearMiss& a, const NearMiss& b) {
    const auto missing = [](const NearMiss& miss) {
      return static_cast<int>(miss.rule_size) - miss.why.matched;
    };
    if (missing(a) != missing(b)) return missing(a) < missing(b);
    return a.why.matched > b.why.matched;
  }

  std::vector<NearMiss> all_;
  std::vector<std::vector<std::uint32_t>> at_;  // by node
};

std::string binding_text(const Graph& graph, const Binding& binding) {
  if (const auto* value = std::get_if<ValueId>(&binding))
    return value->valid() ? fmt::format("%{}", graph.value_name(*value)) : "none";
  if (const auto* dim = std::get_if<DimId>(&binding)) return graph.context().dims.print(*dim);
  if (const auto* dtype = std::get_if<DTypeBinding>(&binding))
    return std::string(name(dtype->dtype));
  if (const auto* shape = std::get_if<Shape>(&binding)) return graph.context().types.print(*shape);
  if (const auto* a = std::get_if<Attribute>(&binding)) return graph.context().attributes.print(*a);
  if (const auto* list = std::get_if<std::vector<ValueId>>(&binding))
    return counted(list->size(), "value");
  return "none";
}

PatternMatch described_match(const Graph& graph, const Match& match, const Env& params) {
  PatternMatch out;
  for (NodeId n : all_nodes(match)) out.nodes.emplace_back(graph.node_name(n), graph.op_of(n).name);
  for (const auto& [name, binding] : match.env)
    if (!params.contains(name) && name.find('#') == std::string::npos)  // rules of its own text
      out.bindings.emplace_back(name, binding_text(graph, binding));
  return out;
}

/// A family without variants does not occur among the rules of the set.
bool is_declared(const RuleSet& rules, const std::string& name) {
  for (const ast::File& file : rules.files)
    for (const ast::Item& item : file.items)
      if (const auto* rule = std::get_if<ast::Rule>(&item); rule != nullptr && rule->name == name)
        return true;
  return false;
}

/// Returns "its passes are a, b", or the rules of a pass.
std::string parts_of(const RuleSet& rules, const Strategy& strategy) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const Strategy& part : strategy.parts) add(part.label);
  const bool passes = !names.empty();
  for (const RuleId id : strategy.rules) add(rules.rules[id].base_name);
  constexpr std::size_t kMost = 12;
  const std::size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  if (names.empty()) return "it has no rules";
  return fmt::format("its {} are {}{}; name a rule", passes ? "passes" : "rules",
                     fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

Status check_options(const ExplainRequest& request) {
  if (!request.options.pipeline.empty()) return {};
  const auto needed = [](std::string_view option) {
    return fail(
        error_at({}, "PW1423", fmt::format("`{}` needs a pipeline", option), "add `-p o2`"));
  };
  if (!request.options.before.empty()) return needed("--before");
  if (request.options.tokens) return needed("--tokens");
  return {};
}

Status check_rule_name(const RuleSet& rules, const std::string& name) {
  const bool known = !name.empty() && (!rules.resolve(name).empty() || is_declared(rules, name));
  if (known) return {};
  std::vector<std::string> names;
  for (const Rule& rule : rules.rules) {
    names.push_back(rule.name);
    names.push_back(rule.base_name);
  }
  if (const Strategy* strategy = rules.strategy(name))
    return fail(error_at({}, "PW1420", "`" + name + "` is a pass or a pipeline, not a rule",
                         parts_of(rules, *strategy)));
  const std::string near = nearest(name, names);
  return fail(error_at(
      {}, "PW1420", "there is no rule `" + name + "`",
      near.empty() ? "`pwr check` lists the rules of a file" : "did you mean `" + near + "`?"));
}

Result<Explanation> explain_rule(const Graph& graph, const LoadedRules& rules,
                                 const ExplainRequest& request) {
  PW_TRY(check_options(request));
  PW_TRY(check_rule_name(rules.set, request.rule));
  ExplainOptions options = request.options;
  PieceOfNode piece_of(rules);
  if (request.pieces) options.piece_of = std::ref(piece_of);
  auto found = explain_rules(graph, rules.set, request.rule, rules.params, options);
  PW_TRY(Status(piece_of.state()));
  if (found && !found->at_found)
    return fail(error_at({}, "PW1424", "no node of the graph is called `" + options.at + "`",
                         "`pwr export` shows the names"));
  return found;
}

std::string_view code_meaning(std::string_view code) {
  if (const NearMissCode* row = near_miss_code(code)) return row->meaning;
  const DiagnosticCode* row = diagnostic_code(code);
  return row == nullptr ? std::string_view() : row->meaning;
}

std::string_view code_help(std::string_view code) {
  if (const NearMissCode* row = near_miss_code(code)) return row->help;
  const DiagnosticCode* row = diagnostic_code(code);
  return row == nullptr ? std::string_view() : row->help;
}

Table code_table() {
  Table table({"code", "meaning", "help"});
  for (const NearMissCode& row : kNearMissCodes) table.add({row.code, row.meaning, row.help});
  for (const DiagnosticCode& row : diagnostic_codes()) table.add({row.code, row.meaning, row.help});
  return table;
}

Result<LoadedPattern> load_pattern(const ContextPtr& context, const std::string& pattern,
                                   const RuleSource& source) {
  Query query = PW_TRY(load_query(context, source.rules, pattern));
  std::vector<std::pair<std::string, std::string>> definitions;
  for (const std::string& text : source.definitions)
    definitions.push_back(PW_TRY(parse_definition(text)));
  Env params = PW_TRY(bind_params(query.rules, definitions));
  return LoadedPattern{std::move(query), std::move(params)};
}

PatternMatches match_pattern(const Graph& graph, const LoadedPattern& pattern) {
  const auto& [query, params] = pattern;
  PatternMatches out;
  for (RuleId id : query.variants)
    for (const Match& match : find_matches(graph, query.rules, id, params))
      out.matches.push_back(described_match(graph, match, params));
  if (!out.matches.empty()) return out;
  for (RuleId id : query.variants) {
    Explanation& nearest = out.nearest.emplace_back();
    std::vector<NearMiss> misses = find_near_misses(graph, query.rules, id, params);
    if (!misses.empty()) nearest.groups.push_back({std::move(misses.front()), 1, 0, {}, {}});
  }
  return out;
}

Table match_table(const PatternMatches& found, std::size_t most) {
  Table table({"match", "nodes", "bindings"});
  for (std::size_t i = 0; i < std::min(most, found.matches.size()); ++i) {
    std::vector<std::string> nodes, bindings;
    for (const auto& [name, op] : found.matches[i].nodes)
      nodes.push_back(fmt::format("%{} {}", name, op));
    for (const auto& [name, value] : found.matches[i].bindings)
      bindings.push_back(fmt::format("{} = {}", name, value));
    table.add({i + 1, list_cell(std::move(nodes)), list_cell(std::move(bindings))});
  }
  return table;
}

PageMisses near_misses_of(const Graph& graph, const LoadedRules& rules,
                          const std::vector<Version>& versions, std::size_t most_nodes) {
  PageMisses out;
  if (graph.node_count() > most_nodes) {
    out.why_none = fmt::format(
        "Near misses are listed only for graphs of up to {} nodes; `pwr explain RULE GRAPH` "
        "finds those of one rule in any graph.",
        most_nodes);
    return out;
  }
  std::set<RuleId> pass_rules;
  for (std::size_t v = 1; v < versions.size(); ++v)
    if (const Strategy* pass = rules.set.strategy(versions[v].pass)) add_rules(*pass, pass_rules);
  RunRules run(rules.set);
  NearestMisses nearest(graph);
  for (const RuleId id :
       opened_rules(graph, run, {pass_rules.begin(), pass_rules.end()}, rules.params))
    for (NearMiss& miss : find_near_misses(graph, run, id, rules.params))
      nearest.add(std::move(miss));
  out.all = nearest.take();
  return out;
}

}  // namespace pw

#include "rewriter/explain/explain.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/explain/code_help.hpp"
#include "rewriter/explain/explain_groups.hpp"
#include "rewriter/explain/match_reasons.hpp"
#include "rewriter/explain/no_change.hpp"
#include "rewriter/strategies/driver.hpp"
#include "rewriter/strategies/narrowing.hpp"

namespace pw {
namespace {

using Fate = MatchRecord::Fate;

bool has_label(const Strategy& strategy, std::string_view label) {
  return strategy.label == label ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return has_label(part, label); });
}

bool has_node(const Graph& graph, std::string_view name) {
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    if (graph.node_name(n) == name) return true;
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      if (graph.value_name(graph.result(n, i)) == name) return true;
  }
  return false;
}

/// Returns true if the reason concerns the match's surroundings, which change, and not the match
/// itself.
bool about_surroundings(const Reason& why) {
  return why.code == "N08" || why.code == "N13" || why.code == "N14" || why.code == kNoChange;
}

/// Returns the reason to report for a match that was not applied; other reasons become notes.
Reason reason_of(const MatchRecord& record, std::vector<std::string>& notes) {
  notes = record.notes;
  if (!record.loss) return *record.why;
  const std::optional<Reason>& refused = record.why ? record.why : record.refusal;
  if (!refused) return *record.loss;
  const bool first = record.why ? !record.starved : !about_surroundings(*refused);
  notes.push_back(first ? record.loss->message : refused->message);
  return first ? *refused : *record.loss;
}

class Explainer {
 public:
  Explainer(const Graph& graph, const RuleSet& rules, const Env& params,
            const ExplainOptions& options)
      : input_(graph), rules_(rules), params_(params), options_(options), groups_(options) {}

  Result<Explanation> run(std::string_view reference) {
    followed_ = rules_.set().resolve(reference);
    const bool runs = !options_.pipeline.empty() || !options_.runs.empty();
    const std::vector<RuleId> ids =
        runs ? followed_ : opened_rules(input_, rules_, followed_, params_);
    if (ids.empty()) {
      note("N11", fmt::format("`{}` has no rules: its family has no variant", reference));
    } else if (!runs) {
      look_at(input_);
    } else
      PW_TRY(options_.runs.empty() ? follow_pipeline() : follow(options_.runs));
    out_.groups = groups_.take();
    return std::move(out_);
  }

 private:
  // ---- a graph without a pipeline

  void look_at(const Graph& graph) {
    out_.at_found = options_.at.empty() || has_node(graph, options_.at);
    Graph scratch = graph;
    scratch.forget_undo();
    for (RuleId id : opened_rules(graph, rules_, followed_, params_)) {
      judge_matches(graph, scratch, lay_out(rules_, id));
      for (NearMiss& miss : find_near_misses(graph, rules_, id, params_))
        groups_.add(std::move(miss));
    }
  }

  /// Checks matches that the matcher finds, which may still be impossible to apply. One valid
  /// assignment of a set of nodes is enough.
  void judge_matches(const Graph& graph, Graph& scratch, const RuleLayout& layout) {
    std::map<std::vector<NodeId>, NearMiss> refused;
    const auto key = [](const Match& match) {
      std::vector<NodeId> nodes = all_nodes(match);
      std::sort(nodes.begin(), nodes.end());
      return nodes;
    };
    const bool barriers = has_barriers(graph);
    const auto fits = [&](const Match& match) {
      std::optional<NearMiss> miss = forbidden(graph, scratch, barriers, layout, match);
      if (miss) refused.try_emplace(key(match), std::move(*miss));
      return !miss;
    };
    for (const Match& match : find_matches(graph, rules_, layout.id, params_, fits)) {
      refused.erase(key(match));
      ++out_.matches;
      groups_.note_good(graph.group(own_nodes(graph, layout, match).front()));
    }
    std::vector<NearMiss> in_order;
    for (auto& [nodes, miss] : refused) in_order.push_back(std::move(miss));
    std::stable_sort(in_order.begin(), in_order.end(), [&](const NearMiss& a, const NearMiss& b) {
      return graph.label(a.why.at) < graph.label(b.why.at);
    });
    for (NearMiss& miss : in_order) groups_.add(std::move(miss));
  }

  std::optional<NearMiss> forbidden(const Graph& graph, Graph& scratch, bool barriers,
                                    const RuleLayout& layout, const Match& match) const {
    const std::vector<NodeId> own = own_nodes(graph, layout, match);
    if (barriers)
      if (auto barrier = find_barrier(graph, layout, match, boundary_of(graph, layout, match)))
        return made(graph, layout, match, "N14", *barrier,
                    fmt::format("it would be moved across %{} ({}), which has an effect",
                                graph.node_name(*barrier), graph.op_of(*barrier).name));
    if (std::optional<Reason> why = refusal_of(scratch, layout, match, barriers, 0)) {
      NearMiss miss = made(graph, layout, match, why->code, own.front(), why->message);
      if (why->span.valid()) miss.why.span = why->span;
      miss.help = why->help;
      return miss;
    }
    if (std::optional<std::string> crossing = crosses_pieces(graph, own))
      return made(graph, layout, match, "N15", crossing_node(graph, own), *crossing);
    return std::nullopt;
  }

  [[nodiscard]] NodeId crossing_node(const Graph& graph, const std::vector<NodeId>& own) const {
    const auto first = options_.piece_of(graph, own.front());
    return *std::find_if(own.begin(), own.end(),
                         [&](NodeId n) { return options_.piece_of(graph, n) != first; });
  }

  [[nodiscard]] std::optional<std::string> crosses_pieces(const Graph& graph,
                                                          const std::vector<NodeId>& own) const {
    if (!options_.piece_of || own.empty()) return std::nullopt;
    const std::uint32_t first = options_.piece_of(graph, own.front());
    for (NodeId n : own)
      if (const std::uint32_t piece = options_.piece_of(graph, n); piece != first)
        return fmt::format("%{} is in piece {}, %{} in piece {}", graph.node_name(own.front()),
                           first, graph.node_name(n), piece);
    return std::nullopt;
  }

  NearMiss made(const Graph& graph, const RuleLayout& layout, const Match& match, std::string code,
                NodeId at, std::string message) const {
    NearMiss out;
    out.rule = layout.id;
    out.rule_name = layout.rule->name;
    out.rule_size = layout.rule->nodes.size();
    out.gate = 1000;
    out.complete = true;
    for (NodeId n : all_nodes(match)) {
      if (!n.valid()) continue;
      out.nodes.push_back(n);
      out.node_names.emplace_back(graph.node_name(n));
    }
    out.at = see(graph, at);
    out.why = {std::move(code), std::move(message), layout.rule->name_span, at,
               static_cast<int>(out.nodes.size())};
    if (!out.nodes.empty()) out.place = without_numbers(graph.group(out.nodes.front()));
    return out;
  }

  // ---- a pipeline

  Status follow_pipeline() {
    const Strategy* strategy = PW_TRY(find_strategy(rules_.set(), options_.pipeline));
    if (!options_.before.empty() && !has_label(*strategy, options_.before))
      return fail({}, "PW1101",
                  fmt::format("pipeline `{}` has no pass `{}`", options_.pipeline, options_.before),
                  "`pwr opt --stats` lists its passes");
    TokenRange range = PW_TRY(choose_range(*strategy));
    if (!strategy->ranges.empty()) out_.range = range;
    return follow({{options_.pipeline, range}});
  }

  Result<TokenRange> choose_range(const Strategy& strategy) const {
    std::vector<TokenRange> ranges = PW_TRY(token_ranges(input_, rules_.set(), options_.pipeline));
    if (!options_.tokens && ranges.size() == 1) return ranges.front();
    std::string list;
    for (const TokenRange& range : ranges) {
      if (options_.tokens && range.min <= *options_.tokens && *options_.tokens <= range.max)
        return range;
      list += fmt::format("{}{}..{}", list.empty() ? "" : ", ", range.min, range.max);
    }
    if (ranges.empty())
      return fail(strategy.span, "PW1109",
                  fmt::format("the graph's facts exclude all ranges of `{}`", options_.pipeline));
    if (options_.tokens)
      return fail(
          strategy.span, "PW1109",
          fmt::format("no range of `{}` contains {} tokens", options_.pipeline, *options_.tokens),
          fmt::format("there are {}", list));
    return fail(strategy.span, "PW1109",
                fmt::format("`{}` makes a graph for each token range: {}", options_.pipeline, list),
                fmt::format("`--tokens {}` explains the one for that many", ranges.back().min));
  }

  Status follow(const std::vector<ExplainedRun>& runs) {
    Graph graph = input_;
    graph.forget_undo();
    MatchHistory history(rules_, followed_, params_, options_.before);
    std::vector<Condition> conditions;
    bool held = false;
    for (const ExplainedRun& run : runs) {
      const Strategy* strategy = PW_TRY(find_strategy(rules_.set(), run.pipeline));
      held = held || holds_rule(*strategy, {followed_.begin(), followed_.end()});
      narrow(graph, run.range);
      history.begin_run();
      RewriteReport report =
          PW_TRY(run_strategy(graph, rules_, *strategy, params_, RewriteOptions(), &history));
      conditions.insert(conditions.end(), report.conditions.begin(), report.conditions.end());
    }
    if (options_.tokens && !out_.otherwise && !meets_conditions(conditions))
      return follow_otherwise(runs);
    history.finish();
    tell(history, graph, held);
    return {};
  }

  [[nodiscard]] bool meets_conditions(const std::vector<Condition>& conditions) const {
    return meets(input_.context(), conditions, {{tokens_symbol(input_), *options_.tokens}});
  }

  /// Explains the graph for steps that do not meet the assumptions.
  Status follow_otherwise(const std::vector<ExplainedRun>& runs) {
    out_.otherwise = true;
    strict_ = without_assumptions(rules_.set());
    rules_ = RunRules(*strict_);
    return follow(runs);
  }

  void tell(MatchHistory& history, const Graph& after, bool held) {
    out_.matches = history.rewrites();
    out_.at_found = options_.at.empty() || has_node(input_, options_.at) ||
                    has_node(after, options_.at) ||
                    (history.graph_before() && has_node(*history.graph_before(), options_.at));
    const bool at_end = !options_.runs.empty();
    if (!held || !history.ran()) {
      note_absent(history, held);
      if (at_end) look_at(after);
      return;
    }
    for (const MatchRecord& record : history.records()) tell(record, after);
    const Graph* before = at_end ? &after : history.graph_before();
    if (before == nullptr) return;
    for (RuleId id : opened_rules(*before, rules_, followed_, params_))
      for (NearMiss& miss : find_near_misses(*before, rules_, id, params_))
        if (!overlaps_match(miss)) tell_miss(std::move(miss), history.makers());
  }

  void note_absent(const MatchHistory& history, bool held) {
    const std::string& name = rules_[followed_.front()].name;
    if (!held)
      note("N11", options_.pipeline.empty()
                      ? fmt::format("`{}` is in no pass that was applied", name)
                      : fmt::format("`{}` is in no pass of `{}`", name, options_.pipeline));
    else if (!history.left_out().empty())
      note("N11", fmt::format("pass `{}`, which has the rule, was skipped: its `when` is not true",
                              history.left_out()));
    else
      note("N12", fmt::format("no pass that has `{}` ran: the loop around it has no rounds", name));
  }

  void tell(const MatchRecord& record, const Graph& after) {
    for (NodeId n : record.seen->own) matched_nodes_.insert(n.index);
    for (const SeenNode& node : record.seen->nodes) {
      for (const std::string& name : node.names)
        out_.at_found = out_.at_found || name == options_.at;
    }
    if (record.fate == Fate::replaced) return;
    if (record.fate == Fate::applied) return tell_applied(record);
    NearMiss miss = missed(record);
    if (record.fate == Fate::standing)
      if (auto crossing = crosses_pieces(after, record.seen->own))
        miss = crossed(std::move(miss), after, record, *crossing);
    groups_.add(std::move(miss));
  }

  void tell_applied(const MatchRecord& record) {
    groups_.note_good(record.seen->place);
    std::vector<std::string> names;
    bool concerned = options_.at.empty();
    for (const SeenNode& node : record.seen->nodes) {
      names.push_back(node.name);
      concerned = concerned ||
                  std::find(node.names.begin(), node.names.end(), options_.at) != node.names.end();
    }
    if (!concerned) return;
    const RewriteStep& step = *record.applied;
    for (AppliedGroup& group : out_.applied) {
      if (group.first.rule != step.rule || group.first.pass != step.pass) continue;
      ++group.count;
      if (step.step < group.first.step) group.first = step, group.nodes = std::move(names);
      return;
    }
    out_.applied.push_back({step, std::move(names), 1});
  }

  NearMiss missed(const MatchRecord& record) const {
    const SeenMatch& seen = *record.seen;
    NearMiss out;
    const Reason why = reason_of(record, out.notes);
    out.rule = seen.rule;
    out.rule_name = seen.rule_name;
    out.rule_size = rules_[seen.rule].nodes.size();
    out.gate = 1000;
    out.complete = true;
    out.place = seen.place;
    out.since = seen.since;
    out.help = why.help;
    out.taken_by = why.taken_by;
    out.undone_by = why.undone_by;
    out.missed_by = record.missed_by;
    if (!record.missed_by.empty())
      out.notes.insert(out.notes.begin(),
                       fmt::format("pass `{}`, which has `{}`, began after the match was gone",
                                   record.missed_by, seen.rule_name));
    for (const SeenNode& node : seen.nodes) {
      out.nodes.push_back(node.id);
      out.node_names.push_back(node.name);
    }
    if (why.at < seen.nodes.size()) out.at = seen.nodes[why.at];
    out.why = {why.code, why.message, why.span.valid() ? why.span : seen.span,
               out.at ? out.at->id : NodeId(), static_cast<int>(seen.nodes.size())};
    return out;
  }

  NearMiss crossed(NearMiss miss, const Graph& graph, const MatchRecord& record,
                   const std::string& crossing) const {
    const NodeId at = crossing_node(graph, record.seen->own);
    miss.notes.push_back(miss.why.message);
    miss.why = {"N15", crossing, record.seen->span, at, miss.why.matched};
    miss.at = see(graph, at);
    miss.help.clear();
    return miss;
  }

  void tell_miss(NearMiss miss, const std::map<NodeId, RewriteStep>& makers) {
    const auto maker = options_.runs.empty() ? makers.find(miss.why.at) : makers.end();
    if (maker != makers.end())
      miss.notes.push_back(fmt::format("%{} was made by `{}` at step {} of pass `{}`",
                                       miss.at->name, maker->second.name, maker->second.step,
                                       maker->second.pass));
    groups_.add(std::move(miss));
  }

  [[nodiscard]] bool overlaps_match(const NearMiss& miss) const {
    return std::any_of(miss.nodes.begin(), miss.nodes.end(),
                       [&](NodeId n) { return matched_nodes_.contains(n.index); });
  }

  void note(std::string code, std::string message) {
    NearMiss out;
    const RuleId rule = followed_.empty() ? RuleId() : followed_.front();
    out.rule = rule;
    if (rule.valid()) out.rule_name = rules_[rule].name;
    out.why = {code, std::move(message), rule.valid() ? rules_[rule].name_span : Span(), {}, 0};
    out.gate = 2000;
    out.complete = true;
    out.help = help_for(code);
    groups_.note(std::move(out));
  }

  const Graph& input_;
  RunRules rules_;
  std::optional<RuleSet> strict_;
  const Env& params_;
  const ExplainOptions& options_;
  std::vector<RuleId> followed_;
  NearMissGroups groups_;
  Explanation out_;
  std::set<std::uint32_t> matched_nodes_;
};

}  // namespace

Result<Explanation> explain_rules(const Graph& graph, const RuleSet& rules,
                                  std::string_view reference, const Env& params,
                                  const ExplainOptions& options) {
  return Explainer(graph, rules, params, options).run(reference);
}

}  // namespace pw

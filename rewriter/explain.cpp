// Exports explain_rules: near misses grouped over repeated layers, and the fate of matches in a
// pipeline.
#include "rewriter/explain.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "graph/text.hpp"
#include "rewriter/legality.hpp"

namespace pw {
namespace {

using Nodes = std::vector<NodeId>;

struct Fate {
  RuleId rule;
  std::size_t step = 0;
  std::string pass;
};

/// What is to be read from the journal of a run: who erased a node, and which matches were taken.
struct History {
  std::unordered_map<std::uint32_t, Fate> eraser;  // by node; looked up only
  std::set<std::pair<RuleId, Nodes>> taken;
  std::size_t rewrites_of = 0;
};

History read(const Journal& journal, const std::set<RuleId>& rules) {
  History out;
  std::string pass;
  std::size_t step = 0;
  for (const JournalEvent& event : journal) {
    if (const auto* begin = std::get_if<PassBegin>(&event)) pass = begin->pass, step = 0;
    const auto* match = std::get_if<MatchEvent>(&event);
    if (match == nullptr) continue;
    ++step;
    for (NodeId n : match->erased) out.eraser.try_emplace(n.index, Fate{match->rule, step, pass});
    if (!rules.contains(match->rule)) continue;
    ++out.rewrites_of;
    out.taken.emplace(match->rule, match->matched);
  }
  return out;
}

bool holds_rule(const Strategy& strategy, const std::set<RuleId>& rules) {
  return std::any_of(strategy.rules.begin(), strategy.rules.end(),
                     [&](RuleId r) { return rules.contains(r); }) ||
         std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return holds_rule(part, rules); });
}

/// Whether the rule stands in some alternatives of a `best of`, and not in all.
bool depends_on_choice(const Strategy& strategy, const std::set<RuleId>& rules) {
  if (strategy.kind == ast::Strategy::Kind::best) {
    const auto in = std::count_if(strategy.parts.begin(), strategy.parts.end(),
                                  [&](const Strategy& part) { return holds_rule(part, rules); });
    if (in > 0 && in < static_cast<std::ptrdiff_t>(strategy.parts.size())) return true;
  }
  return std::any_of(strategy.parts.begin(), strategy.parts.end(),
                     [&](const Strategy& part) { return depends_on_choice(part, rules); });
}

std::string help_for(const Graph& graph, const NearMiss& miss) {
  const std::string& code = miss.why.code;
  const bool view = miss.why.at.valid() && graph.op_of(miss.why.at).traits.view;
  if (code == "N01" && view)
    return "a view stands in between: `views(…)`, or an optional node, would let it pass";
  if (code == "N01") return "alternatives of a shared pattern can accept another spelling";
  if (code == "N02") return "`name?` takes an operand that may be none; `xs...` takes the rest";
  if (code == "N03") return "declare the op `commutative` if it is, or write the other order too";
  if (code == "N04")
    return "bind the attribute, `{name}`, to accept any value, or open the list with `..`";
  if (code == "N05") return "give the types different variables, or match the cast too";
  if (code == "N06")
    return "state the fact (`symbol n in 1..8192 by 8`), or write `assume` for a condition of the "
           "token range";
  if (code == "N07") return "use two names if the two may differ";
  if (code == "N08")
    return "rebind it on the right (`y, q = …`), or put the node that makes it into `given { }`";
  if (code == "N09") return "the values in it are printed above";
  if (code == "N10") return "run the rule earlier, or declare which rule goes first with `over`";
  if (code == "N11") return "add the rule to a pass of the pipeline";
  if (code == "N12") return "raise `fuel`";
  if (code == "N13") return "what is read must not depend on what is replaced";
  if (code == "N14") return "the op writes memory that the match reads or writes";
  if (code == "N15")
    return "a match has to stay within one piece; split elsewhere, or rewrite first";
  return "";
}

class Explainer {
 public:
  Explainer(const Graph& graph, const RuleSet& rules, const Env& params,
            const ExplainOptions& options)
      : input_(graph), rules_(rules), params_(params), options_(options) {}

  Result<Explanation> run(std::string_view reference) {
    const std::vector<RuleId> ids =
        opened_rules(input_, rules_, rules_.resolve(reference), params_);
    ids_.insert(ids.begin(), ids.end());
    if (ids_.empty()) {
      note("N11", fmt::format("`{}` stands for no rule: its family has no variant", reference), {});
      return finish();
    }
    if (options_.pipeline.empty()) {
      look_at(input_);
    } else if (auto done = run_pipeline_first(); !done) {
      return forward(done);
    }
    return finish();
  }

 private:
  // ---- without a pipeline

  void look_at(const Graph& graph) {
    for (RuleId id : ids_) {
      for (const Match& match : find_matches(graph, rules_, id, params_)) judge(graph, id, match);
      for (NearMiss& miss : find_near_misses(graph, rules_, id, params_))
        add(graph, std::move(miss));
    }
  }

  /// A match that the matcher finds may still be impossible to make.
  void judge(const Graph& graph, RuleId id, const Match& match) {
    const RuleLayout layout = lay_out(rules_, id);
    if (std::optional<NearMiss> miss = forbidden(graph, layout, match))
      return add(graph, std::move(*miss));
    ++matches_;
    note_good(graph, layout, match);
  }

  std::optional<NearMiss> forbidden(const Graph& graph, const RuleLayout& layout,
                                    const Match& match) const {
    const Boundary boundary = boundary_of(graph, layout, match);
    if (has_barriers(graph))
      if (auto barrier = find_barrier(graph, layout, match, boundary))
        return made(graph, layout.id, match, "N14", *barrier,
                    fmt::format("it would be moved across %{} ({}), which has an effect",
                                graph.node_name(*barrier), graph.op_of(*barrier).name));
    if (!options_.piece_of) return std::nullopt;
    const Nodes own = own_nodes(graph, layout, match);
    for (NodeId n : own)
      if (options_.piece_of(graph, n) != options_.piece_of(graph, own.front()))
        return made(graph, layout.id, match, "N15", n,
                    fmt::format("%{} lies in piece {}, %{} in piece {}",
                                graph.node_name(own.front()), options_.piece_of(graph, own.front()),
                                graph.node_name(n), options_.piece_of(graph, n)));
    return std::nullopt;
  }

  NearMiss made(const Graph& graph, RuleId id, const Match& match, std::string code, NodeId at,
                std::string message) const {
    NearMiss out;
    out.rule = id;
    out.gate = 1000;
    out.complete = true;
    for (NodeId n : all_nodes(match))
      if (n.valid()) out.nodes.push_back(n);
    out.why = {std::move(code), std::move(message), rules_.rules[id].name_span, at,
               static_cast<int>(out.nodes.size())};
    if (!out.nodes.empty()) out.place = without_numbers(graph.group(out.nodes.front()));
    return out;
  }

  // ---- with a pipeline

  Result<std::monostate> run_pipeline_first() {
    const Strategy* strategy = rules_.strategy(options_.pipeline);
    if (strategy == nullptr)
      return fail({}, "PW1101",
                  fmt::format("there is no pipeline or pass `{}`", options_.pipeline));
    std::vector<const Strategy*> passes;
    for (const Strategy& part : strategy->parts) passes.push_back(&part);
    if (strategy->kind != ast::Strategy::Kind::sequence || passes.empty()) passes = {strategy};
    Graph final = input_;
    std::vector<std::pair<std::string, Graph>> states;
    std::size_t wanted = passes.size();
    for (std::size_t i = 0; i < passes.size() && wanted == passes.size(); ++i)
      if (options_.before.empty() ? holds_rule(*passes[i], ids_)
                                  : passes[i]->label == options_.before)
        wanted = i;
    if (!options_.before.empty() && wanted == passes.size())
      return fail(
          {}, "PW1107",
          fmt::format("pipeline `{}` has no pass `{}`", options_.pipeline, options_.before));
    Graph before = input_;
    std::size_t seen = 0;
    RewriteOptions run;
    run.after_pass = [&](const std::string& pass, const Graph& graph) {
      // Skipped passes are not called for, so follow the labels.
      if (pass == "input") return;
      while (seen < passes.size() && passes[seen]->label != pass) ++seen;
      if (seen < wanted) before = graph;
      ++seen;
    };
    Result<RewriteReport> report = run_pipeline(final, rules_, options_.pipeline, params_, run);
    if (!report) return forward(report);
    history_ = read(report->journal, ids_);
    matches_ = history_.rewrites_of;
    if (!was_run(*strategy, passes, *report)) return std::monostate();
    look_back(input_, final, *strategy, *report);
    look_back(before, final, *strategy, *report);
    for (RuleId id : ids_)
      for (NearMiss& miss : find_near_misses(before, rules_, id, params_)) {
        if (!overlaps_taken(miss)) add(before, std::move(miss));
      }
    return std::monostate();
  }

  bool was_run(const Strategy& strategy, const std::vector<const Strategy*>& passes,
               const RewriteReport& report) {
    if (!holds_rule(strategy, ids_)) {
      note("N11",
           fmt::format("`{}` is in no pass of `{}`", rules_.rules[*ids_.begin()].name,
                       options_.pipeline),
           rules_.rules[*ids_.begin()].name_span);
      return false;
    }
    bool skipped = true;
    std::string label;
    for (std::size_t i = 0; i < passes.size() && i < report.passes.size(); ++i) {
      if (!holds_rule(*passes[i], ids_)) continue;
      label = passes[i]->label;
      skipped = skipped && report.passes[i].skipped;
    }
    if (skipped)
      note(
          "N11",
          fmt::format("pass `{}`, which has the rule, was left out: its `when` is not true", label),
          rules_.rules[*ids_.begin()].name_span);
    return !skipped;
  }

  /// Matches that were there, and were not taken: what happened to them?
  void look_back(const Graph& then, const Graph& now, const Strategy& strategy,
                 const RewriteReport& report) {
    for (RuleId id : ids_) {
      const RuleLayout layout = lay_out(rules_, id);
      for (const Match& match : find_matches(then, rules_, id, params_)) {
        if (history_.taken.contains({id, all_nodes(match)})) {
          if (looked_at_.emplace(id, all_nodes(match)).second) note_good(then, layout, match);
          for (NodeId n : all_nodes(match))
            if (n.valid()) taken_nodes_.insert(n.index);
          continue;
        }
        if (!looked_at_.emplace(id, all_nodes(match)).second) continue;
        NearMiss miss = fate_of(then, now, layout, match, strategy, report);
        for (NodeId n : all_nodes(match))
          if (n.valid()) taken_nodes_.insert(n.index);
        add(then, std::move(miss));
      }
    }
  }

  NearMiss fate_of(const Graph& then, const Graph& now, const RuleLayout& layout,
                   const Match& match, const Strategy& strategy,
                   const RewriteReport& report) const {
    const RuleId id = layout.id;
    for (NodeId n : all_nodes(match)) {
      const auto gone = n.valid() ? history_.eraser.find(n.index) : history_.eraser.end();
      if (gone == history_.eraser.end()) continue;
      const Fate& fate = gone->second;
      const Rule& winner = rules_.rules[fate.rule];
      const std::string step =
          fmt::format("`{}` at step {} of pass `{}`", winner.name, fate.step, fate.pass);
      const bool above = std::find(winner.over.begin(), winner.over.end(), id) != winner.over.end();
      if (above)
        return made(then, id, match, "N16", n,
                    fmt::format("%{} ({}) was taken by {}, which is declared over it",
                                then.node_name(n), then.op_of(n).name, step));
      return made(
          then, id, match, "N10", n,
          fmt::format("%{} ({}) was consumed by {}", then.node_name(n), then.op_of(n).name, step));
    }
    for (const PassStats& pass : report.passes)
      if (pass.stop == StopReason::fuel)
        return made(then, id, match, "N12", match_front(then, layout, match),
                    fmt::format("pass `{}` had used up its fuel after {} rewrites", pass.pass,
                                pass.rewrites));
    if (auto miss = forbidden(now, layout, match)) return std::move(*miss);
    if (depends_on_choice(strategy, ids_))
      return made(then, id, match, "N16", match_front(then, layout, match),
                  "the alternative of `best of` that has the rule cost more than another");
    return made(then, id, match, "N10", match_front(then, layout, match),
                "the passes that have the rule were over before the match was there");
  }

  static NodeId match_front(const Graph& graph, const RuleLayout& layout, const Match& match) {
    const Nodes own = own_nodes(graph, layout, match);
    return own.empty() ? NodeId() : own.front();
  }

  [[nodiscard]] bool overlaps_taken(const NearMiss& miss) const {
    return std::any_of(miss.nodes.begin(), miss.nodes.end(),
                       [&](NodeId n) { return taken_nodes_.contains(n.index); });
  }

  // ---- grouping

  void note(std::string code, std::string message, Span span) {
    NearMissGroup group;
    group.first.rule = ids_.empty() ? RuleId() : *ids_.begin();
    group.first.why = {std::move(code), std::move(message), span, {}, 0};
    group.first.gate = 2000;
    group.first.help = help_for(input_, group.first);
    groups_.push_back(std::move(group));
  }

  void note_good(const Graph& graph, const RuleLayout& layout, const Match& match) {
    const NodeId front = match_front(graph, layout, match);
    if (front.valid()) ++good_[without_numbers(graph.group(front))];
  }

  [[nodiscard]] bool concerns(const Graph& graph, const NearMiss& miss) const {
    if (options_.at.empty()) return true;
    const auto named = [&](NodeId n) { return n.valid() && graph.node_name(n) == options_.at; };
    return named(miss.why.at) || std::any_of(miss.nodes.begin(), miss.nodes.end(), named);
  }

  void add(const Graph& graph, NearMiss miss) {
    if (!concerns(graph, miss)) return;
    const std::string base = rules_.rules[miss.rule].base_name;
    const std::string where =
        miss.why.at.valid() ? without_numbers(graph.group(miss.why.at)) : miss.place;
    const std::string name =
        miss.why.at.valid() ? std::string(graph.node_name(miss.why.at)) : std::string();
    // Variants of one rule tell of one place once: the one that came furthest.
    const auto place = std::pair(base, miss.nodes.empty() ? miss.why.at : miss.nodes.front());
    const auto score = std::pair(miss.why.matched, miss.gate);
    if (const auto told = told_.find(place); told != told_.end()) {
      if (score <= told->second.first) return;
      forget(told->second.second);
    }
    const auto key = std::tuple(miss.why.code, miss.why.span.begin, miss.rule, miss.place,
                                where + " " + op_name(graph, miss.why.at));
    miss.help = help_for(graph, miss);
    const auto [it, fresh] = index_.try_emplace(key, groups_.size());
    told_[place] = {score, it->second};
    if (fresh) {
      groups_.push_back({std::move(miss), 1, 0, {}});
      return;
    }
    NearMissGroup& group = groups_[it->second];
    if (group.count++ == 0)
      group.first = std::move(miss);
    else
      group.others.push_back(name);
  }

  static std::string op_name(const Graph& graph, NodeId node) {
    return node.valid() ? graph.op_of(node).name : std::string();
  }

  void forget(std::size_t group) {
    if (groups_[group].count > 0) --groups_[group].count;
    if (!groups_[group].others.empty()) groups_[group].others.pop_back();
  }

  Explanation finish() {
    Explanation out;
    out.matches = matches_;
    std::erase_if(groups_, [](const NearMissGroup& g) { return g.count == 0; });
    for (NearMissGroup& group : groups_)
      if (const auto good = good_.find(group.first.place); good != good_.end())
        group.matched_alike = good->second;
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const NearMissGroup& a, const NearMissGroup& b) {
                       return std::pair(a.first.why.matched, a.first.gate) >
                              std::pair(b.first.why.matched, b.first.gate);
                     });
    if (groups_.size() > options_.most) groups_.resize(options_.most);
    out.groups = std::move(groups_);
    return out;
  }

  const Graph& input_;
  const RuleSet& rules_;
  const Env& params_;
  const ExplainOptions& options_;
  std::set<RuleId> ids_;
  History history_;
  std::size_t matches_ = 0;
  std::vector<NearMissGroup> groups_;
  std::map<std::tuple<std::string, std::uint32_t, RuleId, std::string, std::string>, std::size_t>
      index_;
  std::map<std::pair<std::string, NodeId>, std::pair<std::pair<int, int>, std::size_t>> told_;
  std::map<std::string, std::size_t> good_;
  std::set<std::uint32_t> taken_nodes_;
  std::set<std::pair<RuleId, Nodes>> looked_at_;
};

}  // namespace

Result<Explanation> explain_rules(const Graph& graph, const RuleSet& rules,
                                  std::string_view reference, const Env& params,
                                  const ExplainOptions& options) {
  return Explainer(graph, rules, params, options).run(reference);
}

}  // namespace pw

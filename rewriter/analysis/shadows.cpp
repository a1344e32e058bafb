#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "base/counted.hpp"
#include "rewriter/analysis/checks.hpp"
#include "rewriter/analysis/freeze.hpp"
#include "rewriter/analysis/orders/outcome.hpp"
#include "rewriter/analysis/variants.hpp"

namespace pw {
namespace {

constexpr std::size_t kGraphs = 5, kAttemptsOfVariant = 40;  // of a variant
constexpr std::size_t kVariants = 6;                         // of a row
constexpr std::size_t kShadowWork = 40000;  // nodes of rules in all passes that are run
constexpr std::size_t kNodes = 20000;       // of all graphs that passes are run on

class Shadows {
 public:
  explicit Shadows(Analysis& analysis)
      : analysis_(analysis), rules_(analysis.rules), out_(analysis.out) {}

  void look_at(const RulePass& pass) {
    std::map<std::string, std::vector<RuleId>> rows;
    for (const auto& [name, ids] : variants_of(analysis_, pass))
      for (RuleId id : ids) rows[row_name(rules_.rules[id])].push_back(id);
    if (pass.strategy->rules.size() < 2) return;
    strategy_ = unconditional(*pass.strategy);
    const Reach reach = analysis_.reach(pass.strategy->rules);
    for (const auto& [name, ids] : rows) {
      if (reported_.count(name) != 0) continue;
      if (work_ < kShadowWork && nodes_ < kNodes)
        look_at_row(pass, reach, name, ids);
      else
        left_out_.insert(name);
    }
  }

  void note_left_out() {
    if (left_out_.empty()) return;
    const std::string first = "`" + *left_out_.begin() + "`";
    analysis_.note_not_analysed(
        {left_out_.begin(), left_out_.end()},
        left_out_.size() == 1
            ? first + ": whether it ever fires; there are too many rules"
            : fmt::format("{} and {} more: whether they ever fire; there are too many rules", first,
                          left_out_.size() - 1));
  }

 private:
  struct Shadow {
    Frozen frozen;
    RuleId by;
  };

  /// Checks a row: it is shadowed if none of its variants ever fires.
  void look_at_row(const RulePass& pass, const Reach& reach, const std::string& row,
                   const std::vector<RuleId>& ids) {
    std::optional<Shadow> shadow;
    std::size_t graphs = 0;
    for (std::size_t i = 0; i < ids.size() && i < kVariants; ++i)
      for (Sample& sample : samples_of(ids[i])) {
        work_ += reach.pattern_nodes(sample.frozen.graph);
        nodes_ += sample.frozen.nodes.size();
        const std::optional<RuleId> by = taken_by_another(reach, row, ids[i], sample);
        if (!by) return;
        ++graphs;
        if (!shadow) shadow = Shadow{sample.frozen, *by};
      }
    if (!shadow || graphs < 2) return;
    if (report(pass, reach, ids.front(), row, *shadow, graphs)) reported_.insert(row);
  }

  std::vector<Sample>& samples_of(RuleId id) {
    const auto [it, fresh] = samples_.try_emplace(id);
    if (!fresh) return it->second;
    it->second = sample_graphs(rules_, id, analysis_.params, kGraphs, kAttemptsOfVariant);
    if (it->second.empty())
      analysis_.note_not_analysed({written_name(rules_.rules[id])},
                                  "`" + rules_.rules[id].name + "`: no graph of it was found");
    return it->second;
  }

  /// Returns the rule that takes a node first; nothing if the row fires, or if no rule takes a node
  /// that it needs.
  std::optional<RuleId> taken_by_another(const Reach& reach, const std::string& row, RuleId id,
                                         const Sample& sample) const {
    const std::optional<Outcome> outcome =
        run_on(sample.frozen.graph, reach, strategy_, sample.frozen.params);
    if (!outcome || outcome->fired.empty()) return std::nullopt;
    for (RuleId fired : outcome->fired)
      if (row_name(rules_.rules[fired]) == row) return std::nullopt;
    const std::vector<NodeId> own = own_of(rules_.rules[id], sample.match.nodes);
    const bool shared =
        std::any_of(outcome->first_matched.begin(), outcome->first_matched.end(),
                    [&](NodeId n) { return std::binary_search(own.begin(), own.end(), n); });
    return shared ? std::optional(outcome->fired.front()) : std::nullopt;
  }

  bool report(const RulePass& pass, const Reach& reach, RuleId id, const std::string& row,
              const Shadow& shadow, std::size_t graphs) {
    const Rule& rule = rules_.rules[id];
    const Rule& by = rules_.rules[shadow.by];
    const std::string a = written_name(by), b = written_name(rule);
    Diagnostic d = warning_at(
        rule.name_span, "PW1151",
        fmt::format("`{}` never fires: `{}` takes its nodes first", row, row_name(by)),
        a == b ? "order or separate the rows by a guard"
               : fmt::format("write `rule {} over {}`, or remove it", rule.base_name, a));
    d.label = fmt::format("not once on {} made of its own pattern", counted(graphs, "graph"));
    d.secondary.push_back({by.name_span, "goes first in `" + pass.owner + "`"});
    const std::string name = as_name(b) + "_in_the_shadow";
    const Application applied = applicable(analysis_, pass, reach, shadow.frozen.graph, name);
    const std::optional<Outcome> today =
        run_applied(analysis_, applied, reach, shadow.frozen.graph, shadow.frozen.params);
    if (!today) return false;
    std::vector<std::string> expected{expected_count(*today, rules_, a)};
    if (a != b) expected.push_back(expected_count(*today, rules_, b));
    out_.findings.push_back(
        {Finding::Kind::shadow,
         {a, b},
         std::move(d),
         test_text(name, shadow.frozen.graph, applied, rules_, shadow.frozen.params, expected)});
    return true;
  }

  Analysis& analysis_;
  const RuleSet& rules_;
  AnalysisReport& out_;
  std::map<RuleId, std::vector<Sample>> samples_;
  std::set<std::string> reported_;
  Strategy strategy_;
  std::set<std::string> left_out_;
  std::size_t work_ = 0, nodes_ = 0;
};

}  // namespace

void find_shadows(Analysis& analysis) {
  Shadows shadows(analysis);
  for (const RulePass& pass : rule_passes(analysis.rules)) shadows.look_at(pass);
  shadows.note_left_out();
}

}  // namespace pw

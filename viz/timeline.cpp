// Exports make_timeline: the journal read along the versions.
#include "viz/timeline.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

class Reader {
 public:
  Reader(const VizInput& input, const UnionGraph& graph, const Scene& scene)
      : input_(input), graph_(graph), scene_(scene) {}

  Timeline run() {
    count_nodes();
    out_.origins.resize(scene_.boxes.size());
    if (input_.journal != nullptr && input_.related) read_journal();
    hide_idle();
    return std::move(out_);
  }

 private:
  void count_nodes() {
    for (const Version* version : graph_.versions)
      out_.steps.push_back({clean(version->pass), version->graph.node_count(), 0, 0, 0,
                            std::nullopt, -1, "", false});
    for (const UnionNode& node : graph_.nodes) {
      if (node.first > 0) ++out_.steps[node.first].added;
      if (node.last + 1 < out_.steps.size()) ++out_.steps[node.last + 1].removed;
      for (const std::uint32_t v : node.changed) ++out_.steps[v].changed;
    }
  }

  /// The n-th pass of the journal made version n + 1, as long as the names agree.
  void read_journal() {
    std::uint32_t version = 0;
    bool known = false;
    for (const JournalEvent& event : *input_.journal) {
      if (const auto* begin = std::get_if<PassBegin>(&event)) {
        known =
            version + 1 < out_.steps.size() && clean(begin->pass) == out_.steps[version + 1].pass;
        if (known) out_.steps[++version].matches = 0;
        pass_ = begin->pass;
      } else if (const auto* end = std::get_if<PassEnd>(&event)) {
        if (known) out_.steps[version].seconds = end->seconds;
        finish(version, known);
      } else if (const auto* match = std::get_if<MatchEvent>(&event)) {
        if (known) read_match(*match, version);
      } else if (const auto* builtin = std::get_if<BuiltinEvent>(&event)) {
        for (const NodeId n : builtin->erased) note(n, &Origin::gone, "pass " + builtin->pass);
      }
    }
  }

  void read_match(const MatchEvent& match, std::uint32_t version) {
    out_.steps[version].matches = out_.steps[version].matches.value_or(0) + 1;
    const std::string rule = describe(match.rule);
    if (input_.rules != nullptr) ++rules_[input_.rules->rules[match.rule].name];
    for (const NodeId n : match.created) note(n, &Origin::made, rule + " in pass " + pass_);
    for (const NodeId n : match.erased) note(n, &Origin::gone, rule + " in pass " + pass_);
    for (const NodeId n : match.matched)
      if (Origin* origin = origin_of(n);
          origin != nullptr && (origin->matched.empty() || origin->matched.back() != version))
        origin->matched.push_back(version);
  }

  void finish(std::uint32_t version, bool known) {
    std::string text;
    for (const auto& [rule, count] : rules_)
      text += (text.empty() ? "" : ", ") + rule + " ×" + std::to_string(count);
    if (known) out_.steps[version].rules = clean(text);
    rules_.clear();
  }

  [[nodiscard]] std::string describe(RuleId id) const {
    if (input_.rules == nullptr) return "a rule";
    const Rule& rule = input_.rules->rules[id];
    std::string text = "rule " + rule.name;
    if (rule.name_span.valid()) {
      const SourceMap& sources = input_.rules->context->sources;
      text += " (" + sources.name(rule.name_span.source) + ":" +
              std::to_string(sources.position(rule.name_span.source, rule.name_span.begin).line) +
              ")";
    }
    return text;
  }

  Origin* origin_of(NodeId n) {
    for (std::size_t v = graph_.versions.size(); v-- > 0;) {
      const std::uint32_t at = graph_.position(v, n);
      if (at == kNobody) continue;
      const std::uint32_t box = scene_.box_of[at];
      // A folded copy was rewritten like the one that is drawn, which speaks for itself.
      return box == kNobody || scene_.boxes[box].node != at ? nullptr : &out_.origins[box];
    }
    return nullptr;
  }

  void note(NodeId n, std::string Origin::* field, const std::string& text) {
    if (Origin* origin = origin_of(n); origin != nullptr) origin->*field = clean(text);
  }

  void hide_idle() {
    for (std::size_t v = 1; v < out_.steps.size(); ++v) {
      Step& step = out_.steps[v];
      step.hidden = step.added + step.removed + step.changed + step.matches.value_or(0) == 0;
    }
    for (const Edge& edge : scene_.edges) {
      if (edge.versions.front() > 0) out_.steps[edge.versions.front()].hidden = false;
      if (edge.versions.back() + 1 < out_.steps.size())
        out_.steps[edge.versions.back() + 1].hidden = false;
    }
  }

  const VizInput& input_;
  const UnionGraph& graph_;
  const Scene& scene_;
  Timeline out_;
  std::map<std::string, std::size_t> rules_;
  std::string pass_;
};

}  // namespace

Timeline make_timeline(const VizInput& input, const UnionGraph& graph, const Scene& scene) {
  return Reader(input, graph, scene).run();
}

}  // namespace pw::viz

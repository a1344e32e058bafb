#include "viz/timeline.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"
#include "viz/named_journal.hpp"

namespace pw::viz {
namespace {

class Reader {
 public:
  Reader(const VizInput& input, const UnionGraph& graph, const Links& links)
      : input_(input), graph_(graph), links_(links) {}

  Timeline run() {
    count_nodes();
    if (input_.journal != nullptr && input_.related)
      read_journal();
    else if (input_.named_journal != nullptr)
      read_names(*input_.named_journal);
    hide_idle();
    return std::move(out_);
  }

 private:
  void count_nodes() {
    for (std::size_t v = 0; v < graph_.versions.size(); ++v) {
      const auto& index = graph_.index[v];
      const auto absent = std::count(index.begin(), index.end(), kNobody);
      out_.steps.push_back({clean(graph_.versions[v]->pass),
                            index.size() - static_cast<std::size_t>(absent), 0, 0, 0, std::nullopt,
                            -1, "", false});
    }
    for (const UnionNode& node : graph_.nodes) {
      if (node.first > 0) ++out_.steps[node.first].added;
      if (node.last + 1 < out_.steps.size()) ++out_.steps[node.last + 1].removed;
      for (const std::uint32_t v : node.changed) ++out_.steps[v].changed;
    }
  }

  /// The n-th pass of the journal made version n + 1, as long as the names agree.
  void read_journal() {
    find_positions();
    std::uint32_t version = 0;
    bool known = false;
    for (const JournalEvent& event : *input_.journal) {
      if (const auto* begin = std::get_if<PassBegin>(&event)) {
        known =
            version + 1 < out_.steps.size() && clean(begin->pass) == out_.steps[version + 1].pass;
        if (known) out_.steps[++version].matches = 0;
      } else if (const auto* end = std::get_if<PassEnd>(&event)) {
        if (known) out_.steps[version].seconds = end->seconds;
        finish(version, known);
      } else if (const auto* match = std::get_if<MatchEvent>(&event)) {
        if (known) read_match(*match, version);
      } else if (const auto* builtin = std::get_if<BuiltinEvent>(&event)) {
        if (known && !builtin->erased.empty())
          out_.rewrites.push_back({"", version, {}, {}, touched(builtin->erased), {}});
      }
    }
  }

  void read_match(const MatchEvent& match, std::uint32_t version) {
    out_.steps[version].matches = out_.steps[version].matches.value_or(0) + 1;
    const std::string rule = input_.rules != nullptr
                                 ? input_.journal->rules_of(*input_.rules)[match.rule].name
                                 : "a rule";
    ++rules_[rule];
    Rewrite rewrite{
        rule, version, touched(match.matched), touched(match.created), touched(match.erased), {}};
    for (const auto& [name, value] : match.bindings)
      rewrite.bindings.emplace_back(name, source_of(version, value));
    out_.rewrites.push_back(std::move(rewrite));
  }

  /// Graphs from files only have names; the n-th pass made version n.
  void read_names(const std::vector<NamedRewrite>& journal) {
    std::map<std::string, Source> values;
    std::map<std::string, std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < links_.inputs.size(); ++i)
      values[links_.inputs[i].name] = {Source::Kind::input, i, 0, {}};
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      const UnionNode& node = graph_.nodes[at];
      const Graph& g = graph_.graph_of(node);
      nodes[std::string(g.node_name(node.id))] = at;
      for (std::uint32_t r = 0; r < g.result_count(node.id); ++r)
        values[clean(g.value_name(g.result(node.id, r)))] = {Source::Kind::node, at, r, {}};
    }
    std::uint32_t unknown = 0;
    const auto touched = [&](const std::vector<std::string>& names) {
      std::vector<Touched> out;
      for (const std::string& name : names) {
        const auto found = nodes.find(name);
        out.push_back({found == nodes.end() ? kNobody : found->second, NodeId(unknown)});
        unknown += found == nodes.end() ? 1 : 0;
      }
      return out;
    };
    std::uint32_t version = 0;
    for (const NamedRewrite& event : journal) {
      if (event.pass == 0 || event.pass >= out_.steps.size()) continue;
      if (event.pass != version) finish(version, version > 0);
      version = event.pass;
      Rewrite rewrite{event.rule,
                      version,
                      touched(event.matched),
                      touched(event.created),
                      touched(event.erased),
                      {}};
      for (const auto& [name, value] : event.bindings) {
        const auto found = values.find(clean(value));
        rewrite.bindings.emplace_back(name, found == values.end() ? Source() : found->second);
      }
      if (!event.rule.empty()) {
        ++rules_[event.rule];
        out_.steps[version].matches = out_.steps[version].matches.value_or(0) + 1;
      }
      out_.rewrites.push_back(std::move(rewrite));
    }
    finish(version, version > 0);
  }

  /// Ids are never reused, so one table serves all versions.
  void find_positions() {
    for (std::size_t v = 0; v < graph_.versions.size(); ++v) {
      const auto& index = graph_.index[v];
      if (position_.size() < index.size()) position_.resize(index.size(), kNobody);
      for (std::size_t id = 0; id < index.size(); ++id)
        if (index[id] != kNobody) position_[id] = index[id];
    }
  }

  [[nodiscard]] std::vector<Touched> touched(const std::vector<NodeId>& nodes) const {
    std::vector<Touched> out;
    for (const NodeId n : nodes)
      out.push_back({n.index < position_.size() ? position_[n.index] : kNobody, n});
    return out;
  }

  /// A matched value belongs to the previous version, a new one to the version itself.
  [[nodiscard]] Source source_of(std::uint32_t version, ValueId v) const {
    for (const std::uint32_t at : {version - 1, version}) {
      const Graph& graph = graph_.versions[at]->graph;
      if (!v.valid() || v.index >= graph.value_bound()) continue;
      if (graph.is_input(v)) return {Source::Kind::input, links_.input_number[at][v.index], 0, v};
      const NodeId n = graph.producer(v);
      const std::uint32_t node = graph_.position(at, n);
      if (node != kNobody)
        return {Source::Kind::node, node, static_cast<std::uint32_t>(graph.result_index(v)), v};
    }
    return {};
  }

  void finish(std::uint32_t version, bool known) {
    std::string text;
    for (const auto& [rule, count] : rules_)
      text += (text.empty() ? "" : ", ") + rule + " ×" + std::to_string(count);
    if (known) out_.steps[version].rules = clean(text);
    rules_.clear();
  }

  void hide_idle() {
    for (std::size_t v = 1; v < out_.steps.size(); ++v) {
      Step& step = out_.steps[v];
      step.hidden = step.added + step.removed + step.changed + step.matches.value_or(0) == 0;
    }
    const auto moved = [&](const Link& link, std::uint32_t first, std::uint32_t last) {
      if (link.first > first) out_.steps[link.first].hidden = false;
      if (link.last < last) out_.steps[link.last + 1].hidden = false;
    };
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at)
      for (const Link& link : links_.of(at))
        moved(link, graph_.nodes[at].first, graph_.nodes[at].last);
    for (const Link& link : links_.outputs)
      moved(link, 0, static_cast<std::uint32_t>(graph_.versions.size() - 1));
  }

  const VizInput& input_;
  const UnionGraph& graph_;
  const Links& links_;
  Timeline out_;
  std::map<std::string, std::size_t> rules_;
  std::vector<std::uint32_t> position_;  // by node id
};

}  // namespace

Timeline make_timeline(const VizInput& input, const UnionGraph& graph, const Links& links) {
  return Reader(input, graph, links).run();
}

}  // namespace pw::viz

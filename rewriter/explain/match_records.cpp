#include "rewriter/explain/match_records.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/characters.hpp"
#include "graph/text/text.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {
namespace {

using Fate = MatchRecord::Fate;

std::string names_of(const SeenMatch& seen) {
  std::string out = seen.rule_name;
  for (const SeenNode& node : seen.nodes) out += " %" + node.name;
  return out;
}

/// Records the loss of an alternative. The kept alternative's effect on the match is its outcome,
/// not the reason why it was not applied.
void lose_alternative(MatchRecord& record, Reason why) {
  if (record.loss) {
    why.taken_by = record.loss->taken_by;
    why.at = record.loss->at;
    record.notes.push_back(record.loss->message);
  }
  record.loss = std::move(why);
  record.refusal.reset();
}

}  // namespace

SeenNode see(const Graph& graph, NodeId node) {
  SeenNode out{node, std::string(graph.node_name(node)), graph.op_of(node).name, "", {}};
  if (graph.alive(node)) out.text = print_node(graph, node);
  out.names.push_back(out.name);
  for (std::size_t i = 0; i < graph.result_count(node); ++i)
    out.names.emplace_back(graph.value_name(graph.result(node, i)));
  return out;
}

std::string named(const SeenNode& node) { return fmt::format("%{} ({})", node.name, node.op); }

std::string without_numbers(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (!is_digit(c))
      out += c;
    else if (out.empty() || out.back() != '*')
      out += '*';
  }
  return out;
}

std::string describe(const RewriteStep& step) {
  return fmt::format("`{}` at step {} of pass `{}`", step.name, step.step, step.pass);
}

SeenMatch seen_match(const Graph& graph, const Rule& rule, const RuleLayout& layout,
                     const Match& match) {
  SeenMatch out;
  out.rule = layout.id;
  out.rule_name = rule.name;
  out.base_name = rule.base_name;
  out.span = rule.name_span;
  out.pattern = match.nodes;
  for (NodeId n : all_nodes(match))
    if (n.valid()) out.nodes.push_back(see(graph, n));
  out.own = own_nodes(graph, layout, match);
  const NodeId front = out.own.front();
  while (out.front + 1 < out.nodes.size() && out.nodes[out.front].id != front) ++out.front;
  out.place = without_numbers(graph.group(front));
  return out;
}

SeenMatch seen_match(const Graph& graph, const Rule& rule, const MatchEvent& event) {
  SeenMatch out;
  out.rule = event.rule;
  out.rule_name = rule.name;
  out.base_name = rule.base_name;
  out.span = rule.name_span;
  for (NodeId n : event.matched)
    if (n.valid()) out.nodes.push_back(see(graph, n));
  out.own = event.erased;
  if (!out.nodes.empty()) out.place = without_numbers(graph.group(out.nodes.front().id));
  return out;
}

std::vector<NodeId> by_id(std::vector<NodeId> nodes) {
  std::erase_if(nodes, [](NodeId n) { return !n.valid(); });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

std::optional<std::size_t> MatchRecords::find(RuleId rule, const std::vector<NodeId>& nodes) const {
  const auto known = known_.find({rule, by_id(nodes)});
  return known == known_.end() ? std::nullopt : std::optional(known->second);
}

std::size_t MatchRecords::stand(std::optional<std::size_t> known, const std::vector<NodeId>& nodes,
                                std::shared_ptr<const SeenMatch> seen) {
  if (!known) {
    known = records_.size();
    known_.emplace(Key{seen->rule, by_id(nodes)}, *known);
    records_.emplace_back();
    records_.back().seen = std::move(seen);
  }
  MatchRecord& record = records_[*known];
  record.fate = Fate::standing;
  record.loss.reset();
  record.missed_by.clear();
  for (const SeenNode& node : record.seen->nodes)
    at_node_[node.id.index].push_back(static_cast<std::uint32_t>(*known));
  return *known;
}

void MatchRecords::leave(std::size_t record, MatchRecord::Fate fate) {
  records_[record].fate = fate;
  for (const SeenNode& node : records_[record].seen->nodes) {
    const auto at = at_node_.find(node.id.index);
    if (at == at_node_.end()) continue;
    std::erase(at->second, static_cast<std::uint32_t>(record));
    if (at->second.empty()) at_node_.erase(at);
  }
}

std::vector<std::uint32_t> MatchRecords::standing_at(NodeId node) const {
  const auto at = at_node_.find(node.index);
  return at == at_node_.end() ? std::vector<std::uint32_t>() : at->second;
}

std::vector<MatchRecord> MatchRecords::outcomes_since(const MatchRecords& before) const {
  std::vector<MatchRecord> out;
  for (std::size_t i = 0; i < records_.size(); ++i)
    if (i >= before.records_.size() || records_[i].fate != before.records_[i].fate ||
        records_[i].why.has_value() != before.records_[i].why.has_value())
      out.push_back(records_[i]);
  return out;
}

std::set<std::string> MatchRecords::names() const {
  std::set<std::string> out;
  for (const MatchRecord& record : records_) out.insert(names_of(*record.seen));
  return out;
}

void MatchRecords::add_undone(const MatchRecord& outcome, const Reason& why,
                              const std::set<std::string>& reported) {
  Reason reason = why;
  reason.at = outcome.seen->front;
  std::vector<NodeId> nodes;
  for (const SeenNode& node : outcome.seen->nodes) nodes.push_back(node.id);
  const std::optional<std::size_t> known = find(outcome.seen->rule, nodes);
  if (known && records_[*known].seen == outcome.seen) {
    MatchRecord& record = records_[*known];
    if (record.fate == Fate::applied) return;
    if (record.fate == Fate::lost) return lose_alternative(record, std::move(reason));
    if (outcome.fate == Fate::applied || outcome.fate == Fate::replaced) {
      record.why = std::move(reason);
      return;
    }
    record.why = outcome.fate == Fate::lost ? outcome.loss : outcome.why;
    if (!record.why) return;
    record.why->undone_by = why.undone_by;
    record.notes.push_back(why.message);
    return;
  }
  if (outcome.fate != Fate::applied || reported.contains(names_of(*outcome.seen))) return;
  MatchRecord closed = outcome;
  closed.fate = Fate::lost;
  closed.applied.reset();
  closed.loss = std::move(reason);
  records_.push_back(std::move(closed));
}

}  // namespace pw

// An object a line, `event` first. Nodes are {id, name, op}, values {id, name}; ids are those of
// the graph the journal was made on.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "graph/text/text.hpp"
#include "rewriter/strategies/journal.hpp"

namespace pw {
namespace {

using Json = nlohmann::ordered_json;

class EventWriter {
 public:
  EventWriter(const Graph& graph, RunRules rules, bool times)
      : graph_(graph), rules_(std::move(rules)), times_(times) {}

  [[nodiscard]] Json operator()(const PassBegin& e) const {
    return pass("pass_begin", e.pass, e.hash, e.nodes);
  }
  [[nodiscard]] Json operator()(const PassEnd& e) const {
    Json out = pass("pass_end", e.pass, e.hash, e.nodes);
    if (times_) out["seconds"] = e.seconds;
    return out;
  }
  [[nodiscard]] Json operator()(const MatchEvent& e) const {
    Json bindings = Json::object();
    for (const auto& [name, value] : e.bindings) bindings[name] = this->value(value);
    return {{"event", "match"},     {"rule", rules_[e.rule].name}, {"matched", nodes(e.matched)},
            {"bindings", bindings}, {"created", nodes(e.created)}, {"erased", nodes(e.erased)}};
  }
  [[nodiscard]] Json operator()(const BuiltinEvent& e) const {
    return {{"event", "builtin"}, {"pass", e.pass}, {"erased", nodes(e.erased)}};
  }

 private:
  static Json pass(const char* event, const std::string& name, std::uint64_t hash,
                   std::size_t nodes) {
    Json out{{"event", event}, {"pass", name}};
    if (hash != 0) out["hash"] = fmt::format("{:016x}", hash);
    out["nodes"] = nodes;
    return out;
  }
  [[nodiscard]] Json value(ValueId v) const {
    return {{"id", v.index}, {"name", graph_.value_name(v)}};
  }
  [[nodiscard]] Json nodes(const std::vector<NodeId>& ids) const {
    Json out = Json::array();
    for (NodeId n : ids)
      out.push_back({{"id", n.index}, {"name", graph_.node_name(n)}, {"op", graph_.op_of(n).name}});
    return out;
  }
  const Graph& graph_;
  RunRules rules_;
  bool times_;
};

}  // namespace

std::string journal_to_json_lines(const Journal& journal, const Graph& graph, const RuleSet& rules,
                                  bool times) {
  std::string out;
  EventWriter writer(graph, journal.rules_of(rules), times);
  for (const JournalEvent& event : journal)
    out += std::visit(writer, event).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return out;
}

}  // namespace pw

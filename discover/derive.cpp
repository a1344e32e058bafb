// Tests derivability by equality saturation: both forms are outputs of one graph, and a `saturate`
// pass with the known rules must merge them. Several passes with increasing limits run in turn, the
// cheapest first. Only rules whose ops all occur in the forms are loaded, because the limit on
// nodes would otherwise be reached early. Loaded rule sets are cached by their ops. A negative
// answer means that the limits were reached or the rules do not suffice.
#include "discover/derive.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dsl/dsl.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::discover {
namespace {

/// Limits of the search. The first tries one step from each side, because most pairs are instances
/// of one rule. With many rules, deeper searches reach their node limit before they find it.
struct Reach {
  const char* pass;
  bool both;  ///< directions; with one there are fewer forms, so that limits reach further
  int nodes, rounds;
};
constexpr Reach kReaches[] = {
    {"near", true, 2000, 1}, {"forward", false, 400, 4}, {"all", true, 1000, 2}};

std::vector<OpId> sorted(std::vector<OpId> ops) {
  std::sort(ops.begin(), ops.end());
  ops.erase(std::unique(ops.begin(), ops.end()), ops.end());
  return ops;
}

std::vector<OpId> ops_of(const Graph& graph) {
  std::vector<OpId> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) out.push_back(graph.op(n));
  return sorted(std::move(out));
}

}  // namespace

void Derivations::add(const std::vector<std::string>& directions, std::vector<OpId> ops) {
  Known rule;
  for (const std::string& text : directions) {
    // `rule NAME {`: assigns a unique name.
    const std::string name = fmt::format("r{}", names_++);
    const std::string renamed = "rule " + name + text.substr(text.find(" {"));
    // Not every rule can be reversed: `cat(split(x)) => x` has no ops on the right.
    if (!load_rule_texts(context_, {{name, renamed}})) continue;
    rule.names.push_back(name);
    rule.text += renamed;
  }
  if (rule.names.empty()) rule.out = true;
  rule.ops = sorted(std::move(ops));
  rules_.push_back(std::move(rule));
}

void Derivations::leave_out(std::size_t rule, bool out) { rules_[rule].out = out; }

std::size_t Derivations::left_out() const {
  return static_cast<std::size_t>(
      std::count_if(rules_.begin(), rules_.end(), [](const Known& rule) { return rule.out; }));
}

const Derivations::Edition* Derivations::edition(const std::vector<OpId>& ops) {
  std::vector<std::size_t> rules;
  for (std::size_t i = 0; i < rules_.size(); ++i)
    if (!rules_[i].out &&
        std::includes(ops.begin(), ops.end(), rules_[i].ops.begin(), rules_[i].ops.end()))
      rules.push_back(i);
  if (rules.empty()) return nullptr;
  Edition& out = editions_[ops];
  if (out.rules == rules) return out.loads ? &out : nullptr;
  out = {};
  out.rules = std::move(rules);
  std::string text;
  std::vector<std::string> names, forward;
  for (std::size_t i : out.rules) {
    text += rules_[i].text;
    forward.push_back(rules_[i].names.front());
    names.insert(names.end(), rules_[i].names.begin(), rules_[i].names.end());
  }
  for (const Reach& reach : kReaches)
    text += fmt::format("pass {} = saturate {{ {} }} nodes {} rounds {} cost nodes\n", reach.pass,
                        fmt::join(reach.both ? names : forward, ", "), reach.nodes, reach.rounds);
  auto set = load_rule_texts(context_, {{fmt::format("earlier rules {}", texts_++), text}});
  if (!set) return nullptr;
  out.set = std::move(*set);
  auto params = bind_params(out.set, {});
  if (!params) return nullptr;
  out.params = std::move(*params);
  out.loads = true;
  return &out;
}

bool Derivations::derives(const Pair& pair) {
  Graph graph(context_, "both");
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < pair.inputs.size(); ++i)
    inputs.push_back(graph.add_input(fmt::format("x{}", i), pair.inputs[i],
                                     pair.weight(i) ? InputKind::weight : InputKind::input));
  for (const Form* form : {&pair.before, &pair.after}) {
    const auto outputs = add_to(graph, *form, inputs);
    if (!outputs) return false;
    for (ValueId output : *outputs) graph.add_output(output);
  }
  return joined(graph, pair.before.outputs.size(), ops_of(graph));
}

bool Derivations::derives(Graph graph, std::size_t pairs) {
  if (joined(graph, pairs, ops_of(graph))) return true;
  std::vector<OpId> all = ops_of(graph);
  for (const Known& rule : rules_) all.insert(all.end(), rule.ops.begin(), rule.ops.end());
  return joined(graph, pairs, sorted(std::move(all)));
}

bool Derivations::joined(const Graph& graph, std::size_t pairs, const std::vector<OpId>& ops) {
  const Edition* rules = edition(ops);
  if (!rules) return false;
  for (const Reach& reach : kReaches) {
    Graph copy = graph;
    if (!run_pipeline(copy, rules->set, reach.pass, rules->params)) continue;
    bool all = true;
    for (std::size_t i = 0; i < pairs; ++i)
      all = all && copy.outputs()[i] == copy.outputs()[pairs + i];
    if (all) return true;
  }
  return false;
}

}  // namespace pw::discover

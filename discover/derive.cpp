// Exports Derivations.
#include "discover/derive.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dsl/dsl.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::discover {
namespace {

constexpr int kNodes = 240, kRounds = 4;

}  // namespace

void Derivations::add(const std::vector<std::string>& directions) {
  Known rule;
  for (const std::string& text : directions) {
    // `rule NAME {`: each gets a name of its own here.
    rule.names.push_back(fmt::format("r{}", names_++));
    rule.text += "rule " + rule.names.back() + text.substr(text.find(" {"));
  }
  rules_.push_back(std::move(rule));
  stale_ = true;
}

void Derivations::leave_out(std::size_t rule, bool out) {
  rules_[rule].out = out;
  stale_ = true;
}

std::size_t Derivations::left_out() const {
  return static_cast<std::size_t>(
      std::count_if(rules_.begin(), rules_.end(), [](const Known& rule) { return rule.out; }));
}

bool Derivations::load() {
  if (!stale_) return true;
  std::string text;
  std::vector<std::string> names, forward;
  for (const Known& rule : rules_) {
    if (rule.out) continue;
    text += rule.text;
    forward.push_back(rule.names.front());
    names.insert(names.end(), rule.names.begin(), rule.names.end());
  }
  for (const auto& [pass, rules] : {std::pair("forward", &forward), std::pair("all", &names)})
    text += fmt::format("pass {} = saturate {{ {} }} nodes {} rounds {} cost nodes\n", pass,
                        fmt::join(*rules, ", "), kNodes, kRounds);
  auto set = load_rule_texts(context_, {{fmt::format("earlier rules {}", editions_++), text}});
  if (!set) return false;
  set_ = std::move(*set);
  auto params = bind_params(set_, {});
  if (!params) return false;
  params_ = std::move(*params);
  stale_ = false;
  return true;
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
  return derives(std::move(graph), pair.before.outputs.size());
}

bool Derivations::derives(Graph graph, std::size_t pairs) {
  if (left_out() == rules_.size() || !load()) return false;
  // With one direction of each rule there are fewer forms, so that limits reach further.
  return joined(graph, pairs, "forward") || joined(std::move(graph), pairs, "all");
}

bool Derivations::joined(Graph graph, std::size_t pairs, const char* pass) const {
  if (!run_pipeline(graph, set_, pass, params_)) return false;
  for (std::size_t i = 0; i < pairs; ++i)
    if (graph.outputs()[i] != graph.outputs()[pairs + i]) return false;
  return true;
}

}  // namespace pw::discover

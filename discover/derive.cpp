// Exports Derivations.
#include "discover/derive.hpp"

#include <fmt/format.h>

#include "dsl/dsl.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::discover {
namespace {

constexpr int kNodes = 240, kRounds = 4;

}  // namespace

void Derivations::add(std::vector<std::string> rules) {
  for (const std::string& rule : rules) {
    // `rule NAME {`: each gets a name of its own here.
    const std::string name = fmt::format("r{}", rules_++);
    text_ += "rule " + name + rule.substr(rule.find(" {"));
    names_ += (names_.empty() ? "" : ", ") + name;
  }
  stale_ = true;
}

bool Derivations::derives(const Pair& pair) {
  Graph graph(context_, "both");
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < pair.inputs.size(); ++i)
    inputs.push_back(graph.add_input(fmt::format("x{}", i), pair.inputs[i], InputKind::input));
  for (const Form* form : {&pair.before, &pair.after}) {
    const auto outputs = add_to(graph, *form, inputs);
    if (!outputs) return false;
    for (ValueId output : *outputs) graph.add_output(output);
  }
  return derives(std::move(graph), pair.before.outputs.size());
}

bool Derivations::derives(Graph graph, std::size_t pairs) {
  if (names_.empty()) return false;
  if (stale_) {
    const std::string text =
        fmt::format("{}pass all = saturate {{ {} }} nodes {} rounds {} cost nodes\n", text_, names_,
                    kNodes, kRounds);
    auto set = load_rule_texts(context_, {{fmt::format("earlier rules {}", editions_++), text}});
    if (!set) return false;
    set_ = std::move(*set);
    auto params = bind_params(set_, {});
    if (!params) return false;
    params_ = std::move(*params);
    stale_ = false;
  }
  if (!run_pipeline(graph, set_, "all", params_)) return false;
  for (std::size_t i = 0; i < pairs; ++i)
    if (graph.outputs()[i] != graph.outputs()[pairs + i]) return false;
  return true;
}

}  // namespace pw::discover

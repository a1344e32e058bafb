// States the e-graph as a DAG extraction problem (rewriter/extract), which counts a shared node
// once. A node of several results is its own class with that one node; each result derives from it
// at no cost, so that it is paid once. An input is a node of cost 0. Among graphs of equal cost the
// one with the fewest nodes is best: costs are multiplied, and each node adds one.
#include "rewriter/egraph/extraction.hpp"

#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "rewriter/extract/solve.hpp"

namespace pw {

Extracting::Extracting(const Graph& graph, const EGraph& equal,
                       const std::function<std::int64_t(NodeId)>& cost)
    : graph_(graph), equal_(equal), least_(static_cast<double>(equal.forms().size() + 1)) {
  for (NodeId n : equal.forms()) {
    costs_[n] = cost(n);
    unit_ = std::gcd(unit_, costs_[n]);
  }
  unit_ = std::max<std::int64_t>(unit_, 1);
  for (ValueId input : graph.inputs()) {
    problem_.add_node(class_of(input), 0, {});
    values_.push_back(input);
    origins_.emplace_back();
  }
  for (NodeId n : equal.forms()) add(n);
  for (ValueId output : graph.outputs()) problem_.roots.push_back(class_of(output));
}

std::optional<Extraction> Extracting::run(const std::vector<std::vector<NodeId>>& known) {
  std::vector<extract::Choice> choices;
  for (const std::vector<NodeId>& nodes : known) choices.push_back(choice_of(nodes));
  const std::optional<extract::Answer> answer = extract::solve(problem_, choices);
  if (!answer) return std::nullopt;
  Extraction out;
  std::set<NodeId> seen;
  for (extract::ClassIndex c : answer->needed) {
    const ValueId value = values_[answer->choice[c]];
    if (!value.valid()) continue;  // of several results; each also has a class
    out.chosen[equal_.find(value)] = value;
    if (graph_.is_input(value) || !seen.insert(graph_.producer(value)).second) continue;
    out.nodes.push_back(graph_.producer(value));
    out.cost += costs_.at(graph_.producer(value));
  }
  out.exact = answer->exact;
  out.bound = answer->exact ? out.cost : least_cost(answer->bound);
  out.parts = answer->parts;
  out.like_parts = answer->like_parts;
  for (const auto& nodes : problem_.classes)
    if (nodes.size() > 1) out.ways += std::log10(static_cast<double>(nodes.size()));
  return out;
}

extract::NamedProblem Extracting::named() const {
  extract::NamedProblem out{problem_, {}, {}, {}};
  for (std::size_t c = 0; c < problem_.classes.size(); ++c)
    out.classes.push_back(fmt::format("c{}", c));
  for (std::size_t i = 0; i < origins_.size(); ++i) {
    const NodeId n = origins_[i];
    out.nodes.push_back(fmt::format("n{}", i));
    out.ops.emplace_back(n.valid() ? graph_.op_of(n).name : graph_.value_name(values_[i]));
    const bool paid = n.valid() && (whole_.contains(n) ? !values_[i].valid() : true);
    out.problem.nodes[i].cost = paid ? static_cast<double>(costs_.at(n)) : 0;
  }
  return out;
}

extract::ClassIndex Extracting::class_of(ValueId v) {
  const auto [at, fresh] = classes_.try_emplace(equal_.find(v), 0);
  if (fresh) at->second = problem_.add_class();
  return at->second;
}

void Extracting::add(NodeId n) {
  std::vector<extract::ClassIndex> children;
  for (ValueId v : graph_.operands(n))
    if (v.valid()) children.push_back(class_of(v));
  const double cost = static_cast<double>(costs_.at(n) / unit_) * least_ + 1;
  if (graph_.result_count(n) == 1) {
    add_value(graph_.result(n), cost, std::move(children));
    return;
  }
  const extract::ClassIndex all = problem_.add_class();
  whole_[n] = problem_.add_node(all, cost, std::move(children));
  values_.emplace_back();
  origins_.push_back(n);
  for (std::size_t i = 0; i < graph_.result_count(n); ++i) add_value(graph_.result(n, i), 0, {all});
}

void Extracting::add_value(ValueId value, double cost, std::vector<extract::ClassIndex> children) {
  indices_[value] = problem_.add_node(class_of(value), cost, std::move(children));
  values_.push_back(value);
  origins_.push_back(graph_.producer(value));
}

extract::Choice Extracting::choice_of(const std::vector<NodeId>& nodes) const {
  extract::Choice out(problem_.classes.size(), extract::kNone);
  const auto choose = [&](extract::NodeIndex n) { out[problem_.nodes[n].owner] = n; };
  for (NodeId n : nodes) {
    if (!n.valid() || !graph_.alive(n)) continue;
    for (std::size_t i = 0; i < graph_.result_count(n); ++i)
      if (const auto at = indices_.find(graph_.result(n, i)); at != indices_.end())
        choose(at->second);
    if (const auto at = whole_.find(n); at != whole_.end()) choose(at->second);
  }
  for (extract::NodeIndex i = 0; i < graph_.inputs().size(); ++i) choose(i);
  return out;
}

/// Returns the least cost in the given unit, net of the tie-breaking count of nodes.
std::int64_t Extracting::least_cost(double bound) const {
  const double units = std::ceil((bound - (least_ - 1)) / least_ - 1e-6);
  return static_cast<std::int64_t>(std::max(units, 0.0)) * unit_;
}

}  // namespace pw

#include "verify/traits.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/eager/eager.hpp"
#include "dsl/dsl.hpp"
#include "dsl/embedded_rules.hpp"
#include "dsl/syntax/walk.hpp"
#include "exec/runner.hpp"
#include "graph/text/text.hpp"
#include "tensor/numerics.hpp"
#include "verify/samples/sample.hpp"

namespace pw {
namespace {

constexpr const char* kCommutative = "commutative";
constexpr const char* kAssociative = "associative";
constexpr const char* kView = "view";
constexpr const char* kPointwise = "pointwise";

/// The least number of operands of a call: an empty list needs only the first two.
std::size_t arity(const Op& op) {
  const bool list = !op.operands.empty() && op.operands.back().variadic;
  return list ? std::max<std::size_t>(op.operands.size() - 1, 2) : op.operands.size();
}

/// Attributes named after themselves, so that two calls have the same.
std::string attributes_of(const Op& op) {
  std::vector<std::string> names;
  for (const AttributeDecl& attribute : op.attributes)
    names.push_back(fmt::format("{} = a{}", print_word(attribute.name), names.size()));
  return names.empty() ? "" : fmt::format("{{{}}}", fmt::join(names, ", "));
}

/// `f(x0, x1, x2)`, the first ones as given.
std::string call_of(const Op& op, std::vector<std::string> operands) {
  while (operands.size() < arity(op)) operands.push_back(fmt::format("x{}", operands.size()));
  return fmt::format("{}({}){}", print_path(op.name), fmt::join(operands, ", "), attributes_of(op));
}

std::string results_of(const Op& op) {
  std::vector<std::string> names;
  for (const ResultDecl& result : op.results)
    names.push_back(fmt::format("y{}{}", names.size(), result.variadic ? "..." : ""));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The trait as a rule. For a view or a pointwise op it serves only to generate matching graphs.
std::string rule_of(const Op& op, std::string_view trait) {
  std::string before = call_of(op, {}), after = before;
  if (trait == kCommutative) after = call_of(op, {"x1", "x0"});
  if (trait == kAssociative) {
    before = call_of(op, {call_of(op, {}), "z"});
    after = call_of(op, {"x0", call_of(op, {"x1", "z"})});
  }
  const std::string results = results_of(op);
  return fmt::format("rule r {{ {} = {} => {} = {} }} pass p = once {{ r }}", results, before,
                     results, after);
}

/// The elements as bytes.
std::string element_at(const Tensor& tensor, std::int64_t i) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype()));
  return {reinterpret_cast<const char*>(tensor.data()) + static_cast<std::size_t>(i) * size, size};
}

std::set<std::string> elements_of(const Tensor& tensor) {
  std::set<std::string> out;
  for (std::int64_t i = 0; i < tensor.view().count(); ++i) out.insert(element_at(tensor, i));
  return out;
}

/// A graph run on one rank with generated contents.
struct SampledRun {
  Symbols symbols;
  Step step;
  Weights weights;
  std::unique_ptr<Backend> backend;
  std::vector<Tensor> outputs;
};
/// Runs the graph; returns nothing if it cannot run.
std::optional<SampledRun> run_sampled(const Graph& graph, RuleCheck& report) {
  constexpr std::int64_t kTokens = 7;
  const Symbols symbols = sample_symbols(graph, kTokens);
  const Step step = sample_step(graph, symbols);
  std::vector<Weights> weights = weights_of_ranks(graph, 1, 1);
  if (!give_contents(weights, graph, symbols, Contents::ordinary, 1)) return std::nullopt;
  auto backend = make_eager();
  auto outputs = run_whole(graph, *backend, weights.front(), step, symbols);
  if (!outputs) return std::nullopt;
  ++report.runs;
  return SampledRun{symbols, step, std::move(weights.front()), std::move(backend),
                    std::move(*outputs)};
}

/// Returns true if all results of a graph of one node hold nothing but elements of its inputs.
void check_view(const Graph& graph, RuleCheck& report) {
  auto ran = run_sampled(graph, report);
  if (!ran) return;
  std::set<std::string> known;
  for (const ValueId input : graph.inputs())
    if (auto tensor = ran->weights.tensor(graph.value_name(input), ran->symbols, ran->step))
      known.merge(elements_of(*tensor));
  for (std::size_t i = 0; i < ran->outputs.size(); ++i)
    for (const std::string& element : elements_of(ran->outputs[i]))
      if (!known.contains(element))
        return report.judgement.refute(fmt::format(
            "{} contains {}, which is not an element of the viewed value\n{}",
            graph.value_name(graph.outputs()[i]),
            load(ran->outputs[i].dtype(), reinterpret_cast<const std::byte*>(element.data()), 0),
            print_pwg(graph)));
}

Tensor copy_of(const Tensor& tensor) {
  Tensor out(tensor.dtype(), tensor.extents());
  std::memcpy(out.data(), tensor.data(), tensor.view().bytes());
  return out;
}

void put_element(const Tensor& tensor, std::int64_t i, const std::string& bytes) {
  std::memcpy(tensor.data() + static_cast<std::size_t>(i) * bytes.size(), bytes.data(),
              bytes.size());
}

/// Checks that each element of a result depends only on the elements at its position. Changes one
/// element of an input and compares all other positions; skips inputs of other extents, which
/// broadcast. Then gives every input one constant, so that the results must be constant too.
void check_elements(const Graph& graph, RuleCheck& report) {
  auto ran = run_sampled(graph, report);
  if (!ran) return;
  const auto refute = [&](std::string why) {
    report.judgement.refute(why + "\n" + print_pwg(graph));
  };
  const auto input_tensor = [&](const std::string& name) {
    return ran->weights.tensor(name, ran->symbols, ran->step);
  };
  const auto run_with = [&](Weights& weights) {
    return run_whole(graph, *ran->backend, weights, ran->step, ran->symbols);
  };
  for (const ValueId input : graph.inputs()) {
    const std::string name(graph.value_name(input));
    auto tensor = input_tensor(name);
    const std::int64_t count = tensor ? tensor->view().count() : 0;
    if (!tensor || count < 2 || tensor->extents() != ran->outputs.front().extents()) continue;
    for (const std::int64_t place : {std::int64_t{0}, count / 2, count - 1}) {
      const Tensor other = copy_of(*tensor);
      put_element(other, place, element_at(*tensor, (place + 1) % count));
      Weights changed = ran->weights;
      changed.give(name, other);
      const auto after = run_with(changed);
      if (!after) return;
      for (std::size_t k = 0; k < after->size(); ++k)
        for (std::int64_t i = 0; i < count && (*after)[k].view().count() == count; ++i)
          if (i != place && element_at((*after)[k], i) != element_at(ran->outputs[k], i))
            return refute(fmt::format("element {} of {} changes with element {} of {}", i,
                                      graph.value_name(graph.outputs()[k]), place, name));
    }
  }
  Weights equal = ran->weights;
  for (const ValueId input : graph.inputs()) {
    const std::string name(graph.value_name(input));
    auto tensor = input_tensor(name);
    if (!tensor) continue;
    const Tensor other = copy_of(*tensor);
    for (std::int64_t i = 0; i < other.view().count(); ++i)
      put_element(other, i, element_at(*tensor, 0));
    equal.give(name, other);
  }
  const auto same = run_with(equal);
  for (std::size_t k = 0; same && k < same->size(); ++k)
    if (elements_of((*same)[k]).size() > 1)
      return refute(fmt::format("{} depends on the position of an element",
                                graph.value_name(graph.outputs()[k])));
}

RuleCheck check_each_graph(const RuleSet& rules, RuleId rule, const RuleCheckOptions& options,
                           void (*check)(const Graph&, RuleCheck&)) {
  RuleCheck report;
  report.ranks = {1};
  const Instances instances = make_instances(rules, rule, {}, options.instances);
  for (const Instance& instance : instances.found) {
    ++report.instances;
    if (report.judgement.holds()) check(instance.graph, report);
  }
  if (report.runs > 0 || !report.judgement.holds()) return report;
  report.judgement.verdict = RuleVerdict::no_instance;
  report.judgement.reason = "none of its graphs runs; " + instances.why;
  return report;
}

/// Returns nothing if the rule cannot be written because results and operands differ in type.
void check_trait(const ContextPtr& context, const Op& op, const char* trait,
                 const RuleCheckOptions& options, std::vector<RuleCheck>& out) {
  LoadOptions load;
  load.library = false;
  const auto rules =
      load_rule_texts(context, {{fmt::format("{}.pwr", trait), rule_of(op, trait)}}, load);
  if (!rules) return;
  const RuleId rule = rules->resolve("r").at(0);
  RuleCheckOptions ordinary = options;
  ordinary.contents = {Contents::ordinary};
  RuleCheck check;
  if (trait == kView)
    check = check_each_graph(*rules, rule, options, check_view);
  else if (trait == kPointwise)
    check = check_each_graph(*rules, rule, options, check_elements);
  else
    check = check_rule(*rules, rule, {}, trait == kAssociative ? ordinary : options);
  check.rule = fmt::format("{} {}", trait, op.name);
  out.push_back(std::move(check));
}

void check_op(const ContextPtr& context, OpId id, const RuleCheckOptions& options,
              std::vector<RuleCheck>& out) {
  const Op op = context->ops[id];  // a copy: loading a rule may grow the table
  if (!op.has_body()) return;
  if (op.traits.commutative) check_trait(context, op, kCommutative, options, out);
  if (op.traits.associative && op.results.size() == 1 && arity(op) >= 2)
    check_trait(context, op, kAssociative, options, out);
  if (op.traits.view) check_trait(context, op, kView, options, out);
  if (op.traits.pointwise) check_trait(context, op, kPointwise, options, out);
}

std::vector<OpId> declared_in(const RuleSet& rules, bool library) {
  std::vector<OpId> out;
  for (const ast::File& file : rules.files) {
    if (!library && is_of_library(rules.context->sources.name(file.source))) continue;
    for (const ast::Item& item : file.items) {
      const auto* declared = std::get_if<ast::OpItem>(&item);
      const OpId id = declared ? rules.context->ops.find(declared->name) : OpId();
      if (id.valid()) out.push_back(id);
    }
  }
  return out;
}

/// The ops of its nodes and of their bodies.
std::vector<OpId> declared_in(const Graph& graph) {
  const OpTable& ops = graph.context().ops;
  std::set<OpId> seen;
  std::vector<OpId> work;
  const auto add = [&](OpId op) {
    if (op.valid() && ops[op].local && seen.insert(op).second) work.push_back(op);
  };
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) add(graph.op(node));
  for (std::size_t i = 0; i < work.size(); ++i)
    for (const Statement& statement : ops[work[i]].body)
      visit_calls(statement, [&](const Expr& call) { add(ops.find(call.text)); });
  return work;
}

std::vector<RuleCheck> check_all(const ContextPtr& context, const std::vector<OpId>& ops,
                                 const RuleCheckOptions& options) {
  std::vector<RuleCheck> out;
  for (const OpId op : ops) check_op(context, op, options, out);
  return out;
}

/// Few samples suffice to refute a trait that is false for almost all numbers.
RuleCheckOptions few_samples() {
  RuleCheckOptions options;
  options.instances.wanted = 3;
  options.instances.attempts = 300;
  options.tokens = {3};
  options.ranks = {2};
  options.contents = {Contents::ordinary, Contents::wide};
  return options;
}

Status refuse(const ContextPtr& context, const std::vector<OpId>& ops) {
  Diagnostics out;
  for (const OpId id : ops) {
    const Op op = context->ops[id];
    for (const RuleCheck& check : check_all(context, {id}, few_samples())) {
      if (check.judgement.verdict != RuleVerdict::refuted) continue;
      const std::string& reason = check.judgement.reason;
      out.push_back(error_at(op.span, "PW1320",
                             fmt::format("`{}` is declared `{}` but is not: {}", op.name,
                                         check.rule.substr(0, check.rule.find(' ')),
                                         reason.substr(0, reason.find('\n'))),
                             "remove the trait, or correct the body"));
    }
  }
  if (!out.empty()) return tl::unexpected<Diagnostics>(std::move(out));
  return {};
}

}  // namespace

std::vector<RuleCheck> check_traits(const RuleSet& rules, const RuleCheckOptions& options) {
  return check_all(rules.context, declared_in(rules, true), options);
}
std::vector<RuleCheck> check_traits(const Graph& graph, const RuleCheckOptions& options) {
  return check_all(graph.context_ptr(), declared_in(graph), options);
}

Status refuse_false_traits(const Graph& graph) {
  return refuse(graph.context_ptr(), declared_in(graph));
}
Status refuse_false_traits(const RuleSet& rules) {
  return refuse(rules.context, declared_in(rules, false));
}

}  // namespace pw

// Decides how a step runs: the captured size or padding comes from the plan's Dispatcher (a table
// look-up), and is then checked against the graph's facts. Invariant: no step runs with a row count
// that the facts exclude, because rules were proved under these facts; a violation fails with
// PW1207 instead. Cost: constant for the decision; padding and slicing copy a tensor once.
#include "exec/dispatch.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "graph/size_condition.hpp"
#include "tensor/array.hpp"

namespace pw {
namespace {

/// Returns the leading part of a buffer: extents of the valid rows, strides of the padded ones.
Array leading_part(const TensorView& buffer, const Extents& extents) {
  Array part = array_of(buffer);
  part.extents = extents;
  return part;
}

Result<StepReport> inside_facts(const Plan& plan, const Graph& source, StepReport report) {
  const SymbolFact* fact = source.facts.find(plan.tokens);
  const std::int64_t rows = report.padded;
  if (fact == nullptr || (rows >= fact->min && rows <= fact->max &&
                          rows % std::max<std::int64_t>(fact->multiple, 1) == 0))
    return report;
  return fail(error_in("step", "PW1207",
                       fmt::format("would run with {} rows, but graph {} declares symbol {} in {}",
                                   rows, source.name, plan.tokens, print_range(*fact)),
                       "enable padding, or run a token count in that range"));
}

bool compare(Compare op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Compare::eq: return a == b;
    case Compare::ne: return a != b;
    case Compare::lt: return a < b;
    case Compare::le: return a <= b;
    case Compare::gt: return a > b;
    case Compare::ge: return a >= b;
  }
  return false;
}

/// Checks one condition. One without a value, such as a quotient by zero, fails in the program too.
Status check_condition(const SizeCondition& condition, const Graph& graph, const Symbols& sizes) {
  const Dims& dims = graph.context().dims;
  std::vector<std::string> names = dims.symbols(condition.left);
  for (std::string& name : dims.symbols(condition.right))
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  std::vector<std::string> stated;
  for (const std::string& name : names) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) return {};
    stated.push_back(fmt::format("{} is {}", name, size->second));
  }
  const auto left = dims.evaluate(condition.left, sizes);
  const auto right = dims.evaluate(condition.right, sizes);
  if (left && right && compare(condition.op, *left, *right)) return {};
  return fail(error_in("graph " + graph.name, "PW1210",
                       fmt::format("the program refuses these sizes: {}, where {}", condition.text,
                                   fmt::join(stated, " and ")),
                       "run sizes that meet this condition, or export the program without it"));
}

}  // namespace

Tensor padded(const Tensor& tensor, const Extents& extents, bool poison) {
  if (extents == tensor.extents()) return tensor;
  const Tensor whole(tensor.dtype(), extents);
  if (poison && is_float(tensor.dtype())) std::memset(whole.data(), kPoison, whole.view().bytes());
  copy(array_of(tensor.view()), leading_part(whole.view(), tensor.extents()));
  return whole;
}

Tensor cut(const TensorView& padded, const Extents& extents) {
  const Tensor part(padded.dtype, extents);
  copy(leading_part(padded, extents), array_of(part.view()));
  return part;
}

Symbols symbols_at(const Plan& plan, std::int64_t tokens, Symbols symbols) {
  for (const auto& [symbol, bound] : plan.bound) symbols.emplace(symbol, bound);
  if (!plan.tokens.empty()) symbols[plan.tokens] = tokens;
  return symbols;
}

Status check_declared(const Graph& graph, std::int64_t tokens) {
  const std::string symbol = graph.facts.tokens();
  const SymbolFact* fact = graph.facts.find(symbol);
  if (fact == nullptr || (tokens >= fact->min && tokens <= fact->max)) return {};
  return fail(error_in("graph " + graph.name, "PW1207",
                       fmt::format("a step has {} tokens, but the graph declares symbol {} in {}",
                                   tokens, symbol, print_range(*fact)),
                       tokens < fact->min ? "run more tokens, or declare a smaller minimum"
                                          : "run fewer tokens, or declare a larger maximum"));
}

Status check_conditions(const Graph& graph, Symbols sizes) {
  if (!graph.facts.conditions) return {};
  for (const auto& [symbol, fact] : graph.facts.symbols)
    if (least_value(fact) == greatest_value(fact)) sizes.emplace(symbol, least_value(fact));
  for (const SizeCondition& condition : *graph.facts.conditions)
    PW_TRY(check_condition(condition, graph, sizes));
  return {};
}

StepShape shape_of(const Step& step) {
  std::vector<std::int64_t> new_tokens;
  for (const Sequence& sequence : step.sequences) new_tokens.push_back(sequence.new_tokens);
  return shape_of(new_tokens);
}

std::string_view name(StepMode mode) { return mode == StepMode::captured ? "captured" : "eager"; }

Result<StepReport> dispatched(const Plan& plan, const Graph& source, const Dispatcher& dispatcher,
                              const Step& step, const RunOptions& options) {
  const std::int64_t tokens = step.tokens();
  const bool sized = !plan.tokens.empty();
  const std::int64_t most =
      options.rows > 0 ? std::min(options.rows, plan.max_tokens) : plan.max_tokens;
  if (sized && (tokens < 1 || tokens > most))
    return fail(error_in("step", "PW1207",
                         fmt::format("has {} tokens, but the plan supports 1..{}", tokens, most)));
  StepReport report{tokens, tokens, StepMode::eager, "padding is off"};
  if (!options.pad && sized) return inside_facts(plan, source, std::move(report));
  const StepShape shape =
      sized && options.rows > 0 ? shape_of(std::array{options.rows}) : shape_of(step);
  const Dispatch found = dispatcher.dispatch(shape);
  report.padded = shape.tokens + found.padding;
  if (found.mode != DispatchMode::none && options.captures) {
    report.mode = StepMode::captured;
    report.key = print(found.key);
    report.whole = found.mode == DispatchMode::full;
  }
  report.reason = dispatcher.explain(shape, found, options.captures);
  return inside_facts(plan, source, std::move(report));
}

}  // namespace pw

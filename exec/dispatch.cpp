// Decides how a step runs: the captured size or padding comes from the plan's Dispatcher (a table
// look-up), and is then checked against the graph's facts. Invariant: no step runs with a row count
// that the facts exclude, because rules were proved under these facts; a violation fails with
// PW1207 instead. Cost: constant for the decision; padding and slicing copy a tensor once.
#include "exec/dispatch.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "graph/infer/symbol_fact.hpp"
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

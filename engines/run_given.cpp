#include "engines/run_given.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/eager/eager.hpp"
#include "backends/program.hpp"
#include "base/try.hpp"
#include "cuda/runtime.hpp"
#include "exec/dispatch.hpp"
#include "exec/runner.hpp"
#include "exec/steps.hpp"
#include "graph/infer/symbol_fact.hpp"

namespace pw {
namespace {

std::string place_of(const Graph& graph, ValueId input) {
  return fmt::format("graph {} at input {}", graph.name, graph.value_name(input));
}

/// Solves one dim with one unknown symbol: factor * symbol + rest = extent.
class SymbolBinder {
 public:
  SymbolBinder(const Graph& graph, Symbols known) : graph_(graph), symbols_(std::move(known)) {}

  Result<Symbols> run(const GivenInputs& inputs) {
    // A dim of two symbols is solved after another dim that determines one of them.
    for (bool changed = true; changed;) {
      changed = false;
      for (ValueId input : graph_.inputs()) {
        const auto given = inputs.find(graph_.value_name(input));
        if (given == inputs.end() || graph_.type(input) == Types::unknown()) continue;
        const Shape& shape = graph_.context().types[graph_.type(input)].shape;
        const Extents& extents = given->second.extents();
        if (shape.size() != extents.size()) continue;  // bind_inputs reports it
        for (std::size_t i = 0; i < shape.size(); ++i)
          changed = bind(shape[i], extents[i]) || changed;
      }
    }
    return std::move(symbols_);
  }

 private:
  bool bind(DimId dim, std::int64_t extent) {
    Dims& dims = graph_.context().dims;
    std::vector<std::string> open;
    for (std::string& symbol : dims.symbols(dim))
      if (!symbols_.contains(symbol)) open.push_back(std::move(symbol));
    if (open.size() != 1) return false;
    const auto value = solved(dim, open.front(), extent);
    return value && symbols_.emplace(open.front(), *value).second;
  }

  std::optional<std::int64_t> solved(DimId dim, const std::string& symbol, std::int64_t extent) {
    Dims& dims = graph_.context().dims;
    if (dims.is_symbol(dim)) return extent;
    const auto line = dims.rising(dim, symbol, graph_.facts);
    if (!line) return std::nullopt;
    const auto factor = dims.evaluate(line->factor, symbols_);
    const auto rest = dims.evaluate(line->rest, symbols_);
    if (!factor || !rest || *factor == 0 || (extent - *rest) % *factor != 0) return std::nullopt;
    return (extent - *rest) / *factor;
  }

  const Graph& graph_;
  Symbols symbols_;
};

/// Kernels evaluate dims in attributes, so each needs a value.
Status check_symbols(const Graph& graph, const Symbols& symbols) {
  const Context& context = graph.context();
  std::set<std::string> open;
  const auto visit = [&](DimId dim) {
    if (context.dims.value(dim)) return;
    for (std::string& symbol : context.dims.symbols(dim))
      if (!symbols.contains(symbol)) open.insert(std::move(symbol));
  };
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    for (const auto& [name, value] : context.attributes[graph.attributes(n)]) {
      if (const auto* dim = std::get_if<DimId>(&value)) visit(*dim);
      if (const auto* list = std::get_if<std::vector<DimId>>(&value))
        std::for_each(list->begin(), list->end(), visit);
    }
  }
  if (open.empty()) return {};
  return fail(error_in("graph " + graph.name, "PW1202",
                       fmt::format("no input's extents determine {}", fmt::join(open, ", ")),
                       "pass its value with the inputs"));
}

Result<std::vector<TensorView>> views_of(const Graph& graph, const GivenInputs& inputs) {
  std::vector<TensorView> views;
  Diagnostics missing;
  for (ValueId input : graph.inputs()) {
    const auto given = inputs.find(graph.value_name(input));
    if (given != inputs.end()) {
      views.push_back(given->second.view());
      continue;
    }
    views.push_back({DType::u8, {0}, nullptr});
    if (!graph.unused(input) && !has_no_tensor(graph, input))
      missing.push_back(error_in(place_of(graph, input), "PW1203", "it has no tensor",
                                 "pass a " + graph.context().types.print(graph.type(input))));
  }
  if (!missing.empty()) return tl::unexpected<Diagnostics>(std::move(missing));
  return views;
}

Status check_inputs(const Graph& graph, const GivenInputs& inputs) {
  std::map<std::string_view, ValueId> known;
  for (ValueId v : graph.inputs()) known.emplace(graph.value_name(v), v);
  for (const auto& [name, tensor] : inputs) {
    const auto found = known.find(name);
    if (found == known.end())
      return fail(
          error_in("graph " + graph.name, "PW1203",
                   fmt::format("a tensor is passed for `{}`, which is not an input", name)));
    const TypeId type = graph.type(found->second);
    if (type == Types::unknown() || graph.context().types[type].dtype == tensor.dtype()) continue;
    return fail(error_in(place_of(graph, found->second), "PW1203",
                         fmt::format("the tensor is {}, but the graph declares {}",
                                     pw::name(tensor.dtype()), graph.context().types.print(type))));
  }
  return {};
}

/// Sizes outside the graph's facts would give wrong numbers.
Status check_ranges(const Graph& graph, const Symbols& symbols) {
  for (const auto& [symbol, value] : symbols) {
    const SymbolFact* fact = graph.facts.find(symbol);
    if (fact == nullptr || (value >= fact->min && value <= fact->max)) continue;
    return fail(error_in("graph " + graph.name, "PW1207",
                         fmt::format("{} is {} here, but the graph declares it in {}", symbol,
                                     value, print_range(*fact)),
                         "pass tensors of a size in that range, or declare another range"));
  }
  return {};
}

Result<Symbols> checked_symbols(const Graph& graph, const GivenInputs& inputs, Symbols symbols) {
  PW_TRY(check_inputs(graph, inputs));
  auto bound = symbols_of(graph, inputs, std::move(symbols));
  if (!bound) return bound;
  PW_TRY(check_symbols(graph, *bound));
  PW_TRY(check_ranges(graph, *bound));
  PW_TRY(check_conditions(graph, *bound));
  return bound;
}

GivenOutputs sorted_out(const Graph& graph, std::vector<Tensor> outputs) {
  GivenOutputs out;
  for (std::size_t i = 0; i < graph.written_inputs().size(); ++i)
    out.written.emplace_back(graph.value_name(graph.written_inputs()[i]),
                             std::move(outputs[graph.returned_count() + i]));
  outputs.resize(graph.returned_count());
  out.returned = std::move(outputs);
  return out;
}

}  // namespace

GivenInputs contents_of_inputs(const Graph& graph) {
  GivenInputs out;
  for (ValueId input : graph.inputs()) {
    const std::string name(graph.value_name(input));
    const auto found =
        graph.contents ? graph.contents->find(name) : InputContents::const_iterator();
    if (!graph.contents || found == graph.contents->end()) continue;
    const StoredContents& stored = *found->second;
    Tensor tensor(stored.dtype, stored.extents);
    if (!stored.bytes.empty()) std::memcpy(tensor.data(), stored.bytes.data(), stored.bytes.size());
    out.emplace(name, std::move(tensor));
  }
  return out;
}

Result<Symbols> symbols_of(const Graph& graph, const GivenInputs& inputs, Symbols known) {
  return SymbolBinder(graph, std::move(known)).run(inputs);
}

Result<GivenOutputs> run_given(const Graph& graph, Backend& backend, const GivenInputs& inputs,
                               Symbols symbols) {
  auto bound = PW_TRY(checked_symbols(graph, inputs, std::move(symbols)));
  auto views = PW_TRY(views_of(graph, inputs));
  auto executable = PW_TRY(backend.compile(graph));
  const Step step = one_sequence(tokens_of_step(graph, bound));
  const auto rows = bound.find(graph.facts.tokens());
  const RunContext context{bound, &step, rows == bound.end() ? 0 : rows->second};
  std::vector<Tensor> outputs;
  std::vector<TensorView> places;
  for (ValueId output : graph.outputs()) {
    auto extents = PW_TRY(extents_of(graph, output, context.symbols));
    outputs.emplace_back(graph.context().types[graph.type(output)].dtype, std::move(extents));
    places.push_back(outputs.back().view());
  }
  PW_TRY(executable->run(views, places, context));
  return sorted_out(graph, std::move(outputs));
}

Result<GivenOutputs> run_given(const Graph& graph, cuda::Driver& driver, const GivenInputs& inputs,
                               Symbols symbols) {
  auto bound = PW_TRY(checked_symbols(graph, inputs, std::move(symbols)));
  PW_TRY(views_of(graph, inputs));
  // Planned for these sizes only.
  Graph own = graph;
  for (auto& [symbol, fact] : own.facts.symbols)
    if (const auto value = bound.find(symbol); value != bound.end())
      fact.min = fact.max = value->second;
  const std::int64_t tokens = tokens_of_step(own, bound);
  auto ops = PW_TRY(splitting_ops(own.context_ptr(), nullptr, {}, {}));
  auto pieces = PW_TRY(split(own, ops, {{}, true, has_kernel}));
  PlanOptions options;
  options.max_tokens = tokens;
  options.capture_sizes = {tokens};
  auto plan = PW_TRY(make_plan(pieces, own, options));
  auto runtime = PW_TRY(cuda::Runtime::make(pieces, own, plan, driver));
  Weights weights(own, 1);
  for (const auto& [name, tensor] : inputs) weights.give(name, tensor);
  PW_TRY(runtime->load(weights));
  PW_TRY(runtime->capture());
  RunOptions run_options;
  run_options.symbols = bound;
  auto done = PW_TRY(runtime->run(one_sequence(tokens), weights, run_options));
  return sorted_out(graph, std::move(done.outputs));
}

}  // namespace pw

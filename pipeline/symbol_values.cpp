#include "pipeline/symbol_values.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/io/file_kind.hpp"
#include "base/parse_number.hpp"
#include "base/try.hpp"
#include "engines/run_given.hpp"
#include "exec/named_tensors.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

bool has_one_value(const SymbolFact& fact) { return least_value(fact) == greatest_value(fact); }

bool is_dynamic(const Graph& graph, ValueId value) {
  if (graph.type(value) == Types::unknown()) return false;
  const Context& context = graph.context();
  const Shape& shape = context.types[graph.type(value)].shape;
  return std::any_of(shape.begin(), shape.end(),
                     [&](DimId dim) { return !context.dims.value(dim); });
}

/// Returns the symbols in dims of the inputs, in order, then the other declared ones.
std::vector<std::string> ordered_symbols(const Graph& graph) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& symbol) {
    if (graph.facts.find(symbol) && std::find(out.begin(), out.end(), symbol) == out.end())
      out.push_back(symbol);
  };
  for (const ValueId input : graph.inputs()) {
    if (!is_dynamic(graph, input)) continue;
    for (const DimId dim : graph.context().types[graph.type(input)].shape)
      for (const std::string& symbol : graph.context().dims.symbols(dim)) add(symbol);
  }
  for (const auto& [symbol, fact] : graph.facts.symbols) add(symbol);
  return out;
}

/// `option` is that of the command line: --set or --tokens-symbol.
Result<SymbolFact*> fact_of(Graph& graph, const std::string& symbol, const std::string& option) {
  const auto found = graph.facts.symbols.find(symbol);
  if (found != graph.facts.symbols.end()) return &found->second;
  const std::vector<std::string> names = ordered_symbols(graph);
  const std::string near = nearest(symbol, names);
  return fail(error_in(option, "PW1470", fmt::format("the graph has no symbol `{}`", symbol),
                       names.empty()   ? "all its dims are numbers"
                       : !near.empty() ? "did you mean `" + near + "`?"
                                       : fmt::format("it has {}", fmt::join(names, ", "))));
}

Status narrow(SymbolFact& fact, const std::string& symbol, std::int64_t value,
              const std::string& by) {
  const bool fits = value >= fact.min && value <= fact.max &&
                    value % std::max<std::int64_t>(fact.multiple, 1) == 0;
  if (!fits)
    return fail(error_in(by, "PW1470",
                         fmt::format("{} would be {}, but the graph declares it in {}", symbol,
                                     value, print_range(fact)),
                         "use a number in this range, or declare another range"));
  fact.min = fact.max = value;
  return {};
}

/// Returns the request's tensors for inputs with dynamic dims. Reads only their extents.
Result<GivenInputs> given_tensors(const ExecutionRequest& request, const Graph& graph) {
  GivenInputs out = contents_of_inputs(graph);
  for (const auto& [name, tensor] : request.given) out.insert_or_assign(name, tensor);
  std::erase_if(out, [&](const auto& entry) {
    return std::none_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId input) {
      return graph.value_name(input) == entry.first && is_dynamic(graph, input);
    });
  });
  // An archive's own tensors are weights, whose sizes contain no symbols.
  if (request.weights.empty() || request.weights == request.graph.path) return out;
  const Safetensors file = PW_TRY(Safetensors::open(of_rank(request.weights, 0)));
  TensorMap map;
  if (!request.map.empty())
    map = PW_TRY(TensorMap::parse(PW_TRY(read_text_file(request.map, "a map of weights in JSON")),
                                  request.map));
  for (const ValueId input : graph.inputs()) {
    const std::string name(graph.value_name(input));
    if (!is_dynamic(graph, input) || out.contains(name)) continue;
    const StoredTensor* stored = file.find(map.tensor_of(name).value_or(name));
    if (stored != nullptr) out.emplace(name, PW_TRY(file.tensor(*stored)));
  }
  return out;
}

/// A step needs a number for each symbol; the largest of the plan would be far too large.
Status check_settled(const ExecutionRequest& request, const Graph& graph) {
  const std::string tokens = graph.facts.tokens();
  for (const auto& [symbol, fact] : graph.facts.symbols) {
    if (symbol == tokens || greatest_value(fact) <= request.plan.max_tokens) continue;
    return fail(error_in(
        "graph " + graph.name, "PW1470",
        fmt::format("the symbol {}, which is in {}, has no number", symbol, print_range(fact)),
        fmt::format("use --set {}=NUMBER, or --weights with tensors of that size; "
                    "--tokens sets {}",
                    symbol, tokens)));
  }
  return {};
}

bool has_dynamic_dims(const Graph& graph) {
  return !graph.facts.symbols.empty() &&
         std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId input) { return is_dynamic(graph, input); });
}

}  // namespace

Result<std::pair<std::string, std::int64_t>> parse_symbol_value(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::int64_t value = parse_number<std::int64_t>(std::string_view(text).substr(
                                                            std::min(equals, text.size() - 1) + 1))
                                 .value_or(-1);
  if (equals == std::string::npos || equals == 0 || value < 0)
    return fail(error_in("--set " + text, "PW1470",
                         "this is not a name, `=` and a non-negative integer",
                         "write it like --set s0=4"));
  return std::pair{text.substr(0, equals), value};
}

Status set_symbols(Graph& graph, const std::vector<std::string>& values,
                   const std::string& tokens) {
  for (const std::string& text : values) {
    const auto [symbol, value] = PW_TRY(parse_symbol_value(text));
    SymbolFact* const fact = PW_TRY(fact_of(graph, symbol, "--set " + text));
    PW_TRY(narrow(*fact, symbol, value, "--set " + text));
  }
  if (tokens.empty()) return {};
  SymbolFact* const chosen = PW_TRY(fact_of(graph, tokens, "--tokens-symbol " + tokens));
  if (greatest_value(*chosen) < 1)
    return fail(error_in("--tokens-symbol " + tokens, "PW1470",
                         "no step would have tokens: its maximum is 0"));
  for (auto& [symbol, fact] : graph.facts.symbols) fact.role.clear();
  chosen->role = "tokens";
  return {};
}

void name_tokens(Graph& graph, const Log& log, const Symbols& given,
                 const std::vector<std::int64_t>& stated) {
  if (!graph.facts.tokens().empty() || !has_dynamic_dims(graph)) return;
  const std::vector<std::string> symbols = ordered_symbols(graph);
  const auto rank = [&](const std::string& symbol) {
    if (has_one_value(*graph.facts.find(symbol))) return 3;
    const auto value = given.find(symbol);
    if (value == given.end()) return 0;
    return std::find(stated.begin(), stated.end(), value->second) == stated.end() ? 2 : 1;
  };
  const std::string& chosen =
      *std::min_element(symbols.begin(), symbols.end(),
                        [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  if (greatest_value(*graph.facts.find(chosen)) < 1) return;
  graph.facts.symbols[chosen].role = "tokens";
  if (symbols.size() > 1)
    log.say(
        fmt::format("note: {} is used as the token symbol, out of {}; --tokens-symbol selects "
                    "another",
                    chosen, fmt::join(symbols, ", ")));
}

Status take_extents(const ExecutionRequest& request, Graph& graph, const Log& log) {
  if (!has_dynamic_dims(graph)) return {};
  const bool steps = !request.tokens.empty() || !request.steps.empty();
  const auto& symbols = graph.facts.symbols;
  const auto open = std::count_if(symbols.begin(), symbols.end(),
                                  [](const auto& entry) { return !has_one_value(entry.second); });
  if (steps && open <= 1) {  // the steps determine it without tensors
    name_tokens(graph, log);
    return check_settled(request, graph);
  }
  const GivenInputs given = PW_TRY(given_tensors(request, graph));
  Symbols known;
  for (const auto& [symbol, fact] : graph.facts.symbols)
    if (has_one_value(fact)) known.emplace(symbol, least_value(fact));
  const Symbols found = PW_TRY(symbols_of(graph, given, known));
  name_tokens(graph, log, found, request.tokens);
  for (const auto& [symbol, value] : found) {
    const auto fact = graph.facts.symbols.find(symbol);
    const bool sized = steps && symbol == graph.facts.tokens();
    if (sized || fact == graph.facts.symbols.end() || known.contains(symbol)) continue;
    PW_TRY(narrow(fact->second, symbol, value, "the given tensors"));
    log.say(fmt::format("{} is {}, from the given tensors", symbol, value));
  }
  return check_settled(request, graph);
}

Symbols planned_symbols(const Plan& plan) { return {plan.bound.begin(), plan.bound.end()}; }

}  // namespace pw

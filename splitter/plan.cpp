// Checks the graph's symbols and the options, then fills the plan part by part.
#include "splitter/plan.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "splitter/row_mixing.hpp"

namespace pw {
namespace {

constexpr std::int64_t kUnbounded = std::int64_t{1}
                                    << 40;  // maximum of a symbol without a stated one
constexpr std::int64_t kMostSpeculative = 1024, kMostRanks = 65536;

Diagnostic in_graph(const Graph& graph, std::string code, std::string message, std::string help) {
  return error_in("graph " + graph.name, code, std::move(message), std::move(help));
}

/// Returns every symbol in the types of the graph.
std::vector<std::string> symbols_in_use(const Graph& graph) {
  std::vector<bool> seen;
  std::vector<std::string> symbols;
  const auto visit = [&](ValueId v) {
    const TypeId type = graph.type(v);
    if (type == Types::unknown()) return;
    if (type.index >= seen.size()) seen.resize(type.index + 1);
    if (seen[type.index]) return;
    seen[type.index] = true;
    for (const DimId dim : graph.context().types[type].shape)
      for (std::string& symbol : graph.context().dims.symbols(dim))
        symbols.push_back(std::move(symbol));
  };
  for (const ValueId v : graph.inputs()) visit(v);
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    for (std::size_t r = 0; r < graph.result_count(n); ++r) visit(graph.result(n, r));
  std::sort(symbols.begin(), symbols.end());
  symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
  return symbols;
}

/// Returns the least common multiple of numbers from 1 to 2^40; results above 2^40 are not needed.
std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
  const std::int64_t part = a / std::gcd(a, b);
  return part > kUnbounded / b ? kUnbounded + 1 : part * b;
}

SymbolFact tokens_fact(const Graph& graph) {
  const SymbolFact* fact = graph.facts.find(graph.facts.tokens());
  return fact == nullptr ? SymbolFact{} : *fact;
}

/// Returns the fewest rows that a step may have.
std::int64_t least_rows(const Graph& graph) {
  return std::max<std::int64_t>(least_value(tokens_fact(graph)), 1);
}

/// Returns the number that the row counts of all steps are a multiple of.
std::int64_t rows_multiple(const Graph& graph, const PlanOptions& options) {
  return common_multiple(std::max<std::int64_t>(tokens_fact(graph).multiple, 1),
                         std::clamp<std::int64_t>(options.sequence_parallel, 1, kMostRanks));
}

/// Fills max_tokens and eager_multiple, so that padded sizes satisfy the facts.
Status bind_tokens(const Graph& graph, const PlanOptions& options, bool pads, Plan& plan) {
  const SymbolFact fact = tokens_fact(graph);
  const std::int64_t multiple = rows_multiple(graph, options);
  if (pads) plan.eager_multiple = multiple;
  const std::int64_t greatest = greatest_value(fact) / multiple * multiple;
  plan.max_tokens = std::min(options.max_tokens, greatest);
  // An invalid maximum is reported later; one of several ranges may exceed the maximum.
  if (options.max_tokens < 1 || options.min_tokens > options.max_tokens) return {};
  if (greatest > 0 && plan.max_tokens >= least_value(fact)) return {};
  return fail(in_graph(
      graph, "PW0728",
      fmt::format("symbol {} is in {}, but no multiple of {} in this range is at most {} tokens",
                  plan.tokens, print_range(fact), multiple, options.max_tokens),
      "raise --max-tokens, or declare another range of the symbol"));
}

/// Fills tokens, bound, and the members that bind_tokens fills.
Status bind_symbols(const Graph& graph, const PlanOptions& options, bool pads, Plan& plan) {
  Diagnostics errors;
  std::vector<std::string> token_symbols;
  for (const auto& [symbol, fact] : graph.facts.symbols)
    if (fact.role == "tokens") token_symbols.push_back(symbol);
  const std::vector<std::string> used = symbols_in_use(graph);
  if (token_symbols.size() > 1)
    errors.push_back(in_graph(
        graph, "PW0721",
        "two symbols have the role tokens: " + token_symbols[0] + " and " + token_symbols[1],
        "a plan has one symbol for tokens; give the other a maximum instead"));
  if (token_symbols.empty() && !used.empty())
    errors.push_back(in_graph(
        graph, "PW0722", "no symbol has the role tokens, but dim " + used.front() + " is dynamic",
        "give one symbol the role tokens: --tokens-symbol; on import: --symbol n=…"));
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  if (!token_symbols.empty()) {
    plan.tokens = token_symbols.front();
    if (auto done = bind_tokens(graph, options, pads, plan); !done) return done;
  }
  for (const std::string& symbol : used) {
    if (symbol == plan.tokens) continue;
    const SymbolFact* fact = graph.facts.find(symbol);
    if (fact == nullptr || fact->max >= kUnbounded)
      errors.push_back(in_graph(graph, "PW0723",
                                "dim " + symbol +
                                    " is dynamic, is not the tokens symbol, and has "
                                    "no maximum",
                                "give it a number, --set " + symbol +
                                    "=…, or state its maximum in the "
                                    "graph's symbols"));
    else
      plan.bound.emplace(symbol, greatest_value(*fact));
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return {};
}

Status check_numbers(const Graph& graph, const PlanOptions& options, const Plan& plan) {
  Diagnostics errors;
  const auto require = [&](bool ok, const std::string& what, std::int64_t number,
                           const std::string& range) {
    if (!ok)
      errors.push_back(in_graph(graph, "PW0724",
                                what + " " + std::to_string(number) + " is not in " + range, ""));
  };
  require(options.max_tokens >= 1, "the token maximum", options.max_tokens, "1..");
  require(options.max_requests >= 1, "the request maximum", options.max_requests, "1..");
  require(options.size_cap >= 1 && options.size_cap <= kLargestSize, "the size cap",
          options.size_cap, "1.." + std::to_string(kLargestSize));
  for (const std::int64_t loras : options.loras)
    require(loras >= 0 && loras <= kMostRanks, "the number of adapters", loras,
            "0.." + std::to_string(kMostRanks));
  require(options.speculative_tokens >= 0 && options.speculative_tokens <= kMostSpeculative,
          "the number of speculative tokens", options.speculative_tokens,
          "0.." + std::to_string(kMostSpeculative));
  require(options.sequence_parallel >= 1 && options.sequence_parallel <= kMostRanks,
          "the number of ranks of sequence parallelism", options.sequence_parallel,
          "1.." + std::to_string(kMostRanks));
  if (!plan.tokens.empty() && errors.empty()) {
    const std::int64_t least = least_rows(graph);
    const std::string range = fmt::format("{}..{}", least, plan.max_tokens);
    const auto inside = [&](std::int64_t size) { return size >= least && size <= plan.max_tokens; };
    for (const std::int64_t end : options.range_ends) require(inside(end), "range end", end, range);
    for (const std::int64_t size : options.capture_sizes)
      require(inside(size) && size <= kLargestSize, "capture size", size, range);
    for (const std::int64_t size : options.compile_sizes)
      require(inside(size), "compile size", size, range);
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return {};
}

/// Keeps the default sizes that the facts allow, and the least allowed one.
void keep_allowed(const Graph& graph, const SizeRules& rules, std::vector<std::int64_t>& sizes) {
  const std::int64_t least = least_rows(graph), first = round_up(least, rules.multiple());
  std::erase_if(sizes, [&](std::int64_t size) { return size < least; });
  if (least > 1 && first <= std::min(rules.cap, rules.max_tokens)) sizes.push_back(first);
}

/// Returns the requested sizes, or the default ones. Sizes that cannot be kept are noted; it is an
/// error if none is left.
Result<std::vector<std::int64_t>> choose_sizes(const Graph& graph, const PlanOptions& options,
                                               Plan& plan) {
  const SizeRules rules{plan.max_tokens, options.max_requests, options.speculative_tokens,
                        plan.eager_multiple, options.size_cap};
  if (options.capture_sizes.empty()) {
    std::vector<std::int64_t> sizes = default_capture_sizes(rules);
    keep_allowed(graph, rules, sizes);
    return sizes;
  }
  KeptSizes kept = keep_multiples(options.capture_sizes, rules.multiple(), "capture sizes");
  if (kept.sizes.empty())
    return fail(
        in_graph(graph, "PW0726", kept.dropped + "; none is left",
                 "sizes must be multiples of the ranks of sequence parallelism, of 1 + the "
                 "speculative tokens, and of what the graph declares for its tokens symbol"));
  if (!kept.dropped.empty()) plan.notes.push_back(kept.dropped);
  return std::move(kept.sizes);
}

/// If only decodes are captured, sizes beyond the largest decode would never run.
void keep_decodes(const PlanOptions& options, std::vector<std::int64_t>& sizes, Plan& plan) {
  const std::int64_t query = 1 + options.speculative_tokens;
  const auto beyond = std::stable_partition(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return (size + query - 1) / query <= options.max_requests;
  });
  if (!options.capture_sizes.empty() && beyond != sizes.end())
    plan.notes.push_back(fmt::format(
        "capture sizes {} are dropped: a decode of {} requests has at most {} tokens",
        fmt::join(beyond, sizes.end(), ", "), options.max_requests, options.max_requests * query));
  sizes.erase(beyond, sizes.end());
}

Status plan_sizes(const Graph& graph, const PlanOptions& options, Plan& plan) {
  plan.ranges = make_ranges(options.range_ends, plan.max_tokens,
                            std::max(options.min_tokens, least_rows(graph)));
  KeptSizes compiled = keep_multiples(options.compile_sizes, plan.eager_multiple, "compile sizes");
  plan.compile_sizes = std::move(compiled.sizes);
  if (!compiled.dropped.empty()) plan.notes.push_back(compiled.dropped);
  if (plan.mode == "none") return {};
  auto sizes = PW_TRY(choose_sizes(graph, options, plan));
  if (plan.mode == name(CaptureMode::full_decode_only)) keep_decodes(options, sizes, plan);
  plan.capture = make_capture_sizes(std::move(sizes));
  return {};
}

/// Fills mode and mode_reason; returns true if steps may be padded.
Result<bool> choose_mode(const StitchedGraph& pieces, const Graph& graph,
                         const PlanOptions& options, Plan& plan) {
  const auto wanted = capture_mode_named(options.mode);
  if (!wanted)
    return fail(
        in_graph(graph, "PW0725", "unknown capture mode `" + options.mode + "`",
                 "valid modes: none, piecewise, full, full_decode_only and full_and_piecewise"));
  const ModeChoice choice = allowed_mode(*wanted, pieces, graph, options.speculative_tokens);
  plan.mode = name(choice.mode);
  plan.mode_reason = choice.reason;
  const bool pads = choice.mode != CaptureMode::none || rows_multiple(graph, options) > 1;
  const auto mixing = pads ? row_mixing(graph) : std::nullopt;
  if (!mixing) return true;
  // A captured size pads, and the padding would change existing rows.
  if (options.sequence_parallel > 1)
    return fail(in_graph(graph, "PW0727",
                         fmt::format("steps pad to a multiple of {} ranks, but {}",
                                     options.sequence_parallel, *mixing),
                         "plan without sequence parallelism"));
  if (choice.mode == CaptureMode::none) return false;
  plan.mode = name(CaptureMode::none);
  plan.mode_reason =
      fmt::format("{} is not possible: {}, so no step may be padded", options.mode, *mixing);
  return false;
}

/// Returns true for a piece that runs eagerly because of one of its ops.
bool must_not_be_captured(const Graph& graph, const Piece& piece) {
  const OpTable& ops = graph.context().ops;
  return ops[ops.find(piece.host_op)].traits.splitting;
}

std::vector<Plan::Step> make_steps(const StitchedGraph& stitched, const Graph& graph,
                                   CaptureMode mode) {
  std::vector<Plan::Step> steps;
  for (std::size_t i = 0; i < stitched.pieces.size(); ++i) {
    const Piece& piece = stitched.pieces[PieceId(i)];
    Plan::Step step{PieceId(i), piece.piece_class, false, ""};
    if (!piece.host_op.empty())
      step.reason = fmt::format(
          "contains op {}, which {}", piece.host_op,
          must_not_be_captured(graph, piece) ? "must not be captured" : "has no kernel");
    else if (mode == CaptureMode::none)
      step.reason = "capture mode `none` captures nothing";
    else if (!captures_pieces(mode))
      step.reason = "only whole steps are captured";
    else if (piece.splitting)
      step.reason = "contains splitting op " + std::string(graph.op_of(piece.nodes.back()).name);
    else
      step.captured = true;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace

Result<Plan> make_plan(const StitchedGraph& pieces, const Graph& source,
                       const PlanOptions& options) {
  Plan plan;
  plan.graph = source.name;
  plan.max_requests = options.max_requests;
  plan.speculative_tokens = options.speculative_tokens;
  plan.loras = options.loras;
  plan.loras.push_back(0);
  std::sort(plan.loras.begin(), plan.loras.end());
  plan.loras.erase(std::unique(plan.loras.begin(), plan.loras.end()), plan.loras.end());
  auto pads = PW_TRY(choose_mode(pieces, source, options, plan));
  PW_TRY(bind_symbols(source, options, pads, plan));
  PW_TRY(check_numbers(source, options, plan));
  if (!plan.tokens.empty()) PW_TRY(plan_sizes(source, options, plan));
  plan.steps = make_steps(pieces, source, *capture_mode_named(plan.mode));
  plan.captures = captures_of(plan);
  auto memory = PW_TRY(plan_memory(pieces, source, round_up(plan.max_tokens, plan.eager_multiple),
                                   {}, options.workspace_bytes));
  plan.memory = std::move(memory);
  predict_captures(pieces, source, plan);
  return plan;
}

}  // namespace pw

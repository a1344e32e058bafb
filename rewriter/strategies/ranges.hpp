// A graph for each range of token counts: `pipeline p { for tokens in ranges(256, 2048) { … } }`
// rewrites a copy for each, with the tokens symbol restricted to the range. Undecided assumptions
// become conditions, and a range with conditions has a second graph for all other steps.
#pragma once

#include <span>

#include "rewriter/egraph/cost.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct TokenRange {
  std::int64_t min = 1, max = 1;
  friend bool operator==(TokenRange, TokenRange) = default;
};

struct RangedResult {
  TokenRange range;
  std::vector<Condition> conditions;  ///< the graph is valid for steps that meet all of these
  bool otherwise =
      false;  ///< built without `assume`, for the steps that the preceding one excludes
  Graph graph;
  RewriteReport report;
};

/// Returns the ranges of a pipeline on this graph, in order, without those the graph's facts
/// exclude. A strategy without ranges has one, with all the facts allow. Fails (PW1109) if ranges
/// are stated and the graph has no symbol for its tokens.
Result<std::vector<TokenRange>> token_ranges(const Graph& graph, const RuleSet& rules,
                                             std::string_view pipeline);
/// Runs one range: returns its graph, and the one without `assume` if it has conditions.
/// `after_pass` receives the first only.
Result<std::vector<RangedResult>> run_range(const Graph& graph, const RuleSet& rules,
                                            std::string_view pipeline, const Env& params,
                                            TokenRange range, const RewriteOptions& options = {});
Result<std::vector<RangedResult>> run_ranges(const Graph& graph, const RuleSet& rules,
                                             std::string_view pipeline, const Env& params,
                                             const RewriteOptions& options = {});

/// Returns the symbol that counts the tokens of a step: the declared one, else one called `tokens`,
/// else the only symbol of the inputs' shapes; empty if there is none.
std::string tokens_symbol(const Graph& graph);
/// Returns true if the sizes of all symbols meet all conditions. A condition that does not compare
/// dims is never met.
bool meets(const Context& context, std::span<const Condition> conditions, const SymbolSizes& sizes);
/// Returns the graph for a step of these sizes; null if no range holds its tokens.
const RangedResult* variant_for(std::span<const RangedResult> variants, const SymbolSizes& sizes,
                                std::int64_t tokens);

}  // namespace pw

// The search space of an exploration: the passes to permute, the pipeline around them, params,
// token ranges, and precedences of rules. It comes from an `explore` item, from options, or both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dsl/objectives.hpp"
#include "pipeline/load.hpp"
#include "rewriter/analysis/orders/orders.hpp"
#include "rewriter/strategies/ranges.hpp"

namespace pw {

/// Options of an exploration; unset ones come from the item, if one is named, or are defaults.
struct ExploreRequest {
  std::string space;                ///< an `explore` item of the rules; empty: none
  std::string pipeline;             ///< empty: only `passes`
  std::vector<std::string> passes;  ///< to permute; empty: all passes of the pipeline
  std::vector<std::pair<std::string, std::string>> before;
  std::vector<std::string> by;  ///< objectives; the first ranks the orders
  bool subsets = false;
  std::vector<std::pair<std::string, std::vector<std::string>>> with;  ///< param, and its values
  std::vector<TokenRange> tokens;
  std::vector<std::vector<std::string>> over;  ///< rules that take precedence in all orders
  std::uint64_t sample = 0;                    ///< number of sampled orders; 0: all
  std::optional<std::uint64_t> seed;           ///< for the sample
  // For objectives that need a plan or a run.
  std::string backend = "eager";
  std::int64_t rows = 0;  ///< tokens of the modeled or measured step; 0: 256, or fewer
  int repeats = 5;
};

/// One choice of everything except the order.
struct ExploreSetting {
  std::string name;  ///< "tp=2, tokens 1..256, rms_quant over add_rms"; empty for the written rules
  Env params;
  std::optional<TokenRange> tokens;
  std::shared_ptr<const RuleSet> rules;  ///< with modified precedence; null for the written one
  std::string precedence;  ///< lines `rule a over b`; empty for the written precedence
};

struct ExploreSpace {
  Strategy first, last;            ///< sequences before and after each order
  std::vector<Strategy> passes;    ///< in the written order
  std::vector<std::string> names;  ///< of `passes`
  std::vector<std::pair<std::size_t, std::size_t>> before;
  std::vector<Objective> by;
  bool subsets = false;
  std::uint64_t sample = 0, seed = 1;
  std::vector<ExploreSetting> settings;  ///< written precedence first
  std::vector<std::string> left_out;     ///< precedences that would be cyclic
};

/// Parses `norm:norm_quant`: the first precedes the second. Fails with PW1418.
Result<std::pair<std::string, std::string>> parse_before(const std::string& text);
/// Parses `tp=1,2,4`. Fails with PW1403.
Result<std::pair<std::string, std::vector<std::string>>> parse_with(const std::string& text);
/// Parses `1..256,257..8192`. Fails with PW1402.
Result<std::vector<TokenRange>> parse_token_ranges(const std::string& text);

/// Builds the space. The pipeline's parts before the first permuted pass run first, and all others
/// last. Fails with PW1101 for an unknown item, pipeline, pass, or rule, PW1402 for an unknown
/// objective, PW1407 for a pipeline with ranges, PW1114 for too many settings.
Result<ExploreSpace> explore_space(const LoadedRules& rules, const ExploreRequest& request);
/// Returns the rules of a setting.
[[nodiscard]] const RuleSet& rules_of(const ExploreSetting& setting, const LoadedRules& rules);
/// Returns the initial graph of a setting's orders. Fails with PW1109 for a token range if the
/// graph has no token symbol, or if its facts exclude the range.
Result<Graph> setting_start(const Graph& graph, const ExploreSpace& space,
                            const ExploreSetting& setting, const LoadedRules& rules);
/// Converts the space to the input of explore_orders.
[[nodiscard]] OrderSpace order_space(const ExploreSpace& space);

}  // namespace pw

// The space of an exploration: which passes are put in order within which pipeline, under which
// params, ranges of tokens and precedence of rules. From an `explore` item, from options, or both.
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

/// What is left out here is the item's, where one is named, or a default.
struct ExploreRequest {
  std::string space;                ///< an `explore` item of the rules; empty: none
  std::string pipeline;             ///< empty: `passes` alone
  std::vector<std::string> passes;  ///< to be put in order; empty: all of the pipeline
  std::vector<std::pair<std::string, std::string>> before;
  std::vector<std::string> by;  ///< objectives; the first decides which order is best
  bool subsets = false;
  std::vector<std::pair<std::string, std::vector<std::string>>> with;  ///< a param, its values
  std::vector<TokenRange> tokens;
  std::vector<std::vector<std::string>> over;  ///< rules that take precedence in all orders
  std::uint64_t sample = 0;                    ///< so many orders; 0: all
  std::optional<std::uint64_t> seed;           ///< of the sample
  // Of the objectives that need a plan or a run.
  std::string backend = "eager";
  std::int64_t rows = 0;  ///< tokens of the step that is modelled or measured; 0: 256, or fewer
  int repeats = 5;
};

/// One choice of everything but the order.
struct ExploreSetting {
  std::string name;  ///< "tp=2, tokens 1..256, rms_quant over add_rms"; empty: as written
  Env params;
  std::optional<TokenRange> tokens;
  std::shared_ptr<const RuleSet> rules;  ///< with another precedence; null: as written
  std::string precedence;                ///< `rule a over b`, lines to paste; empty: as written
};

struct ExploreSpace {
  Strategy first, last;            ///< sequences before and behind each order
  std::vector<Strategy> passes;    ///< in the written order
  std::vector<std::string> names;  ///< of `passes`
  std::vector<std::pair<std::size_t, std::size_t>> before;
  std::vector<Objective> by;
  bool subsets = false;
  std::uint64_t sample = 0, seed = 1;
  std::vector<ExploreSetting> settings;  ///< the written precedence first
  std::vector<std::string> left_out;     ///< precedence that would be a circle
};

/// `norm:norm_quant`: the first stands before the second. PW1418.
Result<std::pair<std::string, std::string>> parse_before(const std::string& text);
/// `tp=1,2,4`. PW1403.
Result<std::pair<std::string, std::vector<std::string>>> parse_with(const std::string& text);
/// `1..256,257..8192`. PW1402.
Result<std::vector<TokenRange>> parse_token_ranges(const std::string& text);

/// What stands in the pipeline before the first of the passes runs first, and the rest of it last.
/// PW1101 for an unknown item, pipeline, pass or rule, PW1402 for an objective that there is not,
/// PW1407 for a pipeline of ranges, PW1114 for more settings than can be looked at.
Result<ExploreSpace> explore_space(const LoadedRules& rules, const ExploreRequest& request);
/// The rules of a setting.
[[nodiscard]] const RuleSet& rules_of(const ExploreSetting& setting, const LoadedRules& rules);
/// The graph that a setting's orders begin with. PW1109 for a range of tokens where the graph has
/// no symbol for them, or that its facts rule out.
Result<Graph> setting_start(const Graph& graph, const ExploreSpace& space,
                            const ExploreSetting& setting, const LoadedRules& rules);
/// What explore_orders takes.
[[nodiscard]] OrderSpace order_space(const ExploreSpace& space);

}  // namespace pw

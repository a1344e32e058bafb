// Builds the search space of an exploration. Settings are the Cartesian product of params, token
// ranges, and precedences. A precedence is a relation on rules and must stay acyclic: it is closed
// transitively after each change, and a cyclic choice is dropped and reported.
#include "studies/explore_space.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/build/params.hpp"
#include "pipeline/variants.hpp"
#include "rewriter/strategies/driver.hpp"
#include "rewriter/strategies/narrowing.hpp"
#include "studies/explore_item.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostSettings = 5040;

// ---- passes

Result<std::vector<Strategy>> parts_of(const LoadedRules& rules, const std::string& pipeline) {
  if (pipeline.empty()) return std::vector<Strategy>();
  const Strategy* strategy = PW_TRY(one_graph_strategy(rules, pipeline));
  if (strategy->kind == ast::Strategy::Kind::sequence) return strategy->parts;
  return std::vector<Strategy>{*strategy};
}

Status take_passes(const LoadedRules& rules, const ExploreRequest& request, ExploreSpace& out) {
  const std::vector<Strategy> parts = PW_TRY(parts_of(rules, request.pipeline));
  if (request.passes.empty()) {
    out.passes = parts;
    return {};
  }
  const auto named = [&](const Strategy& part) {
    return std::find(request.passes.begin(), request.passes.end(), part.label) !=
           request.passes.end();
  };
  for (const std::string& name : request.passes) {
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const Strategy& each) { return each.label == name; });
    out.passes.push_back(part != parts.end() ? *part : *PW_TRY(find_strategy(rules.set, name)));
  }
  bool after = false;
  for (const Strategy& part : parts) {
    if (named(part))
      after = true;
    else
      (after ? out.last : out.first).parts.push_back(part);
  }
  return {};
}

Result<std::size_t> place_of(const std::vector<std::string>& passes, const std::string& name) {
  const auto found = std::find(passes.begin(), passes.end(), name);
  if (found == passes.end())
    return fail(error_in("before", "PW1101", "`" + name + "` is not one of the passes",
                         fmt::format("the passes are {}", fmt::join(passes, ", "))));
  return static_cast<std::size_t>(found - passes.begin());
}

Result<std::vector<Objective>> objectives_named(const std::vector<std::string>& names) {
  std::vector<Objective> out;
  for (const std::string& name : names) {
    const auto at = std::find(kObjectiveNames.begin(), kObjectiveNames.end(), name);
    if (at == kObjectiveNames.end())
      return fail(error_in("by", "PW1402", "`" + name + "` is not a cost",
                           fmt::format("use one of {}", fmt::join(kObjectiveNames, ", "))));
    out.push_back(static_cast<Objective>(at - kObjectiveNames.begin()));
  }
  return out;
}

// ---- precedence

/// A choice in one dimension of the settings: its name and its effect.
struct Choice {
  std::string name;
  std::function<void(ExploreSetting&)> apply;
};
using Choices = std::vector<Choice>;

/// Restores the transitive closure of `over`; returns false if a rule then precedes itself.
bool close_over(RuleSet& set) {
  std::vector<std::set<RuleId>> above(set.rules.size());
  for (std::size_t i = 0; i < set.rules.size(); ++i) {
    std::vector<RuleId> todo = set.rules[RuleId(i)].over;
    while (!todo.empty()) {
      const RuleId next = todo.back();
      todo.pop_back();
      if (!above[i].insert(next).second) continue;
      const std::vector<RuleId>& more = set.rules[next].over;
      todo.insert(todo.end(), more.begin(), more.end());
    }
    if (above[i].contains(RuleId(i))) return false;
  }
  for (std::size_t i = 0; i < set.rules.size(); ++i)
    set.rules[RuleId(i)].over.assign(above[i].begin(), above[i].end());
  return true;
}

/// The rules with those of each reference preferred over those of the next. Drops earlier
/// precedence among them. Null if the result is cyclic.
std::shared_ptr<const RuleSet> preferring(const RuleSet& rules,
                                          const std::vector<std::vector<RuleId>>& order) {
  auto out = std::make_shared<RuleSet>(rules);
  std::set<RuleId> all;
  for (const auto& some : order) all.insert(some.begin(), some.end());
  for (const RuleId id : all)
    std::erase_if(out->rules[id].over, [&](RuleId below) { return all.contains(below); });
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    for (const RuleId id : order[i])
      out->rules[id].over.insert(out->rules[id].over.end(), order[i + 1].begin(),
                                 order[i + 1].end());
  return close_over(*out) ? out : nullptr;
}

/// The written precedence, then each order of the rules.
Result<Choices> precedences(const LoadedRules& rules, const std::vector<std::string>& names,
                            std::vector<std::string>& left_out) {
  if (names.size() < 2 || names.size() > 6)
    return fail(error_in(
        "over", "PW1402",
        fmt::format("`over` names {} rules, too many or too few to try all orders", names.size()),
        "name 2 to 6 rules"));
  std::vector<std::vector<RuleId>> found;
  for (const std::string& name : names) {
    found.push_back(rules.set.resolve(name));
    if (found.back().empty())
      return fail(error_in("over", "PW1101", "no rule is called `" + name + "`",
                           "`pwr check` lists the rules of a file"));
  }
  Choices out{{"", [](ExploreSetting&) {}}};
  std::vector<std::size_t> order(names.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    std::vector<std::string> called;
    std::vector<std::vector<RuleId>> ids;
    for (const std::size_t i : order) {
      called.push_back(names[i]);
      ids.push_back(found[i]);
    }
    const std::string name = fmt::format("{}", fmt::join(called, " over "));
    const std::shared_ptr<const RuleSet> set = preferring(rules.set, ids);
    if (!set) {
      left_out.push_back(name);
      continue;
    }
    std::string lines;
    for (std::size_t i = 0; i + 1 < called.size(); ++i)
      lines += fmt::format("rule {} over {} {{ … }}\n", called[i], called[i + 1]);
    out.push_back({name, [set, lines](ExploreSetting& setting) {
                     setting.rules = set;
                     setting.precedence = lines;
                   }});
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

// ---- settings

Result<Choices> values_of(const LoadedRules& rules, const std::string& name,
                          const std::vector<std::string>& values) {
  Choices out;
  for (const std::string& text : values) {
    const auto param = rules.set.params.find(name);
    const auto parsed =
        param == rules.set.params.end() ? std::nullopt : parse_param(param->second.kind, text);
    if (!parsed) {
      PW_TRY(bind_params(rules.set, {{name, text}}));  // reports an invalid value
      continue;
    }
    const Binding value = binding_of(*parsed);
    out.push_back({name + "=" + text, [name, value](ExploreSetting& setting) {
                     setting.params.insert_or_assign(name, value);
                   }});
  }
  return out;
}

Choices ranges_of(const std::vector<TokenRange>& ranges) {
  Choices out;
  for (const TokenRange range : ranges)
    out.push_back({fmt::format("tokens {}..{}", range.min, range.max),
                   [range](ExploreSetting& setting) { setting.tokens = range; }});
  return out;
}

Status take_settings(const LoadedRules& rules, const ExploreRequest& request, ExploreSpace& out) {
  std::vector<Choices> dimensions;
  for (const auto& [name, values] : request.with)
    dimensions.push_back(PW_TRY(values_of(rules, name, values)));
  if (!request.tokens.empty()) dimensions.push_back(ranges_of(request.tokens));
  if (request.over.size() > 1)
    return fail(error_in("over", "PW1402", "only one list of rules can be explored for precedence",
                         "put all rules into one list, or explore the lists separately"));
  for (const std::vector<std::string>& names : request.over)
    dimensions.push_back(PW_TRY(precedences(rules, names, out.left_out)));
  out.settings = {{"", rules.params, {}, nullptr, {}}};
  for (const Choices& choices : dimensions) {
    if (out.settings.size() * choices.size() > kMostSettings)
      return fail(error_in("explore", "PW1114",
                           fmt::format("there are more than {} settings", kMostSettings),
                           "give fewer values, ranges or rules"));
    std::vector<ExploreSetting> next;
    for (const ExploreSetting& setting : out.settings)
      for (const Choice& choice : choices) {
        ExploreSetting more = setting;
        choice.apply(more);
        more.name += (more.name.empty() || choice.name.empty() ? "" : ", ") + choice.name;
        next.push_back(std::move(more));
      }
    out.settings = std::move(next);
  }
  return {};
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_before(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    return fail(error_in("before", "PW1418", "`" + text + "` is not a pair of passes",
                         "write it like norm:norm_quant"));
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

Result<std::pair<std::string, std::vector<std::string>>> parse_with(const std::string& text) {
  const std::size_t equal = text.find('=');
  if (equal == std::string::npos || equal == 0)
    return fail(error_in("with " + text, "PW1403", "`" + text + "` gives no values to a param",
                         "write it like tp=1,2,4"));
  std::vector<std::string> values(1);
  for (const char c : text.substr(equal + 1)) {
    if (c == ',')
      values.emplace_back();
    else
      values.back() += c;
  }
  return std::pair(text.substr(0, equal), std::move(values));
}

Result<std::vector<TokenRange>> parse_token_ranges(const std::string& text) {
  std::vector<TokenRange> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t dots = part.find("..");
    const auto number = [](const std::string& digits) {
      return parse_numbers(digits, 1, std::int64_t{1} << 40);
    };
    auto first = number(part.substr(0, dots));
    auto last = number(dots == std::string::npos ? "" : part.substr(dots + 2));
    if (!first || !last || first->size() != 1 || last->size() != 1 ||
        last->front() < first->front())
      return fail(error_in("tokens", "PW1402", "`" + part + "` is not a range of tokens",
                           "write it like 1..256,257..8192"));
    out.push_back({first->front(), last->front()});
    begin = end + 1;
  }
  return out;
}

Result<ExploreSpace> explore_space(const LoadedRules& rules, const ExploreRequest& stated) {
  const ExploreRequest request = PW_TRY(with_explore_item(rules, stated));
  ExploreSpace out;
  out.by = PW_TRY(objectives_named(request.by));
  PW_TRY(take_passes(rules, request, out));
  for (const Strategy& pass : out.passes) out.names.push_back(pass.label);
  for (const auto& [first, second] : request.before)
    out.before.emplace_back(PW_TRY(place_of(out.names, first)),
                            PW_TRY(place_of(out.names, second)));
  out.subsets = request.subsets;
  out.sample = request.sample;
  out.seed = request.seed.value_or(1);
  PW_TRY(take_settings(rules, request, out));
  return out;
}

const RuleSet& rules_of(const ExploreSetting& setting, const LoadedRules& rules) {
  return setting.rules ? *setting.rules : rules.set;
}

Result<Graph> setting_start(const Graph& graph, const ExploreSpace& space,
                            const ExploreSetting& setting, const LoadedRules& rules) {
  Graph start = graph;
  if (setting.tokens) {
    const std::string symbol = tokens_symbol(start);
    const SymbolFact* fact = start.facts.find(symbol);
    if (symbol.empty() ||
        (fact != nullptr && (setting.tokens->min > fact->max || setting.tokens->max < fact->min)))
      return fail(error_in("tokens", "PW1109",
                           symbol.empty() ? "the graph has no symbol for its tokens"
                                          : fmt::format("the graph has no steps of {} to {} tokens",
                                                        setting.tokens->min, setting.tokens->max),
                           "omit the range"));
    narrow(start, *setting.tokens);
  }
  if (!space.first.parts.empty())
    PW_TRY(run_strategy(start, rules_of(setting, rules), space.first, setting.params, {}));
  return start;
}

OrderSpace order_space(const ExploreSpace& space) {
  OrderSpace out;
  out.passes = space.passes;
  out.before = space.before;
  out.last = space.last;
  out.subsets = space.subsets;
  return out;
}

}  // namespace pw

// Exports explore and its tables.
#include "pipeline/exploring.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "pipeline/variants.hpp"
#include "rewriter/driver.hpp"

namespace pw {
namespace {

/// A pipeline around the passes that are put in order.
struct Frame {
  Strategy first, last;  ///< sequences
  std::vector<Strategy> passes;
};

Result<std::vector<Strategy>> parts_of(const LoadedRules& rules, const std::string& pipeline) {
  if (pipeline.empty()) return std::vector<Strategy>();
  const Strategy* strategy = PW_TRY(one_graph_strategy(rules, pipeline));
  if (strategy->kind == ast::Strategy::Kind::sequence) return strategy->parts;
  return std::vector<Strategy>{*strategy};
}

Result<Frame> frame_of(const LoadedRules& rules, const ExploreRequest& request) {
  Frame out;
  const std::vector<Strategy> parts = PW_TRY(parts_of(rules, request.pipeline));
  if (request.passes.empty()) {
    out.passes = parts;
    return out;
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
  bool behind = false;
  for (const Strategy& part : parts) {
    if (named(part))
      behind = true;
    else
      (behind ? out.last : out.first).parts.push_back(part);
  }
  return out;
}

Result<std::vector<Cost>> costs_named(const std::vector<std::string>& names) {
  std::vector<Cost> out;
  for (const std::string& name : names) {
    const auto cost = cost_named(name);
    if (!cost)
      return fail(error_in("by", "PW1402", "`" + name + "` is no cost",
                           fmt::format("there are {}", fmt::join(kCostNames, ", "))));
    out.push_back(*cost);
  }
  return out;
}

Result<std::size_t> place_of(const std::vector<std::string>& passes, const std::string& name) {
  const auto found = std::find(passes.begin(), passes.end(), name);
  if (found == passes.end())
    return fail(error_in("before", "PW1101", "`" + name + "` is none of the passes",
                         fmt::format("they are {}", fmt::join(passes, ", "))));
  return static_cast<std::size_t>(found - passes.begin());
}

std::vector<std::string> names_of(const Exploration& found, const std::vector<std::size_t>& order) {
  std::vector<std::string> out;
  for (const std::size_t pass : order) out.push_back(found.passes[pass]);
  return out;
}

std::int64_t cost_at(const Exploration& found, std::size_t end, Cost cost) {
  const SeenGraph& graph = found.results.graphs[found.results.ends[end].graph];
  return graph.costs[static_cast<std::size_t>(cost)];
}

void rank(Exploration& found) {
  found.ranked.resize(found.results.ends.size());
  std::iota(found.ranked.begin(), found.ranked.end(), std::size_t{0});
  const auto key = [&](std::size_t end) {
    std::vector<std::int64_t> out;
    for (const Cost cost : found.by) out.push_back(cost_at(found, end, cost));
    return std::pair(out, found.results.ends[end].example);
  };
  std::sort(found.ranked.begin(), found.ranked.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  found.front = pareto_front(found.results, found.by);
}

Table end_table(const Exploration& found, std::size_t most) {
  std::vector<Column> columns{"orders"};
  for (const Cost cost : found.by)
    columns.emplace_back(std::string(kCostNames[static_cast<std::size_t>(cost)]));
  for (const char* name : {"pareto", "written", "first order"}) columns.emplace_back(name);
  Table table(columns);
  for (std::size_t i = 0; i < std::min(most, found.ranked.size()); ++i) {
    const std::size_t end = found.ranked[i];
    const OrderEnd& at = found.results.ends[end];
    std::vector<Cell> row{static_cast<std::int64_t>(at.orders)};
    for (const Cost cost : found.by) row.emplace_back(cost_at(found, end, cost));
    const bool front = std::find(found.front.begin(), found.front.end(), end) != found.front.end();
    row.push_back(yes_cell(front));
    row.push_back(yes_cell(end == found.results.written));
    row.push_back(list_cell(names_of(found, at.example), " "));
    table.add(std::move(row));
  }
  return table;
}

Table theft_table(const Exploration& found) {
  Table table(
      {"thief pass", "thief", "victim pass", "victim", "lost", "node", "losing", "keeping"});
  for (const Theft& theft : found.thefts)
    table.add({found.passes[theft.thief], theft.thief_rule, found.passes[theft.victim],
               theft.victim_rule, theft.lost, theft.node,
               list_cell(names_of(found, theft.losing), " "),
               list_cell(names_of(found, theft.keeping), " ")});
  return table;
}

Table pair_table(const Exploration& found) {
  Table table({"first", "second", "states", "different"});
  for (const OrderPair& pair : found.results.pairs)
    if (pair.different > 0)
      table.add({found.passes[pair.first], found.passes[pair.second], pair.states, pair.different});
  return table;
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_before(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    return fail(error_in("before", "PW1418", "`" + text + "` is no pair of passes",
                         "write it like norm:norm_quant"));
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

Result<Exploration> explore(const Graph& graph, const LoadedRules& rules,
                            const ExploreRequest& request, const Log& log) {
  Exploration out;
  out.by = PW_TRY(costs_named(request.by));
  Frame frame = PW_TRY(frame_of(rules, request));
  OrderSpace space;
  space.passes = frame.passes;
  space.last = frame.last;
  space.subsets = request.subsets;
  for (const Strategy& pass : space.passes) out.passes.push_back(pass.label);
  for (const auto& [first, second] : request.before)
    space.before.emplace_back(PW_TRY(place_of(out.passes, first)),
                              PW_TRY(place_of(out.passes, second)));
  Graph start = graph;
  if (!frame.first.parts.empty())
    PW_TRY(run_strategy(start, rules.set, frame.first, rules.params, {}));
  log.progress({fmt::format("exploring the orders of {} passes", out.passes.size())});
  out.results = PW_TRY(explore_orders(start, rules.set, rules.params, space));
  log.progress({"looking for what takes whose nodes"});
  out.thefts = PW_TRY(find_thefts(start, rules.set, rules.params, space));
  rank(out);
  const std::size_t best = out.ranked.front();
  if (cost_at(out, best, out.by.front()) < cost_at(out, out.results.written, out.by.front()))
    out.suggestion = fmt::format("pipeline best_order {{\n  {}\n}}\n",
                                 fmt::join(names_of(out, out.results.ends[best].example), "\n  "));
  return out;
}

Answer explore_answer(const Exploration& found, std::size_t most) {
  Answer out;
  out.add("ends", end_table(found, most));
  out.add("thefts", theft_table(found));
  out.add("pairs", pair_table(found));
  out.add("orders", Cell(static_cast<std::int64_t>(found.results.orders)));
  out.add("graphs", Cell(found.results.ends.size()));
  out.add("runs", Cell(found.results.runs));
  out.add("suggestion", Cell(found.suggestion));
  return out;
}

}  // namespace pw

#include "studies/explore.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "studies/objectives.hpp"

namespace pw {
namespace {

std::vector<std::string> names_of(const Exploration& found, const std::vector<std::size_t>& order) {
  std::vector<std::string> out;
  for (const std::size_t pass : order) out.push_back(found.passes[pass]);
  return out;
}

void rank(ExploredSetting& at) {
  at.ranked.resize(at.results.ends.size());
  std::iota(at.ranked.begin(), at.ranked.end(), std::size_t{0});
  std::sort(at.ranked.begin(), at.ranked.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(at.costs[a], at.results.ends[a].example) <
           std::tie(at.costs[b], at.results.ends[b].example);
  });
  at.front = pareto_of(at.costs);
}

Result<ExploredSetting> explore_setting(const Graph& graph, const LoadedRules& rules,
                                        const ExploreSpace& space, const ExploreSetting& setting,
                                        const ExploreRequest& request, const Log& log) {
  ExploredSetting out;
  out.name = setting.name;
  const LoadedRules own{rules_of(setting, rules), setting.params};
  const Graph start = PW_TRY(setting_start(graph, space, setting, rules));
  const OrderSpace orders = order_space(space);
  const std::string under = setting.name.empty() ? "" : " under " + setting.name;
  log.progress(
      {fmt::format("exploring the orders of {}{}", counted(space.passes.size(), "pass"), under)});
  out.results = PW_TRY(explore_orders(start, own.set, own.params, orders));
  log.progress({"searching for rules that take each other's nodes" + under});
  out.thefts = PW_TRY(find_thefts(start, own.set, own.params, orders));
  std::vector<const Graph*> ends;
  for (const OrderEnd& end : out.results.ends)
    ends.push_back(&out.results.states->graph(end.graph));
  out.costs = PW_TRY(objectives_of(ends, start, space.by, own, request, log));
  out.results.states.reset();
  rank(out);
  return out;
}

/// For more than 16 passes: lists those omitted from the orders or run as one, with the reason.
Table group_table(const Exploration& found) {
  const bool several = found.settings.size() > 1;
  std::vector<Column> columns;
  if (several) columns.emplace_back("setting");
  for (const char* name : {"passes", "group"}) columns.emplace_back(name);
  Table table(columns);
  for (const ExploredSetting& at : found.settings) {
    const auto add = [&](const std::vector<std::size_t>& passes, const char* why) {
      if (passes.empty()) return;
      std::vector<Cell> row;
      if (several) row.emplace_back(at.name);
      row.push_back(list_cell(names_of(found, passes), " "));
      row.emplace_back(why);
      table.add(std::move(row));
    };
    add(at.results.idle, "commute with all: they change no graph that an order reaches");
    for (const std::vector<std::size_t>& passes : at.results.together)
      add(passes, "run as one: they commute where the written order reaches them");
  }
  return table;
}

/// Compares the best end of all settings that differ only in precedence with the written one.
/// Judges only the first of several params or ranges, because their costs are not comparable.
std::string suggested(const Exploration& found, const ExploreSpace& space) {
  const ExploredSetting& written = found.settings.front();
  const double usual = written.costs[written.results.written].front();
  std::size_t best = 0;
  const auto cost = [&](std::size_t i) {
    return found.settings[i].costs[found.settings[i].ranked.front()].front();
  };
  for (std::size_t i = 1; i < found.settings.size() && !space.settings[i].precedence.empty(); ++i)
    if (cost(i) < cost(best)) best = i;
  if (cost(best) >= usual) return {};
  const ExploredSetting& at = found.settings[best];
  const std::vector<std::size_t> order =
      with_idle(at.results.ends[at.ranked.front()].example, order_space(space), at.results);
  const bool as_written = at.ranked.front() == at.results.written && best != 0;
  return space.settings[best].precedence +
         (as_written ? "" : pipeline_text(names_of(found, order)));
}

Table end_table(const Exploration& found, std::size_t most) {
  const bool several = found.settings.size() > 1;
  std::vector<Column> columns;
  if (several) columns.emplace_back("setting");
  columns.emplace_back("orders");
  for (const Objective cost : found.by)
    columns.emplace_back(std::string(kObjectiveNames[static_cast<std::size_t>(cost)]));
  for (const char* name : {"pareto", "written", "first order"}) columns.emplace_back(name);
  Table table(columns);
  for (const ExploredSetting& at : found.settings)
    for (std::size_t i = 0; i < std::min(most, at.ranked.size()); ++i) {
      const std::size_t end = at.ranked[i];
      std::vector<Cell> row;
      if (several) row.emplace_back(at.name);
      row.emplace_back(static_cast<std::int64_t>(at.results.ends[end].orders));
      for (std::size_t c = 0; c < found.by.size(); ++c)
        row.push_back(cost_cell(found.by[c], at.costs[end][c]));
      row.push_back(yes_cell(std::find(at.front.begin(), at.front.end(), end) != at.front.end()));
      row.push_back(yes_cell(end == at.results.written));
      row.push_back(list_cell(names_of(found, at.results.ends[end].example), " "));
      table.add(std::move(row));
    }
  return table;
}

Table theft_table(const Exploration& found) {
  const bool several = found.settings.size() > 1;
  std::vector<Column> columns;
  if (several) columns.emplace_back("setting");
  for (const char* name : {"thief pass", "thief", "victim pass", "victim", "lost", "node", "losing",
                           "keeping", "settled by"})
    columns.emplace_back(name);
  Table table(columns);
  for (const ExploredSetting& at : found.settings)
    for (const Theft& theft : at.thefts) {
      std::vector<Cell> row;
      if (several) row.emplace_back(at.name);
      const std::string settled =
          fmt::format("before {}: {}", found.passes[theft.victim], found.passes[theft.thief]);
      for (Cell cell : {Cell(found.passes[theft.thief]), Cell(theft.thief_rule),
                        Cell(found.passes[theft.victim]), Cell(theft.victim_rule), Cell(theft.lost),
                        Cell(theft.node), list_cell(names_of(found, theft.losing), " "),
                        list_cell(names_of(found, theft.keeping), " "), Cell(settled)})
        row.push_back(std::move(cell));
      table.add(std::move(row));
    }
  return table;
}

Table pair_table(const Exploration& found) {
  const bool several = found.settings.size() > 1;
  std::vector<Column> columns;
  if (several) columns.emplace_back("setting");
  for (const char* name : {"first", "second", "states", "different"}) columns.emplace_back(name);
  Table table(columns);
  for (const ExploredSetting& at : found.settings)
    for (const OrderPair& pair : at.results.pairs) {
      if (pair.different == 0) continue;
      std::vector<Cell> row;
      if (several) row.emplace_back(at.name);
      for (Cell cell : {Cell(found.passes[pair.first]), Cell(found.passes[pair.second]),
                        Cell(pair.states), Cell(pair.different)})
        row.push_back(std::move(cell));
      table.add(std::move(row));
    }
  return table;
}

/// The best and the written order of each setting, by the first objective.
Table setting_table(const Exploration& found) {
  Table table({"setting", "orders", "graphs", "best", "written", "best order"});
  for (const ExploredSetting& at : found.settings) {
    const std::size_t best = at.ranked.front();
    table.add({at.name, static_cast<std::int64_t>(at.results.orders), at.results.ends.size(),
               cost_cell(found.by.front(), at.costs[best].front()),
               cost_cell(found.by.front(), at.costs[at.results.written].front()),
               list_cell(names_of(found, at.results.ends[best].example), " ")});
  }
  return table;
}

}  // namespace

std::uint64_t Exploration::orders() const {
  std::uint64_t sum = 0;
  for (const ExploredSetting& at : settings) sum += at.results.orders;
  return sum;
}
std::size_t Exploration::graphs() const {
  std::size_t sum = 0;
  for (const ExploredSetting& at : settings) sum += at.results.ends.size();
  return sum;
}
bool Exploration::grouped() const {
  return std::any_of(settings.begin(), settings.end(), [](const ExploredSetting& at) {
    return !at.results.idle.empty() || !at.results.together.empty();
  });
}
std::size_t Exploration::runs() const {
  std::size_t sum = 0;
  for (const ExploredSetting& at : settings) sum += at.results.runs;
  return sum;
}

std::vector<std::size_t> pareto_of(const std::vector<std::vector<double>>& costs) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    bool beaten = false;
    for (std::size_t j = 0; j < costs.size() && !beaten; ++j)
      beaten =
          costs[j] != costs[i] && std::equal(costs[j].begin(), costs[j].end(), costs[i].begin(),
                                             [](double a, double b) { return a <= b; });
    if (!beaten) out.push_back(i);
  }
  return out;
}

std::string pipeline_text(const std::vector<std::string>& passes) {
  return fmt::format("pipeline best_order {{\n  {}\n}}\n", fmt::join(passes, "\n  "));
}

Cell cost_cell(Objective objective, double value) {
  if (is_whole(objective)) return {static_cast<std::int64_t>(value)};
  return real_cell(value, fmt::format("{:.1f}", value));
}

Result<Exploration> explore(const Graph& graph, const LoadedRules& rules,
                            const ExploreRequest& request, const Log& log) {
  Exploration out;
  ExploreSpace space = PW_TRY(explore_space(rules, request));
  if (space.sample > 0)
    return fail(error_in("sample", "PW1114", "only a study can explore a sample of orders",
                         "name a file with --study, or omit `sample`"));
  out.passes = space.names;
  out.by = space.by;
  for (const ExploreSetting& setting : space.settings)
    out.settings.push_back(PW_TRY(explore_setting(graph, rules, space, setting, request, log)));
  out.left_out = std::move(space.left_out);
  out.suggestion = suggested(out, space);
  return out;
}

Answer explore_answer(const Exploration& found, std::size_t most) {
  Answer out;
  out.add("ends", end_table(found, most));
  out.add("thefts", theft_table(found));
  out.add("pairs", pair_table(found));
  if (found.grouped()) out.add("groups", group_table(found));
  if (found.settings.size() > 1) out.add("settings", setting_table(found));
  out.add("orders", Cell(static_cast<std::int64_t>(found.orders())));
  out.add("graphs", Cell(found.graphs()));
  out.add("runs", Cell(found.runs()));
  out.add("suggestion", Cell(found.suggestion));
  return out;
}

}  // namespace pw

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "rewriter/egraph/cost.hpp"
#include "studies/objectives.hpp"
#include "studies/study.hpp"
#include "studies/study_lists.hpp"

namespace pw {
namespace {

Table block_table(const StudySummary& summary) {
  Table table({"graph", "setting", "done", "units", "graphs", "by", "start", "written", "best",
               "best order"});
  for (const StudiedBlock& each : summary.blocks) {
    const Objective first = objectives_of(each.block).front();
    const auto ranked = ranked_ends(each);
    const bool counted = first <= Objective::bytes;
    const auto shown = [&](const std::string& state) {
      return cost_cell(first, cost_of(each, state, first));
    };
    table.add({each.block.graph, each.block.setting, static_cast<std::int64_t>(each.done),
               static_cast<std::int64_t>(each.block.units), ranked.size(),
               kObjectiveNames[static_cast<std::size_t>(first)],
               counted ? shown(each.block.start) : null_cell(), shown(each.block.written),
               ranked.empty() ? null_cell() : shown(ranked.front().state),
               list_cell(ranked.empty() ? std::vector<std::string>() : ranked.front().first, " ")});
  }
  return table;
}

Table order_table(const StudySummary& summary) {
  Table table({"order", "blocks", "ratio"});
  for (const StudiedOrder& each : summary.orders)
    table.add({list_cell(each.order, " "), each.blocks,
               real_cell(each.ratio, fmt::format("{:.4f}", each.ratio))});
  return table;
}

/// Over all blocks: their number and the total loss.
Table theft_table(const StudySummary& summary) {
  struct Sum {
    std::size_t blocks = 0, lost = 0;
    const StudyTheft* first = nullptr;
    std::string graph;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Sum> sums;
  for (const StudiedBlock& each : summary.blocks)
    for (const StudyTheft& theft : each.thefts) {
      Sum& sum = sums[{theft.thief_pass, theft.thief, theft.victim_pass, theft.victim}];
      ++sum.blocks;
      sum.lost += theft.lost;
      if (sum.first == nullptr) {
        sum.first = &theft;
        sum.graph = each.block.graph;
      }
    }
  Table table({"thief pass", "thief", "victim pass", "victim", "blocks", "lost", "graph", "node",
               "losing", "keeping", "settled by"});
  for (const auto& [key, sum] : sums)
    table.add({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), sum.blocks,
               sum.lost, sum.graph, sum.first->node, list_cell(sum.first->losing, " "),
               list_cell(sum.first->keeping, " "),
               fmt::format("before {}: {}", std::get<2>(key), std::get<0>(key))});
  return table;
}

std::string quoted_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::vector<Objective> objectives_of(const StudyBlock& block) {
  std::vector<Objective> out;
  for (const std::string& name : block.objectives) {
    const auto at = std::find(kObjectiveNames.begin(), kObjectiveNames.end(), name);
    if (at != kObjectiveNames.end())
      out.push_back(static_cast<Objective>(at - kObjectiveNames.begin()));
  }
  if (out.empty()) out.push_back(Objective::nodes);
  return out;
}

double cost_of(const StudiedBlock& block, const std::string& state, Objective objective) {
  const auto place = static_cast<std::size_t>(objective);
  const auto named = [&](const auto& list) {
    return std::find_if(list.begin(), list.end(),
                        [&](const auto& each) { return each.state == state; });
  };
  if (place < kCostNames.size()) {
    const auto at = named(block.states);
    return at == block.states.end() ? 0 : static_cast<double>(at->costs[place]);
  }
  const auto at = named(block.ends);
  return at == block.ends.end() ? 0 : at->measured[place - kCostNames.size()].value_or(0);
}

std::vector<StudiedBlock::End> ranked_ends(const StudiedBlock& block) {
  std::vector<StudiedBlock::End> out = block.ended;
  const std::vector<Objective> by = objectives_of(block.block);
  std::map<std::string, std::vector<double>> costs;
  for (const StudiedBlock::End& end : out)
    for (const Objective each : by) costs[end.state].push_back(cost_of(block, end.state, each));
  std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
    return std::tie(costs[a.state], a.state) < std::tie(costs[b.state], b.state);
  });
  return out;
}

Result<StudySummary> summarize(StudyStore& store, std::size_t most) {
  StudySummary out;
  out.blocks = PW_TRY(store.read());
  if (out.blocks.empty()) return out;
  out.by = objectives_of(out.blocks.front().block);
  out.orders = PW_TRY(store.best_orders(
      std::string(kObjectiveNames[static_cast<std::size_t>(out.by.front())]), most));
  if (!out.orders.empty() && out.orders.front().ratio < 1)
    out.suggestion = pipeline_text(out.orders.front().order);
  return out;
}

Result<StudySummary> read_study(const std::string& file, std::size_t most) {
  StudyStore store = PW_TRY(StudyStore::open(file, false));
  return summarize(store, most);
}

Answer study_answer(const StudySummary& summary) {
  Answer out;
  out.add("blocks", block_table(summary));
  out.add("best_orders", order_table(summary));
  out.add("thefts", theft_table(summary));
  out.add("suggestion", Cell(summary.suggestion));
  return out;
}

Result<std::string> study_rows(const std::string& file, bool json) {
  StudyStore store = PW_TRY(StudyStore::open(file, false));
  std::string out;
  std::vector<std::string> names;
  std::string between = "\n";
  PW_TRY(store.each_row([&](const std::vector<std::string>& cells) {
    if (names.empty()) names = cells;
    if (!json) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        out += (i == 0 ? "" : ",") + quoted_field(cells[i]);
      out += "\n";
      return;
    }
    if (cells == names) return;
    out += between + study_row_text(names, cells);
    between = ",\n";
  }));
  return json ? "[" + out + "\n]\n" : out;
}

}  // namespace pw

#include "studies/study_page.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "viz/formats/svg.hpp"

namespace pw {
namespace {

using viz::xml_escaped;

constexpr std::size_t kMostStates =
    400;  ///< limit of a picture; above it the page reports the number instead

constexpr const char* kStyle = R"(
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1180px; padding: 16px 24px 48px;
  color: #1b1f24; background: #fff; }
h1 { font-size: 22px; margin: 8px 0; } h2 { font-size: 17px; margin: 28px 0 8px; } h3 { font-size: 14px; margin: 14px 0 4px; }
p { margin: 4px 0 10px; } .quiet { color: #59636e; } pre { background: #f6f8fa; padding: 10px 12px; border-radius: 6px; }
table { border-collapse: collapse; margin: 6px 0 14px; font-size: 13px; }
th, td { border-bottom: 1px solid #d1d9e0; padding: 4px 10px 4px 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { display: block; max-width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: #1b1f24; }
svg .axis { stroke: #8c959f; } svg .grid { stroke: #e6eaef; } svg .quiet { fill: #59636e; }
svg .step { stroke: #b6bfc9; fill: none; } svg .best { stroke: #1f6feb; stroke-width: 3; fill: none; }
svg .written { stroke: #bf5700; stroke-width: 2; stroke-dasharray: 6 4; fill: none; }
svg circle { fill: #8c959f; stroke: #fff; } svg circle.end { fill: #57606a; } svg circle.front { fill: #1f6feb; }
svg circle.mark { fill: none; stroke: #bf5700; stroke-width: 2.5; } svg .label { paint-order: stroke; stroke: #fff; stroke-width: 3px; }
svg .front-line { stroke: #1f6feb; fill: none; stroke-width: 1.5; }
summary { cursor: pointer; font-weight: 600; margin: 10px 0 4px; }
)";

std::string cost_text(Objective objective, double value) {
  return cost_cell(objective, value).text;
}
std::string_view name_of(Objective objective) {
  return kObjectiveNames[static_cast<std::size_t>(objective)];
}
std::string joined(const std::vector<std::string>& order) {
  return fmt::format("{}", fmt::join(order, " → "));
}

// ---- the states of a block

struct StatePicture {
  struct Place {
    std::size_t column = 0;
    double x = 0, y = 0;
  };
  std::map<std::string, Place> places;
  double width = 0, height = 0;
};

using NextOf = std::map<std::pair<std::string, std::string>, std::string>;  ///< by state and pass

NextOf next_of(const StudiedBlock& block) {
  NextOf out;
  for (const StudyStep& step : block.steps) out[{step.state, step.pass}] = step.next;
  return out;
}

/// The states along an order, without consecutive repetitions.
std::vector<std::pair<std::string, std::string>> path_of(const StudiedBlock& block,
                                                         const NextOf& next,
                                                         std::vector<std::string> order) {
  order.emplace_back("(rest)");
  std::vector<std::pair<std::string, std::string>> out{{"", block.block.start}};
  for (const std::string& pass : order) {
    const auto at = next.find({out.back().second, pass});
    if (at != next.end() && at->second != out.back().second) out.emplace_back(pass, at->second);
  }
  return out;
}

/// One column for each number of effective passes on the shortest path, with the cheapest state on
/// top.
StatePicture place_states(const StudiedBlock& block, Objective by) {
  StatePicture out;
  std::map<std::string, std::set<std::string>> after;
  for (const StudyStep& step : block.steps)
    if (step.next != step.state) after[step.state].insert(step.next);
  std::vector<std::string> column{block.block.start};
  std::map<std::string, double> costs;
  for (const StudyState& each : block.states)
    costs[each.state] =
        static_cast<double>(each.costs[by <= Objective::bytes ? static_cast<std::size_t>(by) : 0]);
  out.places[block.block.start] = {};
  std::size_t tallest = 1, columns = 0;
  std::vector<std::vector<std::string>> all;
  while (!column.empty()) {
    std::sort(column.begin(), column.end(), [&](const std::string& a, const std::string& b) {
      return std::tie(costs[a], a) < std::tie(costs[b], b);
    });
    all.push_back(column);
    tallest = std::max(tallest, column.size());
    std::vector<std::string> more;
    for (const std::string& state : column)
      for (const std::string& next : after[state])
        if (out.places.emplace(next, StatePicture::Place{columns + 1, 0, 0}).second)
          more.push_back(next);
    ++columns;
    column = std::move(more);
  }
  const double gap =
      std::clamp(900.0 / static_cast<double>(std::max<std::size_t>(columns, 2)), 90.0, 190.0);
  const double row = tallest > 14 ? 17 : 34;
  out.width = 80 + gap * static_cast<double>(columns - 1) + 110;
  out.height = 40 + row * static_cast<double>(tallest);
  for (std::size_t c = 0; c < all.size(); ++c)
    for (std::size_t i = 0; i < all[c].size(); ++i) {
      StatePicture::Place& at = out.places[all[c][i]];
      at.x = 40 + gap * static_cast<double>(c);
      const double free = out.height - row * static_cast<double>(all[c].size());
      at.y = free / 2 + row * (static_cast<double>(i) + 0.5);
    }
  return out;
}

std::string curve(const StatePicture::Place& a, const StatePicture::Place& b) {
  const double middle = (a.x + b.x) / 2;
  if (a.x == b.x)
    return fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, a.x + 30,
                       (a.y + b.y) / 2, b.x, b.y);
  return fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", a.x, a.y, middle,
                     a.y, middle, b.y, b.x, b.y);
}

std::string path_svg(const StatePicture& picture,
                     const std::vector<std::pair<std::string, std::string>>& path,
                     std::string_view style, bool labels) {
  std::string out, texts;
  for (std::size_t i = 1; i < path.size(); ++i) {
    const auto a = picture.places.find(path[i - 1].second), b = picture.places.find(path[i].second);
    if (a == picture.places.end() || b == picture.places.end()) continue;
    out += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style, curve(a->second, b->second));
    if (labels)
      texts += fmt::format(
          "<text class=\"label\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          (a->second.x + b->second.x) / 2, (a->second.y + b->second.y) / 2 - 6,
          xml_escaped(path[i].first));
  }
  return out + texts;
}

std::string state_svg(const StudiedBlock& block, const std::vector<StudiedBlock::End>& ranked,
                      Objective by) {
  if (block.states.size() > kMostStates)
    return fmt::format(
        "<p class=\"quiet\">{} states are too many to draw: {} are drawn at most.</p>\n",
        block.states.size(), kMostStates);
  const StatePicture picture = place_states(block, by);
  const NextOf next = next_of(block);
  std::string out = fmt::format(
      "<svg role=\"img\" aria-label=\"states of {}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "width=\"{:.0f}\">\n",
      xml_escaped(block.block.graph), picture.width, picture.height, picture.width);
  for (const StudyStep& step : block.steps) {
    const auto a = picture.places.find(step.state), b = picture.places.find(step.next);
    if (step.next == step.state || a == picture.places.end() || b == picture.places.end()) continue;
    out += fmt::format("<path class=\"step\" d=\"{}\"><title>{}: {}</title></path>\n",
                       curve(a->second, b->second), xml_escaped(step.pass),
                       counted(step.rewrites, "rewrite"));
  }
  out += path_svg(picture, path_of(block, next, block.block.passes), "written", false);
  if (!ranked.empty())
    out += path_svg(picture, path_of(block, next, ranked.front().first), "best", true);
  std::set<std::string> ends;
  for (const StudiedBlock::End& end : ranked) ends.insert(end.state);
  const Objective counted = by <= Objective::bytes ? by : Objective::nodes;
  for (const auto& [state, at] : picture.places) {
    const bool end = ends.contains(state);
    const std::string cost = cost_text(counted, cost_of(block, state, counted));
    const bool best = !ranked.empty() && state == ranked.front().state;
    out += fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{} {}</title></circle>\n",
        best  ? "front"
        : end ? "end"
              : "",
        at.x, at.y, end ? 7 : 5, cost, name_of(counted));
    if (end && (best || state == block.block.written || picture.places.size() < 40))
      out += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at.x + 11,
                         at.y + 4, cost);
    if (state == block.block.written)
      out += fmt::format("<circle class=\"mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"10\"/>\n", at.x,
                         at.y);
  }
  return out +
         "</svg>\n<p class=\"quiet\">The input graph is on the left. Each dot is a graph that some "
         "order reaches; each line is a pass that changes it. Blue: the best order; orange: the "
         "written one. Dark dots are ends, with their " +
         std::string(name_of(counted)) + ".</p>\n";
}

// ---- the ends by two objectives

struct Axis {
  double least = 0, most = 1;
  double from = 0, to = 1;  ///< on the page
  [[nodiscard]] double at(double value) const {
    return from + (to - from) * (most > least ? (value - least) / (most - least) : 0.5);
  }
};

Axis axis_of(const std::vector<double>& values, double from, double to) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double margin = std::max((*most - *least) * 0.08, *most > *least ? 0.0 : 1.0);
  return {*least - margin, *most + margin, from, to};
}

std::string pareto_svg(const StudiedBlock& block, const std::vector<StudiedBlock::End>& ranked) {
  const std::vector<Objective> by = objectives_of(block.block);
  if (by.size() < 2 || ranked.size() < 2) return {};
  std::vector<double> xs, ys;
  std::vector<std::vector<double>> costs;
  for (const StudiedBlock::End& end : ranked) {
    xs.push_back(cost_of(block, end.state, by[0]));
    ys.push_back(cost_of(block, end.state, by[1]));
    costs.push_back({xs.back(), ys.back()});
  }
  constexpr double kWidth = 560, kHeight = 300;
  const Axis x = axis_of(xs, 96, kWidth - 24), y = axis_of(ys, kHeight - 44, 16);
  std::vector<std::size_t> front = pareto_of(costs);
  std::sort(front.begin(), front.end(),
            [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  std::string out = fmt::format(
      "<svg role=\"img\" aria-label=\"ends of {} by {} and {}\" viewBox=\"0 0 {} {}\" "
      "width=\"{}\">\n",
      xml_escaped(block.block.graph), name_of(by[0]), name_of(by[1]), kWidth, kHeight, kWidth);
  out += fmt::format("<path class=\"axis\" fill=\"none\" d=\"M96 16V{0}H{1}\"/>\n", kHeight - 44,
                     kWidth - 24);
  for (int i = 0; i <= 4; ++i) {
    const double part = 0.1 + 0.2 * i;
    const double vx = x.least + (x.most - x.least) * part, vy = y.least + (y.most - y.least) * part;
    out += fmt::format(
        "<text class=\"quiet\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x.at(vx),
        kHeight - 28, cost_text(by[0], std::round(vx)));
    out += fmt::format(
        "<path class=\"grid\" d=\"M96 {0:.1f}H{1}\"/><text class=\"quiet\" text-anchor=\"end\" "
        "x=\"90\" "
        "y=\"{2:.1f}\">{3}</text>\n",
        y.at(vy), kWidth - 24, y.at(vy) + 4, cost_text(by[1], std::round(vy)));
  }
  out += fmt::format("<text text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n", kWidth / 2 + 36,
                     kHeight - 8, name_of(by[0]));
  out += fmt::format("<text text-anchor=\"start\" x=\"4\" y=\"11\">{}</text>\n", name_of(by[1]));
  std::string line;
  for (const std::size_t i : front)
    line += line.empty() ? fmt::format("M{:.1f} {:.1f}", x.at(xs[i]), y.at(ys[i]))
                         : fmt::format("H{:.1f}V{:.1f}", x.at(xs[i]), y.at(ys[i]));
  out += "<path class=\"front-line\" d=\"" + line + "\"/>\n";
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const bool on_front = std::find(front.begin(), front.end(), i) != front.end();
    const double radius =
        4 + std::min(8.0, std::log10(static_cast<double>(ranked[i].orders) + 1) * 2);
    out += fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"><title>{}, such as "
        "{}</title></circle>\n",
        on_front ? "front" : "end", x.at(xs[i]), y.at(ys[i]), radius,
        counted(ranked[i].orders, "order"), xml_escaped(joined(ranked[i].first)));
    if (ranked[i].state == block.block.written)
      out += fmt::format("<circle class=\"mark\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"/>\n",
                         x.at(xs[i]), y.at(ys[i]), radius + 3);
  }
  return out +
         "</svg>\n<p class=\"quiet\">Each dot is an end, larger if more orders reach it. Blue: no "
         "other end is better in both. Orange ring: the written order.</p>\n";
}

// ---- tables

std::string table_html(const Table& table) {
  std::string out = "<table><thead><tr>";
  const auto number = [](const Cell& cell) {
    return std::holds_alternative<std::int64_t>(cell.value) ||
           std::holds_alternative<double>(cell.value);
  };
  const auto& rows = table.rows();
  for (std::size_t c = 0; c < table.columns().size(); ++c)
    out += fmt::format("<th{}>{}</th>", !rows.empty() && number(rows[0][c]) ? " class=\"n\"" : "",
                       xml_escaped(table.columns()[c].title));
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (const Cell& cell : row)
      out +=
          fmt::format("<td{}>{}</td>", number(cell) ? " class=\"n\"" : "", xml_escaped(cell.text));
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

const Table* table_of(const Answer& answer, std::string_view name) {
  for (const auto& [key, member] : answer.members)
    if (key == name) return std::get_if<Table>(&member);
  return nullptr;
}

std::string block_html(const StudiedBlock& block, Objective by, bool open) {
  const std::vector<StudiedBlock::End> ranked = ranked_ends(block);
  std::string out = fmt::format(
      "<details{}><summary>{}{}</summary>\n", open ? " open" : "", xml_escaped(block.block.graph),
      block.block.setting.empty() ? "" : " — " + xml_escaped(block.block.setting));
  out += fmt::format("<p>{} of {}, {}.</p>\n", block.done, counted(block.block.orders, "order"),
                     counted(ranked.size(), "end graph"));
  return out + state_svg(block, ranked, by) + pareto_svg(block, ranked) + "</details>\n";
}

}  // namespace

std::string study_page(const StudySummary& summary, const std::string& title) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n";
  out +=
      "<title>" + xml_escaped(title) + "</title>\n<style>" + kStyle + "</style>\n</head>\n<body>\n";
  out += "<h1>" + xml_escaped(title) + "</h1>\n";
  std::uint64_t done = 0, units = 0;
  for (const StudiedBlock& each : summary.blocks) {
    done += each.done;
    units += each.block.units;
  }
  out += fmt::format("<p>{} under their settings, {} of {} orders done.</p>\n",
                     counted(summary.blocks.size(), "graph"), done, units);
  const Answer answer = study_answer(summary);
  if (const Table* blocks = table_of(answer, "blocks"))
    out += "<h2>Graphs</h2>\n" + table_html(*blocks);
  if (!summary.suggestion.empty())
    out += "<h2>An order that costs less over all graphs</h2>\n<pre>" +
           xml_escaped(summary.suggestion) + "</pre>\n";
  if (const Table* orders = table_of(answer, "best_orders"); orders != nullptr && !orders->empty())
    out += fmt::format(
               "<h2>Best orders</h2>\n<p class=\"quiet\">Ranked by {} relative to the written "
               "order, averaged over the graphs.</p>\n",
               summary.by.empty() ? "nodes" : name_of(summary.by.front())) +
           table_html(*orders);
  if (const Table* thefts = table_of(answer, "thefts"))
    out += "<h2>Rules that take each other's nodes</h2>\n" +
           (thefts->empty() ? std::string("<p>No rule takes nodes of another's matches.</p>\n")
                            : table_html(*thefts));
  out += "<h2>States and ends</h2>\n";
  const Objective by = summary.by.empty() ? Objective::nodes : summary.by.front();
  for (std::size_t i = 0; i < summary.blocks.size(); ++i)
    out += block_html(summary.blocks[i], by, i < 3);
  return out + "</body>\n</html>\n";
}

}  // namespace pw

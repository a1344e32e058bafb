#include "pipeline/report/captured_page.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "viz/formats/report.hpp"
#include "viz/viz.hpp"

namespace pw {
namespace {

constexpr std::size_t kMostRows = 500;

std::string extents(const std::array<std::uint32_t, 3>& from) {
  return fmt::format("{}", fmt::join(from, " × "));
}

/// Sections of the page about a graph whose nodes are named as in the picture.
class CapturedReport {
 public:
  CapturedReport(const CapturedLaunches& captured, const CapturedSummary& summary,
                 const std::vector<std::string>& names)
      : captured_(captured), summary_(summary), names_(names) {}

  [[nodiscard]] Report report() const {
    Report out;
    out.title = captured_.name;
    out.ran = false;
    out.verdict = verdict();
    out.sections = {kernels(), critical_path(), edges()};
    return out;
  }

 private:
  [[nodiscard]] std::string verdict() const {
    if (captured_.nodes.empty()) return "an empty graph: nothing was captured";
    if (summary_.count(LaunchKind::kernel) == 0 && summary_.unknown_bodies == 0)
      return "no kernels: a replay launches none";
    std::vector<std::string> kinds;
    for (std::size_t k = 0; k < kLaunchKinds; ++k)
      if (summary_.kinds[k] != 0)
        kinds.push_back(fmt::format("{} {}", summary_.kinds[k], name(static_cast<LaunchKind>(k))));
    return fmt::format("{}; {}; critical path: {}; class {}{}", fmt::join(kinds, ", "),
                       counted(captured_.edges.size(), "edge"),
                       counted(summary_.longest.nodes.size(), "node"), summary_.topology,
                       summary_.unknown_bodies == 0 ? "" : "; " + unknown_bodies());
  }

  [[nodiscard]] std::string unknown_bodies() const {
    return fmt::format("the driver does not report the bodies of {} (CUDA 13.2 or later does)",
                       counted(summary_.unknown_bodies, "conditional node"));
  }

  /// Adds the rows to a section, and a line that counts those left out.
  template <class Row>
  static void add_rows(ReportSection& section, ReportTable table, std::size_t count, Row row) {
    for (std::size_t i = 0; i < std::min(count, kMostRows); ++i) table.rows.push_back(row(i));
    section.items.emplace_back(std::move(table));
    if (count > kMostRows)
      section.items.emplace_back(
          ReportText{{fmt::format("… and {} more: the graph's file has all", count - kMostRows)}});
  }

  [[nodiscard]] ReportSection kernels() const {
    ReportSection out{"Launches", {}};
    std::map<std::string_view, std::string_view> labels;
    for (const CapturedNode& node : captured_.nodes)
      if (!node.label.empty()) labels[node.name] = node.label;
    const bool bodies = summary_.kernels_in_bodies != 0;
    std::vector<std::string> columns = {"launches", "threads", "kernel"};
    if (bodies) columns.emplace_back("in bodies");
    if (!labels.empty()) columns.emplace_back("computes");
    if (bodies)
      out.items.emplace_back(ReportText{
          {"A kernel in a body of a conditional node is launched each time that body runs. These "
           "launches are not counted; “in bodies” counts the nodes."}});
    if (summary_.unknown_bodies != 0) out.items.emplace_back(ReportText{{unknown_bodies()}});
    add_rows(out, {columns, {}, "Launches of one replay, by kernel"}, summary_.kernels.size(),
             [&](std::size_t i) {
               const KernelCount& k = summary_.kernels[i];
               std::vector<std::string> row = {std::to_string(k.launches),
                                               std::to_string(k.threads),
                                               k.name.empty() ? "unknown name" : k.name};
               if (bodies) row.emplace_back(std::to_string(k.in_bodies));
               if (!labels.empty()) row.emplace_back(labels[k.name]);
               return row;
             });
    return out;
  }

  [[nodiscard]] ReportSection critical_path() const {
    ReportSection out{"Critical path", {}};
    const auto add = [&](const CriticalPath& path, std::string caption) {
      add_rows(out, {{"node", "kind", "grid", "block", "bytes"}, {}, std::move(caption)},
               path.nodes.size(), [&](std::size_t i) {
                 const CapturedNode& n = captured_.nodes[path.nodes[i]];
                 const bool kernel = n.kind == LaunchKind::kernel;
                 return std::vector<std::string>{names_[path.nodes[i]], std::string(name(n.kind)),
                                                 kernel ? extents(n.grid) : "",
                                                 kernel ? extents(n.block) : "",
                                                 n.bytes ? std::to_string(*n.bytes) : ""};
               });
    };
    add(summary_.longest,
        fmt::format("The longest chain of dependent work: {} of {}", summary_.longest.nodes.size(),
                    counted(captured_.nodes.size(), "node")));
    if (!summary_.heaviest.nodes.empty())
      add(summary_.heaviest, fmt::format("The chain that moves the most known bytes: {} of {}",
                                         summary_.heaviest.weight, summary_.known_bytes));
    return out;
  }

  [[nodiscard]] ReportSection edges() const {
    ReportSection out{"Dependencies", {}};
    out.items.emplace_back(ReportText{
        {fmt::format("{}, {} of them programmatic.", counted(captured_.edges.size(), "edge"),
                     summary_.programmatic_edges),
         "An edge between two kernels could be programmatic if it is the later one's only "
         "dependency. That kernel must then wait (cudaGridDependencySynchronize) before it reads "
         "results of the earlier one."}});
    add_rows(out, {{"from", "to"}, {}, "Edges that could be programmatic"},
             summary_.candidates.size(), [&](std::size_t i) {
               const CapturedEdge& e = captured_.edges[summary_.candidates[i]];
               return std::vector<std::string>{names_[e.from], names_[e.to]};
             });
    return out;
  }

  const CapturedLaunches& captured_;
  const CapturedSummary& summary_;
  const std::vector<std::string>& names_;
};

}  // namespace

Result<std::string> captured_page(const CapturedLaunches& captured) {
  const auto context = std::make_shared<Context>();
  VizInput input;
  input.versions.push_back({"captured", PW_TRY(graph_of(context, captured))});
  const Graph& graph = input.versions.front().graph;
  std::vector<std::string> names;
  for (const NodeId n : graph.order()) names.emplace_back(graph.node_name(n));
  const CapturedSummary summary = summary_of(captured);
  const Report report = CapturedReport(captured, summary, names).report();
  input.report = &report;
  Overlay path{"place on the critical path", {}};
  for (std::size_t i = 0; i < summary.longest.nodes.size(); ++i)
    path.numbers[names[summary.longest.nodes[i]]] = static_cast<double>(i + 1);
  VizOptions options;
  options.view = View::graph;
  if (path.numbers.size() < names.size()) options.overlay = &path;
  return render_html(input, options);
}

}  // namespace pw

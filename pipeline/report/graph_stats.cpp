#include "pipeline/report/graph_stats.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"

namespace pw {

Result<Graph> import_graph(const ContextPtr& context, const GraphSource& source, const Log& log) {
  Graph graph = PW_TRY(load_logged_graph(context, source, log, true));
  if (Diagnostics errors = verify(graph); !errors.empty())
    return tl::unexpected<Diagnostics>(std::move(errors));
  return graph;
}

GraphStats count_graph(const Graph& graph) {
  std::map<std::string, GraphStats::OpCount> counts;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    const Op& op = graph.op_of(n);
    const char* meaning = op.imported ? "unknown" : op.has_body() ? "body" : "native";
    ++counts.try_emplace(op.name, GraphStats::OpCount{op.name, meaning, 0}).first->second.nodes;
  }
  GraphStats out;
  for (auto& [name, count] : counts) out.ops.push_back(std::move(count));
  std::stable_sort(out.ops.begin(), out.ops.end(),
                   [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
  out.nodes = graph.node_count();
  out.inputs = graph.inputs().size();
  out.outputs = graph.returned_count();
  for (ValueId input : graph.written_inputs()) out.written.emplace_back(graph.value_name(input));
  out.hash = structural_hash(graph);
  return out;
}

Table op_count_table(const GraphStats& stats) {
  Table table({"op", "nodes", "meaning"});
  for (const auto& row : stats.ops) table.add({row.op, row.nodes, row.meaning});
  return table;
}

Answer stats_answer(const GraphStats& stats) {
  Answer out;
  out.add("ops", op_count_table(stats));
  out.add("nodes", Cell(stats.nodes));
  out.add("inputs", Cell(stats.inputs));
  out.add("outputs", Cell(stats.outputs));
  out.add("written", list_cell(stats.written));
  out.add("hash", Cell(fmt::format("{:016x}", stats.hash)));
  return out;
}

std::string size_line(const GraphStats& stats) {
  return fmt::format("{}, {}, {}{}{}", counted(stats.nodes, "node"), counted(stats.inputs, "input"),
                     counted(stats.outputs, "output"), stats.written.empty() ? "" : ", writes ",
                     fmt::join(stats.written, ", "));
}

}  // namespace pw

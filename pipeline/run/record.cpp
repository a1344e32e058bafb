#include "pipeline/run/record.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {

Table joined(const std::vector<std::pair<std::string, Table>>& tables) {
  bool named = false;
  for (const auto& [name, table] : tables) named = named || !name.empty();
  if (!named && tables.size() == 1) return tables.front().second;
  std::vector<Column> columns{"tokens"};
  if (!tables.empty())
    columns.insert(columns.end(), tables.front().second.columns().begin(),
                   tables.front().second.columns().end());
  Table out(columns);
  for (const auto& [name, table] : tables) {
    for (std::vector<Cell> row : table.rows()) {
      row.insert(row.begin(), name);
      out.add(std::move(row));
    }
  }
  return out;
}

Table pass_table(const RewriteReport& report, bool times) {
  std::vector<Column> columns{"pass", "rewrites", "nodes before", "nodes after", "stopped by"};
  if (times) columns.emplace_back("time", "time_s");
  Table table(columns);
  for (const PassStats& pass : report.passes) {
    std::vector<Cell> row{pass.pass, pass.rewrites, pass.nodes_before, pass.nodes_after,
                          pass.skipped ? "skipped: its `when` does not hold" : name(pass.stop)};
    if (times) row.push_back(seconds_cell(pass.seconds));
    table.add(std::move(row));
  }
  return table;
}

Table rule_table(const RewriteReport& report, bool times) {
  bool timed = false;
  for (const PassStats& pass : report.passes)
    for (const auto& [rule, stats] : pass.rules) timed = timed || (times && stats.seconds > 0);
  std::vector<Column> columns{"pass", "rule", "matches", "attempts", "hits", "rejected by"};
  if (timed) columns.emplace_back("time", "time_s");
  Table table(columns);
  for (const PassStats& pass : report.passes) {
    for (const auto& [rule, stats] : pass.rules) {
      Cell::Counts rejections(stats.rejections.begin(), stats.rejections.end());
      std::vector<Cell> row{pass.pass,      rule,       stats.matches,
                            stats.attempts, stats.hits, counts_cell(std::move(rejections))};
      if (timed) row.push_back(seconds_cell(stats.seconds));
      table.add(std::move(row));
    }
  }
  return table;
}

Table piece_table(const StitchedGraph& pieces) {
  Table table({"piece", "class", "runs", "nodes", "inputs", "outputs"});
  for (const Piece& piece : pieces.pieces)
    table.add({piece.name, pieces.classes[piece.piece_class].name,
               piece.capturable() ? "captured" : "eagerly", piece.nodes.size(), piece.inputs.size(),
               piece.outputs.size()});
  return table;
}

Table step_table(const RunRecord& record, bool times) {
  std::vector<Column> columns = {"tokens", "runs as", "mode", {"time", "time_s"}, "why"};
  if (!times) columns.erase(columns.begin() + 3);
  Table table(columns);
  for (const StepRun& step : record.steps) {
    std::vector<Cell> row = {step.report.tokens, step.report.padded,
                             std::string(name(step.report.mode)), seconds_cell(step.report.seconds),
                             step.report.reason};
    if (!times) row.erase(row.begin() + 3);
    table.add(std::move(row));
  }
  return table;
}

Table number_table(const RunRecord& record) {
  std::vector<Column> columns = {"tokens", "output",       "dtype",       "elements", "left out",
                                 "rms",    "error before", "error after", "may be",   "result"};
  if (record.ranks > 1) columns.insert(columns.begin() + 1, "rank");
  Table table(columns);
  for (const StepRun& step : record.steps) {
    for (std::size_t rank = 0; rank < step.numbers.size(); ++rank) {
      for (const OutputCheck& o : step.numbers[rank].outputs) {
        std::vector<Cell> row = {step.report.tokens,
                                 o.name,
                                 std::string(name(o.dtype)),
                                 o.count,
                                 o.left_out,
                                 real_cell(o.reference_rms, fmt::format("{:.4g}", o.reference_rms)),
                                 real_cell(o.before_error, fmt::format("{:.3g}", o.before_error)),
                                 real_cell(o.after_error, fmt::format("{:.3g}", o.after_error)),
                                 real_cell(o.bound, fmt::format("{:.3g}", o.bound)),
                                 o.tied     ? "ok but for ties"
                                 : o.passed ? "ok"
                                            : "FAILED: " + o.reason};
        if (record.ranks > 1) row.insert(row.begin() + 1, rank);
        table.add(std::move(row));
      }
    }
  }
  return table;
}

Table tie_table(const RunRecord& record) {
  Table table({"tokens", "rank", "node", "op", "place", "elements", "margin", "rounding"});
  for (const StepRun& step : record.steps)
    for (const NumericReport& report : step.numbers)
      for (const Tie& tie : report.ties)
        table.add({step.report.tokens, tie.rank, tie.node, tie.op, tie.place, tie.count,
                   real_cell(tie.margin, fmt::format("{:.3g}", tie.margin)),
                   real_cell(tie.rounding, fmt::format("{:.3g}", tie.rounding))});
  return table;
}

Table expected_table(const RunRecord& record) {
  Table table({"tokens", "output", "dtype", "expected", "elements", "rms", "rms error", "may be",
               "largest", "outside", "result"});
  for (const StepRun& step : record.steps)
    for (const ExpectedCheck& o : step.expected)
      table.add({step.report.tokens, o.name, std::string(name(o.dtype)),
                 std::string(name(o.expected_dtype)), o.count,
                 real_cell(o.rms, fmt::format("{:.4g}", o.rms)),
                 real_cell(o.rms_error, fmt::format("{:.3g}", o.rms_error)),
                 o.bound > 0 ? real_cell(o.bound, fmt::format("{:.3g}", o.bound)) : null_cell("–"),
                 real_cell(o.largest, fmt::format("{:.3g}", o.largest)), o.outside,
                 o.passed ? "ok" : "FAILED: " + o.reason});
  return table;
}

bool StepRun::failed() const {
  return std::any_of(numbers.begin(), numbers.end(),
                     [](const NumericReport& one) { return !one.passed(); }) ||
         std::any_of(expected.begin(), expected.end(),
                     [](const ExpectedCheck& one) { return !one.passed; });
}

std::size_t failed_steps(const RunRecord& record) {
  return static_cast<std::size_t>(std::count_if(record.steps.begin(), record.steps.end(),
                                                [](const StepRun& step) { return step.failed(); }));
}

}  // namespace pw

#include "pipeline/report/report_sections.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/shown_path.hpp"
#include "base/quantities.hpp"
#include "base/version.hpp"
#include "graph/text/text.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/plan.hpp"
#include "pipeline/report/plan_tables.hpp"

namespace pw {
namespace {

#if defined(__clang__)
constexpr const char* kBuiltBy = "clang " __clang_version__;
#else
constexpr const char* kBuiltBy = "GCC " __VERSION__;
#endif

ReportTable as_report(const Table& table, std::string caption = {}) {
  ReportTable out{{}, {}, std::move(caption)};
  for (const Column& column : table.columns()) out.columns.push_back(column.title);
  for (const std::vector<Cell>& row : table.rows())
    for (std::vector<std::string>& line = out.rows.emplace_back(); const Cell& cell : row)
      line.push_back(cell.text);
  return out;
}
ReportText prose(std::string line) { return {{std::move(line)}}; }

// ---- overview
std::string ranks_sentence(const RunRecord& record) {
  if (record.ranks > 1)
    return fmt::format("{} ranks in one process, in lockstep, with their collectives.",
                       record.ranks);
  return record.collectives ? "One rank: collectives ran as the identity, except for their shapes."
                            : "One rank.";
}

/// Lists values computed once for all steps, with their ops.
ReportTable at_load_table(const Graph& at_load) {
  ReportTable out{{"weight", "type", "by", "of"}, {}, "computed once at load, from weights only"};
  for (const ValueId v : at_load.outputs()) {
    const NodeId node = at_load.producer(v);
    std::string of;
    for (const ValueId operand : at_load.operands(node))
      if (operand.valid())
        of += (of.empty() ? "" : ", ") + std::string(at_load.value_name(operand));
    out.rows.push_back({std::string(at_load.value_name(v)),
                        at_load.context().types.print(at_load.type(v)), at_load.op_of(node).name,
                        std::move(of)});
  }
  return out;
}

/// Lists warnings of rules and passes, and requests that the plan could not satisfy.
ReportTable warnings(const RunRecord& record, const RuleSet& rules) {
  ReportTable out{{"where", "code", "what"}, {}, "warnings"};
  for (const Diagnostics* list : {&rules.warnings, &record.rewrite.warnings}) {
    for (const Diagnostic& d : *list)
      out.rows.push_back(
          {d.span.source.valid()
               ? shown_path(record.versions.front().graph.context().sources.describe(d.span))
               : shown_path(d.place),
           d.code, d.help.empty() ? d.message : d.message + ": " + d.help});
  }
  for (const std::string& note : record.plan.notes) out.rows.push_back({"plan", "", note});
  if (!record.plan.mode_reason.empty()) out.rows.push_back({"plan", "", record.plan.mode_reason});
  return out;
}

std::size_t matches(const PassStats& pass) {
  std::size_t count = 0;
  for (const auto& [rule, stats] : pass.rules) count += stats.matches;
  return count;
}

/// Counts the nodes that dce and cse removed.
std::size_t built_in_steps(const PassStats& pass) {
  return pass.rewrites - std::min(pass.rewrites, matches(pass));
}

ReportSection overview(const RunRecord& record, const RuleSet& rules) {
  const Graph &before = record.versions.front().graph, &after = record.versions.back().graph;
  ReportSection section{"Overview", {}};
  std::size_t by_rules = 0, built_in = 0;
  for (const PassStats& pass : record.rewrite.passes) {
    by_rules += matches(pass);
    built_in += built_in_steps(pass);
  }
  section.items.push_back(ReportText{
      {fmt::format("{}: {} before, {} after, by {} of rules and {}.", shown_path(record.graph_path),
                   counted(before.node_count(), "node"), after.node_count(),
                   counted(by_rules, "match"), counted(built_in, "built-in step")),
       split_summary(*record.pieces) + ".", plan_summary(record.plan) + "."}});
  if (record.executed) section.items.push_back(prose(ranks_sentence(record)));
  if (record.at_load) section.items.push_back(at_load_table(*record.at_load));
  for (const Condition& condition : record.rewrite.conditions)
    section.items.push_back(prose("Valid only for steps where " + condition.text + "."));
  ReportTable warned = warnings(record, rules);
  if (warned.rows.empty())
    section.items.push_back(prose("No warnings."));
  else
    section.items.push_back(std::move(warned));
  section.items.push_back(prose("How to reproduce, with the files below in place:"));
  section.items.push_back(ReportText{{record.command}, true});
  ReportTable files{{"file", "what", "SHA-256"}, {}, "files that were read"};
  for (const RunRecord::File& file : record.files)
    files.rows.push_back({shown_path(file.name), file.what, file.sha256});
  section.items.push_back(std::move(files));
  ReportTable environment{{"what", "version"}, {}, "environment"};
  environment.rows.push_back({"pwr", std::string(version()) + ", built by " + kBuiltBy});
  if (record.executed)
    environment.rows.push_back({"backend", record.backend + fmt::format(", seed {}", record.seed)});
  if (record.cpu && !record.cpu->compiler.empty())
    environment.rows.push_back({"kernels compiled by", shown_path(record.cpu->compiler)});
  environment.rows.push_back(
      {"structure of the graph", fmt::format("{:016x} before, {:016x} after",
                                             structural_hash(before), structural_hash(after))});
  section.items.push_back(std::move(environment));
  return section;
}

// ---- rewriting
ReportTable passes(const RunRecord& record) {
  ReportTable table{{"pass", "matches", "built-in steps", "nodes", "Δ nodes", "stopped by"},
                    {},
                    "passes, in order; a built-in step removes a dead or duplicate node"};
  if (record.times) table.columns.emplace_back("time");
  for (const PassStats& pass : record.rewrite.passes) {
    const auto difference = static_cast<std::ptrdiff_t>(pass.nodes_after) -
                            static_cast<std::ptrdiff_t>(pass.nodes_before);
    std::vector<std::string> row{
        pass.pass,
        std::to_string(matches(pass)),
        std::to_string(built_in_steps(pass)),
        std::to_string(pass.nodes_after),
        difference == 0 ? "0" : fmt::format("{:+}", difference),
        pass.skipped ? "skipped: its `when` does not hold" : std::string(name(pass.stop))};
    if (record.times) row.push_back(seconds(pass.seconds));
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportSection rewriting(const RunRecord& record) {
  ReportSection section{"Rewriting", {}};
  if (record.rewrite.passes.empty()) {
    section.items.push_back(prose("No pipeline was named: the graph is unchanged."));
    return section;
  }
  section.items.push_back(passes(record));
  ReportTable rules = as_report(
      rule_table(record.rewrite, record.times),
      "rules that were tried. attempts: nodes where a match was searched for; hits: all nodes and "
      "edges were found; rejected by: reasons why hits were not applied, by code; matches: "
      "rewrites made");
  const auto attempts = std::find(rules.columns.begin(), rules.columns.end(), "attempts");
  const std::ptrdiff_t column = attempts - rules.columns.begin();
  const std::size_t idle =
      std::erase_if(rules.rows, [&](const auto& row) { return row[column] == "0"; });
  section.items.push_back(std::move(rules));
  if (idle > 0) section.items.push_back(prose(fmt::format("{} more had no node to try.", idle)));
  std::map<std::string, std::size_t> rejections;
  for (const PassStats& pass : record.rewrite.passes)
    for (const auto& [rule, stats] : pass.rules)
      for (const auto& [code, count] : stats.rejections) rejections[code] += count;
  ReportTable codes{
      {"code", "times"}, {}, "rejections by reason (`pwr explain CODE` describes it)"};
  for (const auto& [code, count] : rejections) codes.rows.push_back({code, std::to_string(count)});
  if (!codes.rows.empty()) section.items.push_back(std::move(codes));
  return section;
}

ReportSection proofs(const RunProof& proof) {
  ReportSection section{"Proofs", {prose(proof.print() + ".")}};
  section.items.push_back(as_report(
      run_proof_table(proof),
      "rules that fired. A rewrite is proved by its rule, for all graphs, or individually (on the "
      "spot), for its actual types and attributes"));
  if (!proof.left.empty())
    section.items.push_back(as_report(left_table(proof), "rewrites that are not proved"));
  return section;
}

// ---- splitting and planning
ReportTable counters(const RunRecord& record) {
  Counting counting;
  counting.add(*record.pieces, record.plan);
  return as_report(counter_table(counting.counters()), "counters of the plan, with vLLM's names");
}

ReportSection splitting(const RunRecord& record) {
  ReportSection section{"Pieces", {prose(split_summary(*record.pieces) + ".")}};
  // Capturable pieces are not captured by a backend that captures nothing.
  const std::string captured = record.captures ? "captured" : "capturable";
  ReportTable pieces = as_report(piece_table(*record.pieces), "pieces, in order");
  for (std::vector<std::string>& row : pieces.rows)
    if (row[2] == "captured") row[2] = captured;
  section.items.push_back(std::move(pieces));
  ReportTable classes{
      {"class", "pieces", "runs"}, {}, "classes: structurally equal pieces, compiled once"};
  for (const PieceClass& c : record.pieces->classes)
    classes.rows.push_back(
        {c.name, std::to_string(c.members.size()), c.capturable() ? captured : "eagerly"});
  section.items.push_back(std::move(classes));
  return section;
}

ReportSection padding(const RunRecord& record) {
  const Plan& plan = record.plan;
  ReportSection section{
      "Padding",
      {prose(fmt::format("Capture sizes: {}.",
                         plan.capture.sizes.empty()
                             ? "none"
                             : fmt::format("{}", fmt::join(plan.capture.sizes, ", "))))}};
  ReportTable ranges{{"tokens from", "to"}, {}, "token ranges"};
  for (const Range& range : plan.ranges)
    ranges.rows.push_back({std::to_string(range.begin), std::to_string(range.end)});
  if (!ranges.rows.empty()) section.items.push_back(std::move(ranges));
  ReportTable waste{{"tokens", "runs as", "most padding", "waste at most"}, {}, "padding by size"};
  std::int64_t below = 0;
  for (const std::int64_t size : plan.capture.sizes) {
    const std::int64_t padding = size - below - 1;
    waste.rows.push_back(
        {padding == 0 ? std::to_string(size) : fmt::format("{}–{}", below + 1, size),
         std::to_string(size), std::to_string(padding),
         fmt::format("{:.1f} %",
                     100.0 * static_cast<double>(padding) / static_cast<double>(size))});
    below = size;
  }
  if (!waste.rows.empty()) section.items.push_back(std::move(waste));
  return section;
}

// ---- memory
/// Returns the position in the node order at which most of the arena is in use.
std::size_t fullest(const MemoryPlan& memory) {
  std::map<std::size_t, std::int64_t> change;
  for (const Slot& slot : memory.slots) {
    if (slot.storage != slot.value) continue;
    change[slot.begin] += slot.bytes;
    change[slot.end + 1] -= slot.bytes;
  }
  std::size_t at = 0;
  std::int64_t now = 0, most = 0;
  for (const auto& [position, bytes] : change) {
    now += bytes;
    if (now > most) {
      most = now;
      at = position;
    }
  }
  return at;
}

/// Returns the piece and the node at a position of the schedule.
std::string place_in(const RunRecord& record, std::size_t position) {
  const Graph& graph = record.versions.back().graph;
  for (const Plan::Step& step : record.plan.steps) {
    const Piece& piece = record.pieces->pieces[step.piece];
    if (position < piece.nodes.size()) {
      const NodeId n = piece.nodes[position];
      return fmt::format("{} of {}, {}", graph.node_name(n), piece.name, graph.op_of(n).name);
    }
    position -= piece.nodes.size();
  }
  return "the end";
}

ReportTable slot_table(std::vector<Slot> slots, std::string caption) {
  ReportTable table{{"value", "bytes", "offset", "from piece", "to piece", "crosses pieces"},
                    {},
                    std::move(caption)};
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kShown = 40;
  for (std::size_t i = 0; i < slots.size() && i < kShown; ++i)
    table.rows.push_back({slots[i].name, std::to_string(slots[i].bytes),
                          std::to_string(slots[i].offset), std::to_string(slots[i].first),
                          std::to_string(slots[i].last), slots[i].crossing ? "yes" : "no"});
  if (slots.size() > kShown)
    table.caption += fmt::format(" ({} of {} shown; `pwr plan` writes all)", kShown, slots.size());
  return table;
}

ReportSection memory(const RunRecord& record) {
  const MemoryPlan& plan = record.plan.memory;
  ReportTable totals{{"what", "bytes", ""}, {}, "at the largest token count"};
  const auto row = [&](const std::string& what, std::int64_t n) {
    totals.rows.push_back({what, std::to_string(n), bytes(n)});
  };
  row("arena", plan.arena_bytes);
  row("peak live bytes (lower bound of the arena)", plan.live_bytes);
  row("inputs", plan.input_bytes);
  row("weights", plan.weight_bytes);
  if (plan.buffer_bytes > 0) row("buffers", plan.buffer_bytes);
  if (plan.cache_bytes > 0) row("keys and values", plan.cache_bytes);
  if (plan.workspace_bytes > 0) row("workspace of libraries, in the arena", plan.workspace_bytes);
  ReportSection section{"Memory", {std::move(totals)}};
  const std::size_t at = fullest(plan);
  std::vector<Slot> own, alive;
  for (const Slot& slot : plan.slots) {
    if (slot.storage != slot.value) continue;
    own.push_back(slot);
    if (slot.begin <= at && at <= slot.end) alive.push_back(slot);
  }
  if (own.empty()) return section;
  section.items.push_back(
      slot_table(std::move(alive), "live at the peak of the arena: at " + place_in(record, at)));
  section.items.push_back(slot_table(std::move(own), "slots of the arena, largest first"));
  return section;
}

ReportSection kernels(const CpuReport& cpu) {
  ReportSection section{"Kernels", {}};
  if (cpu.compiler.empty()) {
    section.items.push_back(ReportText{{"No C++ compiler was found: all ops ran on eager."}});
    return section;
  }
  section.items.push_back(ReportText{{fmt::format(
      "{}, {} from the compile cache, {} compiled by {}.", counted(cpu.kernels.size(), "kernel"),
      cpu.cache.found, cpu.compiled, shown_path(cpu.compiler))}});
  ReportTable compiled{{"ops of one kernel", "uses"}, {}, "row kernels, over all pieces"};
  for (const CpuReport::Kernel& k : cpu.kernels)
    compiled.rows.push_back({k.ops, std::to_string(k.uses)});
  ReportTable rest{{"op", "nodes", "why"}, {}, "ops without a kernel, run by eager"};
  for (const CpuReport::Fallback& f : cpu.fallbacks)
    rest.rows.push_back({f.op, std::to_string(f.nodes), f.reason});
  section.items.push_back(std::move(compiled));
  if (!rest.rows.empty()) section.items.push_back(std::move(rest));
  return section;
}

/// Lists the compilation, and the captures of each size.
ReportSection building(const RunRecord& record) {
  ReportTable table{{"stage", "tokens", "time"}, {}, "before the first step"};
  double sum = 0;
  for (const BuildTime& part : record.build_times) {
    sum += part.seconds;
    table.rows.push_back(
        {part.stage, part.tokens > 0 ? std::to_string(part.tokens) : "all", seconds(part.seconds)});
  }
  table.rows.push_back({"all", "all", seconds(sum)});
  return {"Building", {std::move(table)}};
}

ReportSection numbers(const RunRecord& record) {
  ReportSection section{"Numbers", {}};
  section.items.push_back(as_report(step_table(record, record.times), "steps of this run"));
  if (record.steps.empty() || record.steps.front().numbers.empty()) {
    section.items.push_back(ReportText{{"Not compared: run with --check."}});
    return section;
  }
  section.items.push_back(ReportText{
      {"Both the unrewritten and the rewritten graph ran on " + record.backend +
       " and are compared with the unrewritten graph on the double-precision interpreter. "
       "The rewritten run's RMS error may be 1.5 times the unrewritten run's, plus one ulp of the "
       "output's dtype (may be). Elements that are not finite are left out."}});
  section.items.push_back(as_report(number_table(record)));
  if (const Table ties = tie_table(record); !ties.empty())
    section.items.push_back(
        as_report(ties, "decisions within rounding error that differ from the reference"));
  return section;
}

}  // namespace

Report make_report(const RunRecord& record, const RuleSet& rules, bool plan_too) {
  Report report;
  report.title = "Piecewise: " + record.versions.front().graph.name;
  const std::size_t failed = failed_steps(record);
  report.good = failed == 0;
  const bool checked = !record.steps.empty() && !record.steps.front().numbers.empty();
  report.ran = checked;
  report.failure = record.culprit;
  report.next = failed ? record.next_command : std::string();
  report.verdict =
      !record.executed ? "rewritten, split and planned; nothing was run"
      : !checked       ? fmt::format("{} ran; the numbers were not compared",
                                     counted(record.steps.size(), "step"))
      : failed         ? fmt::format("{} of {} {} from the reference by more than {} may", failed,
                                     counted(record.steps.size(), "step"),
                             failed == 1 ? "differs" : "differ", failed == 1 ? "it" : "they")
                       : fmt::format("all outputs of {} pass the numeric comparison",
                             record.steps.size() == 1
                                         ? "the step"
                                         : fmt::format("all {} steps", record.steps.size()));
  report.sections.push_back(overview(record, rules));
  report.sections.push_back(rewriting(record));
  if (record.proof) report.sections.push_back(proofs(*record.proof));
  if (plan_too) {
    report.sections.push_back(splitting(record));
    report.sections.push_back(padding(record));
    report.sections.push_back(memory(record));
    report.sections.push_back({"Counters", {counters(record)}});
  }
  if (record.cpu) report.sections.push_back(kernels(*record.cpu));
  if (record.times && !record.build_times.empty()) report.sections.push_back(building(record));
  if (record.executed) report.sections.push_back(numbers(record));
  return report;
}

}  // namespace pw

// Exports write_report: the HTML report of a run, its text twin, and what they link to.
#include <algorithm>

#include <fmt/format.h>

#include "base/file.hpp"
#include "cli/running.hpp"
#include "viz/report.hpp"
#include "viz/svg.hpp"

namespace pw::cli {
namespace {

constexpr std::size_t kMostBoxes =
    150;  // of a picture in the report; the page of all passes shows more

ReportTable as_report(const Table& table, std::string caption = {}) {
  return {table.columns(), table.rows(), std::move(caption)};
}

ReportSection rewriting(const RunRecord& record) {
  ReportSection section{"Rewriting",
                        {as_report(pass_table(record.rewrite, false), "passes, in order")}};
  ReportTable rules{
      {"pass", "rule", "matches", "attempts", "hits", "rejected by"}, {}, "rules that were tried"};
  std::size_t idle = 0;
  for (const PassStats& pass : record.rewrite.passes) {
    for (const auto& [rule, stats] : pass.rules) {
      if (stats.attempts == 0) {
        ++idle;
        continue;
      }
      std::string rejections;
      for (const auto& [code, count] : stats.rejections)
        rejections += fmt::format("{}{} × {}", rejections.empty() ? "" : ", ", code, count);
      rules.rows.push_back({pass.pass, rule, std::to_string(stats.matches),
                            std::to_string(stats.attempts), std::to_string(stats.hits),
                            rejections});
    }
  }
  section.items.push_back(std::move(rules));
  if (idle > 0)
    section.items.push_back(ReportText{{fmt::format("{} more had no node to try.", idle)}});
  section.items.push_back(ReportLink{"passes.html", "The graph before and after each pass"});
  return section;
}

ReportSection splitting(const RunRecord& record) {
  ReportSection section{
      "Pieces",
      {ReportText{{split_summary(*record.pieces)}}, as_report(piece_table(*record.pieces))}};
  ReportTable classes{
      {"class", "pieces", "runs"}, {}, "classes: structurally equal pieces, compiled once"};
  for (const PieceClass& c : record.pieces->classes)
    classes.rows.push_back(
        {c.name, std::to_string(c.members.size()), c.splitting ? "eagerly" : "captured"});
  section.items.push_back(std::move(classes));
  return section;
}

ReportSection sizes(const RunRecord& record) {
  const Plan& plan = record.plan;
  std::string list;
  for (std::int64_t size : plan.capture.sizes)
    list += (list.empty() ? "" : ", ") + std::to_string(size);
  ReportSection section{
      "Sizes and padding",
      {ReportText{{"Capture sizes: " + (list.empty() ? std::string("none") : list)}}}};
  ReportTable ranges{{"tokens from", "to"}, {}, "token ranges"};
  for (const Range& range : plan.ranges)
    ranges.rows.push_back({std::to_string(range.begin), std::to_string(range.end)});
  if (!ranges.rows.empty()) section.items.push_back(std::move(ranges));
  ReportBars waste{
      {}, "rows of padding at most", "the most padding that a step gets, by the size it runs as"};
  std::int64_t below = 0;
  for (std::int64_t size : plan.capture.sizes) {
    waste.bars.emplace_back(std::to_string(size), static_cast<double>(size - below - 1));
    below = size;
  }
  if (!waste.bars.empty()) section.items.push_back(std::move(waste));
  section.items.push_back(as_report(step_table(record), "steps of this run"));
  return section;
}

ReportSection memory(const RunRecord& record) {
  const MemoryPlan& plan = record.plan.memory;
  ReportTable totals{{"what", "bytes", ""}, {}, "at the largest token count"};
  auto row = [&](const std::string& what, std::int64_t n) {
    totals.rows.push_back({what, std::to_string(n), bytes(n)});
  };
  row("arena", plan.arena_bytes);
  row("most alive at once (the arena cannot be smaller)", plan.live_bytes);
  row("inputs", plan.input_bytes);
  row("weights", plan.weight_bytes);
  ReportTable slots{{"value", "bytes", "offset", "from step", "to step", "crosses pieces"},
                    {},
                    "slots of the arena, largest first"};
  std::vector<Slot> sorted = plan.slots;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Slot& a, const Slot& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kShown = 40;
  for (std::size_t i = 0; i < sorted.size() && i < kShown; ++i)
    slots.rows.push_back({sorted[i].name, std::to_string(sorted[i].bytes),
                          std::to_string(sorted[i].offset), std::to_string(sorted[i].first),
                          std::to_string(sorted[i].last), sorted[i].crossing ? "yes" : "no"});
  if (sorted.size() > kShown)
    slots.caption += fmt::format(" ({} of {} shown; all are in plan.json)", kShown, sorted.size());
  return {"Memory",
          {std::move(totals), std::move(slots), ReportLink{"plan.json", "The whole plan"}}};
}

ReportSection kernels(const CpuReport& cpu) {
  ReportSection section{"Kernels", {}};
  if (cpu.compiler.empty()) {
    section.items.push_back(ReportText{{"No C++ compiler was found: everything ran on eager."}});
    return section;
  }
  section.items.push_back(
      ReportText{{fmt::format("{} kernels, {} from the compile cache, {} compiled by {}.",
                              cpu.kernels.size(), cpu.cache.found, cpu.compiled, cpu.compiler)}});
  ReportTable compiled{{"ops of one kernel", "uses"}, {}, "row kernels, over all pieces"};
  for (const CpuReport::Kernel& k : cpu.kernels)
    compiled.rows.push_back({k.ops, std::to_string(k.uses)});
  ReportTable rest{{"op", "nodes", "why"}, {}, "what is no kernel: run by eager"};
  for (const CpuReport::Fallback& f : cpu.fallbacks)
    rest.rows.push_back({f.op, std::to_string(f.nodes), f.reason});
  section.items.push_back(std::move(compiled));
  if (!rest.rows.empty()) section.items.push_back(std::move(rest));
  return section;
}

ReportSection numbers(const RunRecord& record) {
  ReportSection section{"Numbers", {}};
  if (record.steps.empty() || record.steps.front().numbers.empty()) {
    section.items.push_back(ReportText{{"Not compared: run with --check."}});
    return section;
  }
  section.items.push_back(ReportText{
      {"Both the unrewritten and the rewritten graph ran on " + record.backend +
       " and are compared with the unrewritten graph on the double-precision interpreter. "
       "The rewritten run's RMS error may be 1.5 times the unrewritten run's, plus one ulp of the "
       "output's dtype."}});
  section.items.push_back(as_report(number_table(record)));
  return section;
}

ReportSection pictures(const Session& session, const RunRecord& record, const VizInput& input) {
  ReportSection section{"Pictures", {}};
  VizOptions options;
  options.most_boxes = kMostBoxes;
  auto picture = [&](std::size_t version, std::optional<std::size_t> against,
                     const std::string& caption) {
    options.version = version;
    options.against = against;
    VizInput one = input;
    if (version + 1 != record.versions.size()) one.pieces = nullptr;
    section.items.push_back(
        ReportPicture{viz::svg_element(session.need(render_svg(one, options)), true), caption,
                      session.need(render_outline(one, options))});
  };
  std::size_t last = record.versions.size() - 1;
  if (last > 0) picture(0, std::nullopt, "before: the graph as it was read");
  picture(last, last > 0 ? std::optional<std::size_t>(0) : std::nullopt,
          last > 0 ? "after: the pieces; + added nodes" : "the pieces");
  return section;
}

std::string ranks_sentence(const RunRecord& record) {
  if (record.ranks > 1)
    return fmt::format("{} ranks in one process, in step, with their collectives.", record.ranks);
  return record.collectives ? "One rank: collectives ran as the identity, up to their shape."
                            : "One rank.";
}

}  // namespace

std::string write_report(const Session& session, const RunRecord& record, const RuleSet& rules,
                         const std::string& folder) {
  make_folder(session, folder);
  session.progress("drawing");
  VizInput input;
  input.versions = record.versions;
  input.pieces = &*record.pieces;
  input.plan = &record.plan;
  input.journal = &record.rewrite.journal;
  input.rules = &rules;
  Report report;
  report.title = "Piecewise: " + record.versions.front().graph.name;
  std::size_t failed = failed_steps(record);
  report.good = failed == 0;
  bool checked = !record.steps.empty() && !record.steps.front().numbers.empty();
  report.verdict =
      !checked ? fmt::format("{} steps ran; the numbers were not compared", record.steps.size())
      : failed ? fmt::format("{} of {} steps differ from the reference by more than they may",
                             failed, record.steps.size())
               : fmt::format("all outputs of all {} steps pass the numeric comparison",
                             record.steps.size());
  const Graph &before = record.versions.front().graph, &after = record.versions.back().graph;
  report.sections.push_back(
      {"Run",
       {ReportText{
           {fmt::format("{}: {} nodes before, {} after, {} rewrites", record.graph_path,
                        before.node_count(), after.node_count(), record.rewrite.journal.total()),
            split_summary(*record.pieces), plan_summary(record.plan), ranks_sentence(record)}}}});
  report.sections.push_back(rewriting(record));
  report.sections.push_back(splitting(record));
  report.sections.push_back(sizes(record));
  report.sections.push_back(memory(record));
  if (record.cpu) report.sections.push_back(kernels(*record.cpu));
  report.sections.push_back(numbers(record));
  report.sections.push_back(pictures(session, record, input));
  report.sections.push_back({"How to reproduce", {ReportText{{record.command}, true}}});
  session.need(write_file(folder + "/passes.html", session.need(render_html(input))));
  session.need(write_file(folder + "/plan.json", plan_to_json(record.plan, *record.pieces)));
  session.need(write_file(folder + "/journal.jsonl",
                          journal_to_json_lines(record.rewrite.journal, after, rules)));
  session.need(write_file(folder + "/report.txt", report_text(report)));
  session.need(write_file(folder + "/report.html", report_html(report)));
  return folder + "/report.html";
}

}  // namespace pw::cli

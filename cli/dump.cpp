// Exports write_dump.
#include "cli/dump.hpp"

#include <fmt/format.h>

#include "backends/cuda/compile.hpp"
#include "base/file.hpp"
#include "cli/commands.hpp"

namespace pw::cli {
namespace {

void write_passes(const Session& session, const RunRecord& record, const RuleSet& rules,
                  const std::string& folder) {
  Trace trace(session, folder);
  for (const Version& version : record.versions) trace.add(version.pass, version.graph);
  trace.finish(record.rewrite, record.versions.back().graph, rules);
}

void write_pieces(const Session& session, const StitchedGraph& pieces, const std::string& folder) {
  save(session, pieces.stitch, folder + "/stitch.pwg");
  make_folder(session, folder + "/pieces");
  for (const Piece& piece : pieces.pieces)
    save(session, piece.graph, fmt::format("{}/pieces/{}.pwg", folder, piece.name));
}

void write_kernels(const Session& session, const RunRecord& record, const std::string& folder,
                   bool group) {
  cuda::CompileOptions options;
  options.sources_only = true;
  options.grouping.automatic = group;
  options.schedules = &cuda::ScheduleTable::builtin();
  if (!record.plan.capture.sizes.empty()) options.tokens = record.plan.capture.sizes.back();
  const cuda::CompileReport report =
      cuda::compile_pieces(*record.pieces, options, cuda::Nvrtc::open());
  session.need(cuda::write_compiled(report, folder));
  if (!record.cpu) return;
  make_folder(session, folder + "/cpu");
  for (std::size_t i = 0; i < record.cpu->kernels.size(); ++i)
    session.need(
        write_file(fmt::format("{}/cpu/k_{:03}.cpp", folder, i), record.cpu->kernels[i].text));
}

}  // namespace

void write_dump(const Session& session, const RunRecord& record, const RuleSet& rules,
                const std::string& folder, bool group) {
  make_folder(session, folder);
  write_passes(session, record, rules, folder + "/passes");
  write_pieces(session, *record.pieces, folder);
  write_kernels(session, record, folder + "/kernels", group);
  session.need(write_file(folder + "/plan.json", plan_to_json(record.plan, *record.pieces)));
  session.need(write_file(folder + "/stats.json", stats_to_json(record)));
  session.say("graphs, pieces, kernels, plan.json and stats.json are in " + folder);
}

}  // namespace pw::cli

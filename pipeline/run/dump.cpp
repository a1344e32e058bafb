#include "pipeline/run/dump.hpp"

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "base/try.hpp"
#include "cuda/compile.hpp"
#include "pipeline/folder.hpp"

namespace pw {
namespace {

Status write_passes(const RunRecord& record, const RuleSet& rules, const std::string& folder) {
  Trace trace = PW_TRY(Trace::make(folder));
  for (const Version& version : record.versions) PW_TRY(trace.add(version.pass, version.graph));
  return trace.finish(record.rewrite, record.versions.back().graph, rules);
}

/// Writes the kernels of a device by piece class, with row programs and a report.
Status write_classes(const RunRecord& record, const std::string& folder) {
  cuda::CompileOptions options;
  options.sources_only = true;
  options.grouping.automatic = record.fuse;
  if (!record.arch.empty()) options.archs = {record.arch};
  const auto schedules = PW_TRY(cuda::ScheduleTable::named(record.schedules));
  options.schedules = schedules.get();
  if (!record.plan.capture.sizes.empty()) options.tokens = record.plan.capture.sizes.back();
  return cuda::write_compiled(cuda::compile_pieces(*record.pieces, options, cuda::Nvrtc::open()),
                              folder);
}

Status write_kernels(const RunRecord& record, const std::string& folder) {
  PW_TRY(write_classes(record, folder));
  if (!record.kernels.empty()) PW_TRY(make_folder(folder + "/captured"));
  for (const KernelSource& kernel : record.kernels)
    PW_TRY(write_file(fmt::format("{}/captured/{}.cu", folder, kernel.name), kernel.text));
  if (!record.cpu) return {};
  PW_TRY(make_folder(folder + "/cpu"));
  for (std::size_t i = 0; i < record.cpu->kernels.size(); ++i)
    PW_TRY(write_file(fmt::format("{}/cpu/k_{:03}.cpp", folder, i), record.cpu->kernels[i].text));
  return {};
}

}  // namespace

Status write_at_load(const std::optional<Graph>& at_load, const std::string& folder) {
  if (at_load) PW_TRY(save_graph(*at_load, folder + "/at_load.pwg"));
  return {};
}

Status write_pieces(const StitchedGraph& pieces, const std::optional<Graph>& at_load,
                    const std::string& folder, const std::string& pieces_folder) {
  PW_TRY(make_folder(pieces_folder));
  PW_TRY(write_at_load(at_load, folder));
  PW_TRY(save_graph(pieces.stitch, folder + "/stitch.pwg"));
  for (const Piece& piece : pieces.pieces)
    PW_TRY(save_graph(piece.graph, fmt::format("{}/{}.pwg", pieces_folder, piece.name)));
  return {};
}

Status write_dump(const RunRecord& record, const RuleSet& rules, const std::string& folder,
                  const Log& log) {
  PW_TRY(make_folder(folder));
  PW_TRY(write_passes(record, rules, folder + "/passes"));
  PW_TRY(write_pieces(*record.pieces, record.at_load, folder, folder + "/pieces"));
  PW_TRY(write_kernels(record, folder + "/kernels"));
  PW_TRY(write_file(folder + "/plan.json", plan_to_json(record.plan, *record.pieces)));
  PW_TRY(write_file(folder + "/stats.json", stats_to_json(record)));
  log.say("graphs, pieces, kernels, plan.json and stats.json are in " + folder);
  return {};
}

}  // namespace pw

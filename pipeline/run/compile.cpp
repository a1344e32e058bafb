#include "pipeline/run/compile.hpp"

#include <algorithm>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "cuda/product_tuning.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/run/dump.hpp"

namespace pw {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

int all_cores() { return static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }

cuda::CompileOptions compile_options(const CompileRequest& request, const Plan& plan) {
  cuda::CompileOptions out;
  out.archs = request.archs;
  out.strict = request.strict;
  out.grouping.automatic = request.fuse;
  out.threads = all_cores();
  out.sources_only = request.sources_only;
  const std::int64_t largest = plan.capture.sizes.empty() ? 1 : plan.capture.sizes.back();
  out.tokens = request.tokens > 0 ? request.tokens : largest;
  return out;
}

Status fill_record(GraphVariant& variant, const LoadedRules& rules, const CompileRequest& request,
                   RunRecord& record, const Log& log) {
  record.fuse = request.fuse;
  record.schedules = request.schedules;
  record.arch = request.archs.empty() ? "" : request.archs.front();
  const Graph& graph = variant.result.graph;
  record.pieces = PW_TRY(cut_graph(graph, rules, request.plan));
  record.plan = PW_TRY(plan_graph(*record.pieces, graph, rules, request.plan, log));
  record.versions = std::move(variant.versions);
  record.rewrite = variant.result.report;
  record.at_load = variant.at_load;
  if (record.at_load) log.say(at_load_summary(*record.at_load));
  return {};
}

std::string described(const cuda::TunedSchedule& t) {
  if (t.product)
    return fmt::format("{}{}", t.product->library ? "library, else " : "",
                       cuda::described(t.product->tile));
  const cuda::Schedule& s = t.schedule;
  return fmt::format("block {}, passes {}, resident {}, kept {}", s.block, s.passes, s.resident,
                     s.kept_words);
}

}  // namespace

const std::vector<std::string>& cuda_architectures() {
  static const std::vector<std::string> kArchitectures{"sm_80", "sm_90", "sm_100", "sm_120"};
  return kArchitectures;
}

Status check_architectures(const std::vector<std::string>& archs) {
  const std::vector<std::string>& known = cuda_architectures();
  for (const std::string& arch : archs)
    if (std::find(known.begin(), known.end(), arch) == known.end())
      return fail(error_at({}, "PW1429", "there is no architecture `" + arch + "`",
                           fmt::format("the architectures are {}", fmt::join(known, ", "))));
  if (archs.empty())
    return fail(error_at({}, "PW1429", "no architecture is given",
                         fmt::format("the architectures are {}", fmt::join(known, ", "))));
  return {};
}

Result<CompiledGraph> compile_graph(GraphVariant& variant, const LoadedRules& rules,
                                    const CompileRequest& request, const Log& log) {
  PW_TRY(check_architectures(request.archs));
  PW_TRY(check_number("tokens", request.tokens, 0, kMostTokens));
  CompiledGraph out;
  PW_TRY(fill_record(variant, rules, request, out.record, log));
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present() && !request.sources_only)
    log.say("NVRTC is missing, so only sources are written: " + nvrtc.state());
  cuda::CompileOptions options = compile_options(request, out.record.plan);
  const auto schedules = PW_TRY(cuda::ScheduleTable::named(request.schedules));
  options.schedules = schedules.get();
  std::optional<CompileCache> cache;
  if (nvrtc.present() && !request.sources_only)
    options.cache = &cache.emplace(CacheOptions::from_environment());
  log.progress({"compiling"});
  out.report = cuda::compile_pieces(*out.record.pieces, options, nvrtc);
  out.tokens_symbol = out.record.pieces->stitch.facts.tokens();
  out.tokens = options.tokens;
  out.nvrtc_version = nvrtc.version();
  if (request.schedule) {
    cuda::RuntimeOptions step;
    step.strict = request.strict;
    step.schedules = schedules.get();
    step.grouping.automatic = request.fuse;
    step.stream_weights = request.stream_weights;
    step.programmatic_edges = request.programmatic_edges;
    out.schedule =
        PW_TRY(cuda::schedule_of(*out.record.pieces, variant.result.graph, out.record.plan,
                                 request.archs.front(), out.tokens, step));
  }
  PW_TRY(make_folder(request.output));
  PW_TRY(cuda::write_compiled(out.report, request.output,
                              plan_to_json(out.record.plan, *out.record.pieces)));
  PW_TRY(write_at_load(out.record.at_load, request.output));
  if (cache) {
    out.cache = cache->counts();
    out.cache_problem = cache->problem();
  }
  return out;
}

Result<Tuner> Tuner::open(const TuneRequest& request) {
  PW_TRY(check_architectures(request.archs));
  PW_TRY(check_numbers("tokens", request.tokens, 1, kMostTokens));
  Tuner out(request, cuda::Nvrtc::open());
  if (!out.nvrtc_.present())
    return fail(error_at({}, "PW1450", "candidates cannot be compiled: " + out.nvrtc_.state(),
                         "`pwr doctor` shows where NVRTC is searched for"));
  out.cache_ = std::make_unique<CompileCache>(CacheOptions::from_environment());
  if (request.measure) {
    cuda::CudaDriverOptions how;
    how.strict = request.strict;
    how.cache = out.cache_.get();
    out.device_ = PW_TRY(cuda::CudaDriver::open(how));
  }
  if (!request.output.empty() && std::filesystem::exists(request.output))
    out.found_ = PW_TRY(cuda::ScheduleTable::read(request.output));
  return out;
}

Result<TunedGraph> Tuner::tune(const CutGraph& cut, const Log& log) {
  cuda::CompileOptions sources;
  sources.sources_only = true;
  const cuda::CompileReport kernels = cuda::compile_pieces(cut.pieces, sources, nvrtc_);
  cuda::TuneOptions options;
  options.tokens = request_.tokens;
  options.device = device_.get();
  options.strict = request_.strict;
  options.threads = all_cores();
  options.cache = cache_.get();
  options.progress = [&](std::size_t done) {
    log.progress({"tuning", done, kernels.kernels.size(), "kernels"});
  };
  TunedGraph out{{}, found_, 0};
  for (const std::string& arch : request_.archs) {
    options.arch = arch;
    const cuda::TuneReport report =
        PW_TRY(cuda::tune(kernels, cut.pieces.stitch.facts.tokens(), options, nvrtc_));
    for (const cuda::Tuned& tuned : report.tuned) {
      out.gains += tuned.chosen.schedule == cuda::Schedule() ? 0 : 1;
      out.rows.push_back({arch, tuned});
      out.schedules.put(tuned.chosen);
    }
    cuda::TuneReport products =
        cuda::tune_products(cut.pieces, cut.pieces.stitch.facts.tokens(), options, nvrtc_);
    for (cuda::Tuned& tuned : products.tuned) {
      out.gains += tuned.chosen.seconds < tuned.chosen.default_seconds ? 1 : 0;
      out.schedules.put(tuned.chosen);
      out.rows.push_back({arch, std::move(tuned)});
    }
    for (const std::string& why : report.skipped) log.say("not tuned: " + why);
    for (const std::string& why : products.skipped) log.say("not tuned: " + why);
    log.say(request_.measure ? fmt::format("{}: times are measured on {}", arch, report.by)
                             : fmt::format("{}: times are estimates of the {}, not measurements",
                                           arch, report.by));
  }
  return out;
}

Table schedule_table(const TunedGraph& tuned) {
  Table table({"kernel",
               "arch",
               "tokens",
               "rows",
               "bytes",
               "candidates",
               "spill",
               {"usual us", "usual_s"},
               {"tuned us", "tuned_s"},
               "ratio",
               "schedule"});
  for (const auto& [arch, t] : tuned.rows) {
    const cuda::TunedSchedule& c = t.chosen;
    table.add({c.op, arch, t.tokens, c.rows, t.bytes, t.candidates, t.spilled,
               real_cell(c.default_seconds, fmt::format("{:.2f}", c.default_seconds * 1e6)),
               real_cell(c.seconds, fmt::format("{:.2f}", c.seconds * 1e6)),
               real_cell(c.default_seconds / c.seconds,
                         fmt::format("{:.2f}", c.default_seconds / c.seconds)),
               described(c)});
  }
  return table;
}

}  // namespace pw

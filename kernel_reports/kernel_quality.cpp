#include "kernel_reports/kernel_quality.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/try.hpp"
#include "dsl/dsl.hpp"
#include "pipeline/folder.hpp"
#include "splitter/splitter.hpp"

namespace pw {
namespace {

using cuda::Quality;

constexpr std::int64_t kMostWidth = std::int64_t{1} << 20;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

/// The text with numbers in the places of widths.
std::string text_at(const QualityFunction& function, std::int64_t width) {
  std::string text(function.text);
  const auto put = [&](std::string_view what, std::int64_t number) {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what))
      text.replace(at, what.size(), std::to_string(number));
  };
  put("{heads_q}", width / 256);
  put("{heads_k}", width / 512);
  put("{D/4}", width / 4);
  put("{2D}", 2 * width);
  put("{D}", width);
  return text;
}

Result<std::vector<const QualityFunction*>> chosen(const std::vector<std::string>& names) {
  std::vector<const QualityFunction*> out;
  std::vector<std::string_view> known;
  for (const QualityFunction& f : quality_functions()) {
    known.push_back(f.name);
    if (names.empty() || std::find(names.begin(), names.end(), f.name) != names.end())
      out.push_back(&f);
  }
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(error_at({}, "PW1437", "there is no function `" + name + "`",
                           fmt::format("functions are {}", fmt::join(known, ", "))));
  return out;
}

void say_missing(const QualityReport& report, bool compiled, const Log& log) {
  if (!compiled)
    log.say("registers and instructions are not known: NVRTC is " + report.nvrtc);
  else if (report.disassembler.starts_with("absent"))
    log.say("instructions are not known: nvdisasm is " + report.disassembler);
}

/// NAME-ARCH.cubin for each target of a kernel.
Status keep_machine_code(const std::string& folder, const std::string& name,
                         const cuda::KernelReport& kernel) {
  if (folder.empty()) return {};
  PW_TRY(make_folder(folder));
  for (const cuda::TargetReport& target : kernel.targets)
    if (target.cubin)
      PW_TRY(write_file(fmt::format("{}/{}-{}.cubin", folder, name, target.arch),
                        target.cubin->bytes));
  return {};
}

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

Cell widths_cell(const std::array<std::int64_t, 5>& times) {
  return list_cell(std::vector<std::int64_t>(times.begin(), times.end()), "/");
}

Cell passes_cell(const cuda::LaunchTraffic& traffic) {
  std::vector<std::string> out;
  for (const cuda::ArgumentTraffic& a : traffic.arguments)
    if (!a.result && !a.scalar) out.push_back(fmt::format("{:.3g}", a.passes));
  return list_cell(std::move(out));
}

Cell classes_cell(const cuda::SassCounts& sass) {
  return counts_cell(Cell::Counts(sass.classes.begin(), sass.classes.end()));
}

std::vector<Cell> cells_of(const QualityRow& row) {
  const Quality& q = row.quality;
  const Cell none = null_cell();
  std::vector<Cell> out{row.function,
                        row.width > 0 ? Cell(row.width) : none,
                        q.arch,
                        q.kernel,
                        row.uses,
                        q.threads,
                        q.rows_per_block,
                        q.column_blocks,
                        q.usage ? Cell(q.usage->registers) : none,
                        q.usage ? Cell(q.usage->spill_stores + q.usage->spill_loads) : none,
                        q.usage ? Cell(q.usage->stack) : none,
                        q.usage ? Cell(q.shared_bytes) : none,
                        q.usage ? Cell(q.resident) : none,
                        q.usage ? real_cell(q.occupancy, percent(q.occupancy)) : none};
  const auto& sass = q.sass;
  out.push_back(sass ? Cell(sass->instructions) : none);
  out.push_back(sass ? widths_cell(sass->global_reads) : none);
  out.push_back(sass ? widths_cell(sass->global_writes) : none);
  out.push_back(sass ? Cell(sass->barriers) : none);
  out.push_back(sass ? classes_cell(*sass) : none);
  const auto& t = q.traffic;
  out.push_back(t ? real_cell(t->wide_share(), percent(t->wide_share())) : none);
  out.push_back(t ? passes_cell(*t) : none);
  out.push_back(t ? Cell(t->least) : none);
  out.push_back(t ? Cell(t->moved) : none);
  out.push_back(t ? real_cell(q.seconds, fmt::format("{:.2f}", q.seconds * 1e6)) : none);
  out.push_back(Cell(static_cast<std::int64_t>(q.shortcomings.size())));
  return out;
}

Table kernel_table(const QualityReport& report) {
  Table table({"function",
               "width",
               "arch",
               "kernel",
               "uses",
               "threads",
               {"rows a block", "rows_per_block"},
               {"blocks a row", "column_blocks"},
               "registers",
               {"spilled", "spill_bytes"},
               {"stack", "stack_bytes"},
               {"shared", "shared_bytes"},
               {"blocks", "resident_blocks"},
               "occupancy",
               "instructions",
               {"reads 8/16/32/64/128", "reads_by_width"},
               {"writes 8/16/32/64/128", "writes_by_width"},
               "barriers",
               "classes",
               {"wide", "wide_share"},
               {"passes", "input_passes"},
               {"must move", "least_bytes"},
               {"moves", "moved_bytes"},
               {"us", "bandwidth_s"},
               {"short", "shortcomings"}});
  for (const QualityRow& row : report.rows) table.add(cells_of(row));
  return table;
}

/// Equal reasons of several architectures once.
Table shortcoming_table(const QualityReport& report) {
  Table table({"function", "width", "archs", "reason"});
  struct Entry {
    std::string function, reason;
    std::int64_t width;
    std::vector<std::string> archs;
  };
  std::vector<Entry> entries;
  for (const QualityRow& row : report.rows) {
    for (const std::string& reason : row.quality.shortcomings) {
      const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) {
        return e.function == row.function && e.width == row.width && e.reason == reason;
      });
      if (same == entries.end())
        entries.push_back({row.function, reason, row.width, {row.quality.arch}});
      else
        same->archs.push_back(row.quality.arch);
    }
  }
  for (Entry& e : entries)
    table.add(
        {e.function, e.width > 0 ? Cell(e.width) : null_cell(), list_cell(e.archs), e.reason});
  return table;
}

Table step_table(const QualityStep& step) {
  Table table({"tokens",
               "nodes",
               "launches",
               "saved",
               {"must move", "least_bytes"},
               {"moves", "moved_bytes"},
               "ratio"});
  const double ratio =
      step.least == 0 ? 1 : static_cast<double>(step.moved) / static_cast<double>(step.least);
  table.add({step.tokens, step.nodes, step.launches, step.nodes - step.launches, step.least,
             step.moved, real_cell(ratio, fmt::format("{:.2f}", ratio))});
  return table;
}

Cell micros_cell(double seconds) {
  return real_cell(seconds, fmt::format("{:.2f}", seconds * 1e6));
}

/// The launches of a step, with the proof of each programmatic edge or the reason for a full one.
Table edge_table(const cuda::StepSchedule& schedule) {
  Table table({"launch",
               "op",
               "edge",
               {"weights", "weight_bytes"},
               {"others", "other_bytes"},
               {"prefetched", "prefetched_bytes"},
               {"full us", "full_seconds"},
               {"as planned us", "seconds"},
               "why"});
  std::int64_t number = 0;
  for (const cuda::ScheduledLaunch& l : schedule.launches)
    table.add({number++, l.op, l.early ? "programmatic" : "full", l.weight_bytes, l.other_bytes,
               l.prefetched, micros_cell(l.full_seconds), micros_cell(l.early_seconds), l.why});
  return table;
}

Table not_streamed_table(const cuda::StepSchedule& schedule) {
  Table table({"product",
               "rows",
               "depth",
               "columns",
               "count",
               {"streamed us", "least_streamed_seconds"},
               {"tensor cores us", "tensor_seconds"},
               "why not streamed"});
  for (const cuda::NotStreamed& p : schedule.not_streamed)
    table.add({p.op, p.rows, p.depth, p.columns, p.count, micros_cell(p.streamed_seconds),
               p.seconds ? micros_cell(*p.seconds) : null_cell(), p.why});
  return table;
}

Table schedule_table(const cuda::StepSchedule& s) {
  using Launch = cuda::ScheduledLaunch;
  Table table({"tokens",
               "launches",
               "programmatic",
               {"weights", "weight_bytes"},
               {"others", "other_bytes"},
               "before the wait",
               "prefetched",
               {"full us", "full_seconds"},
               {"as planned us", "seconds"}});
  const std::int64_t weights = s.total(&Launch::weight_bytes);
  const auto share = [&](std::int64_t bytes) {
    const double part =
        weights == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(weights);
    return real_cell(part, percent(part));
  };
  table.add({s.tokens, static_cast<std::int64_t>(s.launches.size()),
             static_cast<std::int64_t>(s.early()), weights, s.total(&Launch::other_bytes),
             share(s.total(&Launch::early_bytes)), share(s.total(&Launch::prefetched)),
             micros_cell(s.total(&Launch::full_seconds)),
             micros_cell(s.total(&Launch::early_seconds))});
  return table;
}

/// The products and attention of a plan on tensor cores, which run where no library is.
std::vector<cuda::TensorReport> tensor_kernels(const CompiledGraph& compiled, std::int64_t tokens,
                                               const cuda::Disassembler& disassembler) {
  if (!compiled.record.pieces || compiled.report.strict) return {};
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  CompileCache cache(CacheOptions::from_environment());
  cuda::TensorRequest request;
  request.archs = compiled.report.archs;
  request.tokens_symbol = compiled.tokens_symbol;
  request.tokens = tokens;
  request.query = 1 + compiled.record.plan.speculative_tokens;
  if (compiled.report.compiled) request.nvrtc = &nvrtc;
  request.cache = &cache;
  return cuda::tensor_reports(*compiled.record.pieces, request, disassembler);
}

std::vector<Cell> tensor_row(const cuda::TensorReport& r) {
  const Cell none = null_cell();
  const auto moved = [&](cuda::AccessesByWidth cuda::AccessCounts::* kind) {
    return r.accesses ? Cell(((*r.accesses).*kind).bytes()) : none;
  };
  const double ratio = r.seconds / r.bound_seconds;
  const auto micros = [](double s) { return real_cell(s, fmt::format("{:.2f}", s * 1e6)); };
  return {r.op,
          r.arch,
          r.work,
          r.kernel,
          r.uses,
          r.tile,
          r.parts,
          r.threads,
          r.usage ? Cell(r.usage->registers) : none,
          r.usage ? Cell(r.usage->spill_stores + r.usage->spill_loads) : none,
          r.sass ? Cell(r.sass->local) : none,
          Cell(r.shared_bytes),
          r.usage ? Cell(r.resident) : none,
          r.usage ? real_cell(r.occupancy, percent(r.occupancy)) : none,
          r.sass ? Cell(r.sass->tensor) : none,
          micros(r.bound_seconds),
          micros(r.seconds),
          micros(r.adding),
          real_cell(ratio, fmt::format("{:.2f}", ratio)),
          r.bound_by,
          r.floor_seconds ? micros(*r.floor_seconds) : none,
          r.floor_seconds ? Cell(r.floor_by) : none,
          moved(&cuda::AccessCounts::global_reads),
          moved(&cuda::AccessCounts::global_writes),
          moved(&cuda::AccessCounts::shared_reads),
          moved(&cuda::AccessCounts::shared_writes),
          r.accesses ? Cell(r.accesses->times()) : none,
          r.error.empty() ? none : Cell(r.error)};
}

Table tensor_table(const std::vector<cuda::TensorReport>& reports) {
  Table table({"op",
               "arch",
               "work",
               "kernel",
               "uses",
               "tile",
               "parts",
               "threads",
               "registers",
               {"spilled", "spill_bytes"},
               {"local", "local_accesses"},
               {"shared", "shared_bytes"},
               {"blocks", "resident_blocks"},
               "occupancy",
               {"tensor", "tensor_instructions"},
               {"bound us", "bound_s"},
               {"model us", "model_s"},
               {"adding us", "adding_s"},
               "ratio",
               {"by", "bound_by"},
               {"floor us", "floor_s"},
               {"floor by", "floor_by"},
               {"read", "read_bytes"},
               {"written", "written_bytes"},
               {"from shared", "shared_read_bytes"},
               {"to shared", "shared_written_bytes"},
               "accesses",
               "error"});
  for (const cuda::TensorReport& r : reports) table.add(tensor_row(r));
  return table;
}

}  // namespace

const std::vector<QualityFunction>& quality_functions() {
  static const std::vector<QualityFunction> kFunctions{
      {"rms_norm", "in x: bf16[n, {D}], w: bf16[{D}]  y = rms_norm(x, w)  out y"},
      {"rms_norm_fp8_tensor",
       "in x: bf16[n, {D}], w: bf16[{D}], s: f32[1]  q = rms_norm_static_fp8_quant(x, w, s)  out "
       "q"},
      {"rms_norm_fp8_token",
       "in x: bf16[n, {D}], w: bf16[{D}]  q, s = rms_norm_dynamic_per_token_quant(x, w)  out q, s"},
      {"rms_norm_fp8_group",
       "in x: bf16[n, {D}], w: bf16[{D}]  q, s = rms_norm_per_block_quant(x, w){group = 128}  "
       "out q, s",
       128},
      {"fused_add_rms_norm",
       "in x: bf16[n, {D}], res: bf16[n, {D}], w: bf16[{D}]  y, r = fused_add_rms_norm(x, res, w)  "
       "out y, r"},
      {"fused_add_rms_norm_fp8_tensor",
       "in x: bf16[n, {D}], res: bf16[n, {D}], w: bf16[{D}], s: f32[1]  q, r = "
       "fused_add_rms_norm_static_fp8_quant(x, res, w, s)  out q, r"},
      {"fused_add_rms_norm_fp8_token",
       "in x: bf16[n, {D}], res: bf16[n, {D}], w: bf16[{D}]  q, s, r = "
       "fused_add_rms_norm_dynamic_per_token_quant(x, res, w)  out q, s, r"},
      {"fused_add_rms_norm_fp8_group",
       "in x: bf16[n, {D}], res: bf16[n, {D}], w: bf16[{D}]  q, s, r = "
       "fused_add_rms_norm_per_block_quant(x, res, w){group = 128}  out q, s, r",
       128},
      {"silu_and_mul", "in x: bf16[n, {2D}]  y = silu_and_mul(x)  out y"},
      {"silu_and_mul_fp8_tensor",
       "in x: bf16[n, {2D}], s: f32[1]  q = silu_and_mul_quant(x, s)  out q"},
      {"silu_and_mul_fp8_token",
       "in x: bf16[n, {2D}]  q, s = silu_and_mul_dynamic_quant(x)  out q, s"},
      {"silu_and_mul_fp8_group",
       "in x: bf16[n, {2D}]  q, s = silu_and_mul_per_block_quant(x){group = 128}  out q, s", 128},
      // Half of the row are queries, a quarter keys, a quarter values, by heads of 128.
      {"qk_norm_rope",
       "in x: bf16[n, {D}], qw: bf16[128], kw: bf16[128], c: bf16[8192, 128], p: i64[n]  y = "
       "fused_qk_norm_rope(x, qw, kw, c, p){heads_q = {heads_q}, heads_k = {heads_k}, head = 128}  "
       "out y",
       512},
      {"rope",
       "in p: i64[n], q: bf16[n, {D}], k: bf16[n, {D/4}], c: bf16[8192, 128]  y, z = "
       "rotary_embedding(p, q, k, c){head = 128}  out y, z",
       512},
      {"layer_norm",
       "in x: bf16[n, {D}], w: bf16[{D}], b: bf16[{D}]  y = layer_norm(x, w, b)  out y"},
      {"softmax",
       "in x: bf16[n, {D}]  h = f32(x)  m = amax(h){dim = -1, keepdim = true}  e = exp(h - m)  z = "
       "sum(e){dim = -1, keepdim = true}  y = bf16(e / z)  out y"},
  };
  return kFunctions;
}

const std::vector<std::int64_t>& quality_widths() {
  static const std::vector<std::int64_t> kWidths{1000, 1024, 1031, 2048, 4096,
                                                 4099, 5120, 8192, 16384};
  return kWidths;
}

std::size_t QualityReport::short_rows() const {
  return static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [](const QualityRow& r) {
    return !r.quality.shortcomings.empty();
  }));
}

Result<QualityReport> judge_functions(const QualityRequest& request, const Log& log) {
  PW_TRY(check_architectures(request.archs));
  PW_TRY(check_numbers("widths", request.widths, 1, kMostWidth));
  PW_TRY(check_number("tokens", request.tokens, 1, kMostTokens));
  const auto functions = PW_TRY(chosen(request.functions));
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  const cuda::Disassembler disassembler = cuda::Disassembler::find();
  CompileCache cache(CacheOptions::from_environment());
  cuda::CompileOptions options;
  options.archs = request.archs;
  options.strict = request.strict;
  options.sources_only = request.sources_only;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.cache = &cache;
  QualityReport out{nvrtc.state(), disassembler.state(), nvrtc.version(), {}, {}};
  if (request.sources_only) out.nvrtc_version.clear();
  if (!request.sources_only) say_missing(out, nvrtc.present(), log);
  auto context = std::make_shared<Context>();
  PW_TRY(load_op_library(context));
  std::size_t done = 0;
  for (const QualityFunction* f : functions) {
    for (std::int64_t width : request.widths) {
      log.progress({"compiling", done++, functions.size() * request.widths.size(), "kernels"});
      if (width % f->whole != 0) continue;
      const Graph graph = PW_TRY(
          parse_graph(context, "graph { " + text_at(*f, width) + " }", std::string(f->name)));
      const StitchedGraph pieces = PW_TRY(split(graph, {}));
      cuda::CompileReport report = cuda::compile_pieces(pieces, options, nvrtc);
      for (cuda::KernelReport& k : report.kernels) {
        if (k.targets.empty())
          for (const std::string& arch : request.archs) k.targets.push_back({arch, {}, {}});
        PW_TRY(keep_machine_code(request.dump, fmt::format("{}-{}", f->name, width), k));
        for (Quality& q : cuda::quality_of(k, *context, {{"n", request.tokens}}, disassembler)) {
          if (report.kernels.size() > 1)
            q.shortcomings.push_back(
                fmt::format("it is {} kernels, not one", report.kernels.size()));
          out.rows.push_back({std::string(f->name), width, k.uses, std::move(q)});
        }
      }
    }
  }
  return out;
}

QualityReport judge_compiled(const CompiledGraph& compiled, std::int64_t tokens, const Log& log) {
  const cuda::CompileReport& report = compiled.report;
  const cuda::Disassembler disassembler = cuda::Disassembler::find();
  QualityReport out{report.nvrtc, disassembler.state(), compiled.nvrtc_version, {}, {}};
  say_missing(out, report.compiled, log);
  QualityStep step;
  step.tokens = tokens;
  const Symbols symbols{{compiled.tokens_symbol, tokens}};
  for (cuda::KernelReport k : report.kernels) {
    if (k.targets.empty())
      for (const std::string& arch : report.archs) k.targets.push_back({arch, {}, {}});
    step.launches += k.uses;
    if (const auto traffic = cuda::traffic_of(k.kernel, *report.context, symbols)) {
      step.least += traffic->least * static_cast<std::int64_t>(k.uses);
      step.moved += traffic->moved * static_cast<std::int64_t>(k.uses);
    }
    for (Quality& q : cuda::quality_of(k, *report.context, symbols, disassembler))
      out.rows.push_back({k.kernel.op, 0, k.uses, std::move(q)});
  }
  for (const cuda::ClassReport& c : report.classes)
    step.nodes += c.members * static_cast<std::size_t>(
                                  std::count_if(c.nodes.begin(), c.nodes.end(), [](const auto& n) {
                                    return n.kind == cuda::NodeReport::Kind::kernel;
                                  }));
  out.step = step;
  out.schedule = compiled.schedule;
  out.tensor = tensor_kernels(compiled, tokens, disassembler);
  return out;
}

Answer quality_answer(const QualityReport& report) {
  Answer answer;
  answer.add("kernels", kernel_table(report));
  answer.add("shortcomings", shortcoming_table(report));
  if (report.step) answer.add("step", step_table(*report.step));
  if (report.schedule) {
    answer.add("schedule", schedule_table(*report.schedule));
    answer.add("edges", edge_table(*report.schedule));
    if (!report.schedule->not_streamed.empty())
      answer.add("not_streamed", not_streamed_table(*report.schedule));
  }
  if (!report.tensor.empty()) answer.add("tensor", tensor_table(report.tensor));
  answer.add("nvrtc",
             report.nvrtc_version.empty() ? null_cell("absent") : Cell(report.nvrtc_version));
  answer.add("disassembled", yes_cell(!report.disassembler.starts_with("absent"), "no"));
  return answer;
}

}  // namespace pw

// Schedules: that they change no bit, which are tried, the model that orders them, and their table.
#include "cuda/tuning.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "codegen/toolchain.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/machine.hpp"
#include "dsl/dsl.hpp"
#include "models/generate.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Subject of(const ContextPtr& context, const std::string& text) {
  return subject(context, text, "graph { " + text + " }");
}

constexpr const char* kNorm =
    "in x: bf16[n, 4096], z: bf16[n, 4096], w: bf16[4096]  q, t = fused_add_rms_norm(x, z, w)  out "
    "q, t";

cuda::TunedSchedule entry(std::string program, std::string arch, std::int64_t rows, int block) {
  cuda::TunedSchedule t;
  t.program = std::move(program);
  t.op = "op";
  t.arch = std::move(arch);
  t.rows = rows;
  t.schedule.block = block;
  t.by = "test";
  return t;
}

std::string problem(std::string_view text) {
  const auto table = cuda::ScheduleTable::parse(text, "s.json");
  return table ? "" : table.error().front().code + " " + table.error().front().message;
}

}  // namespace

TEST_CASE("tuning: every candidate gives the interpreter's bits", "[cuda][diff]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> subjects;
  for (const char* text :
       {"in x: bf16[n, 3, 128], w: bf16[128]  y = rms_norm(x, w)  out y", kNorm,
        "in x: bf16[n, 28672]  y = silu_and_mul(x)  out y",
        "in x: bf16[n, 14336]  q, s = per_token_group_fp8_quant(x){group = 128}  out q, s",
        "in x: f32[n, 131], z: f32[n, 1]  y = x * z  out y",
        "in x: bf16[n, 16384], w: bf16[16384]  y = rms_norm(x, w)  out y"})
    subjects.push_back(of(context, text));
  std::vector<cuda::Kernel> kernels;
  for (const Subject& s : subjects) {
    REQUIRE(s.program);
    const auto all = cuda::candidates(*s.program);
    CHECK(all.size() > 3);
    kernels.insert(kernels.end(), all.begin(), all.end());
  }
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (Subject& s : subjects) {
    const Symbols symbols{{"n", 5}};
    const auto inputs = inputs_of(s.graph, symbols, 3);
    const auto wanted = run_interpreter(s, inputs, symbols, false);
    for (cuda::Kernel& k : cuda::candidates(*s.program)) {
      INFO(s.name << "\n" << k.source);
      s.kernel = std::move(k);
      CHECK(difference(run_kernel(*host, s, inputs, symbols), wanted) == "");
    }
  }
}

TEST_CASE("tuning: candidates differ, and the usual kernel is the first", "[cuda]") {
  const Subject s = of(library(), kNorm);
  const auto all = cuda::candidates(*s.program);
  REQUIRE(!all.empty());
  CHECK(all.front().name == s.kernel.name);
  std::set<std::string> names;
  for (const cuda::Kernel& k : all) {
    CHECK(names.insert(k.name).second);
    CHECK(k.threads * k.schedule.resident <= 2048);
  }
}

TEST_CASE("tuning: how many blocks a multiprocessor holds", "[cuda]") {
  const cuda::Machine& h100 = *cuda::machine_of("sm_90");
  cuda::Kernel k;
  k.threads = k.team = 256;
  k.rows_per_block = 1;
  cuda::Usage usage;
  usage.registers = 32;
  CHECK(cuda::resident_blocks(h100, k, usage) == 8);  // 2048 threads
  usage.registers = 128;
  CHECK(cuda::resident_blocks(h100, k, usage) == 2);  // 65536 registers
  usage.registers = 32;
  k.shared_bytes = 98304;
  CHECK(cuda::resident_blocks(h100, k, usage) == 2);  // 228 KiB
  k.shared_bytes = 300 * 1024;
  CHECK(cuda::resident_blocks(h100, k, usage) == 0);
  CHECK(std::isinf(cuda::estimate(h100, k, usage, {16, 1024})));
  CHECK(cuda::machine_of("sm_70") == nullptr);
}

TEST_CASE("tuning: the model's times", "[cuda]") {
  const cuda::Machine& h100 = *cuda::machine_of("sm_90");
  cuda::Kernel k;
  k.threads = k.team = 256;
  k.rows_per_block = 1;
  k.group_reads = 2;
  cuda::Usage usage;
  usage.registers = 32;
  const auto seconds = [&](std::int64_t rows) {
    return cuda::estimate(h100, k, usage, {rows, rows * 16384});
  };
  // Many rows take as long as memory does; more rows never less; a few no less than a read.
  const double bytes = 100'000 * 16384.0;
  CHECK(seconds(100'000) > bytes / h100.bandwidth);
  CHECK(seconds(100'000) < 1.2 * bytes / h100.bandwidth);
  for (std::int64_t rows = 1; rows < 100'000; rows *= 3) CHECK(seconds(rows) <= seconds(3 * rows));
  CHECK(seconds(1) > h100.latency);
  // Registers that leave room for one block only hide less of the latency.
  const double roomy = seconds(10'000);
  usage.registers = 168;
  CHECK(seconds(10'000) > 1.2 * roomy);
}

TEST_CASE("tuning: the table finds the next number of rows", "[cuda]") {
  cuda::ScheduleTable table;
  table.put(entry("a", "sm_90", 256, 64));
  table.put(entry("a", "sm_90", 16, 128));
  table.put(entry("a", "sm_80", 16, 512));
  table.put(entry("a", "sm_90", 16, 32));  // in place of the other
  CHECK(table.entries().size() == 3);
  const auto block = [&](const char* program, const char* arch, std::int64_t rows) {
    const cuda::TunedSchedule* t = table.find(program, arch, rows);
    return t == nullptr ? 0 : t->schedule.block;
  };
  CHECK(block("a", "sm_90", 1) == 32);
  CHECK(block("a", "sm_90", 16) == 32);
  CHECK(block("a", "sm_90", 17) == 64);
  CHECK(block("a", "sm_90", 100'000) == 64);
  CHECK(block("a", "sm_80", 1) == 512);
  CHECK(block("a", "sm_100", 1) == 0);
  CHECK(block("b", "sm_90", 1) == 0);
  const auto again = cuda::ScheduleTable::parse(table.to_json(), "s.json");
  REQUIRE(again);
  CHECK(again->to_json() == table.to_json());
}

TEST_CASE("tuning: a file that is not a table", "[cuda]") {
  const std::string good = [] {
    cuda::ScheduleTable table;
    table.put(entry("a", "sm_90", 16, 64));
    return table.to_json();
  }();
  CHECK(problem(good).empty());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    return problem(text.replace(text.find(from), from.size(), to));
  };
  CHECK(problem("[").starts_with("PW1240"));
  CHECK(problem("[]").starts_with("PW1240"));
  CHECK(problem("{}").starts_with("PW1241"));
  CHECK(problem(R"({"format": "piecewise.schedules/1", "schedules": 3})").starts_with("PW1242"));
  CHECK(problem(R"({"format": "piecewise.schedules/1", "schedules": [7]})") ==
        "PW1242 schedules[0]: `program` is missing");
  CHECK(with("\"rows\":16", "\"rows\":-1").starts_with("PW1242 schedules[0]: `rows` is not a"));
  CHECK(with("\"block\":64", "\"block\":96") ==
        "PW1242 schedules[0]: `block` is not a power of two");
  CHECK(with("\"block\":64", "\"block\":1e99").starts_with("PW1242 schedules[0]: `block` is not"));
  CHECK(with("\"op\"", "\"po\"") == "PW1242 schedules[0]: `op` is missing");
  for (std::size_t cut = 0; cut + 2 < good.size(); ++cut)
    CHECK(!problem(std::string_view(good).substr(0, cut)).empty());
}

TEST_CASE("tuning: what spills or cannot be launched is not chosen", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  cuda::CompileReport report;
  const Subject s = of(library(),
                       "in x: bf16[n, 4096], w: bf16[4096], b: bf16[4096]  y = "
                       "layer_norm(x, w, b)  out y");
  report.context = s.graph.context_ptr();
  report.kernels.push_back({s.kernel, *s.program, "class_0", 1, {}});
  cuda::TuneOptions options;
  options.tokens = {1, 4096};
  if (!nvrtc.present()) {
    WARN("SKIPPED: NVRTC is absent, so candidates cannot be compiled: " << nvrtc.state());
    const auto tuned = cuda::tune(report, "n", options, nvrtc);
    REQUIRE(!tuned);
    CHECK(tuned.error().front().code == "PW1244");
    return;
  }
  const auto tuned = cuda::tune(report, "n", options, nvrtc);
  REQUIRE(tuned);
  REQUIRE(tuned->tuned.size() == 2);
  for (const cuda::Tuned& t : tuned->tuned) {
    CHECK(t.chosen.program == cuda::program_key(*s.program));
    CHECK(t.chosen.rows == t.tokens);
    CHECK(t.chosen.seconds <= t.chosen.default_seconds);
    CHECK(t.others.size() + t.spilled <= t.candidates);
    CHECK(t.spilled > 0);  // 8 blocks of 256 leave 32 registers, of which three operands take 24
    for (const cuda::TunedSchedule& other : t.others)
      CHECK(t.chosen.seconds < other.seconds / 0.97);
  }
  CHECK(tuned->tuned[0].bytes == 2 * 8192 + 8192);
  CHECK(tuned->tuned[1].bytes == 4096 * 2 * 8192 + 8192);
  options.arch = "sm_70";
  const auto unknown = cuda::tune(report, "n", options, nvrtc);
  REQUIRE(!unknown);
  CHECK(unknown.error().front().code == "PW1243");
}

TEST_CASE("tuning: where there is a device, candidates are timed on it", "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (!nvrtc.present() || host_compiler().empty()) {
    WARN("SKIPPED: NVRTC or a C++ compiler is absent");
    return;
  }
  const Subject s = of(library(), "in x: bf16[n, 64]  y = silu(x)  out y");
  cuda::CompileReport report;
  report.context = s.graph.context_ptr();
  report.kernels.push_back({s.kernel, *s.program, "class_0", 1, {}});
  cuda::HostDriver host(cached());
  cuda::TuneOptions options;
  options.tokens = {3};
  options.device = &host;
  const auto tuned = cuda::tune(report, "n", options, nvrtc);
  REQUIRE(tuned);
  CHECK(tuned->by == "the host");
  REQUIRE(tuned->tuned.size() == 1);
  const cuda::Tuned& t = tuned->tuned[0];
  CHECK(t.others.size() == t.candidates - t.spilled);
  for (const cuda::TunedSchedule& other : t.others) {
    CHECK(other.seconds > 0);
    CHECK(other.by == "the host");
  }
  CHECK(host.allocated() == 0);
  CHECK(host.replays() == t.others.size() * 14);
}

TEST_CASE("tuning: a kernel is compiled with its entry of the table", "[cuda]") {
  const auto context = library();
  const auto graph = parse_graph(
      context, fmt::format("graph {{ {} }}", "in x: bf16[n, 128]  y = silu(x)  out y"), "g");
  REQUIRE(graph);
  const auto pieces = split(*graph, std::vector<OpId>{}, {});
  REQUIRE(pieces);
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  cuda::CompileOptions options;
  options.sources_only = true;
  const auto usual = cuda::compile_pieces(*pieces, options, nvrtc);
  REQUIRE(usual.kernels.size() == 1);
  cuda::ScheduleTable table;
  table.put(entry(cuda::program_key(*usual.kernels[0].program), "sm_90", 8, 64));
  options.schedules = &table;
  const auto tuned = cuda::compile_pieces(*pieces, options, nvrtc);
  CHECK(usual.kernels[0].kernel.threads == 256);
  CHECK(tuned.kernels[0].kernel.threads == 64);
  options.archs = {"sm_80"};
  CHECK(cuda::compile_pieces(*pieces, options, nvrtc).kernels[0].kernel.threads == 256);
}

TEST_CASE("tuning: the table in the binary has the kernels of the models it was made for",
          "[cuda]") {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  for (const char* quant : {"none", "fp8"}) {
    const auto context = library();
    LlamaOptions model;
    model.layers = 1;
    model.quant = quant;
    const auto graph = generate_llama(context, model);
    REQUIRE(graph);
    const auto pieces =
        split(*graph, std::vector<OpId>{context->ops.find("unified_attention")}, {});
    REQUIRE(pieces);
    cuda::CompileOptions options;
    options.sources_only = true;
    for (const cuda::KernelReport& k : cuda::compile_pieces(*pieces, options, nvrtc).kernels) {
      INFO(quant << " " << k.kernel.op);
      for (const char* arch : {"sm_80", "sm_90", "sm_100"})
        CHECK(cuda::ScheduleTable::builtin().find(cuda::program_key(*k.program), arch, 16) !=
              nullptr);
    }
  }
}

// Whole graphs: split, compiled, written; the sources of a real model's layer run on the host
// against the interpreter.
#include "cuda/compile.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/io/file.hpp"
#include "cuda/device/cubin_cache.hpp"
#include "dsl/dsl.hpp"
#include "graph/build.hpp"
#include "import/fx/fx.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"
#include "tests/shared_dump.hpp"

using namespace pw;
using namespace pw::test;

namespace {

Graph small_llama(const ContextPtr& context, const std::string& quant, std::int64_t tp = 1) {
  LlamaOptions options;
  options.layers = 3;
  options.hidden = 128;
  options.heads = 4;
  options.kv_heads = 2;
  options.ffn = 256;
  options.vocab = 512;
  options.positions = 256;
  options.max_tokens = 256;
  options.quant = quant;
  options.tp = tp;
  return need(generate_llama(context, options), *context);
}

/// Rewritten by the library's pipeline, and cut.
StitchedGraph pieces_of(const ContextPtr& context, Graph& graph, std::int64_t tp,
                        const std::string& pipeline) {
  RuleSet rules = need(load_rules(context, {"llm"}), *context);
  const Env params = need(bind_params(rules, {{"tp", std::to_string(tp)}}), *context);
  if (!pipeline.empty()) need(run_pipeline(graph, rules, pipeline, params), *context);
  return need(split(graph, need(splitting_ops(context, &rules, params, {}), *context)), *context);
}

cuda::CompileReport sources(const StitchedGraph& pieces) {
  cuda::CompileOptions options;
  options.sources_only = true;
  return cuda::compile_pieces(pieces, options, cuda::Nvrtc::open());
}

/// Checks that nothing spills, and that accesses that are not by groups of columns have a reason.
void check_report(const cuda::CompileReport& report) {
  INFO(cuda::print(report));
  CHECK(report.compiled);
  CHECK(report.failed() == 0);
  CHECK(report.spilling() == 0);
  for (const auto& k : report.kernels) {
    REQUIRE(k.targets.size() == 2);
    for (const auto& target : k.targets) {
      INFO(k.kernel.name << " for " << target.arch);
      REQUIRE(target.cubin);
      CHECK(target.cubin->usage.registers > 0);
      CHECK(target.cubin->usage.registers <= 128);
      const cuda::Traffic& traffic = target.cubin->traffic;
      const auto by_element = [&](bool store) {
        return std::any_of(k.kernel.elements.begin(), k.kernel.elements.end(),
                           [&](const cuda::ElementAccess& e) { return e.store == store; });
      };
      CHECK((traffic.wide_reads > 0 || by_element(false)));
      CHECK((traffic.wide_writes > 0 || by_element(true)));
      if (!by_element(true)) CHECK(traffic.narrow_writes == 0);
    }
  }
}

void check_cubins(const StitchedGraph& pieces) {
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  cuda::CompileOptions options;
  options.archs = {"sm_80", "sm_90"};
  for (const bool strict : {true, false}) {
    options.strict = strict;
    check_report(cuda::compile_pieces(pieces, options, nvrtc));
  }
}

/// Every group that has a kernel, on random inputs: the host run's bits are the interpreter's.
void check_on_host(const StitchedGraph& pieces, std::int64_t n, bool automatic = true) {
  if (no_host_compiler()) return;
  std::vector<Subject> subjects;
  std::vector<cuda::Kernel> kernels;
  rows::GroupingOptions grouping;
  grouping.automatic = automatic;
  for (const PieceClass& c : pieces.classes) {
    const Graph& graph = pieces.pieces[c.members.front()].graph;
    for (rows::RunUnit& unit : rows::group_rows(graph, grouping)) {
      if (unit.kind != rows::RunUnit::Kind::rows) continue;
      Graph alone = rows::isolate(graph, unit.nodes, unit.inputs, unit.outputs);
      const std::string name = alone.name;
      const std::vector<NodeId> nodes = alone.order();
      subjects.push_back(subject(name, std::move(alone), nodes));
      kernels.push_back(subjects.back().kernel);
    }
  }
  REQUIRE(!kernels.empty());
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  std::uint64_t seed = 1;
  for (const Subject& s : subjects) {
    const Symbols symbols{{"n", n}};
    INFO(s.name << " " << s.kernel.name << " n = " << n << " seed = " << seed);
    const auto inputs = inputs_of(s.graph, symbols, seed++);
    CHECK(difference(run_kernel(*host, s, inputs, symbols),
                     run_interpreter(s, inputs, symbols, false)) == "");
  }
}

void check_qwen(const std::string& file, std::int64_t tp) {
  const std::string path = shared_dump(file);
  if (path.empty()) return;
  const auto context = library();
  FxOptions options;
  options.file = path;
  options.symbols = {{"n", {{"arg0_1", 0}, {"arg6_1", 0}}}};
  for (const char* pipeline : {"", "o2"}) {
    INFO("pipeline " << pipeline);
    Graph graph =
        need(import_fx(context, need(read_file(path), *context), options), *context).graph;
    const StitchedGraph pieces = pieces_of(context, graph, tp, pipeline);
    const cuda::CompileReport report = sources(pieces);
    INFO(cuda::print(report));
    CHECK(report.count(cuda::NodeReport::Kind::opaque) == 0);
    CHECK(report.kernels.size() >= 4);
    check_cubins(pieces);
    check_on_host(pieces, 3);
  }
}

}  // namespace

TEST_CASE("compile: each class once, equal kernels once, the rest listed", "[cuda]") {
  const auto context = library();
  Graph graph = small_llama(context, "none");
  const StitchedGraph pieces = pieces_of(context, graph, 1, "");
  const cuda::CompileReport report = sources(pieces);
  INFO(cuda::print(report));
  CHECK(report.classes.size() == pieces.classes.size());
  CHECK(report.count(cuda::NodeReport::Kind::opaque) == 0);
  CHECK(report.count(cuda::NodeReport::Kind::kernel) > report.kernels.size());
  CHECK_FALSE(report.compiled);
  std::size_t attention = 0;
  for (const auto& c : report.classes) {
    for (const auto& n : c.nodes) {
      if (n.op == "unified_attention") {
        ++attention;
        CHECK(n.kind == cuda::NodeReport::Kind::library);
      }
      if (n.op == "rms_norm") CHECK(n.kind == cuda::NodeReport::Kind::kernel);
      if (n.op == "reshape") CHECK(n.kind == cuda::NodeReport::Kind::view);
    }
  }
  CHECK(attention == 1);
}

TEST_CASE("compile: a fused op around a collective is decomposed", "[cuda]") {
  const auto context = library();
  Graph graph = need(parse_graph(context,
                                 "graph { in x: bf16[n, 64], w: bf16[64]  y, h = "
                                 "fused_all_reduce_rms_norm(x, w){group = \"tp\"}  out y, h }",
                                 "g"),
                     *context);
  const StitchedGraph pieces = need(split(graph, {}), *context);
  const cuda::CompileReport report = sources(pieces);
  REQUIRE(report.classes.size() == 1);
  const auto& nodes = report.classes[0].nodes;
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].kind == cuda::NodeReport::Kind::parts);
  CHECK(nodes[0].reason == "op all_reduce has no body and is not a row primitive");
  CHECK((nodes[1].op == "all_reduce" && nodes[1].kind == cuda::NodeReport::Kind::library));
  CHECK((nodes[2].op == "rms_norm" && nodes[2].kind == cuda::NodeReport::Kind::kernel));
}

TEST_CASE("compile: rewritten decoders compile without spills and run on the host",
          "[cuda][diff]") {
  const auto context = library();
  for (const char* quant : {"none", "fp8"}) {
    INFO("quant " << quant);
    Graph graph = small_llama(context, quant);
    const StitchedGraph pieces = pieces_of(context, graph, 1, "o2");
    CHECK(sources(pieces).count(cuda::NodeReport::Kind::opaque) == 0);
    check_cubins(pieces);
    check_on_host(pieces, 5);
    check_on_host(pieces, 5, false);
  }
}

TEST_CASE("compile: a class that compares computed numbers keeps every rounding", "[cuda]") {
  const auto compile = [](const std::string& last) {
    const auto context = library();
    Graph graph = need(parse_graph(context,
                                   "graph { in x: f32[n, 64]  in w: f32[64]  p = mul(x, w)  "
                                   "y = add(p, w)  m = amax(y){dim = -1, keepdim = true}  e = " +
                                       last + "  out e }",
                                   "g"),
                       *context);
    const StitchedGraph pieces = pieces_of(context, graph, 1, "");
    return sources(pieces).kernels;
  };
  const auto compared = compile("eq(y, m)"), subtracted = compile("sub(y, m)");
  REQUIRE(compared.size() == 1);
  REQUIRE(subtracted.size() == 1);
  CHECK(compared[0].kernel.exact);
  CHECK_FALSE(subtracted[0].kernel.exact);
  const cuda::Nvrtc nvrtc = cuda::Nvrtc::open();
  if (no_compiler(nvrtc)) return;
  const auto is_strict = [&](const cuda::Kernel& kernel) {
    const auto bytes = [&](const cuda::Target& target) {
      return nvrtc.compile(cuda::source_file(kernel), kernel.name, target)->bytes;
    };
    const std::string loose = bytes({"sm_90", false}), strict = bytes({"sm_90", true});
    REQUIRE(loose != strict);
    return cuda::cubin_of(nvrtc, nullptr, kernel, {"sm_90", false})->bytes == strict;
  };
  CHECK(is_strict(compared[0].kernel));
  CHECK_FALSE(is_strict(subtracted[0].kernel));
}

TEST_CASE("compile: kernels of a decoder of full size, strict or not", "[cuda]") {
  const auto context = library();
  for (const char* quant : {"none", "fp8"}) {
    LlamaOptions llama;
    llama.layers = 1;
    llama.quant = quant;
    Graph graph = need(generate_llama(context, llama), *context);
    const StitchedGraph pieces = pieces_of(context, graph, 1, "o2");
    check_cubins(pieces);
    for (const auto& k : sources(pieces).kernels) {
      INFO(k.kernel.op);
      CHECK(k.kernel.elements.empty());  // all by groups of columns
      CHECK(k.kernel.group_reads > 0);
    }
  }
}

TEST_CASE("compile: the folder holds sources, programs, report and plan, the same each time",
          "[cuda]") {
  const auto context = library();
  Graph graph = small_llama(context, "fp8", 2);
  const StitchedGraph pieces = pieces_of(context, graph, 2, "o2");
  const cuda::CompileReport report = sources(pieces);
  std::string pattern = (std::filesystem::temp_directory_path() / "piecewise-test-XXXXXX").string();
  const char* made = mkdtemp(pattern.data());
  REQUIRE(made != nullptr);
  const std::string folder = std::string(made) + "/out";
  need(cuda::write_compiled(report, folder, "{\"plan\": 1}\n"), *context);
  CHECK(need(read_file(folder + "/plan.json"), *context) == "{\"plan\": 1}\n");
  const std::string text = need(read_file(folder + "/report.txt"), *context);
  CHECK(text.find("sources only") != std::string::npos);
  CHECK(need(read_file(folder + "/report.json"), *context).find("\"piecewise.compile/1\"") !=
        std::string::npos);
  for (const auto& k : report.kernels) {
    CHECK(need(read_file(folder + "/" + k.folder + "/" + k.kernel.name + ".cu"), *context) ==
          cuda::source_file(k.kernel));
    CHECK_FALSE(
        std::filesystem::exists(folder + "/" + k.folder + "/" + k.kernel.name + ".sm_90.cubin"));
  }
  CHECK(cuda::print(sources(pieces)) == text);
  const auto blocked = cuda::write_compiled(report, folder + "/plan.json");
  REQUIRE_FALSE(blocked);
  CHECK(blocked.error().front().code == "PW1224");
  std::filesystem::remove_all(made);
}

TEST_CASE(
    "compile: the Qwen2 layer's kernels compile without spills and agree with the interpreter",
    "[cuda][diff]") {
  check_qwen("qwen2-1.5b.tp1.layer1.fx.txt", 1);
}
TEST_CASE("compile: the Qwen2 layer of one rank of two", "[.][slow][cuda][diff]") {
  check_qwen("qwen2-1.5b.tp2.rank0.layer1.fx.txt", 2);
}

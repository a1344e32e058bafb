// Accesses foretold ≡ accesses counted: for kernels of single ops at many widths and schedules, and
// for every kernel of replayed steps of all model families.
#include "cuda/kernels/access_counts.hpp"

#include <set>

#include <fmt/format.h>

#include "backends/program.hpp"
#include "cuda/compile.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/kernels/attention/attention.hpp"
#include "cuda/kernels/matmul/product.hpp"
#include "cuda/runtime.hpp"
#include "cuda/tuning.hpp"
#include "dsl/dsl.hpp"
#include "exec/dispatch.hpp"
#include "models/families.hpp"
#include "models/generate.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan_text.hpp"
#include "tests/backends_cuda/forms.hpp"
#include "tests/backends_cuda/kernel_run.hpp"
#include "tests/catch.hpp"

using namespace pw;
using namespace pw::test;

namespace {

/// Of a launch on the host, and by the kernel's tree alone.
void check_counts(const cuda::HostKernels& host, const Subject& s, const cuda::Kernel& kernel,
                  std::int64_t n) {
  const Symbols symbols{{"n", n}, {"m", 21}};
  const auto inputs = inputs_of(s.graph, symbols, 3);
  const LaunchArguments with = launch_arguments(s, kernel, inputs, symbols);
  cuda::AccessCounts counted;
  need(host.run(kernel.name, with.pointers, with.params, 1, &counted), s.graph.context());
  REQUIRE(kernel.accesses);
  const auto foretold =
      cuda::count_accesses(*kernel.accesses, kernel.arguments.size(), with.params);
  REQUIRE(foretold);
  CHECK(shown(foretold->total) == shown(counted));
}

void check_all(const std::vector<Subject>& subjects, const std::vector<std::int64_t>& rows) {
  std::vector<cuda::Kernel> kernels;
  for (const Subject& s : subjects) kernels.push_back(s.kernel);
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (const Subject& s : subjects) {
    for (std::int64_t n : rows) {
      INFO(s.name << ", " << n << " rows\n" << s.kernel.source);
      check_counts(*host, s, s.kernel, n);
    }
  }
}

Subject of_text(const ContextPtr& context, const std::string& text) {
  return subject(context, text, "graph { " + text + " }");
}

}  // namespace

TEST_CASE("accesses: foretold and counted are equal for every op and width", "[cuda][accesses]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> all;
  for (const Form& form : kForms) {
    for (const auto& [dtype, d] :
         {std::pair("bf16", 1), {"bf16", 128}, {"bf16", 131}, {"bf16", 4096}, {"f32", 8}})
      all.push_back(of_text(context, fmt::format(fmt::runtime(form.text), dtype, d, 2 * d)));
  }
  for (const Form& form : kSpecial) {
    Subject s = of_text(context, fmt::format(fmt::runtime(form.text), "bf16", 0, 0));
    if (s.program) all.push_back(std::move(s));
  }
  check_all(all, {1, 3, 37});
}

TEST_CASE("accesses: of wide rows, kept in shared memory or read twice", "[cuda][accesses]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> all;
  for (int d : {8192, 16384, 40000, 100003}) {
    all.push_back(of_text(
        context, fmt::format("in x: bf16[n, {0}], w: bf16[{0}]  y = rms_norm(x, w)  out y", d)));
    all.push_back(of_text(context, fmt::format("in x: f32[n, {0}], z: f32[n, {0}], w: f32[{0}]  "
                                               "y, r = fused_add_rms_norm(x, z, w)  out y, r",
                                               d)));
  }
  check_all(all, {1, 2});
}

TEST_CASE("accesses: where the width is a symbol, and under branches", "[cuda][accesses]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> all;
  for (const char* text : {"in x: bf16[24, n]  y = sum(x){dim = -1, keepdim = true}  out y",
                           "in x: bf16[24, n]  y = silu(x)  out y",
                           "in x: bf16[n, 24], z: bf16[n, 40]  y = cat(x, z){dim = 1}  out y",
                           "in x: bf16[n, 24], z: bf16[3, 24]  y = cat(x, z){dim = 0}  out y",
                           "in x: bf16[n, 3, 11], z: bf16[n, 3, 2]  y = cat(x, z){dim = -1}  out y",
                           "in i: i64[n], t: bf16[9, 40]  y = embedding(t, i)  out y"})
    all.push_back(of_text(context, text));
  check_all(all, {1, 9, 300, 2500});
}

TEST_CASE("accesses: a row quantised by groups is read once, and its bits stay",
          "[cuda][accesses][diff]") {
  if (no_host_compiler()) return;
  const auto context = library();
  std::vector<Subject> all;
  for (int d : {256, 1024, 4096, 5120, 16384}) {
    all.push_back(of_text(context, fmt::format("in x: bf16[n, {0}], w: bf16[{0}]  q, t = "
                                               "rms_norm_per_block_quant(x, w){{group = 128}}  "
                                               "out q, t",
                                               d)));
    all.push_back(
        of_text(context, fmt::format("in x: bf16[n, {0}], z: bf16[n, {0}], w: bf16[{0}]  q, t, r = "
                                     "fused_add_rms_norm_per_block_quant(x, z, w){{group = 128}}  "
                                     "out q, t, r",
                                     d)));
  }
  check_all(all, {1, 5});
  std::vector<cuda::Kernel> kernels;
  for (const Subject& s : all) kernels.push_back(s.kernel);
  const auto host = cached_kernels(kernels);
  if (!host) FAIL(host.error().front().message);
  for (const Subject& s : all) {
    INFO(s.name << "\n" << s.kernel.source);
    const Symbols symbols{{"n", 5}};
    const auto inputs = inputs_of(s.graph, symbols, 11);
    CHECK(difference(run_kernel(*host, s, inputs, symbols),
                     run_interpreter(s, inputs, symbols, false)) == "");
    const std::vector<std::int64_t> params{8};  // whole blocks
    const auto counts = cuda::count_accesses(*s.kernel.accesses, s.kernel.arguments.size(), params);
    REQUIRE(counts);
    const Type& x = context->types[s.kernel.arguments[0]];
    CHECK(counts->arguments[0].bytes() == 8 * context->dims.value(x.shape[1]).value() * 2);
  }
}

TEST_CASE("accesses: with every schedule", "[cuda][accesses]") {
  if (no_host_compiler()) return;
  const auto context = library();
  for (const char* text :
       {"in x: bf16[n, 5120], w: bf16[5120]  y = rms_norm(x, w)  out y",
        "in x: bf16[n, 10240]  y = silu_and_mul(x)  out y",
        "in x: bf16[n, 4096]  q, s = silu_and_mul_per_block_quant(x){group = 128}  out q, s"}) {
    const Subject s = of_text(context, text);
    const std::vector<cuda::Kernel> kernels = cuda::candidates(*s.program);
    const auto host = cached_kernels(kernels);
    if (!host) FAIL(host.error().front().message);
    for (const cuda::Kernel& kernel : kernels) {
      INFO(kernel.source);
      check_counts(*host, s, kernel, 3);
    }
  }
}

namespace {

constexpr std::int64_t kQuery = 2;  // new tokens of sequences that decode

/// A model of two narrow layers, rewritten, cut, planned for some sizes and ready to run.
struct Family {
  Family(const std::string& name, const std::string& quant, const std::string& pipeline,
         const cuda::HostDriverOptions& how, bool strict = true)
      : context(library()), graph(make(name, quant)), driver(cached(how)), weights(graph, 7) {
    RuleSet rules = need(load_rules(context, {"llm"}), *context);
    const Env params = need(bind_params(rules, {}), *context);
    if (!pipeline.empty()) need(run_pipeline(graph, rules, pipeline, params), *context);
    pieces =
        need(split(graph, need(splitting_ops(context, &rules, params, {}), *context)), *context);
    PlanOptions options;
    options.max_tokens = 8;
    options.capture_sizes = {4, 8};  // whole decodes
    options.speculative_tokens = kQuery - 1;
    plan = need(make_plan(*pieces, graph, options), *context);
    cuda::RuntimeOptions runs;
    runs.strict = strict;
    runtime = need(cuda::Runtime::make(*pieces, graph, *plan, driver, runs), *context);
    need(runtime->load(weights), *context);
    need(runtime->capture(), *context);
  }

  Graph make(const std::string& name, const std::string& quant) const {
    if (name == "llama" || name == "moe") {
      LlamaOptions options;
      options.layers = 2;
      options.hidden = 64;
      options.heads = 4;
      options.kv_heads = 2;
      options.ffn = 96;
      options.vocab = 67;
      options.positions = 64;
      options.max_tokens = 8;
      options.quant = quant;
      options.experts = name == "moe" ? 4 : 0;
      return need(generate_llama(context, options), *context);
    }
    FamilyOptions options;
    options.family = name;
    options.layers = 2;
    options.hidden = 64;
    options.heads = 4;
    options.ffn = 128;
    options.vocab = 67;
    options.positions = 64;
    options.max_tokens = 8;
    options.quant = quant;
    if (find_family(name)->sizes.experts > 0) options.experts = 4;
    return need(generate_family(context, options), *context);
  }

  ContextPtr context;
  Graph graph;
  std::optional<StitchedGraph> pieces;
  std::optional<Plan> plan;
  cuda::HostDriver driver;
  Weights weights;
  KvCache cache;
  std::unique_ptr<cuda::Runtime> runtime;
};

/// The kernels of attention of a step of so many rows, and new tokens of each sequence or 0, where
/// it does not belong to the libraries.
std::set<std::string> attention_of(const Family& family, std::int64_t rows, std::int64_t query,
                                   bool strict) {
  std::set<std::string> out;
  if (family.driver.calls_libraries()) return out;
  for (const PieceClass& c : family.pieces->classes) {
    const Graph& piece = family.pieces->pieces[c.members.front()].graph;
    const auto kernels =
        cuda::attention_kernels(piece, KvCache::kPageTokens,
                                strict ? std::string() : family.driver.arch(), nullptr, kQuery);
    if (!kernels) continue;
    out.insert(kernels->put.name);
    out.insert(kernels->forms ? kernels->forms->of(rows, query).kernel.name : kernels->attend.name);
  }
  return out;
}

/// The kernels of matmuls on tensor cores; steps have them for the largest captured size.
std::set<std::string> products_of(const Family& family) {
  std::set<std::string> out;
  for (const PieceClass& c : family.pieces->classes) {
    Graph piece = family.pieces->pieces[c.members.front()].graph.compact();
    cuda::decompose(piece, [](NodeId, const std::string&) {});
    piece.erase_dead();
    for (const cuda::FoundProduct& found : cuda::tensor_products_of(piece)) {
      const auto rows = family.context->dims.evaluate(
          found.product.rows, {{family.plan->tokens, family.plan->capture.sizes.back()}});
      const auto kernels = cuda::tensor_product(
          found.product, {family.driver.arch(), rows.value_or(1)}, *family.context);
      if (kernels) out.insert(kernels->product.name);
    }
  }
  return out;
}

/// Each kernel of a replayed step, and that attention is among them. `rows`: with padding.
void check_step(Family& family, std::vector<Sequence> sequences, std::int64_t rows, bool strict) {
  Step step;
  step.sequences = std::move(sequences);
  step.cache = &family.cache;
  const std::int64_t query = shape_of(step).query;
  family.driver.forget_accesses();
  RunOptions options;
  options.pad = true;
  need(family.runtime->run(step, family.weights, options), *family.context);
  CHECK_FALSE(family.driver.touched().empty());
  for (const std::string& name : attention_of(family, rows, query, strict)) {
    INFO(name << " of " << rows << " rows, " << query << " of each sequence");
    CHECK(family.driver.touched().count(name) == 1);
  }
  for (const auto& [name, touched] : family.driver.touched()) {
    INFO(name << ", " << touched.launches << " launches");
    CHECK(touched.launches > 0);
    REQUIRE(touched.foretold);
    CHECK(touched.counted.global_reads.bytes() + touched.counted.global_writes.bytes() > 0);
    CHECK(shown(*touched.foretold) == shown(touched.counted));
  }
}

}  // namespace

namespace {

std::vector<std::string> family_names() {
  std::vector<std::string> out{"llama", "moe"};
  for (const ModelFamily& family : decoder_families()) out.emplace_back(family.name);
  return out;
}

/// A prompt; it goes on beside another, with a row of padding; two go on and one begins, with rows
/// of padding; two have as many tokens as decodes do.
void check_steps(Family& family, bool strict) {
  check_step(family, {{0, 8, 0}}, 8, strict);
  check_step(family, {{0, 1, 8}, {1, 2, 0}}, 4, strict);
  check_step(family, {{0, 1, 9}, {1, 1, 2}, {2, 3, 0}}, 8, strict);
  check_step(family, {{0, kQuery, 10}, {1, kQuery, 3}}, 4, strict);
}

}  // namespace

TEST_CASE("accesses: of replayed steps of every family, kernel by kernel",
          "[cuda][accesses][diff]") {
  if (no_host_compiler()) return;
  for (const std::string& name : family_names()) {
    for (const char* quant : {"none", "fp8"}) {
      for (const bool libraries : {true, false}) {
        INFO(name << " " << quant << (libraries ? ", libraries" : ", kernels of its own"));
        cuda::HostDriverOptions how;
        how.libraries = libraries;
        Family family(name, quant, "o2", how);
        check_steps(family, true);
      }
    }
  }
}

namespace {

/// Of the products of a family's steps, those that are kernels on tensor cores are among what was
/// touched, as far as their pieces are captured.
void check_on_tensor_cores(const std::string& name) {
  std::size_t own = 0;
  for (const std::string quant : {"none", "fp8"}) {
    for (const std::string arch : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
      INFO(name << " " << quant << " " << arch);
      cuda::HostDriverOptions how;
      how.libraries = false;
      how.arch = arch;
      Family family(name, quant, "o2", how, false);
      check_steps(family, false);
      own += attention_of(family, 4, 0, false) != attention_of(family, 4, kQuery, false) ? 1 : 0;
      std::size_t touched = 0;
      for (const std::string& product : products_of(family))
        touched += family.driver.touched().count(product);
      const bool multiplies = cuda::has_tensor_cores(arch, DType::f8e4m3) || quant == "none";
      CHECK((touched > 0 || !multiplies));
    }
  }
  INFO(own << " of 8 have kernels of their own for decodes");
  if (name == "llama") CHECK(own > 0);
}

}  // namespace

TEST_CASE("accesses: of replayed steps on the tensor cores of every architecture",
          "[cuda][accesses][tensor][diff]") {
  if (no_host_compiler()) return;
  check_on_tensor_cores("llama");
}

TEST_CASE("accesses: of replayed steps of every family on tensor cores",
          "[.][slow][cuda][accesses][tensor][diff]") {
  if (no_host_compiler()) return;
  for (const std::string& name : family_names()) check_on_tensor_cores(name);
}

#include "tests/backends_cuda/kernel_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "backends/interpreter/interpreter.hpp"
#include "backends/program.hpp"
#include "base/hash.hpp"
#include "base/try.hpp"
#include "codegen/cache/cache.hpp"
#include "codegen/toolchain.hpp"
#include "dsl/dsl.hpp"
#include "tensor/numerics.hpp"
#include "tests/catch.hpp"

namespace pw::test {

std::vector<double> values_of(const TensorView& view) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < view.count(); ++i) out.push_back(load(view.dtype, view.data, i));
  return out;
}

CompileCache& kernel_cache() {
  static CompileCache cache(CacheOptions::from_environment());
  return cache;
}

cuda::HostDriverOptions cached(cuda::HostDriverOptions how) {
  if (how.cache == nullptr) how.cache = &kernel_cache();
  return how;
}

Result<cuda::HostKernels> cached_kernels(std::span<const cuda::Kernel> kernels,
                                         std::string_view extra) {
  return cuda::HostKernels::build(kernels, extra, &kernel_cache());
}

bool no_host_compiler() {
  if (!host_compiler().empty()) return false;
  WARN("SKIPPED: no C++ compiler on PATH, so the host run is not tested");
  return true;
}

bool no_compiler(const cuda::Nvrtc& nvrtc) {
  if (nvrtc.present()) return false;
  WARN("SKIPPED: NVRTC is " << nvrtc.state());
  return true;
}

ContextPtr library() {
  auto context = std::make_shared<Context>();
  need(load_op_library(context), *context);
  return context;
}

Subject subject(const ContextPtr& context, const std::string& name, const std::string& text) {
  Graph graph = need(parse_graph(context, text, name), *context);
  std::vector<NodeId> nodes;
  for (NodeId n : graph.order()) {
    if (graph.op_of(n).name != "constant") nodes.push_back(n);
  }
  REQUIRE(!nodes.empty());
  return subject(name, std::move(graph), nodes);
}

Subject subject(const std::string& name, Graph graph, std::span<const NodeId> nodes) {
  Subject s{name, std::move(graph), {}, tl::unexpected<rows::Opaque>(rows::Opaque{}), {}};
  std::vector<ValueId> results;
  s.program = rows::lower_nodes(s.graph, nodes, s.operands, results);
  if (s.program) s.kernel = cuda::emit(*s.program);
  return s;
}

std::vector<Tensor> inputs_of(const Graph& graph, const Symbols& symbols, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs()) {
    const DType dtype = graph.context().types[graph.type(v)].dtype;
    Tensor tensor(dtype, need(extents_of(graph, v, symbols), graph.context()));
    const bool scale = graph.value_name(v) == "s";  // what is divided by
    const std::int64_t filled =
        std::min(tensor.view().count(), std::int64_t{1} << 20);  // a large table is zero further on
    for (std::int64_t i = 0; i < filled; ++i) {
      const double x = is_float(dtype)
                           ? random.normal()
                           : static_cast<double>(random.below(dtype == DType::b8 ? 2 : 7));
      store(dtype, tensor.data(), i, scale ? 0.013 : x);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

LaunchArguments launch_arguments(const Subject& s, const cuda::Kernel& kernel,
                                 const std::vector<Tensor>& inputs, const Symbols& symbols) {
  const Context& context = s.graph.context();
  LaunchArguments out;
  const auto& all = s.graph.inputs();
  for (ValueId v : s.operands) {
    const auto at = std::find(all.begin(), all.end(), v);
    REQUIRE(at != all.end());
    out.pointers.push_back(inputs[static_cast<std::size_t>(at - all.begin())].data());
  }
  for (ValueId v : s.graph.outputs()) {
    out.outputs.emplace_back(context.types[s.graph.type(v)].dtype,
                             need(extents_of(s.graph, v, symbols), context));
    out.pointers.push_back(out.outputs.back().data());
  }
  for (DimId d : kernel.params) out.params.push_back(context.dims.evaluate(d, symbols).value());
  return out;
}

Result<std::vector<std::vector<double>>> try_kernel(const cuda::HostKernels& host, const Subject& s,
                                                    const std::vector<Tensor>& inputs,
                                                    const Symbols& symbols, std::uint64_t seed) {
  const LaunchArguments with = launch_arguments(s, s.kernel, inputs, symbols);
  REQUIRE(with.pointers.size() == s.kernel.arguments.size());
  PW_TRY(host.run(s.kernel.name, with.pointers, with.params, seed));
  std::vector<std::vector<double>> results;
  for (const Tensor& t : with.outputs) results.push_back(values_of(t.view()));
  return results;
}

std::vector<std::vector<double>> run_kernel(const cuda::HostKernels& host, const Subject& s,
                                            const std::vector<Tensor>& inputs,
                                            const Symbols& symbols) {
  return need(try_kernel(host, s, inputs, symbols), s.graph.context());
}

std::vector<std::vector<double>> run_interpreter(const Subject& s,
                                                 const std::vector<Tensor>& inputs,
                                                 const Symbols& symbols, bool exact) {
  std::vector<TensorView> views;
  for (const Tensor& t : inputs) views.push_back(t.view());
  RunContext run;
  run.symbols = symbols;
  std::vector<std::vector<double>> results;
  for (const Tensor& t :
       need(interpret(s.graph, views, run, exact ? Precision::exact : Precision::single),
            s.graph.context()))
    results.push_back(values_of(t.view()));
  return results;
}

std::string difference(const std::vector<std::vector<double>>& got,
                       const std::vector<std::vector<double>>& wanted) {
  if (got.size() != wanted.size()) return "another number of results";
  for (std::size_t r = 0; r < got.size(); ++r) {
    if (got[r].size() != wanted[r].size()) return fmt::format("result {} has another size", r);
    for (std::size_t i = 0; i < got[r].size(); ++i) {
      if (got[r][i] == wanted[r][i] || (std::isnan(got[r][i]) && std::isnan(wanted[r][i])))
        continue;
      return fmt::format("result {} element {}: {:.9g}, not {:.9g}", r, i, got[r][i], wanted[r][i]);
    }
  }
  return "";
}

std::string bits_apart(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return "number of outputs";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].extents() != b[i].extents()) return fmt::format("extents of output {}", i);
    if (std::memcmp(a[i].data(), b[i].data(), a[i].view().bytes()) != 0)
      return fmt::format("bits of output {}", i);
  }
  return "";
}

std::string shown(const cuda::AccessCounts& counts) {
  std::string out;
  for (const auto* kind :
       {&counts.global_reads, &counts.global_writes, &counts.shared_reads, &counts.shared_writes})
    out += fmt::format("{} {} {} {} {}; ", kind->times[0], kind->times[1], kind->times[2],
                       kind->times[3], kind->times[4]);
  return out;
}

}  // namespace pw::test

// For tests: a graph text whose nodes are run as kernels on the host, and by the interpreter.
#pragma once

#include <string>
#include <vector>

#include "backends/kernel.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/device/host_run.hpp"
#include "cuda/device/nvrtc.hpp"
#include "tensor/tensor.hpp"
#include "tests/catch.hpp"

namespace pw::test {

struct Subject {
  std::string name;
  Graph graph;
  std::vector<ValueId> operands;  ///< of the kernel; its results are the graph's outputs
  tl::expected<rows::RowProgram, rows::Opaque> program;
  cuda::Kernel kernel;  ///< of the program, if there is one
};

/// The result, or a failed test.
template <class T>
T need(Result<T> result, const Context& context) {
  if (!result) FAIL(render(result.error(), context.sources));
  return std::move(*result);
}

/// Compiled kernels, which all tests of a machine share, as its programs do.
CompileCache& kernel_cache();
/// The options of an emulated device whose kernels are compiled once.
cuda::HostDriverOptions cached(cuda::HostDriverOptions how = {});
/// Kernels for the host, compiled once.
Result<cuda::HostKernels> cached_kernels(std::span<const cuda::Kernel> kernels,
                                         std::string_view extra = {});

/// Whether no C++ compiler is on PATH; warns that the host run is not tested.
bool no_host_compiler();
/// Whether NVRTC is absent; warns that nothing is compiled for devices.
bool no_compiler(const cuda::Nvrtc& nvrtc);

/// A context with the op library.
ContextPtr library();
/// Parses `in … out …` of a graph; its nodes but the constants are lowered and emitted as one
/// kernel.
Subject subject(const ContextPtr& context, const std::string& name, const std::string& text);

/// The kernel of these nodes of a graph, whose results are the graph's outputs.
Subject subject(const std::string& name, Graph graph, std::span<const NodeId> nodes);

/// Random inputs: normal; integers below 7; b8 by a coin.
std::vector<Tensor> inputs_of(const Graph& graph, const Symbols& symbols, std::uint64_t seed);
[[nodiscard]] std::vector<double> values_of(const TensorView& view);
/// The arguments of a launch: operands, and memory for results.
struct LaunchArguments {
  std::vector<void*> pointers;
  std::vector<Tensor> outputs;
  std::vector<std::int64_t> params;
};
LaunchArguments launch_arguments(const Subject& s, const cuda::Kernel& kernel,
                                 const std::vector<Tensor>& inputs, const Symbols& symbols);
/// The results of the kernel, as stored, read as doubles.
std::vector<std::vector<double>> run_kernel(const cuda::HostKernels& host, const Subject& s,
                                            const std::vector<Tensor>& inputs,
                                            const Symbols& symbols);
/// Like the function above, or the errors that the host run found.
Result<std::vector<std::vector<double>>> try_kernel(const cuda::HostKernels& host, const Subject& s,
                                                    const std::vector<Tensor>& inputs,
                                                    const Symbols& symbols, std::uint64_t seed = 1);
/// The results of the interpreter.
std::vector<std::vector<double>> run_interpreter(const Subject& s,
                                                 const std::vector<Tensor>& inputs,
                                                 const Symbols& symbols, bool exact);

/// The first element that is not equal (a NaN equals a NaN), or an empty text.
std::string difference(const std::vector<std::vector<double>>& got,
                       const std::vector<std::vector<double>>& wanted);

/// How often each width is read and written, in global and in shared memory.
std::string shown(const cuda::AccessCounts& counts);

/// The first output that has not the same extents and bits in both, or an empty text.
std::string bits_apart(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace pw::test

// Exports the op of row kernels and its runner.
#include "backends/cpu/run.hpp"

#include "backends/parallel.hpp"
#include "base/assert.hpp"

namespace pw::cpu {
namespace {

constexpr const char* kOp = "row kernel";
constexpr std::int64_t kWorthAThread = 1 << 17;  // elements

Result<std::monostate> run(const RowKernel& kernel, Call& call) {
  std::vector<Array> held;  // row-major forms of operands
  std::vector<void*> pointers;
  std::int64_t largest = 1;
  for (const Array* operand : call.operands) {
    held.push_back(contiguous(*operand));
    pointers.push_back(held.back().data);
    largest = std::max(largest, held.back().count());
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    pointers.push_back(call.result(i).data);
    largest = std::max(largest, call.results[i].count());
  }
  PW_ASSERT(pointers.size() == kernel.arguments, "a kernel gets its arguments");
  std::vector<long long> params;
  for (DimId dim : kernel.params) {
    const auto value = call.graph.context().dims.evaluate(dim, call.context.symbols);
    if (!value)
      return fail_call(call, "PW1202",
                       "dim " + call.graph.context().dims.print(dim) + " has no value here");
    params.push_back(*value);
  }
  const std::int64_t rows = params.front();
  if (rows <= 0) return std::monostate{};
  parallel_for(rows, 1 + kWorthAThread / (largest / rows + 1),
               [&](std::int64_t begin, std::int64_t end) {
                 kernel.function(pointers.data(), params.data(), begin, end);
               });
  return std::monostate{};
}

}  // namespace

OpId row_kernel_op(Context& context) {
  const OpId known = context.ops.find(kOp);
  if (known.valid()) return known;
  Op op;
  op.name = kOp;
  op.imported = true;
  return context.ops.declare(std::move(op)).value();
}

AttributesId kernel_attributes(Context& context, std::size_t number) {
  return context.attributes.intern(
      {{context.strings.intern("kernel"), static_cast<std::int64_t>(number)}});
}

std::function<RunCall(const Graph&, NodeId)> row_kernel_runner(
    std::shared_ptr<const std::vector<RowKernel>> kernels) {
  return [kernels](const Graph& graph, NodeId node) -> RunCall {
    if (graph.op(node) != graph.context().ops.find(kOp)) return {};
    const auto number =
        static_cast<std::size_t>(std::get<std::int64_t>(*graph.attribute(node, "kernel")));
    const RowKernel kernel = (*kernels)[number];
    return [kernel](Call& call) { return run(kernel, call); };
  };
}

}  // namespace pw::cpu

#include "backends/cpu/run.hpp"

#include <algorithm>
#include <deque>

#include "backends/cpu/layouts.hpp"
#include "base/assert.hpp"
#include "tensor/parallel.hpp"

namespace pw::cpu {
namespace {

constexpr std::int64_t kWorthAThread = 1 << 15;  // elements

/// Returns true if the array has the kernel's rows. A table for look-ups, or a weight, does not
/// reflect the work in a row.
bool has_rows(const Array& array, std::int64_t rows) {
  std::int64_t leading = 1;
  for (std::int64_t extent : array.extents) {
    if (leading == rows) break;
    leading *= extent;
  }
  return leading == rows;
}

std::int32_t valid_tokens(const Call& call) {
  const auto rows = call.context.symbols.find(call.graph.facts.tokens());
  const std::int64_t all = rows == call.context.symbols.end() ? 0 : rows->second;
  return static_cast<std::int32_t>(call.context.valid == 0 ? all
                                                           : std::min(call.context.valid, all));
}

/// Returns the layout in which a kernel runs if it is not row-major.
const Extents* other_layout(const RowKernel& kernel, const Call& call) {
  const bool placed = std::any_of(call.places.begin(), call.places.end(),
                                  [](const TensorView* place) { return place != nullptr; });
  if (!kernel.keeps_layout || placed) return nullptr;
  const auto found = std::find_if(
      call.operands.begin(), call.operands.end(),
      [](const Array* operand) { return !operand->contiguous() && is_dense(*operand); });
  return found == call.operands.end() ? nullptr : &(*found)->strides;
}

Status run(const RowKernel& kernel, Call& call) {
  std::deque<Array> copies;  // of operands with another layout
  std::vector<const Array*> held;
  std::vector<void*> pointers;
  held.reserve(call.operands.size());
  pointers.reserve(kernel.arguments);
  const Extents* const layout = other_layout(kernel, call);
  for (const Array* operand : call.operands) {
    const bool fits = layout == nullptr ? operand->contiguous() : has_strides(*operand, *layout);
    held.push_back(fits
                       ? operand
                       : &copies.emplace_back(layout == nullptr ? contiguous(*operand)
                                                                : with_strides(*operand, *layout)));
    pointers.push_back(held.back()->data);
  }
  std::int32_t valid = 0;
  if (kernel.reads_valid) {
    valid = valid_tokens(call);
    pointers.push_back(&valid);
  }
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    Array& result = call.result(i);
    if (layout != nullptr) result.strides = *layout;
    pointers.push_back(result.data);
  }
  PW_ASSERT(pointers.size() == kernel.arguments, "a kernel receives its arguments");
  int failed = 0;
  if (kernel.checks) pointers.push_back(&failed);
  std::vector<long long> params;
  params.reserve(kernel.params.size());
  for (DimId dim : kernel.params) {
    const auto value = call.graph.context().dims.evaluate(dim, call.context.symbols);
    if (!value)
      return fail_call(call, "PW1202",
                       "dim " + call.graph.context().dims.print(dim) + " has no value here");
    params.push_back(*value);
  }
  const std::int64_t rows = params.front();
  if (rows <= 0) return {};
  std::int64_t largest = rows;
  for (const Array* operand : held)
    largest = std::max(largest, has_rows(*operand, rows) ? operand->count() : 0);
  for (const auto& result : call.results) largest = std::max(largest, result.count());
  const auto [unit, fewest] = kernel.parts;
  const std::int64_t units = rows / unit;
  parallel_for(units, std::max(fewest, 1 + kWorthAThread / (largest / units + 1)),
               [&, size = unit](std::int64_t begin, std::int64_t end) {
                 kernel.function(pointers.data(), params.data(), begin * size, end * size);
               });
  if (failed != 0)
    return fail_call(call, "PW1204", "an index is outside its table",
                     "run on `eager`, which reports the index");
  return {};
}

}  // namespace

OpId row_kernel_op(Context& context) {
  const OpId known = context.ops.find(kRowKernel);
  if (known.valid()) return known;
  Op op;
  op.name = kRowKernel;
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
    if (graph.op(node) != graph.context().ops.find(kRowKernel)) return {};
    const auto number =
        static_cast<std::size_t>(std::get<std::int64_t>(*graph.attribute(node, "kernel")));
    const RowKernel kernel = (*kernels)[number];
    return [kernel](Call& call) { return run(kernel, call); };
  };
}

}  // namespace pw::cpu

// A compiled group as a graph node: its op and its kernel.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/program.hpp"

namespace pw::cpu {

struct RowKernel {
  RowFunction function = nullptr;
  std::vector<DimId> params;  ///< the number of rows first
  std::size_t arguments = 0;  ///< operands and results
  bool reads_valid = false;   ///< the last operand is the number of valid tokens
  bool keeps_layout = false;  ///< operands may have any common layout; see layouts.hpp
  bool checks = false;        ///< one more pointer after the arguments: set to 1 when a check fails
  RowParts parts;
};

/// The name of the op of such nodes.
inline constexpr const char* kRowKernel = "row kernel";
/// Returns the op of such nodes, declared in the context on first use. Its name cannot occur in a
/// graph's text.
[[nodiscard]] OpId row_kernel_op(Context& context);
/// Returns the attributes that identify the kernel.
[[nodiscard]] AttributesId kernel_attributes(Context& context, std::size_t number);
/// Returns a runner for nodes of that op, which splits rows over the cores; it returns an empty
/// call for other nodes.
[[nodiscard]] std::function<RunCall(const Graph&, NodeId)> row_kernel_runner(
    std::shared_ptr<const std::vector<RowKernel>> kernels);

}  // namespace pw::cpu

// A compiled group as a node of a graph: the op that stands for it, and what runs it.
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
  bool checks = false;        ///< behind the arguments stands what gets 1 where a check fails
};

/// The name of the op of such nodes.
inline constexpr const char* kRowKernel = "row kernel";
/// The op of such nodes, declared in the context when it is not there. Its name is none that a
/// graph's text can have.
[[nodiscard]] OpId row_kernel_op(Context& context);
/// Says which kernel.
[[nodiscard]] AttributesId kernel_attributes(Context& context, std::size_t number);
/// Runs nodes of that op, rows over the cores; gives nothing for others.
[[nodiscard]] std::function<RunCall(const Graph&, NodeId)> row_kernel_runner(
    std::shared_ptr<const std::vector<RowKernel>> kernels);

}  // namespace pw::cpu

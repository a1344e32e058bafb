// The kernels of eager by family; one translation unit each.
#pragma once

#include <functional>

#include "backends/kernel.hpp"

namespace pw::eager {

/// Returns all kernels of eager.
[[nodiscard]] KernelTable kernels();

[[nodiscard]] KernelTable pointwise();
[[nodiscard]] KernelTable reductions();
[[nodiscard]] KernelTable gathers();
[[nodiscard]] KernelTable indexing();
[[nodiscard]] KernelTable scans();
[[nodiscard]] KernelTable products();
[[nodiscard]] KernelTable attention();
[[nodiscard]] KernelTable scaled_attention();
[[nodiscard]] KernelTable convolutions();
[[nodiscard]] KernelTable windows();

/// Runs the integer and b8 form of a pointwise op.
Status run_integers(Call& call);
/// Splits the result's first axis over the cores if the work is large enough, and calls work(begin,
/// end) for each range.
void over_rows(const Array& result, const std::function<void(std::int64_t, std::int64_t)>& work);

}  // namespace pw::eager

// The interpreter's kernel tables: plain loops, independent of eager's kernels, so that each checks
// the other.
#pragma once

#include "backends/kernel.hpp"

namespace pw {

[[nodiscard]] KernelTable exact_kernels();
[[nodiscard]] KernelTable stated_kernels();  ///< the exact kernels, with casts that round
[[nodiscard]] KernelTable single_kernels();

// Parts of the tables, by file.
template <class Real>
[[nodiscard]] KernelTable interpreter_reductions();
template <class Real>
[[nodiscard]] KernelTable interpreter_products();
template <class Real>
[[nodiscard]] KernelTable interpreter_indexing();
template <class Real>
[[nodiscard]] KernelTable interpreter_scan();
template <class Real>
[[nodiscard]] KernelTable interpreter_attention();
template <class Real>
[[nodiscard]] KernelTable interpreter_latent();
template <class Real>
[[nodiscard]] KernelTable interpreter_convolutions();
template <class Real>
[[nodiscard]] KernelTable interpreter_windows();

/// Stores reals like an engine: a value declared fp8 is rounded to fp8 even if it is held as f64.
template <class Real>
void store_declared(DType declared, const Array& array, std::int64_t offset, std::int64_t step,
                    std::int64_t n, Real* values);

}  // namespace pw

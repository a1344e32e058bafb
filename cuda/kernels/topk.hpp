// The kernel of keep_topk, which is no row program: a thread has a row and finds its largest
// elements one after the other.
#pragma once

#include <optional>

#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Of a keep_topk node over float rows of a fixed width; none for any other.
[[nodiscard]] std::optional<Kernel> topk_kernel(const Graph& graph, NodeId node);

}  // namespace pw::cuda

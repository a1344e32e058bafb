// The kernel of keep_topk, which has no row program: a thread processes a row and finds its largest
// elements one after another.
#pragma once

#include <optional>

#include "cuda/kernels/emitter.hpp"

namespace pw::cuda {

/// Returns the kernel of a keep_topk node over float rows of fixed width; nothing for other nodes.
[[nodiscard]] std::optional<Kernel> topk_kernel(const Graph& graph, NodeId node);

}  // namespace pw::cuda

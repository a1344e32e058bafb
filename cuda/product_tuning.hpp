// Tunes matmuls: the tile and split of our own kernel and, with a device to measure on, whether our
// kernel or the library is faster.
#pragma once

#include "cuda/tuning.hpp"
#include "splitter/splitter.hpp"

namespace pw::cuda {

/// Tunes every matmul of the pieces that tensor cores support, once for each token count; results
/// are `Tuned::chosen` with a product. On a device it times the tiles that the model ranks first
/// and the library's call. Without one it takes the model's first tile that compiles without
/// spills, and prefers the library. Does nothing in strict runs, which have no such kernels.
[[nodiscard]] TuneReport tune_products(const StitchedGraph& pieces,
                                       const std::string& tokens_symbol, const TuneOptions& options,
                                       const Nvrtc& nvrtc);

/// Returns the seconds of a library call, like `measure`. The node's b may come from the
/// transposition before it. Nothing if the device's library does not support the call.
[[nodiscard]] std::optional<double> measure_library(Driver& device, const Graph& graph,
                                                    const std::vector<NodeId>& nodes,
                                                    const Symbols& symbols);

}  // namespace pw::cuda

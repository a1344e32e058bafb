// Tunes matmuls: which tile and how many parts a kernel of our own has, and, where there is a
// device to measure on, whether it or the library is faster.
#pragma once

#include "cuda/tuning.hpp"
#include "splitter/splitter.hpp"

namespace pw::cuda {

/// Every matmul of the pieces that tensor cores take, once for each number of tokens, as
/// `Tuned::chosen` with a product. On a device the tiles that the model ranks first are timed, and
/// the library's call; without one the model's first that compiles without spills is chosen, and
/// the library is asked first. Nothing in strict runs, which have no such kernels.
[[nodiscard]] TuneReport tune_products(const StitchedGraph& pieces,
                                       const std::string& tokens_symbol, const TuneOptions& options,
                                       const Nvrtc& nvrtc);

/// Seconds of a library call of a node, whose b may be made by the transposition before it; as
/// `measure`. Nothing where the device's library does not take it.
[[nodiscard]] std::optional<double> measure_library(Driver& device, const Graph& graph,
                                                    const std::vector<NodeId>& nodes,
                                                    const Symbols& symbols);

}  // namespace pw::cuda

// Reads a captured graph of the CUDA driver: a CUgraph that another library of the process made.
#pragma once

#include <cstdint>
#include <string>

#include "graph/captured/captured_graph.hpp"

namespace pw::cuda {

/// Reads the graph at that address, which must be a live CUgraph, and the graphs inside it. Names
/// of kernels are demangled. `library`: the path of the libcuda that holds the graph; empty:
/// cuda_library_path(). PW1260 without a driver; PW1262 with the driver's reason.
[[nodiscard]] Result<CapturedLaunches> read_captured_graph(std::uint64_t graph, std::string name,
                                                           const std::string& library = {});

}  // namespace pw::cuda

// Objectives for an order of passes: costs of a graph, and results of planning and running it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pw {

enum class Objective : std::uint8_t {
  nodes,        ///< the costs of graphs, see Cost
  ops,          ///< …
  bytes,        ///< …
  launches,     ///< of kernels in one step, as planned
  peak_bytes,   ///< of activations in one step, as planned
  modelled_us,  ///< of one step, by a roofline
  measured_us,  ///< of one step, on a backend
  compile_ms,   ///< cutting, planning and compiling
};
/// Names in the order of Objective.
inline constexpr std::array<std::string_view, 8> kObjectiveNames{
    "nodes", "ops", "bytes", "launches", "peak_bytes", "modelled_us", "measured_us", "compile_ms"};

}  // namespace pw

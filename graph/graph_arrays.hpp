// A graph's arrays as code reads them that is compiled apart from this library: where they are, how
// their elements are declared, and functions for what does not fit into the elements. Numbers mean
// what the accessors of Graph say.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/graph.hpp"

namespace pw {

/// Its members are those of `struct Graph` in declarations().
struct GraphArrays {
  const void *nodes = nullptr, *places = nullptr, *values = nullptr, *uses = nullptr;
  const Graph* graph = nullptr;
  std::uint32_t (*result_count)(const Graph*, std::uint32_t node) = nullptr;
  std::uint32_t (*use_count)(const Graph*, std::uint32_t value) = nullptr;
  std::uint32_t (*type)(const Graph*, std::uint32_t value) = nullptr;
  std::uint32_t (*user)(const Graph*, std::uint32_t use) = nullptr;
  std::uint32_t (*slot)(const Graph*, std::uint32_t use) = nullptr;

  /// Holds until the next mutation.
  static GraphArrays of(const Graph& graph);
  /// C++ that declares the elements, the struct, and the accessors: op, attributes, operand_count,
  /// operand, result_count, result, producer, type, use_count, is_output, first_use, next_use,
  /// user, slot, label, next.
  static std::string_view declarations();
};

}  // namespace pw

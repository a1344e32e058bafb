// Generic JSON readers, which neither check nor build a graph: the baseline for the reader of
// graph.json.
#pragma once

#include <string>

#include "bench/measure.hpp"

namespace pw::bench {

/// Adds rows with the times of nlohmann-json and, if available, simdjson for the same text.
void add_generic(Table& table, const std::string& text, int runs);

}  // namespace pw::bench

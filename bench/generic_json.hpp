// Readers of any JSON, which check nothing and make no graph: what a reader of graph.json is
// measured beside.
#pragma once

#include <string>

#include "bench/measure.hpp"

namespace pw::bench {

/// Rows of what nlohmann-json and, where there is one, simdjson take for the same text.
void add_generic(Table& table, const std::string& text, int runs);

}  // namespace pw::bench

// Private to the importer: conditions that the program states on its sizes.
#pragma once

#include "graph/graph_format.hpp"
#include "import/fx/emit/symbols.hpp"

namespace pw::fx {

/// Removes the conditions in report.checked that the graph's facts prove, and adds the others to
/// the facts. Reports those on sizes
/// that are not of inputs as unchecked, because no run has them beforehand.
void settle_conditions(Graph& graph, Symbols& symbols, FxReport& report);

}  // namespace pw::fx

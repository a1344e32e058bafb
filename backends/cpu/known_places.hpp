// Elements chosen by numbers that the graph alone determines.
#pragma once

#include "graph/graph.hpp"

namespace pw::cpu {

/// Replaces each `index` of the last axis by a concatenation of slices, if its places are known
/// and form a few long runs, as those of a reflected or repeated border: a loop over a run reads
/// neighbours, and needs no places. Returns true if the graph has changed.
bool slice_known_places(Graph& graph);

}  // namespace pw::cpu

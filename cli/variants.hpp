// The graphs of a run: one, or one for each range of tokens and for the steps that do not meet its
// conditions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/rewriting.hpp"
#include "viz/viz.hpp"

namespace pw::cli {

struct Variant {
  std::string name;  ///< "1-256"; empty for the only graph of a pipeline without ranges
  RangedResult result;
  std::vector<Version> versions;  ///< with `keep`: after each pass
  SymbolFact declared;            ///< of the tokens, before ranges and conditions narrowed it
};

/// Rewrites the graph with the pipeline, or takes it as it is where none is named. Warnings and
/// conditions are said.
std::vector<Variant> make_variants(const Session& session, const Graph& graph,
                                   const LoadedRules& rules, const std::string& pipeline,
                                   bool keep = false);

/// The graph for a step; `runs_as` gives the size a variant pads it to. Throws Exit if there is
/// none.
std::size_t variant_of(const Session& session, const std::vector<Variant>& variants,
                       std::int64_t tokens,
                       const std::function<std::int64_t(std::size_t variant)>& runs_as);

}  // namespace pw::cli

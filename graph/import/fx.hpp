// Reads PyTorch FX text (AOT / post-grad form, functional-collectives form) into a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

struct FxOptions {
  std::string file;  ///< for messages
  /// symbol name → input dims that become it, as (input name, axis): from `--symbol
  /// n=arg0_1.0,arg6_1.0`.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int>>>> symbols;
  std::int64_t symbol_min = 1, symbol_max = 32768;
};

struct FxReport {
  std::map<std::string, int> opaque;       ///< calls kept as they are, by target, with counts
  std::map<std::string, int> reasons;      ///< why a known target was kept so, with counts
  std::vector<std::string> substitutions;  ///< shape literals that became the symbol
  std::size_t nodes = 0;
};

struct FxImport {
  Graph graph;
  FxReport report;
};

Result<FxImport> import_fx(const ContextPtr& context, std::string_view text,
                           const FxOptions& options);

}  // namespace pw

// A form of graphs that can be read, as its importer describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/fx/fx.hpp"

namespace pw {

struct ReadGraph {
  Graph graph;
  std::optional<FxReport> dump;  ///< of an FX dump: what its import did
};

struct GraphFormat {
  std::string_view name;  ///< for people: "graph.json"
  bool (*recognise)(std::string_view text);
  /// `options.file` names the text in messages; the rest is what an FX dump does not say itself.
  Result<ReadGraph> (*read)(const ContextPtr& context, const std::string& text,
                            const FxOptions& options);
  /// Small texts of this form, of which random mutants are read in tests.
  std::vector<std::string> examples = {};
};

}  // namespace pw

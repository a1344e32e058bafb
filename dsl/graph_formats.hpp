// The forms of graphs that can be read, told apart by their content.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dsl/dsl.hpp"
#include "graph/import/fx.hpp"

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
};

/// In the order in which they are tried; the last takes what no other does.
[[nodiscard]] std::span<const GraphFormat> graph_formats();
/// Reads a text by the first format that recognises it, the op library loaded. PW0481 for a file
/// that is known to be something else: an archive, an ONNX model.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const FxOptions& options);

}  // namespace pw

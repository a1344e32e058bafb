// Pictures of graph files: one graph, its changes by a pipeline, the graphs of a trace, or several
// graphs compared.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan.hpp"

namespace pw {

struct PictureRequest {
  /// Graphs; the folder of a trace, or its journal.
  std::vector<std::string> files;
  GraphSource graph;  ///< import options for dumps; the path is unused
  RuleSource rules;
  PlanRequest plan;
  bool split = true;   ///< split the graph, and plan it
  bool times = false;  ///< include times of passes, so that output varies
  std::size_t most_rewrites = Limits{}.rewrites;
  std::string pass;     ///< show the graph after it (name or number); empty: the last
  std::string overlay;  ///< a JSON file of numbers for nodes
  std::string output;   ///< a path, whose extension is the type; empty or a stream: an outline
  std::string format;   ///< overrides the extension: "svg", "me.json"; empty: by the path
  VizOptions viz;       ///< only collapse, view, most_boxes and color
};

/// Returns the picture, or the text of the outline. Fails with PW1431 for a folder or journal
/// without graphs, PW1425 for an unknown pass, PW1427 if a pipeline would rewrite several graphs.
Result<std::string> draw_picture(const ContextPtr& context, const PictureRequest& request,
                                 const Log& log);

}  // namespace pw

// Pictures of graph files: of one, of what a pipeline does to it, of the graphs of a trace, or of
// several compared.
#pragma once

#include <string>
#include <vector>

#include "pipeline/plan.hpp"

namespace pw {

struct PictureRequest {
  /// Graphs; a folder that a trace was written into, or the journal in it.
  std::vector<std::string> files;
  GraphSource graph;  ///< how dumps are read; its path is not
  RuleSource rules;
  PlanRequest plan;
  bool split = true;   ///< cut the graph, and plan it
  bool times = false;  ///< say how long passes took: other bytes each time
  std::size_t most_rewrites = Limits{}.rewrites;
  std::string pass;     ///< the graph after it, by its name or number; empty: the last
  std::string overlay;  ///< a JSON file of numbers for nodes
  std::string output;   ///< a path, whose extension is the type; empty or a stream: an outline
  std::string format;   ///< the type, whatever the path says: "svg", "me.json"; empty: by the path
  VizOptions viz;       ///< collapse, view, most_boxes and color of it are read
};

/// The picture, or the text of the outline. PW1431 for a folder or journal without graphs, PW1425
/// for a pass that there is not, PW1427 where a pipeline is to rewrite several graphs.
Result<std::string> draw_picture(const ContextPtr& context, const PictureRequest& request,
                                 const Log& log);

}  // namespace pw

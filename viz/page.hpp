// The page around a picture: its fixed style and script, and its data as safely embedded JSON.
#pragma once

#include <string>
#include <string_view>

#include "viz/formats/sheet.hpp"
#include "viz/timeline.hpp"

namespace pw::viz {

struct PageParts {
  const VizInput& input;
  const VizOptions& options;
  const UnionGraph& graph;
  const Links& links;
  const Folding& folding;
  const Placement& placement;
  const Timeline& timeline;
};

/// Returns the data with `<`, `>`, `&`, and the line separators of JavaScript escaped, so that it
/// is safe in a <script> element.
std::string page_data_json(const PageParts& parts);
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace pw::viz

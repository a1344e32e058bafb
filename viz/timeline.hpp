// What the page knows beside the picture: the versions with their counts, and where each drawn node
// came from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viz/scene.hpp"

namespace pw::viz {

struct Step {  ///< one version
  std::string pass;
  std::size_t nodes = 0, added = 0, removed = 0, changed = 0;
  std::optional<std::size_t> matches;  ///< absent: no journal
  double seconds = -1;                 ///< negative: not known
  std::string rules;                   ///< "add_rms ×24, norm_quant ×12"
  bool hidden = false;                 ///< nothing happened
};

struct Origin {  ///< of one box
  std::string made,
      gone;  ///< "rule add_rms (rules/norm.pwr:12) in pass fuse"; empty: not by a rule
  std::vector<std::uint32_t> matched;  ///< versions whose pass matched it
};

struct Timeline {
  std::vector<Step> steps;
  std::vector<Origin> origins;  ///< by box
};

Timeline make_timeline(const VizInput& input, const UnionGraph& graph, const Scene& scene);

}  // namespace pw::viz

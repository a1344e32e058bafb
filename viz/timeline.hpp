// What happened between the versions: counts, times, and every rewrite with the nodes it made and
// replaced.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viz/links.hpp"

namespace pw::viz {

struct Step {  ///< one version
  std::string pass;
  /// Without literals, which are drawn inside their readers: nodes of the version before, and
  /// added, less removed.
  std::size_t nodes = 0, added = 0, removed = 0, changed = 0;
  std::optional<std::size_t> matches;  ///< absent: no journal
  double seconds = -1;                 ///< negative: not known
  std::string rules;                   ///< "add_rms ×24, norm_quant ×12"
  bool hidden = false;                 ///< nothing happened
};

/// A node of a rewrite: its union position, or, of one that lived only within a pass, its id.
struct Touched {
  std::uint32_t at = kNobody;
  NodeId id;
};

struct Rewrite {
  std::string rule;           ///< its full name; empty: a built-in pass
  std::uint32_t version = 0;  ///< whose pass did it
  std::vector<Touched> matched, created, erased;
  std::vector<std::pair<std::string, Source>> bindings;  ///< values; none where unknown
};

struct Timeline {
  std::vector<Step> steps;
  std::vector<Rewrite> rewrites;  ///< in the order in which they happened
};

Timeline make_timeline(const VizInput& input, const UnionGraph& graph, const Links& links);

}  // namespace pw::viz

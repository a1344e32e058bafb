// The changes between versions: counts, times, and every rewrite with the nodes that it created and
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
  /// Counts without literals, which are drawn inside their readers. `nodes` counts the previous
  /// version, `added` the net growth.
  std::size_t nodes = 0, added = 0, removed = 0, changed = 0;
  std::optional<std::size_t> matches;  ///< absent without a journal
  double seconds = -1;                 ///< negative if unknown
  std::string rules;                   ///< "add_rms ×24, norm_quant ×12"
  bool hidden = false;                 ///< without any change
};

/// A node of a rewrite: its union position, or the id of a node that existed only within a pass.
struct Touched {
  std::uint32_t at = kNobody;
  NodeId id;
};

struct Rewrite {
  std::string rule;           ///< full name; empty for a built-in pass
  std::uint32_t version = 0;  ///< the version that its pass produced
  std::vector<Touched> matched, created, erased;
  std::vector<std::pair<std::string, Source>> bindings;  ///< values; none if unknown
};

struct Timeline {
  std::vector<Step> steps;
  std::vector<Rewrite> rewrites;  ///< in chronological order
};

Timeline make_timeline(const VizInput& input, const UnionGraph& graph, const Links& links);

}  // namespace pw::viz

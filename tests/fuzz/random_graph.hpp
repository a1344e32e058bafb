// Random graphs over every op that runs on the host: operands of any dtype and rank, zero extents,
// broadcasts, views, values returned twice, inputs returned as they are, written buffers,
// collectives. Graphs are drawn from the ops' signatures, so that an op that is added to the
// library is drawn, too. A graph is a function of its seed alone.
#pragma once

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw::test {

struct RandomGraph {
  std::uint64_t seed = 0;
  Graph graph;
  std::int64_t ranks = 1;   ///< 1, 2 or 4
  std::int64_t tokens = 1;  ///< of the step that it is run for
  std::string cut;          ///< an op of it at which it is split; may be empty
};

class GraphGenerator {
 public:
  /// The context holds the op library.
  explicit GraphGenerator(ContextPtr context);
  [[nodiscard]] RandomGraph graph(std::uint64_t seed) const;
  /// The names of the ops to draw from.
  [[nodiscard]] const std::vector<std::string>& ops() const { return names_; }

 private:
  ContextPtr context_;
  std::vector<std::string> names_;
  std::vector<OpId> primitives_, composed_;
};

}  // namespace pw::test

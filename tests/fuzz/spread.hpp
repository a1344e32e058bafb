// How far rounding alone may move a graph's results, found by moving them: the graph is run in
// double precision with every floating value times a random factor within the rounding of its dtype
// (Monte Carlo arithmetic; Parker, 1997). What is badly conditioned, or lies beside a step,
// spreads.
#pragma once

#include <vector>

#include "exec/runner.hpp"
#include "verify/samples/contents.hpp"

namespace pw::test {

/// The least and the largest value of an element over all runs; NaN and infinities apart.
struct Spread {
  double least = 0, most = 0;
  bool finite = false;   ///< some run gave a finite value
  bool special = false;  ///< some run gave NaN or infinity
  void add(double value);
  void add(const Spread& other);
};
/// Values of one rank: by output, then element.
using Spreads = std::vector<std::vector<Spread>>;

struct ContentsOf {
  Contents contents = Contents::ordinary;
  std::uint64_t seed = 0;
};
/// Returns the outputs by rank, for the contents that give_contents gives the graph's inputs.
/// Another `first` gives other noise.
Result<std::vector<Spreads>> spread_of(const Graph& graph, std::int64_t ranks, const Step& step,
                                       const ContentsOf& contents, int runs, int first = 0);
/// Whether a value may be what rounding made of the element: within the spread, as wide again on
/// either side, and a rounding of its own dtype.
[[nodiscard]] bool within(const Spread& spread, double value, DType dtype);

}  // namespace pw::test

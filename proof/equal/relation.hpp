// What the inputs of one graph are of the inputs of another that does the same on several ranks, or
// in several steps, and what is claimed of the outputs. Names on the left are of the first graph.
//
//   ids = replicated(ids)                        the same on all ranks
//   w = gathered(w){dim = 0}                     rank after rank along an axis
//   qkv = blocks(qkv){dim = 0, sizes = [8, 2, 2]}  each of these parts is rank after rank
//   grad = partial(grad)                         the sum over the ranks
//   x = cat(x_1, x_2){dim = 0}                   several inputs of the second graph, one behind the
//   other zero = 0.0                                   an input of either graph that holds this
//   number alone
//   *_up_w = gathered(*_up_w){dim = 1}           one star on both sides: of every layer
//   granted my_attention along 1                 an op that takes each place of these axes by
//   itself claim y = replicated(y)                      also gathered(…){dim} and partial(…)
//
// An input without a line is replicated from the one with its name and type. Without claims, all
// outputs are, in order.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pw::proof {

enum class Part : std::uint8_t { replicated, gathered, blocks, partial, cat };
/// replicated, gathered, …
[[nodiscard]] std::string_view name(Part part);

struct RelationLine {
  std::string left;
  Part part = Part::replicated;
  std::vector<std::string> right;  ///< several for cat alone
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes;  ///< of blocks
  int line = 0;
};

struct Relation {
  std::vector<RelationLine> inputs, claims;
  std::map<std::string, double> numbers;
  std::map<std::string, std::set<std::int64_t>> granted;  ///< op → axes
};

}  // namespace pw::proof

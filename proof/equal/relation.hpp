// The relation between the inputs of one graph and those of an equivalent graph that runs on
// several ranks or in several steps, and the claims about the outputs. Names on the left belong to
// the first graph.
//
//   ids = replicated(ids)                        the same on all ranks
//   w = gathered(w){dim = 0}                     concatenated along an axis, in rank order
//   qkv = blocks(qkv){dim = 0, sizes = [8, 2, 2]}  each block is concatenated in rank order
//   grad = partial(grad)                         the sum over the ranks
//   x = cat(x_1, x_2){dim = 0}                   several inputs of the second graph in order
//   other zero = 0.0                             an input of either graph that is constant
//   *_up_w = gathered(*_up_w){dim = 1}           one star on both sides: every layer
//   granted my_attention along 1                 an op that treats its positions independently
//   claim y = replicated(y)                      also gathered(…){dim} and partial(…)
//
// An input without a line is replicated from the input with its name and type. Without claims, all
// outputs are claimed replicated, in order.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pw::proof {

enum class Part : std::uint8_t { replicated, gathered, blocks, partial, cat };
/// Returns the keyword of a part: replicated, gathered, …
[[nodiscard]] std::string_view name(Part part);

struct RelationLine {
  std::string left;
  Part part = Part::replicated;
  std::vector<std::string> right;  ///< more than one only for cat
  std::int64_t dim = 0;
  std::vector<std::int64_t> sizes;  ///< for blocks
  int line = 0;
};

struct Relation {
  std::vector<RelationLine> inputs, claims;
  std::map<std::string, double> numbers;
  std::map<std::string, std::set<std::int64_t>> granted;  ///< op → axes
};

}  // namespace pw::proof

// Which nodes of a graph of torch.fx the rules of a pipeline can see, and how little of the others
// has to be told for the same matches.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dsl/matched_ops.hpp"
#include "python/torch_objects.hpp"

namespace pw::python {

struct SeenNode {
  enum class Telling : std::uint8_t {
    call,    ///< as it is
    unseen,  ///< as what it reads, so that no match leads through it
    source,  ///< as an input, where a call reads it: it reads nothing that rules could make
    folded   ///< not at all: its one reader is unseen, and reads what it reads
  };
  pybind11::handle node;
  Telling telling = Telling::source;
  std::vector<std::uint32_t>
      reads;  ///< of a call: nodes; of others: those that are calls or unseen
};

struct SeenGraph {
  std::vector<SeenNode> nodes;         ///< placeholders and calls, in order
  std::vector<std::uint32_t> outputs;  ///< those that are no sources
};

/// A candidate is a call that could become an op which some rule names. A match lies within
/// candidates that read each other or the same values, and a part of the graph that hangs together
/// so, but lacks ops which every rule requires, is not seen. Nothing where more of the graph
/// matters: it writes, calls what is no op, or has attributes of its own.
std::optional<SeenGraph> find_seen(const pybind11::handle& nodes, TorchObjects& torch,
                                   const ContextPtr& context, const std::vector<MatchedOps>& rules);

}  // namespace pw::python

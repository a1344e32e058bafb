// Selects the nodes of a torch.fx graph that a pipeline's rules can match, and reduces the rest so
// that the matches stay the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dsl/matched_ops.hpp"
#include "python/torch_objects.hpp"

namespace pw::python {

struct SeenNode {
  enum class Role : std::uint8_t {
    call,    ///< unchanged
    unseen,  ///< as its operands, so that no match crosses it
    source,  ///< as an input, if a call reads it: it reads nothing that rules could make
    folded   ///< not at all: its one reader is unseen, and reads what it reads
  };
  pybind11::handle node;
  Role role = Role::source;
  std::vector<std::uint32_t>
      reads;  ///< of a call: nodes; of others: those that are calls or unseen
};

struct SeenGraph {
  std::vector<SeenNode> nodes;         ///< placeholders and calls, in order
  std::vector<std::uint32_t> outputs;  ///< outputs that are not sources
};

/// Finds the visible part of a graph. A candidate is a call that may become an op named by a rule.
/// A match is within candidates connected by edges or common operands; a component that lacks an
/// op which every rule requires is invisible. Returns nothing if the whole graph matters: it
/// writes, calls a non-op, or has its own attributes.
std::optional<SeenGraph> find_seen(const pybind11::handle& nodes, TorchObjects& torch,
                                   const ContextPtr& context, const std::vector<MatchedOps>& rules);

}  // namespace pw::python

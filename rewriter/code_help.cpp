// Exports help_for.
#include "rewriter/code_help.hpp"

#include "rewriter/near_miss_codes.hpp"

namespace pw {

std::string help_for(const Graph& graph, std::string_view code, NodeId at) {
  if (code == "N01" && at.valid() && graph.op_of(at).traits.view)
    return "a view stands in between: `views(…)`, or an optional node, would let it pass";
  const NearMissCode* known = near_miss_code(code);
  return known == nullptr ? std::string() : std::string(known->help);
}

}  // namespace pw

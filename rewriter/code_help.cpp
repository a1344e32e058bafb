// Exports help_for.
#include "rewriter/code_help.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace pw {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kHelp{{
    {"N01", "alternatives of a shared pattern can accept another spelling"},
    {"N02", "`name?` takes an operand that may be none; `xs...` takes the rest"},
    {"N03", "declare the op `commutative` if it is, or write the other order too"},
    {"N04", "bind the attribute, `{name}`, to accept any value, or open the list with `..`"},
    {"N05", "give the types different variables, or match the cast too"},
    {"N06",
     "state the fact (`symbol n in 1..8192 by 8`), or write `assume` for a condition of the "
     "token range"},
    {"N07", "use two names if the two may differ"},
    {"N08", "rebind it on the right (`y, q = …`), or put the node that makes it into `given { }`"},
    {"N09", "the values in it are printed above"},
    {"N10", "run the rule earlier, or declare which rule goes first with `over`"},
    {"N11", "add the rule to a pass of the pipeline that runs when the match is there"},
    {"N12", "raise `fuel`"},
    {"N13", "what is read must not depend on what is replaced"},
    {"N14", "the op writes memory that the match reads or writes"},
    {"N15", "a match has to stay within one piece; split elsewhere, or rewrite first"},
    {"N17", "rewrite what the `ensures` counts in the same strategy, or state less"},
}};

}  // namespace

std::string help_for(const Graph& graph, std::string_view code, NodeId at) {
  if (code == "N01" && at.valid() && graph.op_of(at).traits.view)
    return "a view stands in between: `views(…)`, or an optional node, would let it pass";
  const auto known =
      std::find_if(kHelp.begin(), kHelp.end(), [&](const auto& h) { return h.first == code; });
  return known == kHelp.end() ? std::string() : std::string(known->second);
}

}  // namespace pw

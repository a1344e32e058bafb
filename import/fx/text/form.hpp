// Private to the importer: finds the graphs of a text and the form of each.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/text/ast.hpp"

namespace pw::fx {

struct GraphText {
  enum class Kind : std::uint8_t {
    code,     ///< a class or a function of Python
    listing,  ///< `graph():` and one line for each node
    table,    ///< opcode, name, target, args, kwargs
  } kind = Kind::code;
  std::vector<std::pair<std::size_t, std::size_t>> parts;  ///< its bytes, in order
  std::string title;      ///< the name in a log, "Forward graph 0", or the class
  std::string signature;  ///< of torch.export: the text below the graph
  bool exported = false, logged = false;
  std::size_t statements = 0;  ///< roughly
};

/// Returns every graph of the text, in order. Lines of logs lose their prefixes; other text is
/// omitted.
std::vector<GraphText> find_graphs(std::string_view text);

/// Returns the text with everything but this graph blanked: offsets and lines do not change.
std::string only(std::string_view text, const GraphText& graph);

/// Returns "AOT autograd, functionalised (v2)", "a split module of 5 pieces", …
std::string describe(const GraphText& graph, std::size_t pieces, const Function& function);

}  // namespace pw::fx

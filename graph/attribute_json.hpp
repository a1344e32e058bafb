// Attributes of nodes as graph.json has them.
#pragma once

#include <map>
#include <string>

#include "graph/context.hpp"
#include "graph/json_checks.hpp"

namespace pw {

class AttributeReader {
 public:
  AttributeReader(Context& context, json::Checks& check) : context_(context), check_(check) {}

  /// The member `attributes` of a node's object; none, where it is absent.
  bool read(const json::Tree& node, const json::Pointer& pointer, AttributesId& out);
  /// Those in dims that were read, each with its first place.
  [[nodiscard]] const std::map<std::string, std::string>& symbols() const { return symbols_; }

 private:
  bool attribute(const json::Tree& tree, const json::Pointer& pointer, Attribute& out);
  bool dim(const json::Tree& tree, const json::Pointer& pointer, DimId& out);
  bool real(const json::Tree& tree, const json::Pointer& pointer, double& out);
  bool list(const json::Tree& tree, const json::Pointer& pointer, Attribute& out);
  bool object(const json::Tree& tree, const json::Pointer& pointer, Attribute& out);

  Context& context_;
  json::Checks& check_;
  std::map<std::string, std::string> symbols_;
};

}  // namespace pw

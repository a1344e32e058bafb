// Attributes of nodes as graph.json has them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "graph/context.hpp"
#include "graph/text/json_checks.hpp"

namespace pw {

class AttributeReader {
 public:
  /// The text of the trees must outlive it.
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
  /// Objects that were read before, as they are written: most nodes have the attributes of another.
  struct Read {
    std::string_view text;  // of the file
    AttributesId attributes;
  };
  std::vector<Read> read_;
  HashIndex read_index_;
};

}  // namespace pw

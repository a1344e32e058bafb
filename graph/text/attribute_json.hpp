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
  /// Creates a reader. The text of the trees must outlive it.
  AttributeReader(Context& context, json::Checks& check) : context_(context), check_(check) {}

  /// Reads the member `attributes` of a node's object; no attributes if it is absent.
  bool read(const json::Tree& node, const json::Pointer& pointer, AttributesId& out);
  /// Reads the text of a dim.
  bool dim_text(std::string_view text, const json::Pointer& at, DimId& out);
  /// Returns the symbols of the dims read so far, each with its first place.
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
  /// Objects read before, by their text: most nodes repeat the attributes of another.
  struct Read {
    std::string_view text;  // of the file
    AttributesId attributes;
  };
  std::vector<Read> read_;
  HashIndex read_index_;
};

}  // namespace pw

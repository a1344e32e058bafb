// Attribute values and interned dictionaries of them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/hash_index.hpp"
#include "base/strings.hpp"
#include "graph/dim.hpp"
#include "graph/dtype.hpp"

namespace pw {

struct None {
  friend auto operator<=>(None, None) = default;
};

/// Value of an attribute. A constant dim is always held as int64_t, never as DimId; a list of ints
/// and a list of dims are both vector<DimId>.
using Attribute = std::variant<None, bool, std::int64_t, double, std::string, DType, DimId,
                               std::vector<DimId>, std::vector<double>, std::vector<std::string>>;

enum class AttributeKind : std::uint8_t {
  int_,
  float_,
  bool_,
  str,
  dtype,
  axis,
  ints,
  dims,
  floats,
  strs
};
[[nodiscard]] std::string_view name(AttributeKind kind);

using AttributesId = Id<struct AttributesTag>;
/// List of attributes, sorted by the text of their names.
using AttributeList = std::vector<std::pair<NameId, Attribute>>;

class Attributes {
 public:
  explicit Attributes(Strings& strings, Dims& dims) : strings_(strings), dims_(dims) { intern({}); }
  /// Copies the lists with the same ids, over copies of the other's strings and dims.
  Attributes(const Attributes& other, Strings& strings, Dims& dims)
      : strings_(strings), dims_(dims), lists_(other.lists_), index_(other.index_) {}
  AttributesId intern(AttributeList list);
  [[nodiscard]] static AttributesId empty() { return AttributesId(0); }
  [[nodiscard]] const AttributeList& operator[](AttributesId id) const { return lists_[id]; }
  [[nodiscard]] const Attribute* find(AttributesId id, NameId name) const;
  [[nodiscard]] const Attribute* find(AttributesId id, std::string_view name) const;
  /// Prints a value in the syntax of the language: 1e-06, "text", [1, n], bf16, none.
  [[nodiscard]] std::string print(const Attribute& value) const;
  [[nodiscard]] std::string print(AttributesId id) const;  ///< "{eps = 1e-06}", or "" when empty

  [[nodiscard]] std::size_t size() const { return lists_.size(); }

 private:
  Strings& strings_;
  Dims& dims_;
  IdVec<AttributesId, AttributeList> lists_;
  HashIndex index_;
};

/// Prints a real number in the syntax of the language: the shortest form that reads back equal,
/// always with a point or an exponent.
[[nodiscard]] std::string print_real(double value);
/// Returns a string literal with escapes: "a\"b\n".
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace pw

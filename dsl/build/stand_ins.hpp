// Symbolic instances of a pattern's variables, with its left side built on them, so that types can
// be inferred without a graph. A dtype is the caller's choice, else the first that its guard
// allows, or bf16. A dim is the caller's choice, or a fresh symbol; a sequence is two symbols; a
// list has a few elements. Params have their defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dsl/check/check.hpp"

namespace pw {

using DTypeChoice = std::map<std::string, DType, std::less<>>;
using DimChoice = std::map<std::string, DimId, std::less<>>;

class StandIns {
 public:
  /// Creates instances. `pattern`: the checked one, or its expansion with `length` elements for
  /// each list. Both must outlive this object.
  StandIns(const CheckedRule& of, const Rule& pattern, std::size_t length);

  /// Builds the left side; returns false if something cannot be built, or has no known type.
  bool build_left(const DTypeChoice& dtypes = {}, const DimChoice& dims = {});
  /// Returns true if a guard is false on the instances.
  bool refuted();
  /// Returns true if the types that the pattern states of its results agree in dtype with the
  /// inferred ones.
  bool dtypes_agree();

  const CheckedRule& checked;
  const Rule& rule;
  Context& context;
  Graph graph;
  Env env;
  std::map<std::string, AttributesId, std::less<>> open_attributes;  ///< by op, for `..`

 private:
  void bind_variables();
  void bind_elements(const std::string& text, NameKind kind);
  void bind_lists();
  void bind_param(const std::string& name, const ast::Param& param);
  void bind_choice(const Expr& guard);
  bool add_free(PatternValueId id);
  TypeId type_of(const PatternValue& value);
  bool add_node(const PatternNode& node);
  bool add_attributes(const PatternNode& node, NodeRequest& request);
  bool open(const Op& op, const PatternNode& node, NodeRequest& request);

  std::size_t length_;
  std::vector<ValueId> values_;  // by PatternValueId
};

}  // namespace pw

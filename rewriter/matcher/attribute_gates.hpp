// Attribute gates of the backtracking search.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rewriter/matcher/search_scope.hpp"

namespace pw {

class AttributeGates : SearchPart {
 public:
  enum class Fit : std::uint8_t { no, yes, conflict, later };
  explicit AttributeGates(SearchScope& scope) : SearchPart(scope) {}
  /// Matches all attributes of a node.
  bool match_attributes(PatternNodeId id, NodeId node, SearchState& state);
  /// Matches one attribute that the pattern states. `last`: it can no longer wait for a variable.
  bool match_written(PatternNodeId id, std::size_t index, NodeId node, SearchState& state,
                     bool last);
  /// Binds a name, or compares its value. `expected`: the value that it has otherwise.
  Fit fit_name(const std::string& name, const Attribute& value, SearchState& state,
               std::string* expected);

 private:
  struct Written {  ///< an attribute that the pattern states, at a node
    NodeId node;
    std::string_view attribute;
  };
  [[nodiscard]] std::optional<std::string_view> counterpart(PatternNodeId id,
                                                            const PatternAttribute& wanted,
                                                            NodeId node, const SearchState& state,
                                                            bool last) const;
  [[nodiscard]] bool shares_names(PatternNodeId id,
                                  std::initializer_list<std::string_view> attributes,
                                  const SearchState& state) const;
  [[nodiscard]] std::optional<Attribute> known_value(PatternNodeId id, std::string_view attribute,
                                                     NodeId node, const SearchState& state) const;
  Fit fit(const Written& written, const Expr& expr, const Attribute& value, SearchState& state,
          std::string* expected);
  Fit fit_list(const Expr& expr, const std::vector<DimId>& dims, SearchState& state,
               std::string* expected);
  Fit fit_repetition(const Expr& expr, const std::vector<DimId>& dims, SearchState& state,
                     std::string* expected);
  Fit fit_rest(const Expr& expr, const Attribute& value, SearchState& state, std::string* expected);
};

/// Returns true if every name in the expression is bound, or is a dtype.
bool all_bound(const Expr& expr, const Env& env);
/// Returns the unbound names in it, sorted.
std::set<std::string> unbound_names(const Expr& expr, const Env& env);
/// Returns the number of sequences of the shape whose length is unknown.
std::size_t open_sequences(const TypeExpr& type, const Env& env);
/// Returns a binding as an attribute: dims, dtypes, sequences too. None for values.
std::optional<Attribute> as_attribute(Context& context, const Binding& binding);
/// Returns the number of an int, a real or a boolean.
std::optional<double> as_number(const Attribute& value);
/// Compares attributes; ints, reals and booleans compare as numbers.
bool same_attribute(const Attribute& a, const Attribute& b);

}  // namespace pw

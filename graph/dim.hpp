// Symbolic dimensions: integer polynomials in normal form over symbols, floor quotients and
// remainders. Interned: two equal polynomials have one DimId. Coefficients are checked; an
// operation that would overflow 64 bits returns an invalid id. dim.cpp describes the algorithms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/dims/polynomials.hpp"

namespace pw {

/// Result of a decision in Kleene's three-valued logic, ordered so that `and` is the minimum.
enum class Truth : std::uint8_t { no, unknown, yes };
[[nodiscard]] Truth negate(Truth t);
[[nodiscard]] Truth both(Truth a, Truth b);
[[nodiscard]] Truth either(Truth a, Truth b);

enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge };

/// Known facts about a symbol. `role` is "tokens" for the one symbol that counts the tokens of a
/// step.
struct SymbolFact {
  std::int64_t min = 1;
  std::int64_t max = std::int64_t{1} << 40;
  std::int64_t multiple = 1;  ///< known divisor
  std::string role;
};

struct SizeCondition;  // size_condition.hpp

/// Facts about a graph's symbols, by name; ordered, so that printing is deterministic.
class Facts {
 public:
  std::map<std::string, SymbolFact, std::less<>> symbols;
  /// Comparisons of sizes that a run checks; null if there are none. No decision assumes them.
  std::shared_ptr<const std::vector<SizeCondition>> conditions;
  [[nodiscard]] const SymbolFact* find(std::string_view name) const;
  /// Returns the symbol whose role is "tokens", or an empty string.
  [[nodiscard]] std::string tokens() const;
};

/// Interval of a dim's values, both ends included.
struct Bounds {
  std::optional<std::int64_t> min, max;  ///< absent: unbounded
};

/// A dim written as factor * symbol + rest, with the symbol in neither of them.
struct DimLine {
  DimId factor, rest;
};

/// An equation solved for a quotient, remainder or extreme.
struct DimSolution {
  DimId operation, value;
};

class Dims : Polynomials {
 public:
  explicit Dims(Strings& strings);
  /// Copies the dims with the same ids, over a copy of the other's strings.
  Dims(const Dims& other, Strings& strings);

  // Sums, products and texts of polynomials.
  using Polynomials::add;
  using Polynomials::constant;
  using Polynomials::is_symbol;
  using Polynomials::mul;
  using Polynomials::print;
  using Polynomials::size;
  using Polynomials::sub;
  using Polynomials::symbol;
  using Polynomials::symbols;
  using Polynomials::value;

  /// Returns the floor quotient; exact quotients of polynomials are simplified. Invalid for
  /// division by zero.
  DimId div(DimId a, DimId b);
  /// Returns the remainder of the floor division, with the sign of the divisor. Invalid for
  /// division by zero.
  DimId mod(DimId a, DimId b);
  /// Return the larger and the smaller of two dims, simplified as far as possible without facts.
  DimId max(DimId a, DimId b) { return extreme(Atom::Kind::maximum, a, b); }
  DimId min(DimId a, DimId b) { return extreme(Atom::Kind::minimum, a, b); }

  /// Replaces symbols by dims; symbols missing from the map stay.
  DimId substitute(DimId id, const std::map<std::string, DimId, std::less<>>& with);
  /// Solves dim = 0 for the operation with the longest text of those that occur once, alone, and
  /// with factor 1 or -1. It may still occur inside the value's own operations.
  std::optional<DimSolution> solve(DimId zero);
  /// Replaces operations by dims, except where they are parts of other operations.
  DimId replace(DimId id, const std::map<DimId, DimId>& operations);
  /// Removes each maximum and minimum that the facts decide.
  DimId decided(DimId id, const Facts& facts);
  /// Returns the number for given symbol values; nothing if a symbol is missing, on overflow, or on
  /// division by zero.
  [[nodiscard]] std::optional<std::int64_t> evaluate(
      DimId id, const std::map<std::string, std::int64_t, std::less<>>& with) const;
  /// Writes the dim as a line that rises in a symbol. Nothing if the symbol is absent, is
  /// multiplied by itself, is inside a quotient or remainder, or may have a factor below 1.
  std::optional<DimLine> rising(DimId id, std::string_view symbol, const Facts& facts);
  [[nodiscard]] Bounds bounds(DimId id, const Facts& facts) const;
  /// Returns a number that divides the dim for all values the facts allow; 1 if none is known, 0
  /// for the dim 0.
  [[nodiscard]] std::int64_t known_divisor(DimId id, const Facts& facts) const;
  /// Decides a comparison. yes: holds for all values the facts allow; no: fails for all; unknown
  /// otherwise.
  Truth prove(Compare op, DimId a, DimId b, const Facts& facts);
  /// Decides whether `a` is a multiple of `b` for all values the facts allow.
  Truth divides(DimId b, DimId a, const Facts& facts);

 private:
  /// Replaces each term x % (c · by) by x, which does not change the remainder by `by`. Invalid if
  /// the dim has no such term, or on overflow.
  DimId without_remainders(DimId id, std::int64_t by);
  DimId apply(Atom::Kind kind, DimId a, DimId b);
  DimId extreme(Atom::Kind kind, DimId a, DimId b);
  DimId nested_quotient(DimId a, DimId b);
  std::optional<std::pair<DimId, bool>> exact_quotient(DimId a, DimId b);

  bool extremes_ = false;  ///< true if any dim may hold a maximum or minimum
};

}  // namespace pw

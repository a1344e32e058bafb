// Hash-consed integer polynomials over symbols and atoms: two equal polynomials have one DimId.
// Coefficients and powers are checked; an operation that would overflow returns an invalid id.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_index.hpp"
#include "base/id.hpp"
#include "base/strings.hpp"

namespace pw {

using DimId = Id<struct DimTag>;
using AtomId = Id<struct AtomTag>;

class Polynomials {
 public:
  using Monomial = std::vector<std::pair<AtomId, std::uint32_t>>;  // sorted by atom; powers > 0
  using Polynomial =
      std::vector<std::pair<Monomial, std::int64_t>>;  // sorted by monomial; coefficients != 0
  using Terms = std::map<Monomial, std::int64_t>;
  /// Indivisible factor of a monomial: a symbol, or an operation on two dims that does not
  /// simplify.
  struct Atom {
    enum class Kind : std::uint8_t { symbol, quotient, remainder, maximum, minimum } kind;
    NameId name;
    DimId a, b;
    friend auto operator<=>(const Atom&, const Atom&) = default;
  };

  explicit Polynomials(Strings& strings);
  /// Copies the polynomials with the same ids, over a copy of the other's strings.
  Polynomials(const Polynomials& other, Strings& strings);

  /// Return the dim of a number, and of a symbol by its name.
  DimId constant(std::int64_t value);
  DimId symbol(std::string_view name);
  /// Return the sum, the difference and the product. Invalid on overflow, for an invalid operand,
  /// or beyond the limits of terms and powers.
  DimId add(DimId a, DimId b);
  DimId sub(DimId a, DimId b);
  DimId mul(DimId a, DimId b);
  /// Makes an atom of an operation that does not simplify. Invalid if its text would be too long.
  DimId of_atom(Atom::Kind kind, DimId a, DimId b);
  /// Returns the id of a polynomial in normal form, and stores it on first use.
  DimId intern(Polynomial p);
  /// Removes terms with coefficient 0, and interns the rest. Invalid for too many terms.
  DimId intern_checked(Terms terms);
  /// Adds `times` · `by` · p to the terms. Returns false on overflow.
  static bool add_product(Terms& to, const Polynomial& p, const Monomial& by, std::int64_t times);

  /// References are valid until the next dim is interned.
  [[nodiscard]] const Polynomial& terms(DimId id) const { return dims_[id]; }
  [[nodiscard]] const Atom& atom(AtomId id) const { return atoms_[id]; }
  [[nodiscard]] std::string_view name(const Atom& symbol) const {
    return strings_.text(symbol.name);
  }
  /// Returns the atom that is the whole dim, if any.
  [[nodiscard]] const Atom* only_atom(DimId id) const;
  [[nodiscard]] std::optional<std::int64_t> value(DimId id) const;  ///< when constant
  [[nodiscard]] bool is_symbol(DimId id) const;  ///< exactly one symbol, coefficient 1
  [[nodiscard]] std::size_t size() const { return dims_.size(); }
  /// Prints the dim in its normal form, with the constant last: "2*n + 1".
  [[nodiscard]] std::string print(DimId id) const;
  /// Returns the names of all symbols in the dim, sorted.
  [[nodiscard]] std::vector<std::string> symbols(DimId id) const;

 private:
  AtomId intern_atom(const Atom& a);
  [[nodiscard]] std::string text(const Monomial& m) const;

  Strings& strings_;
  /// All polynomials by id. An id is never reused, so equality of ids is equality of polynomials.
  IdVec<DimId, Polynomial> dims_;
  HashIndex index_;
  IdVec<AtomId, Atom> atoms_;
  std::map<Atom, AtomId> atom_ids_;
};

}  // namespace pw

// Polynomials modulo 2^k. The exact value of an integer and the polynomial that it is of are
// congruent, so a sum or a product modulo 2^k reads the polynomial. Example: for u8, value(a + b) -
// b ⇒ a modulo 2^8, although the exact value of a + b is an atom. The rule requires that the atom's
// own width is at least k: an i8 value is congruent to its polynomial modulo 2^8 only.
#include "proof/reals/residues.hpp"

#include <algorithm>

namespace pw::proof {

/// Returns the number of bits modulo which an atom is simpler than its exact value: 64 for what an
/// i64 is, or for a sum in which one is.
/// 0 means that the atom has no simpler residue.
int Residues::exact_bits(Factor factor) {
  const auto known = exact_bits_.find(factor);
  if (known != exact_bits_.end()) return known->second;
  const Atom& a = field_.atom(factor);
  int bits = 0;
  if (a.kind == Atom::Kind::exact) {
    bits = 8 * static_cast<int>(size_of(*dtype_named(a.name)));
  } else if (a.kind == Atom::Kind::sum) {
    for (const auto& [monomial, number] : Polynomial(field_[a.args[0]].over))
      for (const auto& [inner, power] : monomial) bits = std::max(bits, exact_bits(inner));
  }
  exact_bits_.emplace(factor, bits);
  return bits;
}

/// Returns a polynomial equal modulo 2^bits, without the exact values of integers of that width.
/// Ring operations preserve congruence, so atoms may be replaced one by one.
Fraction Residues::modulo(const Fraction& f, int bits) {
  const auto is_simpler = [&](const auto& part) { return exact_bits(part.first) >= bits; };
  const bool simpler = std::any_of(f.over.begin(), f.over.end(), [&](const auto& summand) {
    return std::any_of(summand.first.begin(), summand.first.end(), is_simpler);
  });
  if (!simpler) return f;
  Fraction out = number(0);
  for (const auto& [monomial, factor] : f.over) {
    Fraction product = number(factor);
    for (const auto& [atom, power] : monomial) {
      const Fraction part = modulo(atom, bits);
      if (power < 0 || power > 64) throw TooLarge{};
      for (int i = 0; i < power; ++i) product = field_.multiply(product, part);
    }
    out = field_.add(out, product);
  }
  return out;
}

/// A sum is congruent to the sum of its body's residue, since the number of summands is finite.
Fraction Residues::modulo(Factor factor, int bits) {
  const Atom& a = field_.atom(factor);
  const bool simpler = exact_bits(factor) >= bits;
  if (simpler && a.kind == Atom::Kind::exact) return modulo(field_[a.args[0]], bits);
  if (simpler) {
    Sums::Indices indices;
    if (const auto body = sums_.opened(a, indices))
      return sums_.sum_over(std::move(indices), modulo(*body, bits));
  }
  return product_of({{factor, 1}});
}

/// Signed residues keep small negative coefficients: -x stays -1 x instead of 255 x. Throws
/// TooLarge for fractions, which are not elements of the ring.
Fraction Residues::wrapped(const Fraction& exact, DType dtype) {
  if (exact.under != number(1).under) throw TooLarge{};
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const Fraction f = modulo(exact, bits);
  if (f.under != number(1).under) throw TooLarge{};
  Fraction out;
  out.under = f.under;
  for (const auto& [monomial, factor] : f.over) {
    if (!factor.is_integer()) throw TooLarge{};
    const std::int64_t residue = factor.signed_residue(bits);
    if (residue != 0) out.over.emplace(monomial, residue);
  }
  return out;
}

}  // namespace pw::proof

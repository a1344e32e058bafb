// Hash-consed terms for single tensor elements over elements of inputs. Two elements with one term
// have the same bits, because every simplification here preserves bits (any NaN equals any other).
// A term is what one element computes. Equality of elements for all sizes and inputs thus becomes
// equality of ids, before any arithmetic law is needed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/dtype.hpp"
#include "proof/function.hpp"
#include "proof/integers/integers.hpp"

namespace pw::proof {

using TermId = Id<struct TermTag>;

/// Immutable and shared: equal terms have one id. Indices are polynomials (Ix), so positions that
/// are equal as polynomials are equal here.
struct Term {
  enum class Kind : std::uint8_t {
    read,    ///< an element of input `name` at `at`; with ranks, the last of `at` is the rank
    number,  ///< `number`
    index,   ///< the integer at[0]
    call,    ///< `function` of args
    reduce,  ///< `function` (sum, mean, amax, amin, prod, dot, ranks) of args over an index of
             ///< `level` < at[0]
    opaque,  ///< result `level` of op `name` at `at`; each of args is a lambda
    lambda,  ///< a whole tensor: args[0] over indices from `level` on, with the extents `at`
  } kind = Kind::number;
  DType dtype = DType::f32;
  Function function = Function::none;
  std::uint32_t level = 0;
  double number = 0;
  std::string name;
  std::vector<TermId> args;
  std::vector<Ix> at;
};

class Terms {
 public:
  /// `any_dtype` disables laws that depend on a dtype, so equal terms are equal for all dtypes that
  /// the placeholders represent.
  explicit Terms(Integers& integers, bool any_dtype = false)
      : integers_(integers), any_dtype_(any_dtype) {}

  TermId make(Term term);
  TermId number(double value, DType dtype);
  TermId index(Ix at, DType dtype);
  TermId call(Function function, DType dtype, std::vector<TermId> args);
  [[nodiscard]] const Term& operator[](TermId id) const { return terms_[id.index]; }
  [[nodiscard]] std::size_t size() const { return terms_.size(); }
  /// Prints a term and abbreviates parts that are too deep or too long to read.
  [[nodiscard]] std::string print(TermId id, int depth = 6) const;
  [[nodiscard]] Integers& integers() const { return integers_; }
  [[nodiscard]] bool any_dtype() const { return any_dtype_; }
  /// Traverses a term: `visit(id, next)` pushes further terms to `next`. Each is visited once.
  template <class Visit>
  void walk(TermId from, const Visit& visit) const {
    std::set<TermId> seen;
    std::vector<TermId> next = {from};
    while (!next.empty()) {
      const TermId id = next.back();
      next.pop_back();
      if (seen.insert(id).second) visit(id, next);
    }
  }
  /// Returns an equivalent term with x + x as 2 x and division by a power of two as a product. Both
  /// are exact: overflow and underflow agree as well.
  TermId with_exact_products(TermId id);
  /// Returns true if an index of this level occurs in the term.
  [[nodiscard]] bool mentions(TermId id, std::uint32_t level) const;
  /// Returns true if a maximum or minimum of zeros with different signs was treated as either zero.
  [[nodiscard]] bool any_zero() const { return any_zero_; }
  /// Returns true if the term consists of inputs, numbers, and pointwise ops only.
  [[nodiscard]] bool pointwise(TermId id) const;

 private:
  friend class TermSimplifier;
  struct Key {
    Term::Kind kind;
    DType dtype;
    Function function;
    std::uint32_t level;
    std::uint64_t bits;
    std::string name;
    std::vector<TermId> args;
    std::vector<Ix> at;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static Key key_of(const Term& term);
  TermId intern(Term term);

  Integers& integers_;
  bool any_dtype_;
  bool any_zero_ = false;
  std::vector<Term> terms_;
  std::map<Key, TermId> ids_;
  std::map<Key, TermId> simplified_;  ///< by the call before simplification
  std::map<TermId, TermId> exact_products_;
  mutable std::map<TermId, bool> pointwise_;  ///< memo of pointwise()
};

/// The largest relative difference of constants that programs round differently.
inline constexpr double kConstantRounding = 0x1p-40;

/// Returns true if `wide` represents every value of `narrow`.
[[nodiscard]] bool holds_all(DType wide, DType narrow);
/// Returns the width of the mantissa including the hidden bit; 0 for non-floats.
[[nodiscard]] int mantissa_bits(DType dtype);
/// Returns the finite limit at which casts to an 8-bit dtype saturate; 0 for others.
[[nodiscard]] double saturation(DType dtype);

}  // namespace pw::proof

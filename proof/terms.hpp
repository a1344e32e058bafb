// What one element of a tensor is, as a term over elements of inputs. Equal terms are one: two
// elements with one term have the same bits, for what is rewritten here keeps every bit (any NaN
// equals any other).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/dtype.hpp"
#include "proof/integers.hpp"

namespace pw::proof {

using TermId = Id<struct TermTag>;

struct Term {
  enum class Kind : std::uint8_t {
    read,    ///< an element of input `name`, at `at`; of ranks, the rank is the last of `at`
    number,  ///< `number`
    index,   ///< the integer at[0]
    call,    ///< pointwise op `name` of args
    reduce,  ///< `name` (sum, mean, amax, amin, prod, dot, ranks) of args over an index of `level`
             ///< below at[0]
    opaque,  ///< result `level` of the op `name`, at `at`, of args, each a lambda
    lambda,  ///< a whole tensor: args[0] over indices of `level` on, with the extents `at`
  } kind = Kind::number;
  DType dtype = DType::f32;
  std::uint32_t level = 0;
  double number = 0;
  std::string name;
  std::vector<TermId> args;
  std::vector<Ix> at;
};

class Terms {
 public:
  /// `any_dtype`: no law is used that asks what a dtype is, so that equal terms are equal whatever
  /// dtypes stand for others.
  explicit Terms(Integers& integers, bool any_dtype = false)
      : integers_(integers), any_dtype_(any_dtype) {}

  TermId make(Term term);
  TermId number(double value, DType dtype);
  TermId index(Ix at, DType dtype);
  TermId call(std::string name, DType dtype, std::vector<TermId> args);
  [[nodiscard]] const Term& operator[](TermId id) const { return terms_[id.index]; }
  [[nodiscard]] std::size_t size() const { return terms_.size(); }
  /// Abbreviates what is nested deeper or longer than a reader can follow.
  [[nodiscard]] std::string print(TermId id, int depth = 6) const;
  [[nodiscard]] Integers& integers() const { return integers_; }
  [[nodiscard]] bool any_dtype() const { return any_dtype_; }
  /// Visits a term and those that the visits lead to, each once: `visit(id, next)` adds the next.
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
  /// Returns a term of the same bits in which x + x is 2 x, and a division by a power of two is a
  /// product: neither is another number where it overflows or underflows.
  TermId with_exact_products(TermId id);
  /// Whether an index of this level is in it.
  [[nodiscard]] bool mentions(TermId id, std::uint32_t level) const;
  /// Whether the larger or smaller of two zeros of unlike signs was taken to be either.
  [[nodiscard]] bool any_zero() const { return any_zero_; }
  /// Whether it is made of inputs, numbers and pointwise ops alone.
  [[nodiscard]] bool pointwise(TermId id) const;

 private:
  struct Key {
    Term::Kind kind;
    DType dtype;
    std::uint32_t level;
    std::uint64_t bits;
    std::string name;
    std::vector<TermId> args;
    std::vector<Ix> at;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static Key key_of(const Term& term);
  TermId intern(Term term);
  std::optional<TermId> of_any_dtype(const Term& term);
  TermId simplified(Term term);
  TermId cast(Term term);
  void order_is_lost(const Term& term);
  void commute(Term& term);
  std::optional<TermId> taken_again(const Term& term);
  [[nodiscard]] bool is_number(TermId id, double value) const;

  Integers& integers_;
  bool any_dtype_;
  bool any_zero_ = false;
  std::vector<Term> terms_;
  std::map<Key, TermId> ids_;
  std::map<Key, TermId> simplified_;  ///< by the call as it was asked for
  std::map<TermId, TermId> exact_products_;
  mutable std::map<TermId, bool> pointwise_;  ///< what is known of it
};

/// Whether every value of `narrow` is one of `wide`.
[[nodiscard]] bool holds_all(DType wide, DType narrow);
/// Of the mantissa, the hidden one included; 0 for what is no float.
[[nodiscard]] int mantissa_bits(DType dtype);
/// The largest finite number that casts to a dtype of 8 bits saturate at; 0 for others.
[[nodiscard]] double saturation(DType dtype);

}  // namespace pw::proof

// Searches for finite inputs on which two terms differ. Candidates are the limits of dtypes,
// magnitudes at which exponentials, products, and casts overflow, zeros of both signs, and the
// smallest numbers.
// A witness refutes; its absence proves nothing. prove.cpp uses the search in two ways: a witness
// of overflow makes the verdict may_overflow, and a witness for integers saves a query to the
// solver.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "proof/machine.hpp"

namespace pw::proof {

struct Witness {
  std::string element;  ///< the inputs and the value of each side
};

class WitnessSearch {
 public:
  explicit WitnessSearch(const Terms& terms) : terms_(terms) {}
  /// Searches for finite inputs where one of two terms that are equal over the reals is infinite or
  /// NaN and the other is not. Also accepts inputs where they differ by more than rounding.
  std::optional<Witness> overflow(TermId a, TermId b);
  /// Searches for finite inputs where rounding changes the outcome of a comparison, so that two
  /// terms that are equal over the reals take different values.
  std::optional<Witness> flip(TermId a, TermId b);
  /// Searches for small inputs where one of two terms is undefined without rounding, such as a
  /// logarithm, and the other is not.
  std::optional<Witness> undefined(TermId a, TermId b);
  /// Searches for finite inputs for which two integers or booleans differ.
  std::optional<Witness> difference(TermId a, TermId b);
  /// Returns true if two pointwise terms agree on every input, with at most 16 input bits in total.
  /// Adds the number of evaluations to `evaluated`.
  bool same_for_all(TermId a, TermId b, std::size_t* evaluated);
  /// Returns true if the last search evaluated both terms at least once.
  [[nodiscard]] bool evaluated() const { return evaluated_; }

 private:
  /// One test of a sample; it stores both sides' values in the sample on success.
  using Parts = bool (WitnessSearch::*)(TermId, TermId, class Sample&) const;
  std::optional<Witness> search(TermId a, TermId b, Parts parts);
  std::optional<Witness> tried(TermId a, TermId b, Parts parts, class Sample& sample);
  bool aim(const struct Target& target, std::size_t number, class Sample& sample) const;
  bool overflows(TermId a, TermId b, Sample& sample) const;
  bool flips(TermId a, TermId b, Sample& sample) const;
  bool differs_in_domain(TermId a, TermId b, class Sample& sample) const;
  bool differs(TermId a, TermId b, Sample& sample) const;

  const Terms& terms_;
  /// A proof by the reals requires that some sample was evaluated: otherwise nothing checked for
  /// overflow.
  mutable bool evaluated_ = false;
};

/// Prints the inputs of an element and both sides.
[[nodiscard]] std::string print_witness(const std::vector<std::pair<std::string, Scalar>>& inputs,
                                        const Scalar& left, const Scalar& right);

}  // namespace pw::proof

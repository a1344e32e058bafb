// Evaluates terms for concrete inputs with the interpreter's scalar functions, each op in its
// declared dtype. A running error analysis in parallel distinguishes rounding from overflow and
// underflow.
// The interpreter defines the meaning of every op, so this is the reference for all rewrites: a law
// that disagrees with it is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proof/terms.hpp"

namespace pw::proof {

/// A number of a dtype: `whole` holds integers and b8, `real` holds floats.
struct Scalar {
  DType dtype = DType::f32;
  double real = 0;
  std::int64_t whole = 0;
  static Scalar of(DType dtype, double value);
  [[nodiscard]] double number() const {
    return is_float(dtype) ? real : static_cast<double>(whole);
  }
  /// Prints NaN, -inf, -0, true, or the shortest digits that identify the number in its dtype.
  [[nodiscard]] std::string print() const;
};
/// Returns true if both have the same bits; any NaN equals any other.
[[nodiscard]] bool same_bits(const Scalar& a, const Scalar& b);
/// Returns true if both agree to 9 digits.
[[nodiscard]] bool alike(const Scalar& a, const Scalar& b);

class Machine {
 public:
  enum class Mode : std::uint8_t {
    strict,   ///< as the interpreter computes
    granted,  ///< nested sums form one sum, whose partial sums stay finite
    reals,    ///< every float is f64
  };
  struct Inputs {
    /// Supplies an element of an input, by read term and position.
    std::function<std::optional<Scalar>(TermId, const std::vector<std::int64_t>&)> read;
    std::function<std::optional<std::int64_t>(const Integers::Unknown&)> size;
    /// Supplies an element of an opaque op's result.
    std::function<std::optional<Scalar>(TermId, const std::vector<std::int64_t>&)> opaque;
  };
  struct Result {
    Scalar value;
    double error = 0;      ///< bound on the error due to rounding
    double underflow = 0;  ///< bound on the error due to underflow
  };

  Machine(const Terms& terms, Inputs inputs, Mode mode)
      : terms_(terms), inputs_(std::move(inputs)), mode_(mode) {}
  /// Evaluates a term. Returns nothing if an op has no scalar function or the term is too large.
  std::optional<Result> run(TermId term);
  /// Evaluates an index for these inputs.
  std::optional<std::int64_t> index(Ix at);
  /// Excludes from the error bounds that rounded operands change the outcome of a comparison.
  void decide_comparisons() { decided_ = true; }

 private:
  // The value of one term and bounds of its distance from the exact value; see machine.cpp.
  struct Number {
    Scalar scalar;
    long double wide = 0;  ///< unrounded value of a sum in `granted`
    double error = 0, underflow = 0;
  };
  std::optional<Number> number(TermId term);
  std::optional<Number> made(TermId id);
  std::optional<Number> call(TermId id);
  std::optional<Number> sum_of_terms(const Term& term);
  std::optional<Number> reduce(const Term& term);
  std::optional<Number> whole_sum(const Term& term, std::int64_t extent);
  std::optional<Number> float_sum(const Term& term, std::int64_t extent);
  std::optional<Number> fold(const Term& term, std::int64_t extent);
  static Number of_whole(std::int64_t value, DType dtype, bool parity,
                         const std::vector<Number>& x);
  std::optional<Number> applied(Function named, DType dtype, const std::vector<Number>& x,
                                const std::vector<bool>& literal);
  [[nodiscard]] bool is_sum(TermId id) const;
  [[nodiscard]] Number rounded_sum(const Number& sum, DType dtype) const;
  std::optional<std::vector<std::int64_t>> places(const Term& term);
  const std::vector<std::uint32_t>& bound_levels(TermId id);

  const Terms& terms_;
  Inputs inputs_;
  Mode mode_;
  bool decided_ = false;
  std::size_t steps_ = 0;
  std::map<std::uint32_t, std::int64_t> bound_;  ///< values of the indices bound by enclosing sums
  std::map<TermId, std::vector<std::uint32_t>> levels_;
  // By term and by the values of the bound indices that it depends on.
  std::map<std::pair<TermId, std::vector<std::int64_t>>, Number> known_;
};

/// Evaluates a pointwise term as the interpreter does, for given values of all its inputs.
std::optional<Scalar> evaluate_strictly(const Terms& terms, TermId term,
                                        const std::map<TermId, Scalar>& inputs);
/// Evaluates a pointwise term in double precision; inputs that are not given are 1.
std::optional<Scalar> evaluate(const Terms& terms, TermId term,
                               const std::map<TermId, Scalar>& inputs);

}  // namespace pw::proof

// Terms evaluated for concrete inputs with the scalar functions of the interpreter, each op in its
// declared dtype. A running error analysis beside the values tells rounding from overflow and
// underflow.
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

/// A number of a dtype: `whole` of integers and b8, `real` of floats.
struct Scalar {
  DType dtype = DType::f32;
  double real = 0;
  std::int64_t whole = 0;
  static Scalar of(DType dtype, double value);
  [[nodiscard]] double number() const {
    return is_float(dtype) ? real : static_cast<double>(whole);
  }
  /// NaN, -inf, -0, true, or with as many digits as distinguish it from all others of its dtype.
  [[nodiscard]] std::string print() const;
};
/// Returns whether they have the same bits; any NaN equals any other.
[[nodiscard]] bool same_bits(const Scalar& a, const Scalar& b);
/// Returns whether they agree to 9 digits.
[[nodiscard]] bool alike(const Scalar& a, const Scalar& b);

class Machine {
 public:
  enum class Mode : std::uint8_t {
    strict,   ///< as the interpreter computes
    granted,  ///< sums of sums are one sum, whose partial sums stay finite
    reals,    ///< every float is an f64
  };
  struct Inputs {
    /// An element of an input: its name, its place, its dtype.
    std::function<std::optional<Scalar>(TermId, const std::vector<std::int64_t>&)> read;
    std::function<std::optional<std::int64_t>(const Integers::Unknown&)> size;
    /// An element of an opaque result.
    std::function<std::optional<Scalar>(TermId, const std::vector<std::int64_t>&)> opaque;
  };
  struct Result {
    Scalar value;
    double error = 0;      ///< bound on what rounding changed
    double underflow = 0;  ///< bound on what the loss of small numbers changed
  };

  Machine(const Terms& terms, Inputs inputs, Mode mode)
      : terms_(terms), inputs_(std::move(inputs)), mode_(mode) {}
  /// Returns nothing where an op has no scalar function or the term is too large.
  std::optional<Result> run(TermId term);
  /// Returns the number of an index under these inputs.
  std::optional<std::int64_t> index(Ix at);

 private:
  struct Number {
    Scalar scalar;
    long double wide = 0;  ///< of a sum in `granted`, not yet rounded
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
  std::optional<Number> applied(const std::string& op, DType dtype, const std::vector<Number>& x,
                                const std::vector<bool>& literal);
  [[nodiscard]] bool is_sum(TermId id) const;
  [[nodiscard]] Number rounded_sum(const Number& sum, DType dtype) const;
  std::optional<std::vector<std::int64_t>> places(const Term& term);
  const std::vector<std::uint32_t>& bound_levels(TermId id);

  const Terms& terms_;
  Inputs inputs_;
  Mode mode_;
  std::size_t steps_ = 0;
  std::map<std::uint32_t, std::int64_t> bound_;  ///< the indices of the sums around
  std::map<TermId, std::vector<std::uint32_t>> levels_;
  std::map<std::pair<TermId, std::vector<std::int64_t>>, Number> known_;
};

/// Returns a pointwise term as the interpreter computes it, for all its inputs.
std::optional<Scalar> evaluate_strictly(const Terms& terms, TermId term,
                                        const std::map<TermId, Scalar>& inputs);
/// Returns a pointwise term in double precision; inputs that are not given are 1.
std::optional<Scalar> evaluate(const Terms& terms, TermId term,
                               const std::map<TermId, Scalar>& inputs);

}  // namespace pw::proof

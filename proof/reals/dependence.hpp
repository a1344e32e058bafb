// Occurrences of indices in fractions.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "proof/reals/field.hpp"

namespace pw::proof {

inline constexpr std::uint32_t kBound = 3000;   ///< first name of a bound index
inline constexpr std::uint32_t kLoose = 10000;  ///< first name of an index not yet bound

class Dependence {
 public:
  /// Returns the normal form of a term whose value an index holds.
  using FormOf = std::function<const Fraction&(TermId)>;
  Dependence(const Field& field, const Integers& integers, FormOf form_of)
      : field_(field), integers_(integers), form_of_(std::move(form_of)) {}

  /// Returns true if the index of a level may occur. A false result proves that the value does not
  /// vary with it.
  bool depends(const Polynomial& p, std::uint32_t level);
  bool depends(const Fraction& f, std::uint32_t level) {
    return depends(f.over, level) || depends(f.under, level);
  }
  bool depends(Factor factor, std::uint32_t level);
  /// Returns true if an integer that a tensor holds at an index depends on a level.
  bool value_depends(Ix index, std::uint32_t level);
  /// Returns the largest bound name in it; 0 if there is none.
  std::uint32_t height(const Fraction& f);

 private:
  bool depends_at_all(Factor factor, std::uint32_t level);
  std::uint32_t height(Factor factor);

  static constexpr std::uint32_t kUnknownHeight = 0xffffffffu;

  const Field& field_;
  const Integers& integers_;
  FormOf form_of_;
  std::map<std::pair<Factor, std::uint32_t>, bool> depends_;
  std::vector<std::uint32_t> heights_;  ///< by factor
};

}  // namespace pw::proof

// Equations between sizes.
#pragma once

#include "proof/sketch/sketch_part.hpp"

namespace pw::proof {

class SizeEquations : SketchPart {
 public:
  explicit SizeEquations(SketchState& state) : SketchPart(state) {}
  /// Requires two sizes to be equal in this case.
  void equal(DimId a, DimId b);
  /// Requires a to be a multiple of b.
  void multiple(DimId a, DimId b);

 private:
  void solve_products(Ix x, Ix y);
  [[nodiscard]] bool impossible(Ix difference);
  [[noreturn]] void learn(const SolvedSizes& sizes);
  [[nodiscard]] DimId dim_of(Ix value);
};

}  // namespace pw::proof

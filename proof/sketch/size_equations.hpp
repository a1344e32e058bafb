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
  void four_numbers(Ix x, Ix y);
  [[noreturn]] void learn(const std::string& name, Ix value);
};

}  // namespace pw::proof

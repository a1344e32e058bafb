// Bindings of size variables and of sequences of axes.
#pragma once

#include <utility>

#include "proof/sketch/size_equations.hpp"

namespace pw::proof {

class AxisSequences : SketchPart {
 public:
  AxisSequences(SketchState& state, SizeEquations& equations)
      : SketchPart(state), equations_(equations) {
    pair();
  }
  /// Binds the free names of a size expression to symbols.
  void bind_names(const Expr& expr, Env& env, bool own);
  void bind(const std::string& name);
  /// Returns a shape that `expand` can produce from this one.
  Shape expanded(const Shape& shape, const std::string& base);
  /// Returns true if a sequence is what `expand` makes of another.
  [[nodiscard]] bool is_expanded(const std::string& name) const;

 private:
  void pair();
  [[nodiscard]] std::size_t axis_variables() const;
  void bind_repeated(const std::string& from);
  void bind_pair(const std::string& from, const std::string& to);

  SizeEquations& equations_;
  std::vector<std::pair<std::string, std::string>> repeated_;  ///< see pair
};

}  // namespace pw::proof

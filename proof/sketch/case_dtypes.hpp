// Dtypes of variables.
#pragma once

#include "proof/sketch/sketch_part.hpp"

namespace pw::proof {

class CaseDTypes : SketchPart {
 public:
  explicit CaseDTypes(SketchState& state) : SketchPart(state) {}
  /// Binds a variable. `own`: it is the rule's, otherwise an op's.
  void choose(const std::string& name, Env& env, bool own);
  /// Returns the value of an attribute that a guard may constrain.
  std::size_t ask_dtype(const std::string& key, const std::string& name);
  /// Returns the number of variables with a generic dtype.
  [[nodiscard]] std::size_t generic() const { return generic_; }

 private:
  [[nodiscard]] std::optional<DType> any_dtype(const std::string& name) const;
  [[nodiscard]] bool guard_allows(const std::string& name, DType dtype) const;

  std::size_t generic_ = 0;
};

}  // namespace pw::proof

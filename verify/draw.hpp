// Random choices for what a pattern leaves open. Dims come from a small pool, and often from dims
// drawn before or their sums, so that shapes that must fit each other do so now and then.
#pragma once

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw {

class Draw {
 public:
  /// `world`: what every attribute of that name is.
  Draw(Context& context, std::uint64_t seed, std::int64_t world = 1)
      : context_(context), random_(seed), world_(world) {}

  /// True once in `n`.
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::size_t below(std::size_t n) { return random_.below(n); }
  DType float_dtype();
  DType dtype();  ///< mostly a float; sometimes fp8, an integer or b8
  DimId dim();
  DimId remember(DimId dim);  ///< so that it is drawn again
  Shape sequence();           ///< for `*b`
  Shape shape();              ///< of a value that nothing says anything about
  /// A value for an attribute, by its kind and the conventions of its name; `operands` are the
  /// node's.
  Attribute attribute(const std::string& name, AttributeKind kind,
                      const std::vector<TypeId>& operands, std::size_t results);
  /// Binds the unbound variables of a type's text.
  void bind_variables(const TypeExpr& type, Env& env, bool floats_only);
  /// Binds what is free in the list of a reshape, so that it has as many elements as the operand;
  /// the last axis is small. Leaves all as it is where that cannot be told.
  void bind_factors(const Expr& list, const Shape& operand, Env& env);

 private:
  DimId extent();  ///< a new one
  std::vector<DimId> factored(const Shape& shape);
  std::vector<DimId> parts(const Shape& shape, std::size_t count);
  void bind_dim(const Expr& expr, Env& env);
  DimId constant(std::int64_t value);

  Context& context_;
  Random random_;
  std::int64_t world_;
  std::vector<DimId> drawn_;
};

}  // namespace pw

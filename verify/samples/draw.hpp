// Random choices for what a pattern leaves open. Dims are drawn from a small pool, and often from
// earlier dims or their sums, so that shapes that must agree often do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw {

/// Requested features of a generated graph, applied as far as the pattern allows.
struct Profile {
  enum class Sizes : std::uint8_t { plain, with_one, with_zero };
  enum class Broadcast : std::uint8_t {
    none,
    first,
    others
  };  ///< which operands have smaller shapes

  DType dtype = DType::f32;  ///< dtype of all unconstrained operands
  std::size_t rank = 2;      ///< rank of unconstrained shapes
  Sizes sizes = Sizes::plain;
  Broadcast broadcast = Broadcast::none;
};
/// Returns a covering design over dtypes, ranks from 0 to 4, sizes, and broadcasting. With `pairs`
/// every two values occur together in some profile; otherwise every single value occurs.
[[nodiscard]] std::vector<Profile> covering_profiles(bool pairs = true);

class Draw {
 public:
  /// `world` is the value of every attribute with that name.
  Draw(Context& context, std::uint64_t seed, std::int64_t world = 1,
       const Profile* profile = nullptr)
      : context_(context), random_(seed), world_(world), profile_(profile) {
    // One graph in three has mixed dtypes; two in three have small sizes, which are fast.
    mixed_ = profile != nullptr && once_in(3);
    small_ = profile != nullptr && !once_in(3);
  }

  /// Returns true with probability 1/n.
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::size_t below(std::size_t n) { return random_.below(n); }
  DType float_dtype();
  DType dtype();  ///< usually a float; sometimes fp8, an integer, or b8
  DimId dim();
  DimId remember(DimId dim);  ///< adds the dim to the pool
  Shape sequence(
      std::size_t other_dims = 0);  ///< draws a `*b` that appears with so many other dims
  Shape shape();                    ///< draws the shape of an unconstrained value
  /// Draws small compatible shapes for the input and the weight of a convolution.
  std::pair<Shape, Shape> convolution_operands();
  /// Draws an attribute's value by its kind and naming conventions; `operands` are those of the
  /// node.
  Attribute attribute(const std::string& name, AttributeKind kind,
                      const std::vector<TypeId>& operands, std::size_t results);
  /// Binds the unbound variables of a type expression.
  void bind_variables(const TypeExpr& type, Env& env, bool floats_only);
  /// Binds the free names in a reshape's list so that the number of elements is preserved; the last
  /// axis is small. Binds nothing if that cannot be determined.
  void bind_factors(const Expr& list, const Shape& operand, Env& env);

 private:
  [[nodiscard]] DType any_dtype();
  DimId extent();           ///< draws a new extent
  DimId profiled_extent();  ///< draws a new extent that follows the profile
  Shape profiled(std::size_t other_dims);
  Shape smaller(const Shape& shape);
  std::vector<DimId> factored(const Shape& shape);
  std::vector<DimId> parts(const Shape& shape, std::size_t count);
  std::vector<DimId> window_steps(const std::string& name, std::size_t axes);
  void bind_dim(const Expr& expr, Env& env, std::size_t other_dims);
  DimId constant(std::int64_t value);

  Context& context_;
  Random random_;
  std::int64_t world_;
  std::vector<DimId> drawn_;
  const Profile* profile_;
  bool mixed_ = false, small_ = false, has_zero_ = false;
  Shape whole_;             ///< source of all profiled shapes
  std::size_t shapes_ = 0;  ///< number of shapes drawn
};

}  // namespace pw

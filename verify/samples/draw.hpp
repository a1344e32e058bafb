// Random choices for what a pattern leaves open. Dims come from a small pool, and often from dims
// drawn before or their sums, so that shapes that must fit each other do so now and then.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "graph/build.hpp"

namespace pw {

/// What a graph is to be like, as far as the pattern lets it.
struct Profile {
  enum class Sizes : std::uint8_t { plain, with_one, with_zero };
  enum class Broadcast : std::uint8_t { none, first, others };  ///< which operands are smaller

  DType dtype = DType::f32;  ///< of every operand that is open
  std::size_t rank = 2;      ///< of open shapes
  Sizes sizes = Sizes::plain;
  Broadcast broadcast = Broadcast::none;
};
/// A covering design: of dtypes, ranks from 0 to 4, sizes and broadcasting, every two values meet
/// in a profile. Without `pairs`, every value is in one.
[[nodiscard]] std::vector<Profile> covering_profiles(bool pairs = true);

class Draw {
 public:
  /// `world`: what every attribute of that name is.
  Draw(Context& context, std::uint64_t seed, std::int64_t world = 1,
       const Profile* profile = nullptr)
      : context_(context), random_(seed), world_(world), profile_(profile) {
    // One graph in three has several dtypes, two in three have the small sizes that cost little.
    mixed_ = profile != nullptr && once_in(3);
    small_ = profile != nullptr && !once_in(3);
  }

  /// True once in `n`.
  bool once_in(std::uint64_t n) { return random_.below(n) == 0; }
  std::size_t below(std::size_t n) { return random_.below(n); }
  DType float_dtype();
  DType dtype();  ///< mostly a float; sometimes fp8, an integer or b8
  DimId dim();
  DimId remember(DimId dim);               ///< so that it is drawn again
  Shape sequence(std::size_t beside = 0);  ///< for `*b`, that stands beside so many dims
  Shape shape();                           ///< of a value that nothing says anything about
  /// Shapes of the input and the weight of a convolution that fit each other; small.
  std::pair<Shape, Shape> convolution_operands();
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
  [[nodiscard]] DType any_dtype();
  DimId extent();           ///< a new one
  DimId profiled_extent();  ///< a new one, as the profile has them
  Shape profiled(std::size_t beside);
  Shape smaller(const Shape& shape);
  std::vector<DimId> factored(const Shape& shape);
  std::vector<DimId> parts(const Shape& shape, std::size_t count);
  std::vector<DimId> window_steps(const std::string& name, std::size_t axes);
  void bind_dim(const Expr& expr, Env& env, std::size_t beside);
  DimId constant(std::int64_t value);

  Context& context_;
  Random random_;
  std::int64_t world_;
  std::vector<DimId> drawn_;
  const Profile* profile_;
  bool mixed_ = false, small_ = false, has_zero_ = false;
  Shape whole_;             ///< what profiled shapes are parts of
  std::size_t shapes_ = 0;  ///< drawn so far
};

}  // namespace pw

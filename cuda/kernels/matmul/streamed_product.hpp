// Matrix products of few rows, whose time is that of reading the weights (streamed_product.cu),
// with the row programs before and after them in the same kernel. The bits are those of the row
// program `sum(x * w)` in f32, followed by one rounding.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cuda/kernels/matmul/tensor_product.hpp"

namespace pw::cuda {

/// Rows of a step up to which such products are faster than others; they are correct for any.
inline constexpr std::int64_t kFewRows = 8;

/// Returns the prelude of these kernels, which is part of their source.
[[nodiscard]] std::string_view streamed_prelude();

/// A row program in the kernel of a product. Its arguments except `through` are arguments of the
/// kernel.
struct JoinedProgram {
  const rows::RowProgram* program = nullptr;
  std::size_t through = 0;  ///< its result that is the product's a, or its operand that is y
  std::vector<std::size_t> arguments;  ///< by argument: the kernel's; unused for `through`
};

/// Rows of results of a program that are also put into pages, as a cache of keys and values is.
struct RowsInPages {
  struct Result {
    std::size_t result = 0, pages = 0;  ///< arguments: of the program, and of the kernel
  };
  std::size_t slots = 0;   ///< argument of the kernel: the place of each row in the pages, or -1
  std::int64_t width = 0;  ///< elements of a row
  std::vector<Result> results;
};

struct StreamedProduct {
  TensorProduct product;          ///< b is transposed
  std::vector<TypeId> arguments;  ///< of the kernel, results last
  std::size_t results = 1;
  std::vector<std::size_t> operands;  ///< of the product: arguments; unused for an a from `before`
  std::size_t result = 0;             ///< an argument; unused if there is an `after`
  std::optional<JoinedProgram> before, after;
  std::optional<RowsInPages> paged;  ///< of `after`

  /// Returns the product alone.
  [[nodiscard]] static StreamedProduct alone(TensorProduct product);
};

/// Products that one kernel runs one after another.
struct StreamedChain {
  std::vector<StreamedProduct> products;  ///< their arguments are the chain's
  std::vector<TypeId> arguments;          ///< of the kernel, results last
  std::size_t results = 1;
  std::vector<char> passed;  ///< by argument: a product writes what a later one reads
  /// An argument of which `state_type` is the type: 0 before and after a launch. One product has
  /// none.
  std::optional<std::size_t> state;

  [[nodiscard]] static TypeId state_type(std::size_t products, Context& context);
};

/// How the threads of a block share the columns of a product.
struct StreamShape {
  int warps = 8, split = 1;  ///< warps of a block, and of a column
  int lanes = 1, each = 1;   ///< of a sum, see the .cu file; groups of 8 of a lane
  int ahead = 1;             ///< groups of 8 that a thread reads ahead
  [[nodiscard]] int teams() const { return warps / split; }
};
[[nodiscard]] StreamShape stream_shape(std::int64_t depth, int warps);

/// Returns the kernel. Nothing if the dtype is not a float of at most 16 bits, if b is not
/// transposed, or if a row program has a form that does not join.
[[nodiscard]] std::optional<Kernel> streamed_product(const StreamedProduct& product,
                                                     std::string_view arch, Context& context);
/// Returns the kernel. Nothing if a product has none, or if their blocks differ in threads or rows.
[[nodiscard]] std::optional<Kernel> streamed_chain(const StreamedChain& chain,
                                                   std::string_view arch, Context& context);

}  // namespace pw::cuda

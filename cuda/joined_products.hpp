// Joins a matrix product of few rows with the fusion groups before and after it, so that a kernel
// computes all of them: a norm before the product, an activation or a rotation after it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/rowprogram/grouping.hpp"
#include "cuda/kernels/matmul/streamed_product.hpp"

namespace pw::cuda {

/// The kernel of a product, and the values of its arguments.
struct JoinedProduct {
  Kernel kernel;
  std::vector<ValueId> reads, writes;
  std::vector<std::size_t> units;  ///< that it runs, ascending; it is launched in place of the last
  /// After its reads it reads the rows' places in pages, and after its writes it writes the pages
  /// of keys and of values.
  bool fills_pages = false;
  StreamedProduct streamed;  ///< what the kernel computes, if it is one product
};

/// Keys and values that the next piece would put into the pages of its layer.
struct CachedValues {
  ValueId k, v;
  std::int64_t width = 0;  ///< elements of a row
};

/// Returns true if a step reads all of a weight: a vector, or the operand of products. Other ops
/// select rows of a matrix, such as those of a table of embeddings.
[[nodiscard]] bool is_read_whole(const Graph& graph, ValueId weight);

/// Makes one kernel of products that follow one another, each of which may read what earlier ones
/// write: see StreamedChain. The state of such a kernel follows its writes, before the pages.
class ProductChainer {
 public:
  ProductChainer(std::function<ValueId(ValueId)> root, std::string arch, Context& context)
      : root_(std::move(root)), arch_(std::move(arch)), context_(context) {}

  /// Adds the next product. Returns the kernel of those before it if it cannot join them.
  std::optional<JoinedProduct> add(JoinedProduct product);
  /// Returns the kernel of the products since the last one, if there are any.
  std::optional<JoinedProduct> end();

 private:
  std::function<ValueId(ValueId)> root_;
  std::string arch_;
  Context& context_;
  /// Returns true if a kernel of all products has this one as well.
  [[nodiscard]] bool joins(const JoinedProduct& product) const;
  /// Returns true if it reads nothing that the products write, or with the dtype that they write.
  [[nodiscard]] bool reads_as_written(const JoinedProduct& product) const;

  std::vector<JoinedProduct> products_;
};

class ProductJoiner {
 public:
  /// `root` returns the value whose bytes a view shows. All must outlive the joiner.
  ProductJoiner(const Graph& graph, const std::vector<rows::RunUnit>& units,
                std::function<ValueId(ValueId)> root);

  /// Returns the kernel of a product that runs alone in `unit`, with as many of its neighbours as
  /// possible. `operands` are its values, b as stored. Nothing if it has no such kernel. A unit is
  /// joined once. A kernel that computes both of `cached` puts them into their pages, if it can.
  std::optional<JoinedProduct> join(std::size_t unit, const TensorProduct& product,
                                    const std::vector<ValueId>& operands, std::string_view arch,
                                    const std::optional<CachedValues>& cached);

 private:
  struct Neighbours {
    std::optional<std::size_t> before, after;
    std::optional<CachedValues> cached = std::nullopt;
  };
  [[nodiscard]] std::optional<std::size_t> before(std::size_t unit, ValueId a) const;
  [[nodiscard]] std::optional<std::size_t> after(std::size_t unit, ValueId y) const;
  [[nodiscard]] bool may_move(std::size_t before, ValueId a, std::size_t to) const;
  [[nodiscard]] std::optional<std::size_t> place(const std::vector<ValueId>& values,
                                                 ValueId v) const;
  [[nodiscard]] bool computes(std::size_t unit, const TensorProduct& product,
                              const CachedValues& cached) const;
  [[nodiscard]] static std::vector<std::size_t> units_of(std::size_t unit, const Neighbours& with);
  void put_in_pages(const Neighbours& with, StreamedProduct& streamed,
                    std::vector<TypeId>& results) const;
  [[nodiscard]] std::optional<JoinedProduct> joined(std::size_t unit, const TensorProduct& product,
                                                    const std::vector<ValueId>& operands,
                                                    const Neighbours& with,
                                                    std::string_view arch) const;

  const Graph& graph_;
  const std::vector<rows::RunUnit>& units_;
  std::function<ValueId(ValueId)> root_;
  std::vector<std::size_t> unit_of_;               ///< by node
  std::vector<std::vector<std::size_t>> readers_;  ///< by root value: units, ascending
  std::vector<char> returned_;                     ///< by root value
  std::vector<char> taken_;                        ///< by unit
};

}  // namespace pw::cuda

// Internal to cuda/: a row program as what follows a matrix product. Its loops become turns, each
// of which needs a few columns of the product and then executes the innermost statements. So the
// product's result needs no memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

/// A nest of loops with fixed extents, without reductions.
struct ColumnNest {
  std::vector<rows::VarId> vars;      ///< outermost first
  std::vector<std::int64_t> extents;  ///< of `vars`
  /// The statements of a turn, in order: those of the innermost loop, and before them those around
  /// it.
  std::vector<const rows::Statement*> statements;
  std::vector<rows::IndexId> columns;  ///< addresses in the product's result, each once
  std::int64_t turns = 1;
};

/// Returns the nests of a program that reads the result of a product, f32 or narrower of `columns`
/// columns, as `argument`. Nothing if the program has another form, or would compute a column more
/// than once. The program must outlive the nests.
[[nodiscard]] std::optional<std::vector<ColumnNest>> column_nests(const rows::RowProgram& program,
                                                                  std::size_t argument,
                                                                  std::int64_t columns);

/// Returns nests with equally many columns per turn, such that every nest is in one group.
[[nodiscard]] std::vector<std::vector<ColumnNest>> grouped(std::vector<ColumnNest> nests);

/// A result whose rows are stored twice: in its own memory, and as rows of pages. A table gives the
/// place of each row in the pages, or -1.
struct PagedResult {
  std::size_t argument = 0;
  std::int64_t width = 0;  ///< elements of a row
  std::string pages;       ///< name of the pages in the text
};

/// Returns true if each store to the argument is proved to be in its row of `width` elements.
[[nodiscard]] bool stores_rows(const rows::RowProgram& program,
                               const std::vector<ColumnNest>& nests, std::size_t argument,
                               std::int64_t width);

/// Returns the body of a function that maps `turn` and `part` to a column of the product.
[[nodiscard]] std::string columns_text(const rows::RowProgram& program,
                                       const std::vector<ColumnNest>& nests);
/// Returns the statements of `turn` in `row`, where y0, y1 … are the stored columns of the product,
/// and `slot` is the place of the row in the pages of `paged`.
[[nodiscard]] std::string turns_text(const rows::RowProgram& program, std::size_t argument,
                                     const std::vector<ColumnNest>& nests,
                                     const std::vector<PagedResult>& paged = {});

}  // namespace pw::cuda

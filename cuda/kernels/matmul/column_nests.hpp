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

/// Returns the body of a function that maps `turn` and `part` to a column of the product.
[[nodiscard]] std::string columns_text(const rows::RowProgram& program,
                                       const std::vector<ColumnNest>& nests);
/// Returns the statements of `turn` in `row`, where y0, y1 … are the stored columns of the product.
[[nodiscard]] std::string turns_text(const rows::RowProgram& program, std::size_t argument,
                                     const std::vector<ColumnNest>& nests);

}  // namespace pw::cuda

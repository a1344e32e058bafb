// Internal to cpu/: operands of which neighbouring rows read neighbours, while a row reads across
// memory, such as a transposed one. Rows run in tiles, and a tile reads such operands from panels:
// copies of the elements that it needs, in the order in which its rows need them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/element_text.hpp"

namespace pw::cpu {

struct Turned {
  struct Panel {
    std::size_t argument = 0;
    rows::IndexId first;     ///< its first element, in the variables below
    std::int64_t step = 0;   ///< from one column to the next, in the operand
    std::int64_t width = 0;  ///< columns
  };
  struct Load {
    std::size_t panel = 0;
    rows::VarId column;
  };
  rows::Indices indices;  ///< the program's, and those of the panels
  /// A row is (group · along + neighbour) · inside + place. `along` is 0 if there are no groups.
  rows::VarId group, neighbour, place;
  std::int64_t along = 0, inside = 1;
  std::int64_t rows = 0;  ///< of a tile
  /// The loop of which a tile has `columns` only; null: it has the whole rows.
  const rows::Statement* loop = nullptr;
  std::int64_t columns = 0;
  std::vector<Panel> panels;
  std::map<rows::SlotId, Load> loads;
};

/// Returns the operands that rows with this body read from panels; nothing if there are none.
[[nodiscard]] std::optional<Turned> turned_operands(const rows::RowProgram& program,
                                                    const rows::Block& body);
/// Returns the element of the panel that a load reads in the current row.
[[nodiscard]] std::string element_of(const Turned& turned, rows::SlotId load);
/// Emits the loops over rows from `begin` to below `end`; `row` emits the body of a row, given the
/// bounds of the columns of `turned.loop`.
void emit_tiles(
    const rows::RowProgram& program, const Turned& turned, CppText& text,
    const std::function<void(int depth, const std::string& from, const std::string& to)>& row);

}  // namespace pw::cpu

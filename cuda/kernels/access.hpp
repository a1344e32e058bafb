// Internal to cuda/: vectorisation of memory accesses. A thread processes 8 columns of a loop at a
// time; an access whose 8 elements lie in one or two aligned groups becomes wide reads or writes of
// those groups. Invariant: a group is read once in a pass, whatever the number of its uses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

inline constexpr std::int64_t kColumns =
    8;  ///< columns of a thread at a time, which a lane adds in sequence

/// An aligned group of `width` elements of an argument, beginning at `base`.
struct GroupRead {
  std::size_t argument = 0;
  std::int64_t width = kColumns;
  rows::IndexId base;
  int words = 0;  ///< words of 4 bytes
  friend bool operator==(const GroupRead&, const GroupRead&) = default;
};

/// The form of one load or store.
struct Access {
  enum class Kind : std::uint8_t {
    element,  ///< one by one; `why` holds the reason
    same,     ///< all columns read the same element
    groups,
  };
  Kind kind = Kind::element;
  std::vector<std::size_t> groups;  ///< group of column e: index into ColumnLoop::groups
  std::vector<int> places;          ///< index within the group
  std::string why;
};

/// A loop (or reduction) over columns, eight columns a pass, whose passes contain neither loops nor
/// reductions.
struct ColumnLoop {
  rows::VarId var, chunk;  ///< var = 8 chunk + e
  std::int64_t columns = 0;
  std::vector<GroupRead> groups;
  /// Loads and stores, including those in branches.
  std::map<const rows::Statement*, Access> accesses;
};

/// Chooses accesses. `indices` are a copy of the program's, in which chunk variables are created.
/// Variables of one extent are shared, so that equal addresses are equal expressions.
class AccessPlan {
 public:
  explicit AccessPlan(const rows::RowProgram& program)
      : program_(program), indices_(program.indices) {}
  ColumnLoop plan(rows::VarId var, const rows::Block& body);
  /// Returns a group that a loop of `columns` inside the loop of `outer` reads, expressed for one
  /// loop over all `all` columns. Nothing if the columns are not adjacent there.
  [[nodiscard]] std::optional<GroupRead> flat(const GroupRead& group, const ColumnLoop& inner,
                                              rows::VarId outer, std::int64_t all);
  /// Returns the distance in groups from a group of a loop to that of another loop with an equal
  /// pass number. Nothing if it depends on the pass.
  [[nodiscard]] std::optional<std::int64_t> distance(const GroupRead& group, const ColumnLoop& loop,
                                                     const GroupRead& from,
                                                     const ColumnLoop& other);
  /// Returns true if two neighbouring groups, the first with an even index, form an aligned group
  /// of twice the width.
  [[nodiscard]] bool pairs(const GroupRead& group, const ColumnLoop& loop);
  [[nodiscard]] const rows::Indices& indices() const { return indices_; }

 private:
  struct Places {
    std::vector<std::map<rows::IndexId, std::int64_t>> factors;
    std::vector<std::int64_t> constants;
  };
  rows::VarId chunk_of(std::int64_t columns);
  void visit(ColumnLoop& loop, const rows::Block& block, bool always);
  Access load(ColumnLoop& loop, const rows::Statement& s, bool always);
  Access store(ColumnLoop& loop, const rows::Statement& s);
  /// Computes the place of each of the 8 columns as factors of atoms and a constant. Returns false
  /// if it depends on a value read in the loop, or if columns differ by more than a constant.
  bool places(const ColumnLoop& loop, rows::IndexId index, Places& out);
  [[nodiscard]] bool is_static(const ColumnLoop& loop, const rows::Statement& branch);
  [[nodiscard]] bool reads_inside(rows::IndexId index) const;
  [[nodiscard]] std::string unsuited(const ColumnLoop& loop, std::size_t argument) const;

  const rows::RowProgram& program_;
  rows::Indices indices_;
  std::map<std::int64_t, rows::VarId> chunks_;
  std::vector<rows::SlotId> inside_;  ///< slots of the current loop
};

/// Returns true if a block contains loops or reductions, including in branches.
[[nodiscard]] bool holds_loops(const rows::Block& block);

}  // namespace pw::cuda

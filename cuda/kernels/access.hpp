// Internal to cuda/: vectorisation of memory accesses. A thread takes 8 columns of a loop at a
// time; an access whose 8 elements lie in one or two aligned groups becomes wide reads or writes of
// those groups.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/rowprogram/row_program.hpp"

namespace pw::cuda {

inline constexpr std::int64_t kColumns =
    8;  ///< that a thread takes at a time, and a lane adds in a row

/// An aligned group of `width` elements of an argument, beginning at `base`.
struct GroupRead {
  std::size_t argument = 0;
  std::int64_t width = kColumns;
  rows::IndexId base;
  int words = 0;  ///< of 4 bytes
  friend bool operator==(const GroupRead&, const GroupRead&) = default;
};

/// How one load or store is done.
struct Access {
  enum class Kind : std::uint8_t {
    element,  ///< one by one; `why` says why
    same,     ///< all columns read the same element
    groups,
  };
  Kind kind = Kind::element;
  std::vector<std::size_t>
      groups;               ///< the group that column e is in: index into ColumnLoop::groups
  std::vector<int> places;  ///< and its place there
  std::string why;
};

/// A loop (or reduction) over columns whose passes hold neither loops nor reductions, eight columns
/// a pass.
struct ColumnLoop {
  rows::VarId var, chunk;  ///< var = 8 chunk + e
  std::int64_t columns = 0;
  std::vector<GroupRead> groups;
  std::map<const rows::Statement*, Access> accesses;  ///< of loads and stores, in branches too
};

/// `indices` are a copy of the program's, in which chunk variables are made; those of one extent
/// are one, so that equal addresses are equal expressions.
class AccessPlan {
 public:
  explicit AccessPlan(const rows::RowProgram& program)
      : program_(program), indices_(program.indices) {}
  ColumnLoop plan(rows::VarId var, const rows::Block& body);
  /// A group that a loop of `columns` within the loop of `outer` reads, as a loop over both, of
  /// `all` columns, reads it: nothing where they are not neighbours in that.
  [[nodiscard]] std::optional<GroupRead> flat(const GroupRead& group, const ColumnLoop& inner,
                                              rows::VarId outer, std::int64_t all);
  /// How many groups a group of a loop lies behind that of another loop with an equal pass number.
  /// Nothing where that depends on the pass.
  [[nodiscard]] std::optional<std::int64_t> distance(const GroupRead& group, const ColumnLoop& loop,
                                                     const GroupRead& from,
                                                     const ColumnLoop& other);
  /// Whether two neighbouring groups, beginning with an even one, are an aligned whole of twice
  /// the width.
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
  /// The place of each of the 8 columns: factors of atoms, and a constant. False where it depends
  /// on what is read in the loop, or the columns differ in more than a constant.
  bool places(const ColumnLoop& loop, rows::IndexId index, Places& out);
  [[nodiscard]] bool is_static(const ColumnLoop& loop, const rows::Statement& branch);
  [[nodiscard]] bool reads_inside(rows::IndexId index) const;
  [[nodiscard]] std::string unsuited(const ColumnLoop& loop, std::size_t argument) const;

  const rows::RowProgram& program_;
  rows::Indices indices_;
  std::map<std::int64_t, rows::VarId> chunks_;
  std::vector<rows::SlotId> inside_;  ///< slots of the loop at hand
};

/// Whether a block holds loops or reductions, in branches too.
[[nodiscard]] bool holds_loops(const rows::Block& block);

}  // namespace pw::cuda

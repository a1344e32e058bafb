// Input contents for checks: both signs, the whole range of each dtype, and its special values.
// Input names have no influence. Only requirements of ops are respected, such as an index within
// its table.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/weights.hpp"

namespace pw {

enum class Contents : std::uint8_t {
  ordinary,  ///< approximately normal, both signs; in the last part also literals and ties
  wide,      ///< every power of two of the dtype, both signs, zeros
  edges,     ///< largest, smallest, subnormals, ties, −0
  infinite,  ///< ordinary, with infinities
  nan,       ///< ordinary, with NaN
};
inline constexpr Contents kContents[] = {Contents::ordinary, Contents::wide, Contents::edges,
                                         Contents::infinite, Contents::nan};
/// Returns a description for messages: "ordinary numbers".
[[nodiscard]] std::string_view name(Contents contents);

/// Generates contents for the inputs of one graph at given sizes. `groups` are the step's groups in
/// addition to those of the graph's ops; ordinary contents include `literals` and their neighbours.
/// The graph and the symbols must outlive it.
class SampleInputs {
 public:
  SampleInputs(const Graph& graph, const Symbols& symbols, const RankGroups& groups = {},
               std::vector<double> literals = {});
  /// Fills the inputs of every rank. Successive rounds continue the sequence of special values, so
  /// even inputs of one element receive all of them.
  Status give(std::span<Weights> ranks, Contents contents, std::uint64_t round) const;
  /// Returns the number of rounds after which every input has held every special value of its
  /// dtype.
  [[nodiscard]] std::uint64_t rounds(Contents contents) const;

 private:
  [[nodiscard]] bool looks_up(ValueId input) const;

  const Graph& graph_;
  const Symbols& symbols_;
  RankGroups groups_;
  std::vector<double> literals_;
  std::map<std::string, std::int64_t, std::less<>> rows_;  ///< of the tables that inputs index
};

/// Returns the numbers of a graph's constants, sorted.
[[nodiscard]] std::vector<double> literals_of(const Graph& graph);

/// Fills every input of the graph on each rank. Inputs declared replicated over a group are equal
/// on its ranks, as are indices; all others differ. Fails for a symbol without a value.
Status give_contents(std::span<Weights> ranks, const Graph& graph, const Symbols& symbols,
                     Contents contents, std::uint64_t round);

}  // namespace pw

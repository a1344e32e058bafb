// Contents for a check: both signs, the whole range of each dtype, and its special values. What an
// input is called says nothing; only what an op needs is kept, an index below its table.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "exec/weights.hpp"

namespace pw {

enum class Contents : std::uint8_t {
  ordinary,  ///< about normal, both signs
  wide,      ///< every power of two that the dtype has, both signs, zeros
  edges,     ///< the largest, the smallest, subnormals, ties, −0
  infinite,  ///< ordinary, with infinities
  nan,       ///< ordinary, with NaN
};
inline constexpr Contents kContents[] = {Contents::ordinary, Contents::wide, Contents::edges,
                                         Contents::infinite, Contents::nan};
/// "ordinary numbers", for messages.
[[nodiscard]] std::string_view name(Contents contents);

/// Contents for the inputs of one graph at given sizes. `groups` are those of the step, beyond what
/// the graph's ops say. The graph and the symbols must outlive it.
class SampleInputs {
 public:
  SampleInputs(const Graph& graph, const Symbols& symbols, const RankGroups& groups = {});
  /// Fills the inputs of every rank. Of consecutive rounds, each goes on in the order of special
  /// values where the last one ended, so that inputs of one element have all of them in turn.
  Status give(std::span<Weights> ranks, Contents contents, std::uint64_t round) const;
  /// The rounds in which every input holds every special value of its dtype.
  [[nodiscard]] std::uint64_t rounds(Contents contents) const;

 private:
  [[nodiscard]] bool looks_up(ValueId input) const;

  const Graph& graph_;
  const Symbols& symbols_;
  RankGroups groups_;
  std::map<std::string, std::int64_t, std::less<>> rows_;  ///< of the tables that inputs look up
};

/// Gives every input of the graph its contents, on each rank. Inputs declared to be replicated over
/// a group hold the same on its ranks, and so do indices; all others differ. Fails for a symbol
/// without a value.
Status give_contents(std::span<Weights> ranks, const Graph& graph, const Symbols& symbols,
                     Contents contents, std::uint64_t round);

}  // namespace pw

// Private to the importer: facts about symbols that a dump implies and does not state.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "import/fx/emit/effects.hpp"
#include "import/fx/emit/symbols.hpp"
#include "import/fx/emit/values.hpp"

namespace pw::fx {

/// Narrows the ranges of symbols. Invariant: each assumption is in the graph's facts and in the
/// report, and a run refuses other sizes.
class Assumptions {
 public:
  Assumptions(Graph& graph, Symbols& symbols, Effects& effects, FxReport& report)
      : context_(graph.context()),
        graph_(graph),
        symbols_(symbols),
        effects_(effects),
        report_(report) {}

  /// Narrows the range of the symbol in `size`, and notes the reason; returns false if no range of
  /// a symbol expresses it.
  bool assume(Compare op, DimId size, std::int64_t bound, std::string_view why);
  /// Adds an extent and the bound of a slice of it whose order depends on the run.
  void add_threshold(DimId extent, std::int64_t bound) { thresholds_.emplace_back(extent, bound); }
  /// Assumes an order of thresholds under which the value has the stated type, and sets that type.
  bool assume_stated(ValueId value, const Wanted& wanted);

 private:
  std::optional<Shape> settled(const Type& have, const Type& stated, const Facts& facts);

  Context& context_;
  Graph& graph_;
  Symbols& symbols_;
  Effects& effects_;
  FxReport& report_;
  std::vector<std::pair<DimId, std::int64_t>> thresholds_;
};

}  // namespace pw::fx

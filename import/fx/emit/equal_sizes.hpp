// Private to the importer: sizes that guards declare equal.
#pragma once

#include <map>

#include "import/fx/emit/symbols.hpp"
#include "import/fx/emit/values.hpp"

namespace pw::fx {

/// Classes of equal sizes. Sizes are equal if guards say so: a dump comes from a program that runs
/// only where its guards hold. Invariant: each pair leads to a better known size.
class EqualSizes {
 public:
  EqualSizes(Graph& graph, FxReport& report)
      : context_(graph.context()), graph_(graph), report_(report) {}

  /// Reads the pairs and guards of the options.
  void read(const FxOptions& options, Symbols& symbols);
  [[nodiscard]] bool empty() const { return pairs_.empty() && solved_.empty(); }
  /// Returns the best known size that is equal by the ranges, by equations, by a pair, or by the
  /// difference of one.
  [[nodiscard]] DimId representative(DimId size);
  /// Returns true for two known types of equal dtypes and sizes.
  [[nodiscard]] bool same_types(TypeId a, TypeId b);

 private:
  void add(DimId a, DimId b);
  bool solve(DimId a, DimId b);
  /// Returns the size without operations that equations determine.
  [[nodiscard]] DimId replaced(DimId size);
  bool narrow(DimId a, DimId b, std::int64_t most);
  [[nodiscard]] bool same_size(DimId a, DimId b);

  Context& context_;
  Graph& graph_;
  FxReport& report_;
  std::map<DimId, DimId> pairs_;   ///< a size, and one that is better known
  std::map<DimId, DimId> solved_;  ///< operations and their values, which contain none of them
};

}  // namespace pw::fx

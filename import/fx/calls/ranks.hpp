// Private to the importer: groups of ranks that the collectives of a graph name.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "import/fx/emit/emitter.hpp"
#include "import/fx/ops.hpp"
#include "import/fx/text/ast.hpp"

namespace pw::fx {

/// Groups of ranks, with their sizes. Only the graph's other collectives determine the group of a
/// call that shares rows. Collected by the first such call.
class RankGroups {
 public:
  /// Creates a set; all arguments must outlive it.
  RankGroups(const Function& function, Table& table, Context& context)
      : function_(function), table_(table), context_(context) {}
  /// Converts a call that shares rows among the ranks of the only group.
  Applied shard_rows(const KnownCall& call);

 private:
  void find(const Expr& e);

  const Function& function_;
  Table& table_;
  Context& context_;
  std::set<std::pair<std::string, std::int64_t>> groups_;
};

}  // namespace pw::fx

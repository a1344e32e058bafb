// Internal to rowprogram/: the loops over results, whose bodies store the elements.
#pragma once

#include <cstddef>
#include <vector>

#include "codegen/rowprogram/element_lowering.hpp"

namespace pw::rows {

/// Results of one shape, which share their loops.
struct ResultGroup {
  Shape shape;
  std::vector<std::size_t> outputs;
  std::vector<Cut> cuts;  ///< cut of each dim
};
[[nodiscard]] std::vector<ResultGroup> group_results(const Graph& graph);

class ResultLoops {
 public:
  ResultLoops(const Graph& graph, RowProgram& program, Addresses& addresses, Scopes& scopes,
              LoopCuts& cuts, ElementLowering& elements)
      : graph_(graph),
        program_(program),
        addresses_(addresses),
        scopes_(scopes),
        cuts_(cuts),
        elements_(elements) {}

  /// Stores all results of a row in the innermost scope.
  void store(std::vector<ResultGroup>& groups, const Position& row);

 private:
  void store(ResultGroup& group, Position& at);
  template <class Body>
  void looped(Cut& cut, IndexId extent, IndexId offset, const Body& body);
  template <class Body>
  void in_loop(Cut* cut, IndexId extent, const Body& body);
  [[nodiscard]] std::unique_ptr<Scope> reopened(IndexId extent, Statement& loop);

  const Graph& graph_;
  RowProgram& program_;
  Addresses& addresses_;
  Scopes& scopes_;
  LoopCuts& cuts_;
  ElementLowering& elements_;
};

}  // namespace pw::rows

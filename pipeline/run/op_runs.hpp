// Which ops a backend runs, and what of a graph it does not.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engines/step_engine.hpp"
#include "graph/graph.hpp"

namespace pw {

/// Those with a kernel, and those whose bodies are made of such.
class OpRuns {
 public:
  /// `kernel`: whether the backend has one for an op. The context outlives this.
  OpRuns(const Context& context, std::function<bool(const Op&)> kernel);
  bool op(OpId id);

 private:
  bool named(std::string_view name);
  bool all(const Expr& e);

  const Context& context_;
  std::function<bool(const Op&)> kernel_;
  std::map<OpId, bool> known_;
};

/// PW1201 with each op that has neither kernel, body nor host function, and how many nodes have it:
/// all of them, before anything is built.
Status check_kernels(const Graph& graph, const StepEngineKind& engine);

}  // namespace pw

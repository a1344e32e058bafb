// Determines which ops a backend runs, and reports the others in a graph.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engines/step_engine.hpp"
#include "graph/graph.hpp"

namespace pw {

/// The ops with a kernel, and those whose bodies consist of such ops.
class OpRuns {
 public:
  /// `kernel` returns true if the backend has a kernel for an op. The context must outlive this.
  OpRuns(const Context& context, std::function<bool(const Op&)> kernel);
  bool op(OpId id);

 private:
  bool named(std::string_view name);
  bool all(const Expr& e);

  const Context& context_;
  std::function<bool(const Op&)> kernel_;
  std::map<OpId, bool> known_;
};

/// Fails with PW1201 and every op that has neither kernel, body, nor host function, with node
/// counts, before anything is built.
Status check_kernels(const Graph& graph, const StepEngineKind& engine);

}  // namespace pw

// For tests of the CUDA runtime: small Llama models, cut, planned, and ready to run on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/program.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/runtime.hpp"
#include "splitter/plan.hpp"
#include "splitter/splitter.hpp"
#include "tensor/kv_cache.hpp"

namespace pw::test {

struct ModelCase {
  std::string quant = "none", pipeline;
  std::int64_t layers = 2, experts = 0;
  bool fold = true;
  std::vector<std::int64_t> sizes{1, 2, 4, 8};
  std::string mode = "piecewise";
  std::int64_t max_requests = 256;
  std::string lm_head = "none";
  /// Llama 3 with wider layers, whose weights are stored with a row for each result.
  bool streamed = false;
};

/// Returns the model, captured in another mode.
ModelCase whole(ModelCase model, const std::string& mode = "full");

/// A graph, rewritten, cut, and planned.
struct PlannedModel {
  explicit PlannedModel(const ModelCase& model);
  PlannedModel(const PlannedModel&) = delete;

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
};

cuda::RuntimeOptions strict_options(std::int64_t cached_tokens = 0);

/// A runtime that has captured its graphs, and what it needs.
struct ReadyRuntime {
  explicit ReadyRuntime(const ModelCase& model, const cuda::HostDriverOptions& how = {},
                        const cuda::RuntimeOptions& options = strict_options());
  /// Runs a step with all padding poisoned: by replayed graphs, or, without `pad`, launch by
  /// launch.
  Result<StepResult> run(Step step, bool pad = true);
  /// Runs the whole graph at its own size on the CPU, with the interpreter's bits.
  std::vector<Tensor> whole(Step step);

  PlannedModel planned;
  cuda::HostDriver driver;
  Weights weights;
  KvCache replayed, launched, unsplit;  ///< what attention remembers, one per way to run
  std::unique_ptr<cuda::Runtime> runtime;
};

}  // namespace pw::test

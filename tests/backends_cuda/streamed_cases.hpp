// For tests of products that stream their weights: pieces with such products, and their sums in the
// order of row programs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "cuda/device/host_driver.hpp"
#include "cuda/runtime.hpp"
#include "exec/weights.hpp"
#include "splitter/plan.hpp"
#include "tests/backends_cuda/kernel_run.hpp"

namespace pw::test {

/// Returns the text of x · wᵀ in f32 as a reduction.
std::string sum_of(const std::string& x, const std::string& w, std::int64_t depth,
                   std::int64_t columns);
/// Returns the text of a product in bf16: its call, or its sum in the order of row programs.
std::string product_of(bool as_sum, const std::string& x, const std::string& w, std::int64_t depth,
                       std::int64_t columns);

/// The values of tensors, whatever their dtypes: the interpreter's results are f32.
std::vector<std::vector<double>> values_of_all(const std::vector<Tensor>& tensors);
std::vector<std::vector<double>> interpreted(const Graph& graph, const std::vector<Tensor>& inputs,
                                             const Symbols& symbols);

/// A driver for memory and records: it compiles and runs no kernel.
struct RecordingDriver final : cuda::HostDriver {
  Status load(std::span<const cuda::Kernel>) override { return {}; }
};

/// One piece, planned for up to 24 rows, with products that stream their weights.
struct StreamedPiece {
  explicit StreamedPiece(const std::string& text, std::unique_ptr<cuda::HostDriver> with = nullptr);
  StreamedPiece(const StreamedPiece&) = delete;
  static PlanOptions options();
  std::size_t nodes(std::int64_t tokens) const;
  std::vector<std::vector<double>> run(std::int64_t tokens, bool pad);
  /// The inputs of a step of another text of the graph.
  std::vector<Tensor> inputs(const Graph& other, std::int64_t tokens);
  /// The results of another text in the interpreter, with the same inputs.
  std::vector<std::vector<double>> wanted(const std::string& text, std::int64_t tokens);

  ContextPtr context;
  Graph graph;
  StitchedGraph pieces;
  Plan plan;
  Weights weights;
  std::unique_ptr<cuda::HostDriver> driver;
  std::unique_ptr<cuda::Runtime> runtime;
};

/// The ops of a decoder layer between two attentions.
struct StreamedLayer {
  std::int64_t hidden = 512, ffn = 192, heads = 3, groups = 2, width = 32;

  static StreamedLayer random(Random& random);
  std::string text(bool as_sum) const;
};

}  // namespace pw::test

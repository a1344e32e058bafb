// What is computed of weights alone, kept from run to run: as long as nobody says that a weight is
// another now.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/program.hpp"

namespace pw::cpu {

/// How often each input of a graph has changed, as far as anybody has said.
class FrozenWeights {
 public:
  explicit FrozenWeights(std::size_t inputs) : changes_(inputs, 0) {}
  void changed(std::size_t input) { ++changes_[input]; }
  /// Another number after each change of one of these inputs; never 0.
  [[nodiscard]] std::uint64_t stamp(const std::vector<std::size_t>& inputs) const;

 private:
  std::vector<std::uint64_t> changes_;
};
using FrozenWeightsPtr = std::shared_ptr<FrozenWeights>;

/// The parts of a graph that are computed of weights alone.
class ConstantParts {
 public:
  explicit ConstantParts(const Graph& graph);
  [[nodiscard]] bool of(const Graph& graph) const { return &graph == graph_; }
  /// The weights that a value is computed of; none where something else is.
  [[nodiscard]] const std::optional<std::vector<std::size_t>>& inputs_of(ValueId value) const {
    return inputs_[value.index];
  }
  /// A call that runs where a weight has changed, and else gives what it gave. Results that only
  /// such calls and packed operands read are not kept: they are null then.
  [[nodiscard]] RunCall kept(NodeId node, RunCall run, FrozenWeightsPtr weights) const;

 private:
  [[nodiscard]] bool is_constant(NodeId node) const;
  void find_inputs(NodeId node);
  void find_readers(NodeId node);

  const Graph* graph_;
  std::vector<std::optional<std::vector<std::size_t>>> inputs_;  ///< by value
  std::vector<std::vector<std::size_t>> readers_;  ///< by value: weights of all that reads it
  std::vector<bool> inside_;                       ///< by value: nothing else reads it
};

}  // namespace pw::cpu

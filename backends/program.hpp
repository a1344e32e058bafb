// A graph made ready to run op by op: bodies inlined, a kernel chosen for every node, last uses
// known. The interpreter and eager are this with different kernels and storage.
#pragma once

#include <span>
#include <vector>

#include "backends/kernel.hpp"

namespace pw {

struct Engine {
  std::string name;
  KernelTable kernels;      ///< looked up before the layout kernels
  DType (*storage)(DType);  ///< the dtype that values of a declared dtype are stored in
};

class OpProgram {
 public:
  /// Fails with PW1201 for an op without kernel and without body, once for each such op.
  static Result<OpProgram> make(const Graph& graph, const Engine& engine);
  /// Inputs in their declared dtype. Outputs may have any dtype: they are converted as `store`
  /// does.
  Result<std::monostate> run(std::span<const TensorView> inputs,
                             std::span<const TensorView> outputs, const RunContext& context) const;
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  struct Instruction {
    NodeId node;
    Kernel kernel;
    std::vector<ValueId> dies;  ///< values not needed after it
  };
  OpProgram(Graph graph, const Engine& engine) : graph_(std::move(graph)), engine_(engine) {}
  Result<std::monostate> choose_kernels();
  void find_last_uses();
  Result<std::monostate> bind_inputs(std::span<const TensorView> inputs, const RunContext& context,
                                     std::vector<Array>& values) const;
  Result<std::monostate> step(const Instruction& instruction, std::vector<Array>& values,
                              const RunContext& context) const;

  Graph graph_;
  Engine engine_;
  std::vector<Instruction> instructions_;
};

/// The extents of a value for given symbols; PW1202 if a symbol has no value.
Result<Extents> extents_of(const Graph& graph, ValueId value, const Symbols& symbols);
/// A graph as an executable of an engine.
Result<std::unique_ptr<Executable>> compile_program(const Graph& graph, const Engine& engine);

}  // namespace pw

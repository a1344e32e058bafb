// One kernel call: a primitive or opaque op of a graph, its operands as arrays, its attributes as
// numbers of this run. A kernel table lists the ops that an engine can run; all engines share the
// layout ops.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "tensor/array.hpp"

namespace pw {

using Symbols = std::map<std::string, std::int64_t, std::less<>>;

struct Call {
  const Graph& graph;
  NodeId node;
  const RunContext& context;
  std::vector<const Array*> operands;  ///< null: absent
  std::vector<Array> results;          ///< filled by the kernel; see `result`
  std::vector<Extents> extents;        ///< extents of the results
  DType (*storage)(DType);             ///< maps a declared dtype to an engine's storage dtype
  /// Required places of the results; null: any. Empty, or as long as `results`.
  std::vector<const TensorView*> places;
  std::int64_t on_rank = 0;

  [[nodiscard]] const Array& operand(std::size_t i) const { return *operands[i]; }
  [[nodiscard]] DType operand_dtype(std::size_t i) const;  ///< declared dtype
  [[nodiscard]] bool operand_weak(std::size_t i) const;    ///< true for a weak operand, of rank 0
  [[nodiscard]] DType result_dtype(std::size_t i = 0) const;
  /// Returns the dtype in which a pointwise op computes: the common dtype of its operands, so that
  /// integer comparisons are exact.
  [[nodiscard]] DType common_dtype(std::size_t first = 0) const;
  /// Returns the number of elements of an operand's axis that a reduction covers. An axis sized by
  /// the token symbol has padding rows after the valid ones.
  [[nodiscard]] std::int64_t covered(std::size_t operand, std::size_t axis) const;
  /// Returns uninitialised memory for result i: its required place, or a fresh array.
  Array& result(std::size_t i = 0);
  /// Makes y result i, or copies it to the required place.
  void set_result(Array y, std::size_t i = 0);

  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] double real(std::string_view name, double otherwise) const;
  [[nodiscard]] Extents dims(std::string_view name) const;
  /// Returns the index of an axis; negative values count from the end.
  [[nodiscard]] std::size_t axis(std::string_view name, std::int64_t otherwise,
                                 std::int64_t rank) const;
};

using Kernel = Status (*)(Call&);
struct KernelEntry {
  Primitive op;
  Kernel kernel;
};
using KernelTable = std::span<const KernelEntry>;

/// Returns the kernels of ops that compute nothing, shared by all engines: reshape, transpose,
/// slice, split, expand (views), cat, constant, full, empty, extent, and the cache write.
[[nodiscard]] KernelTable layout_kernels();
/// Returns true for products and attention, which use a library where one is available.
[[nodiscard]] bool is_library_call(const Op& op);
/// Returns the end row of each group of a grouped_mm, from operand 2. Fails with PW1204 if the ends
/// do not ascend or exceed the rows of operand 0.
[[nodiscard]] Result<std::vector<std::int64_t>> group_ends(const Call& call);
/// Returns the table's kernel for an op, or null.
[[nodiscard]] Kernel find_kernel(KernelTable table, Primitive op);
/// Returns true if an engine with this table runs a node of the op without expanding its body: from
/// the table, as a layout op, or as a collective.
[[nodiscard]] bool runs_op(KernelTable table, const Op& op);
/// A diagnostic of this call: names the node and its op.
tl::unexpected<Diagnostics> fail_call(const Call& call, std::string_view code, std::string message,
                                      std::string help = {});

}  // namespace pw

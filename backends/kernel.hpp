// One call of a kernel: a primitive or opaque op of a graph, its operands as arrays, its attributes
// as numbers of this run. A kernel table names every op that an engine can run; layout ops are
// common to all engines.
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
  std::vector<Array> results;          ///< to be filled; see `result`
  std::vector<Extents> extents;        ///< of the results
  DType (*storage)(DType);             ///< the dtype an engine stores a declared dtype in
  /// Where results belong, null: anywhere. As long as `results`, or empty.
  std::vector<const TensorView*> places;
  std::int64_t on_rank = 0;

  [[nodiscard]] const Array& operand(std::size_t i) const { return *operands[i]; }
  [[nodiscard]] DType operand_dtype(std::size_t i) const;  ///< declared
  [[nodiscard]] bool operand_weak(std::size_t i) const;    ///< rank 0
  [[nodiscard]] DType result_dtype(std::size_t i = 0) const;
  /// The dtype a pointwise op computes in: the common one of its operands, so that a comparison of
  /// integers is exact.
  [[nodiscard]] DType common_dtype(std::size_t first = 0) const;
  /// How many elements of an operand's axis a reduction covers: what the tokens' symbol sizes has
  /// rows of padding behind the valid ones.
  [[nodiscard]] std::int64_t covered(std::size_t operand, std::size_t axis) const;
  /// Memory for result i, not initialised: its place, or fresh.
  Array& result(std::size_t i = 0);

  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] double real(std::string_view name, double otherwise) const;
  [[nodiscard]] Extents dims(std::string_view name) const;
  /// An axis, counted from the end when negative.
  [[nodiscard]] std::size_t axis(std::string_view name, std::int64_t otherwise,
                                 std::int64_t rank) const;
};

using Kernel = Status (*)(Call&);
struct KernelEntry {
  std::string_view op;
  Kernel kernel;
};
using KernelTable = std::span<const KernelEntry>;

/// What computes nothing, for all engines: reshape, transpose, slice, split, expand (views), cat,
/// constant, full, empty, extent, and the write to a cache.
[[nodiscard]] KernelTable layout_kernels();
/// Products and attention: a library's wherever there is one.
[[nodiscard]] bool is_library_call(const Op& op);
/// Where the rows of each group end, by operand 2 of a grouped_mm. PW1204 where they do not ascend,
/// or leave the rows of operand 0.
[[nodiscard]] Result<std::vector<std::int64_t>> group_ends(const Call& call);
/// Null when the table has no such op.
[[nodiscard]] Kernel find_kernel(KernelTable table, std::string_view op);
/// Whether an engine with this table runs a node of the op without looking into a body: by the
/// table, as a layout op, or as a collective.
[[nodiscard]] bool runs_op(KernelTable table, const Op& op);
/// A diagnostic of this call: names the node and its op.
tl::unexpected<Diagnostics> fail_call(const Call& call, std::string_view code, std::string message,
                                      std::string help = {});

}  // namespace pw

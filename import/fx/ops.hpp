// The table from FX targets to ops of the library: data, and a parser of its one-line parameter
// lists.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/foreign.hpp"

namespace pw::fx {

/// Translation that a target needs beyond renaming its arguments. Each is a function in
/// calls/special.cpp.
enum class Special : std::uint8_t {
  none,
  view,  ///< literals may become symbols
  flatten,
  unsqueeze,
  squeeze,
  t,
  permute,
  slice,  ///< bounds may be omitted
  select,
  split,  ///< a size, not sizes
  chunk,
  expand,
  make,  ///< full and empty: the type is stated by arguments
  make_like,
  to_copy,  ///< a cast, or nothing
  copy,     ///< the source, in the type of the destination
  reduce,   ///< over a list of axes
  cat,
  stack,
  unbind,
  narrow,
  select_scatter,
  scalar,   ///< a number as a tensor
  type_of,  ///< a cast to the type of another tensor
  size,     ///< a dim, not a value
  var_mean,
  index,  ///< by tensors of indices, as those below
  index_put,
  gather,
  scatter,
  flip,
  convolution,
  arange,
  repeat,
  pad,
  pad_edges,  ///< by elements of the tensor itself
  matmul,
  roll,
  conv_transpose,
  repeat_interleave,
  unflatten,
  im2col,
  diagonal,
  diagonal_scatter,
  movedim,
  broadcast,  ///< several tensors to one shape
  meshgrid,
  unfold,
  as_strided,
  einsum,
  tensordot,
  vector_norm,
  iota,  ///< of prims, as those below
  expand_dims,
  split_dim,
  broadcast_in_dim,
  slices,  ///< along all axes
  any,     ///< over several axes
  variance,
  ir_norm,         ///< of vLLM's own IR
  rotary,          ///< heads may have a separate axis
  attention,       ///< its output buffer determines more than the operands
  scaled_product,  ///< by one scale, one a row, or one a block
  shard_rows,      ///< of a group that only other calls name
  foreign,         ///< an item of a rule file
};

struct Slot {
  enum class Use : std::uint8_t { operand, attribute, buffer, none, ignored } use = Use::ignored;
  std::vector<std::string_view> names;  ///< names in PyTorch's versions
  std::string_view to;                  ///< the library's name for it
  int result = -1;  ///< the library's result that is its new contents, if it is written
  std::optional<std::string_view> default_text;
};

struct Mapping {
  std::string_view target;  ///< without "torch.ops." and ".default"
  std::string_view op;
  std::vector<Slot> parameters;  ///< in the order of the target's schema
  Special special = Special::none;
  bool copies = false;  ///< what it returns never shares memory with what it is given
  const ForeignOp* foreign = nullptr;  ///< of Special::foreign
  /// Returns the index of the first result that is an argument's contents; nothing if it writes
  /// none.
  [[nodiscard]] std::optional<std::size_t> first_written() const;
};

/// Table of mappings, parsed on demand: a graph calls a few of a thousand targets.
class Table {
 public:
  /// Creates a table. `foreign`: the items of rule files, which precede the rows of the table; may
  /// be null, and must outlive it.
  explicit Table(const ForeignOps* foreign = nullptr) : foreign_(foreign) {}
  /// Adds an item, which the table keeps.
  const std::vector<Mapping>* add(std::shared_ptr<const ForeignOp> op);
  /// Returns the mappings of a target, in order of preference; the first whose conditions hold
  /// applies. Null if there are none.
  [[nodiscard]] const std::vector<Mapping>* find(std::string_view target);
  /// Returns all targets with rows.
  [[nodiscard]] std::set<std::string> targets() const;

 private:
  std::vector<Mapping>& rows_of(std::string_view target);

  const ForeignOps* foreign_;
  std::vector<std::shared_ptr<const ForeignOp>> declared_;          ///< that mappings refer to
  std::unordered_map<std::string, std::vector<Mapping>> mappings_;  ///< of the targets looked up
};

}  // namespace pw::fx

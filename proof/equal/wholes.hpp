// The values of a model as one device holds them, in one hash-consed graph. Inverse views,
// redundant casts, and nested slices are simplified away, so that equivalent expressions become one
// value. Every simplification preserves all bits.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace pw::proof {

/// A table lookup before masking. Ranks may hold parts of one axis of the table.
struct Lookup {
  ValueId table;                 ///< the whole table
  std::size_t slot = 0;          ///< position of the sharded axis among the index tensors
  std::vector<ValueId> at;       ///< index tensors; the one at `slot` is stored in `each_at`
  std::vector<ValueId> each_at;  ///< by rank
  std::int64_t part = 0;         ///< rows held by each rank
};

/// A value graph whose ids decide equality: two results with one id are equal bit for bit.
class Wholes {
 public:
  using Values = std::vector<ValueId>;
  using Given = std::vector<std::pair<std::string, Attribute>>;

  explicit Wholes(const ContextPtr& context) : graph_(context, "wholes") {}

  ValueId input(const std::string& name, TypeId type);
  /// Creates or reuses a node and returns its results; nothing if the op does not fit its operands.
  /// `stated` gives the result types of an op that infers none.
  std::optional<Values> make(OpId op, Values operands, AttributeList attributes,
                             const std::vector<TypeId>& stated = {});
  /// Returns the results if the node already exists.
  [[nodiscard]] std::optional<Values> find(OpId op, const Values& operands,
                                           AttributeList attributes) const;
  /// Returns the single result of a library op; invalid if it does not fit.
  ValueId one(Primitive op, Values operands, const Given& attributes);
  ValueId number(double value, DType dtype);
  ValueId slice(ValueId x, std::size_t axis, DimId start, DimId end);
  ValueId cat(const Values& parts, std::size_t axis);

  struct Slice {
    ValueId of;
    std::size_t axis = 0;
    DimId start, end;
  };
  /// Returns the contiguous slice that the value equals, if it is one.
  [[nodiscard]] std::optional<Slice> slice_at(ValueId value) const;

  /// Returns the single-device lookups that the value may equal, by index position; empty if it is
  /// not a lookup.
  [[nodiscard]] std::vector<Lookup> lookups_of(ValueId value) const;

  /// Marks the end of the single graph: later values do not count as computed by it.
  void close() { closed_ = graph_.value_bound(); }
  /// Returns true if the single graph computes the value.
  [[nodiscard]] bool of_single(ValueId value) const { return value.index < closed_; }
  /// Returns true if the value, or the value that it is a part of, is computed by the single graph.
  [[nodiscard]] bool part_of_single(ValueId value) const;
  /// Rewrites an elementwise op on slices as a slice of the op on the wholes, if that exists.
  std::optional<Values> lifted(OpId op, const Values& operands, const AttributeList& attributes);

  [[nodiscard]] const Shape& shape(ValueId value) const;
  [[nodiscard]] DType dtype(ValueId value) const;
  /// Returns the value of all elements of a constant tensor, if known.
  [[nodiscard]] std::optional<double> number_of(ValueId value) const;
  [[nodiscard]] Attribute dim_attribute(DimId dim) const;
  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] Context& context() const { return graph_.context(); }
  [[nodiscard]] Dims& dims() const { return graph_.context().dims; }
  /// Assumptions made so far.
  std::set<std::string> granted;

 private:
  using Key = std::tuple<OpId, AttributesId, Values>;
  ValueId simpler(const Op& op, const Values& operands, const AttributeList& attributes);
  [[nodiscard]] ValueId narrow_index(ValueId index) const;
  ValueId simpler_slice(ValueId x, const AttributeList& attributes);
  ValueId slice_of_cat(NodeId cat, std::size_t axis, DimId start, DimId end);
  ValueId simpler_cat(const Values& operands, const AttributeList& attributes);
  std::optional<Values> split(ValueId x, const AttributeList& attributes);
  [[nodiscard]] const Attribute* get(const AttributeList& list, std::string_view name) const;
  [[nodiscard]] std::optional<DimId> dim_of(const Attribute* attribute) const;
  [[nodiscard]] NodeId made_by(ValueId value, Primitive op) const;

  Graph graph_;
  std::map<Key, NodeId> known_;
  // All values count as computed by the single graph until close().
  std::size_t closed_ = static_cast<std::size_t>(-1);
};

/// Returns the list with one attribute replaced.
AttributeList with(Strings& strings, AttributeList list, std::string_view name, Attribute value);

}  // namespace pw::proof

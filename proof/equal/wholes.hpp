// The values of a model as one device has them: a graph in which what is made alike is one value.
// Views that undo each other, casts to the dtype that is there and parts of parts are gone, so that
// two ways to say the same are one value; all of it keeps every bit.
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

/// An index into a table, of which ranks may have parts of an axis, before a mask has left out what
/// is elsewhere.
struct Lookup {
  ValueId table;            ///< the whole one
  std::size_t slot = 0;     ///< the axis that is shared out, and its place among the index tensors
  std::vector<ValueId> at;  ///< the index tensors; the one of `slot` stands in `each_at`
  std::vector<ValueId> each_at;  ///< by rank
  std::int64_t part = 0;         ///< rows that a rank has
};

class Wholes {
 public:
  using Values = std::vector<ValueId>;
  using Given = std::vector<std::pair<std::string, Attribute>>;

  explicit Wholes(const ContextPtr& context) : graph_(context, "wholes") {}

  ValueId input(const std::string& name, TypeId type);
  /// The op's results; nothing where it does not fit its operands. `stated`: the types of the
  /// results of an op that infers none.
  std::optional<Values> make(OpId op, Values operands, AttributeList attributes,
                             const std::vector<TypeId>& stated = {});
  /// The results if they are there already.
  [[nodiscard]] std::optional<Values> find(OpId op, const Values& operands,
                                           AttributeList attributes) const;
  /// The one result of an op of the library; invalid where it does not fit.
  ValueId one(std::string_view op, Values operands, const Given& attributes);
  ValueId number(double value, DType dtype);
  ValueId slice(ValueId x, std::size_t axis, DimId start, DimId end);
  ValueId cat(const Values& parts, std::size_t axis);

  struct Slice {
    ValueId of;
    std::size_t axis = 0;
    DimId start, end;
  };
  /// The slice of neighbours that it is.
  [[nodiscard]] std::optional<Slice> slice_at(ValueId value) const;

  /// The lookups of one device that it may be, by the place of the index; none where it is no
  /// lookup.
  [[nodiscard]] std::vector<Lookup> lookups_of(ValueId value) const;

  /// From here on what is made is not counted as a value of the single graph.
  void close() { closed_ = graph_.value_bound(); }
  /// Whether the single graph computes it.
  [[nodiscard]] bool of_single(ValueId value) const { return value.index < closed_; }
  /// The same, or parts of what it computes.
  [[nodiscard]] bool part_of_single(ValueId value) const;
  /// An op that takes each element by itself, of slices: the slice of what is there of the whole.
  std::optional<Values> lifted(OpId op, const Values& operands, const AttributeList& attributes);

  [[nodiscard]] const Shape& shape(ValueId value) const;
  [[nodiscard]] DType dtype(ValueId value) const;
  /// The number that all elements hold, where that is known.
  [[nodiscard]] std::optional<double> number_of(ValueId value) const;
  [[nodiscard]] Attribute dim_attribute(DimId dim) const;
  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] Context& context() const { return graph_.context(); }
  [[nodiscard]] Dims& dims() const { return graph_.context().dims; }
  /// What was taken for granted on the way.
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
  [[nodiscard]] NodeId made_by(ValueId value, std::string_view op) const;

  Graph graph_;
  std::map<Key, NodeId> known_;
  std::size_t closed_ = static_cast<std::size_t>(-1);
};

/// With another value for one name.
AttributeList with(Strings& strings, AttributeList list, std::string_view name, Attribute value);

}  // namespace pw::proof
